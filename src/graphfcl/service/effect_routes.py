"""Routes that return what a version changed. It is computed once per version, in the background."""

import threading
from collections import OrderedDict
from typing import Any

from fastapi import APIRouter, Response

from graphfcl.client.answers import ClassName, Effect, MovedNodes
from graphfcl.errors import InputError
from graphfcl.production.model.recalls import Recall
from graphfcl.service.background import Computed
from graphfcl.service.changes import as_sent
from graphfcl.service.effects import LISTED, Move, VersionEffect, compute_effect
from graphfcl.service.paging import Cursor, Limit, cursor_at, page_start
from graphfcl.service.problems import Problem
from graphfcl.service.service import Service, answered, refuse_many

KEPT = 8  # versions whose effects stay in memory


class Effects:
    """Effects of versions. The most recent results stay in memory, by the checksum of the version."""

    def __init__(self, service: Service) -> None:
        self._service, self._lock = service, threading.Lock()
        self._kept: OrderedDict[str, VersionEffect] = OrderedDict()

    def find(self, version: int) -> VersionEffect | str | None:
        """Return the effect of a version, None while it is computed, or a sentence that says why it cannot be."""
        snapshot = self._service.writer.current
        if not any(change.version == version for change in snapshot.changes):
            text = f"there is no version {version}: /v1/versions lists them."
            raise Problem(404, text, "unknown-version", version=snapshot.version)
        key = self._key(version)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        computed: Computed | None = self._service.background.find(
            ("effect", version), lambda _: self._compute(version), snapshot
        )
        if computed is not None and computed.version == snapshot.version:
            return computed.error or computed.value
        return None

    def _key(self, version: int) -> str:
        try:
            return str(self._service.writer.versions.manifest(version)["sha256"])
        except InputError as error:
            raise Problem(422, str(error)) from error

    def _compute(self, version: int) -> VersionEffect:
        versions = self._service.writer.versions
        manifest = versions.manifest(version)
        with self._lock:
            if manifest["sha256"] in self._kept:
                return self._kept[manifest["sha256"]]
        parent = manifest["parent"]
        if parent is None:
            raise InputError(f"version {version} is the first one: there is nothing to compare it with.")
        before, after = (self._service.writer.model_of(number) for number in (parent, version))
        effect = compute_effect(before, after, manifest["changes"])
        with self._lock:
            self._kept[manifest["sha256"]] = effect
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return effect


def effect_routes(service: Service) -> APIRouter:
    """Make the routes of the effect of a version and of the nodes of its moves."""
    routes = APIRouter(prefix="/v1", tags=["read"])
    effects = Effects(service)

    @routes.get("/versions/{version}/effect", response_model=Effect)
    def get_effect(version: int) -> Response:
        """Compare the predictions of a version with those of the version before.

        ``moves`` counts the nodes that moved from the class ``before`` to the class ``after``; null means that the
        nodes look unknown. Renaming or merging a class is not a move. Recalls are counts with Wilson's 95 % interval;
        ``worse`` says whether a recall fell by more than chance explains (Newcombe's interval of the difference).
        ``doubts`` lists new labels to which this version, or the version before, gives a probability of at most 5 %.

        The effect is computed in the background: ``status`` says whether it is ready. It is ``none``, with the reason
        in ``why``, if there are no predictions to compare with: a model on a graph folder keeps those of its two
        newest versions.
        """
        effect = effects.find(version)
        values: dict[str, Any] = {"status": "computing"}
        if isinstance(effect, str):
            values = {"status": "none", "why": effect}
        elif effect is not None:
            values = {"status": "ready", **_as_json(effect)}
        return answered({**values, "effect_of": version}, service.writer.current.version)

    @routes.get("/versions/{version}/moves/{number}", response_model=MovedNodes)
    def list_moved_nodes(
        version: int,
        number: int,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Response:
        """List the nodes of one move of an effect that is ready."""
        refuse_many(limit, service.limits.ids, "nodes")
        effect = effects.find(version)
        if not isinstance(effect, VersionEffect) or not 1 <= number <= len(effect.moves):
            why = f"has no move {number}" if isinstance(effect, VersionEffect) else "is not computed"
            raise Problem(404, f"the effect of version {version} {why}: /v1/versions/{version}/effect lists them.")
        move = effect.moves[number - 1]
        start = page_start(cursor, version, number)
        ids = [str(each) for each in move.ids[start : start + limit].tolist()]
        further = cursor_at(start + limit, move.ids.size, version, number)
        values = {**_names(move), "total": int(move.ids.size), "ids": ids, "next_cursor": further}
        return answered(values, service.writer.current.version)

    return routes


def _as_json(effect: VersionEffect) -> dict[str, Any]:
    pooled = {
        f"{kind}_{when}": _recall(effect.pooled(few_shot=kind == "later", after=when == "after"))
        for kind in ("fit", "later")
        for when in ("before", "after")
    }
    return {
        "nodes": effect.nodes,
        "changed": sum(int(move.ids.size) for move in effect.moves),
        "moves": [
            {"number": number, **_names(move), "nodes": int(move.ids.size), "labelled": int(move.labelled)}
            for number, move in enumerate(effect.moves, 1)
        ],
        "classes": [
            {
                "name": as_sent(each.name),
                "before": _recall(each.before),
                "after": _recall(each.after),
                "worse": bool(each.worse),
            }
            for each in effect.classes
        ],
        "accuracy": pooled,
        "doubts": [
            {
                "id": each.id,
                "label": as_sent(each.label),
                "guess": as_sent(each.guess),
                "probability": each.probability,
            }
            for each in effect.doubts[:LISTED]
        ],
        "warnings": list(effect.warnings),
    }


def _names(move: Move) -> dict[str, ClassName | None]:
    return {
        key: None if name is None else as_sent(name) for key, name in (("before", move.before), ("after", move.after))
    }


def _recall(recall: Recall | None) -> dict[str, Any] | None:
    return None if recall is None else recall.as_json()
