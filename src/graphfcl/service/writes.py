"""Routes that change the model. Each is one version of the folder, or nothing."""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Header, Request, Response

from graphfcl.graph.ids import normal
from graphfcl.production import GraphClassifier
from graphfcl.production.labels.label_store import Statement, Support
from graphfcl.service.bodies import GroupName, Ids, Into, Labels, NewEdges, NewName, NewNodes
from graphfcl.service.changes import gone_classes
from graphfcl.service.problems import Problem, shown
from graphfcl.service.service import Service, refuse_many, refuse_strange, sent_text
from graphfcl.service.snapshots import Snapshot
from graphfcl.service.writer import Asked, stale

IfMatch = Annotated[str | None, Header(alias="If-Match", description='The version this is meant for: "7".')]
Key = Annotated[str | None, Header(alias="Idempotency-Key", description="The same for the same request sent again.")]
DIGITS = 18


def write_routes(service: Service) -> APIRouter:
    """What can be done to the model."""
    routes = APIRouter(prefix="/v1", tags=["change"])
    _label_routes(routes, service)
    _class_routes(routes, service)
    _graph_routes(routes, service)
    _version_routes(routes, service)
    return routes


async def asked_for(request: Request, if_match: str | None, key: str | None, limit: int) -> Asked:
    """What a request says about itself. Its fingerprint is of method, address and body."""
    body = await request.body()
    content = b"\0".join([request.method.encode(), request.scope["path"].encode(), body])
    if key is not None and not (0 < len(key) <= limit and key.isascii() and key.isprintable()):
        raise Problem(422, f"the idempotency key must have 1 to {limit} printable ASCII characters.")
    return Asked(hashlib.sha256(content).hexdigest(), _version(if_match), key)


def _version(if_match: str | None) -> int | None:
    """The version of an ``If-Match`` header; ``*`` means any."""
    if if_match is None or if_match.strip() == "*":
        return None
    number = if_match.strip().removeprefix("W/").strip('"')  # a proxy that compresses makes it weak
    if not (number.isascii() and number.isdigit() and len(number) <= DIGITS):
        raise Problem(422, f'If-Match {shown(if_match)} names no version: send the ETag of an answer, such as "7".')
    return int(number)


def _label_routes(routes: APIRouter, service: Service) -> None:
    @routes.post("/labels")
    async def learn(request: Request, body: Labels, if_match: IfMatch = None, key: Key = None) -> Response:
        """Teach labels of nodes; a class that is not known yet is a new one."""
        refuse_many(len(body.labels), service.limits.labels, "labels")
        asked = await asked_for(request, if_match, key, service.limits.key)

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            refuse_strange(snapshot, [label.id for label in body.labels])
            if not body.again:
                _refuse_gone(snapshot, [label.name for label in body.labels])
            _refuse_dots([label.name for label in body.labels if snapshot.model.label_store_.find(label.name) is None])
            _refuse_conflicts(snapshot, body)
            said = Statement.of(body.by, "", {}, "by")
            supports = [
                Support(label.id, str(label.name), f"label {place}", said) for place, label in enumerate(body.labels, 1)
            ]
            model.learn_listed(supports, on_conflict=body.on_conflict)

        return await service.changing(lambda: service.writer.change(asked, apply))

    @routes.delete("/labels")
    async def unlearn(request: Request, body: Ids, if_match: IfMatch = None, key: Key = None) -> Response:
        """Take back the labels of some nodes."""
        refuse_many(len(body.ids), service.limits.labels, "ids")
        asked = await asked_for(request, if_match, key, service.limits.key)

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            refuse_strange(snapshot, body.ids)
            model.unlearn(body.ids)

        return await service.changing(lambda: service.writer.change(asked, apply))

    @routes.post("/groups/{number}/name")
    async def name_group(
        request: Request, number: int, body: GroupName, if_match: IfMatch = None, key: Key = None
    ) -> Response:
        """Give a group of a version a name: its typical, spread members become the supports of a class."""
        asked = await asked_for(request, if_match, key, service.limits.key)

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            if body.version != snapshot.version:
                raise stale(snapshot.version, body.version)
            found = service.background.known(("groups", body.count), snapshot.version)
            groups = {group.number: group for group in found or snapshot.model.groups(body.count)}
            if number not in groups:
                raise Problem(404, f"version {snapshot.version} has no group {number}: /v1/groups lists them.")
            if not body.again:
                _refuse_gone(snapshot, [body.name])
            _refuse_dots([body.name])
            model.name_group(groups[number], body.name, by=body.by)

        return await service.changing(lambda: service.writer.change(asked, apply))


def _refuse_gone(snapshot: Snapshot, names: Sequence[str | int]) -> None:
    """Refuse a label of a class that was retired, renamed or merged: whoever gave it may not know."""
    strange = [name for name in dict.fromkeys(names) if snapshot.model.label_store_.find(name) is None]
    if not strange:
        return
    gone = gone_classes(snapshot.changes)
    for name in strange:
        if str(name) in gone:
            raise Problem(
                409,
                f'class {shown(name)} {gone[str(name)]}: choose another class, or send "again": true to teach it as a '
                "class of its own; nothing was changed.",
                version=snapshot.version,
            )


