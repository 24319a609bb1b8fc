"""Predicted members of a class, the most doubtful first, and accepting the most probable ones."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Response
from pydantic import Field, StrictInt

from graphfcl.active.contract import likeliest_classes
from graphfcl.client.answers import Changed, Members
from graphfcl.errors import quoted
from graphfcl.production import GraphClassifier
from graphfcl.production.answers.expected_errors import expected_errors
from graphfcl.production.labels.history import now
from graphfcl.service.bodies import Body, By, Finite, Id
from graphfcl.service.listed_labels import class_place
from graphfcl.service.paging import Cursor, Limit, cursor_at, page_start
from graphfcl.service.problems import Problem
from graphfcl.service.service import Service, answered, refuse_many, require_rows, sent_text
from graphfcl.service.snapshots import Snapshot
from graphfcl.service.writer import stale
from graphfcl.service.writes import Change

THRESHOLDS = (0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5)  # to choose from


class Accept(Body):
    """Which predicted members of a class to accept.

    Attributes:
        version: Version whose predictions are accepted.
        threshold: Smallest probability that is accepted.
        leave_out: Ids of members that are not accepted although they reach the threshold.
        by: Name of the person who accepts the predictions.
    """

    version: StrictInt
    threshold: Annotated[Finite, Field(gt=0, le=1)]
    leave_out: list[Id] = Field(default_factory=list)
    by: By = ""


@dataclass(frozen=True, eq=False)
class Predicted:
    """The position of each row's most likely class, its probability, and whether the row looks unknown."""

    places: np.ndarray
    probabilities: np.ndarray
    unknown: np.ndarray


def predicted(snapshot: Snapshot) -> Predicted:
    """Return the predictions for all rows, computed once per version."""

    def compute() -> Predicted:
        model = snapshot.model
        places, probabilities, _ = likeliest_classes(model.by_row, np.arange(snapshot.labels.size))
        unknown = model.by_row.unknown_scores() > model.calibration_.threshold
        return Predicted(places.astype(np.int32), probabilities, unknown)

    return snapshot.memory.find("predicted", compute)


def member_rows(snapshot: Snapshot, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the unlabelled rows that are predicted as a class and look known, by ascending probability."""
    answers = predicted(snapshot)
    rows = np.flatnonzero((snapshot.labels == -1) & (answers.places == place) & ~answers.unknown)
    rows = rows[np.argsort(answers.probabilities[rows], kind="stable")]
    return rows, answers.probabilities[rows]


def member_routes(service: Service) -> APIRouter:
    """Make the route that lists the members of a class."""
    routes = APIRouter(prefix="/v1/classes", tags=["read"])

    @routes.get("/{name}/members", response_model=Members)
    def list_members(name: str, limit: Limit = 50, cursor: Cursor = None) -> Response:
        """List the nodes without a label that are predicted as a class, the most doubtful first.

        ``choices`` says for some thresholds of the probability how many members reach the threshold, and how many
        errors to expect among them: Σ (1 − p), with a conservative 95 % range (Poisson).
        """
        refuse_many(limit, service.limits.ids, "nodes")
        snapshot = service.writer.current
        place = class_place(snapshot, sent_text(name))
        rows, probabilities = member_rows(snapshot, place)
        one_list = (snapshot.version, str(snapshot.classes[place]))
        start = page_start(cursor, *one_list)
        listed = rows[start : start + limit]
        values = {
            "name": snapshot.classes[place],
            "total": int(rows.size),
            "members": _member_cards(snapshot, listed, place),
            "next_cursor": cursor_at(start + limit, rows.size, *one_list),
            "choices": [_choice(probabilities, threshold) for threshold in THRESHOLDS],
        }
        return answered(values, snapshot.version)

    return routes


def accept_routes(service: Service) -> APIRouter:
    """Make the route that accepts members of a class."""
    routes = APIRouter(prefix="/v1/classes", tags=["change"])

    @routes.post("/{name}/accept", response_model=Changed)
    async def accept_members(change: Change, name: str, body: Accept) -> Response:
        """Accept the predictions for the members of a class whose probability is at least ``threshold``.

        The model does not learn from accepted labels and is not measured on them, so no prediction changes. Removing
        the labels undoes the acceptance exactly, and a label taught for such a node replaces the accepted one.
        ``expected_errors`` assumes that the probabilities are calibrated and that every node is of a known class;
        nodes of a class that the model does not know are further errors.
        """
        refuse_many(len(body.leave_out), service.limits.labels, "ids")

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            if body.version != snapshot.version:
                raise stale(snapshot.version, body.version)
            rows, probabilities = member_rows(snapshot, class_place(snapshot, sent_text(name)))
            left_out = require_rows(snapshot, body.leave_out)
            chosen = rows[(probabilities >= body.threshold) & ~np.isin(rows, left_out)]
            if not chosen.size:
                text = f"no member of {quoted(name)} has a probability of {body.threshold:g}: choose a lower one."
                raise Problem(422, f"{text} Nothing was changed.", version=snapshot.version)
            reason = f"accepted: probability {body.threshold:g} or more"
            model.accept(snapshot.graph.ids_at(chosen).tolist(), by=body.by, when=now(), reason=reason)

        return await service.change(change, apply)

    return routes


def _member_cards(snapshot: Snapshot, rows: np.ndarray, place: int) -> list[dict[str, Any]]:
    if not rows.size:
        return []
    answers = snapshot.predictions(rows)
    own = answers.probabilities[:, place].copy()
    others = answers.probabilities.copy()
    others[:, place] = -1
    second = others.argmax(axis=1)
    return [
        {
            "id": node,
            "probability": float(own[at]),
            "unknown_score": float(answers.unknown_scores[at]),
            "second": None
            if len(snapshot.classes) == 1
            else {"name": snapshot.classes[second[at]], "probability": float(others[at, second[at]])},
        }
        for at, node in enumerate(snapshot.ids_at(rows))
    ]


def _choice(probabilities: np.ndarray, threshold: float) -> dict[str, Any]:
    """Return what accepting all members above a threshold would do; ``probabilities`` must be ascending."""
    chosen = probabilities[np.searchsorted(probabilities, threshold) :]
    return {"threshold": threshold, "nodes": int(chosen.size), "expected_errors": expected_errors(chosen).as_json()}