def _refuse_dots(names: Sequence[str | int]) -> None:
    """Refuse names that an address cannot hold: a browser takes them for folders."""
    for name in names:
        if normal(str(name)) in (".", ".."):
            raise Problem(422, f"{shown(name)} cannot be part of an address: choose another name; nothing was changed.")


def _refuse_conflicts(snapshot: Snapshot, body: Labels) -> None:
    """Refuse labels of nodes that have another one, if nothing was said about conflicts."""
    if body.on_conflict != "refuse":
        return
    rows = snapshot.graph.rows_of_ids([label.id for label in body.labels])
    for label, row in zip(body.labels, np.asarray(rows).tolist(), strict=True):
        known = snapshot.label_at(row)
        if known is not None and str(known) != (snapshot.model.label_store_.find(label.name) or str(label.name)):
            raise Problem(
                409,
                f'node {shown(label.id)} is labelled {shown(known)} already: send "on_conflict": "keep" or '
                '"replace", or leave it out; nothing was changed.',
                version=snapshot.version,
            )


def _class_routes(routes: APIRouter, service: Service) -> None:
    @routes.patch("/classes/{name}")
    async def rename(request: Request, name: str, body: NewName, if_match: IfMatch = None, key: Key = None) -> Response:
        """Rename a class."""
        _refuse_dots([body.name])
        return await _of_class(request, name, if_match, key, lambda model, old: model.rename(old, body.name))

    @routes.delete("/classes/{name}")
    async def retire(request: Request, name: str, if_match: IfMatch = None, key: Key = None) -> Response:
        """Stop predicting a class; its nodes lose their label."""
        return await _of_class(request, name, if_match, key, lambda model, old: model.retire(old))

    @routes.post("/classes/{name}/merge")
    async def merge(request: Request, name: str, body: Into, if_match: IfMatch = None, key: Key = None) -> Response:
        """Merge a class into another."""
        return await _of_class(request, name, if_match, key, lambda model, old: model.merge(old, body.into))

    async def _of_class(request: Request, name: str, if_match: str | None, key: str | None, change: Any) -> Response:
        asked, wanted = await asked_for(request, if_match, key, service.limits.key), sent_text(name)

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            if snapshot.model.label_store_.find(wanted) is None:
                became = gone_classes(snapshot.changes).get(wanted)
                said = f"class {shown(wanted)} {became}" if became else f"the model knows no class {shown(wanted)}"
                raise Problem(409 if became else 404, f"{said}: /v1/classes lists those there are.")
            change(model, wanted)

        return await service.changing(lambda: service.writer.change(asked, apply))


def _graph_routes(routes: APIRouter, service: Service) -> None:
    @routes.post("/nodes")
    async def add_nodes(request: Request, body: NewNodes, if_match: IfMatch = None, key: Key = None) -> Response:
        """New nodes, with features or texts; without edges yet."""
        _refuse_dots(body.ids)
        refuse_many(len(body.ids), service.limits.labels, "ids")
        asked = await asked_for(request, if_match, key, service.limits.key)

        def apply(model: GraphClassifier, _: Snapshot) -> None:
            features: Any = body.features
            if features and isinstance(features[0], list):
                features = _matrix(features)
            model.add_nodes(body.ids, features, texts=body.texts)

        return await service.changing(lambda: service.writer.change(asked, apply))

    @routes.post("/edges")
    async def add_edges(request: Request, body: NewEdges, if_match: IfMatch = None, key: Key = None) -> Response:
        """New edges between nodes that are there."""
        refuse_many(max(len(body.sources), len(body.targets)), service.limits.labels, "edges")
        if len(body.sources) != len(body.targets) or (
            body.weights is not None and len(body.weights) != len(body.sources)
        ):
            raise Problem(422, "sources, targets and weights must be of one length: an edge has one of each.")
        asked = await asked_for(request, if_match, key, service.limits.key)

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            refuse_strange(snapshot, [*body.sources, *body.targets])
            weights = None if body.weights is None else np.array(body.weights, dtype=np.float64)
            model.add_edges(body.sources, body.targets, weights)
            rows = snapshot.graph.rows_of_ids(body.sources)
            before, after = (each.visible.neighbours_at(rows) for each in (snapshot.graph, model.graph_))
            if (before != after).nnz == 0:
                raise Problem(
                    422,
                    "the edges add nothing: each is there already with this weight or a larger one, or leads from a "
                    "node to itself; nothing was changed.",
                )

        return await service.changing(lambda: service.writer.change(asked, apply))


def _matrix(rows: list[Any]) -> np.ndarray:
    """(n, d) rows of numbers, each of one length."""
    if any(not isinstance(row, list) or len(row) != len(rows[0]) for row in rows):
        raise Problem(422, "features: give every node a list of the same length, or every node {name: value}.")
    return np.array(rows, dtype=np.float32)


def _version_routes(routes: APIRouter, service: Service) -> None:
    @routes.post("/versions/{version}/rollback")
    async def rollback(request: Request, version: int, if_match: IfMatch = None, key: Key = None) -> Response:
        """Write a version equal to an old one."""
        asked = await asked_for(request, if_match, key, service.limits.key)
        return await service.changing(lambda: service.writer.rollback(asked, version))
