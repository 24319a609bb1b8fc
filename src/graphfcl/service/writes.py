"""Routes that change the model. Each request writes one version of the folder, or nothing."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np
from fastapi import APIRouter, Depends, Header, Request, Response

import graphfcl.service.bodies as bodies
from graphfcl.client.answers import Changed
from graphfcl.errors import quoted
from graphfcl.graph.ids import normal
from graphfcl.production import GraphClassifier
from graphfcl.production.labels.history import now
from graphfcl.production.labels.statements import Statement, Support
from graphfcl.service.changes import gone_classes
from graphfcl.service.label_studio import TasksToLearn, read_tasks
from graphfcl.service.problems import Problem
from graphfcl.service.service import Service, refuse_many, require_rows, sent_text, unknown_places, without
from graphfcl.service.snapshots import Snapshot
from graphfcl.service.writer import ChangeRequest, Details, stale

IfMatch = Annotated[
    str | None, Header(alias="If-Match", description='Make the change only if the model has this version: "7".')
]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", description="Repeat a request with the same key: it is made at most once."),
]
KEY_LENGTH = 200  # characters of an idempotency key
DIGITS = 18


async def read_request(request: Request, if_match: IfMatch = None, key: Key = None) -> ChangeRequest:
    """Read the version, key and fingerprint of a request. The fingerprint covers method, address and body."""
    if key is not None and not (0 < len(key) <= KEY_LENGTH and key.isascii() and key.isprintable()):
        raise Problem(422, f"the idempotency key must have 1 to {KEY_LENGTH} printable ASCII characters.")
    content = b"\0".join([request.method.encode(), request.scope["path"].encode(), await request.body()])
    return ChangeRequest(hashlib.sha256(content).hexdigest(), _version(if_match), key)


Change = Annotated[ChangeRequest, Depends(read_request)]


def _version(if_match: str | None) -> int | None:
    """Read an ``If-Match`` header, which is a version or the ``ETag`` of an answer; ``*`` means any version."""
    if if_match is None or if_match.strip() == "*":
        return None
    tag = if_match.strip().removeprefix("W/").strip('"')  # compressed answers have a weak tag
    number = tag.partition("-")[0]
    if not (number.isascii() and number.isdigit() and len(number) <= DIGITS):
        raise Problem(422, f'If-Match {quoted(if_match)} names no version: send the version of an answer, such as "7".')
    return int(number)


def write_routes(service: Service) -> APIRouter:
    """Make the routes that change the model."""
    routes = APIRouter(prefix="/v1", tags=["change"])
    _label_routes(routes, service)
    _class_routes(routes, service)
    _graph_routes(routes, service)

    @routes.post("/versions/{version}/rollback", response_model=Changed)
    async def roll_back(change: Change, version: int) -> Response:
        """Write a new version that equals an old one."""
        return await service.run_change(lambda: service.writer.rollback(change, version))

    return routes


def _label_routes(routes: APIRouter, service: Service) -> None:
    @routes.post("/labels", response_model=Changed)
    async def learn(change: Change, body: bodies.Labels) -> Response:
        """Learn labels of nodes; a name that the model does not know starts a new class.

        A new name that looks like a known one is refused. ``new_classes`` changes this: a list of the only names that
        may start a class, even if they look like a known one, or ``false``.
        """
        statements = [statement_of(body.by, label, f"label {place}") for place, label in enumerate(body.labels, 1)]
        return await _learn_all(service, change, body, body.labels, statements)

    @routes.post("/import/label-studio", response_model=Changed)
    async def import_label_studio(change: Change, body: TasksToLearn) -> Response:
        """Learn the completed annotations of a JSON export of Label Studio.

        If two annotators of a task disagree, ``keep`` learns the first annotation and ``replace`` the last. The node is
        listed as a label issue either way.
        """
        return await _learn_all(service, change, body, *read_tasks(body))

    @routes.delete("/labels", response_model=Changed)
    async def unlearn(change: Change, body: bodies.Ids) -> Response:
        """Remove the labels of some nodes."""
        refuse_many(len(body.ids), service.limits.labels, "ids")

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            require_rows(snapshot, body.ids)
            model.unlearn(body.ids)

        return await service.change(change, apply)

    @routes.post("/groups/{number}/name", response_model=Changed)
    async def name_group(change: Change, number: int, body: bodies.GroupName) -> Response:
        """Name a group: teach some of its members as a class.

        By default as many typical members are taught as the model has shots; ``nodes`` chooses the members.
        """
        refuse_many(len(body.nodes or ()), service.limits.labels, "nodes")

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            if body.version != snapshot.version:
                raise stale(snapshot.version, body.version)
            listed = service.background.computed(("groups", body.count), snapshot.version)
            groups = {group.number: group for group in listed or snapshot.model.groups(body.count)}
            if number not in groups:
                text = f"version {snapshot.version} has no group {number}: /v1/groups lists them."
                raise Problem(404, text, "unknown-group")
            _refuse_names(snapshot, [body.name], again=body.again)
            group, names = groups[number], body.new_classes
            model.name_group(group, body.name, nodes=body.nodes, by=body.by, when=now(), new_classes=names)

        return await service.change(change, apply)


def statement_of(by: str, label: bodies.Label, place: str) -> Statement:
    """Record who gives a label now, why the node was suggested, and the note."""
    return Statement.of(by, now(), {"reason": label.reason, "note": label.note}, place)


async def _learn_all(
    service: Service,
    change: ChangeRequest,
    body: bodies.Teaching,
    labels: list[bodies.Label],
    statements: list[Statement],
) -> Response:
    """Learn labels with the options of ``body``. ``statements`` says who gave each label."""
    refuse_many(len(labels), service.limits.labels, "labels")
    ids = [label.id for label in labels]

    def apply(model: GraphClassifier, snapshot: Snapshot) -> Details:
        places = unknown_places(snapshot, ids, body.on_unknown)
        known = without(list(zip(labels, statements, strict=True)), places)
        _refuse_names(snapshot, [label.name for label, _ in known], again=body.again)
        if body.on_conflict == "refuse":
            _refuse_conflicts(snapshot, [label for label, _ in known])
        supports = [
            Support(label.id, str(label.name), f"label {place}", statement)
            for place, (label, statement) in enumerate(known, 1)
        ]
        if supports:
            model.learn_listed(supports, on_conflict=body.on_conflict, new_classes=body.new_classes)
        return {"left_out": places} if body.on_unknown == "skip" else None

    return await service.change(change, apply, ids)


def _refuse_names(snapshot: Snapshot, names: Sequence[str | int], *, again: bool) -> None:
    """Refuse names that cannot be part of an address, and names of former classes unless ``again``.

    A client that names a retired, renamed or merged class may not know that the class is gone.
    """
    labels = snapshot.model.label_store_
    new = [name for name in dict.fromkeys(names) if labels.find(name) is None]
    gone = _former_classes(snapshot) if new and not again else {}
    for name in new:
        why = gone.get(labels.form(labels.text(name)))
        if why:
            raise Problem(
                409,
                f'class {quoted(name)} {why}: choose another class, or send "again": true to teach it as a '
                "class of its own; nothing was changed.",
                "former-class",
                version=snapshot.version,
            )
    _refuse_dots(new)


def _former_classes(snapshot: Snapshot) -> dict[str, str]:
    """Return what happened to former classes, by the form in which the model compares names."""
    return {snapshot.model.label_store_.form(name): why for name, why in gone_classes(snapshot.changes).items()}


def _refuse_dots(names: Sequence[str | int]) -> None:
    """Refuse the names "." and "..", which browsers resolve as folders in an address."""
    for name in names:
        if normal(str(name)) in (".", ".."):
            text = f"{quoted(name)} cannot be part of an address: choose another name; nothing was changed."
            raise Problem(422, text)


def _refuse_conflicts(snapshot: Snapshot, labels: Sequence[bodies.Label]) -> None:
    """Refuse labels of nodes that have a different label."""
    for label, row in zip(labels, require_rows(snapshot, [label.id for label in labels]), strict=True):
        current = snapshot.label_at(row)
        if current is not None and str(current) != (snapshot.model.label_store_.find(label.name) or str(label.name)):
            raise Problem(
                409,
                f'node {quoted(label.id)} is already labelled {quoted(current)}: send "on_conflict": "keep" or '
                '"replace", or leave it out; nothing was changed.',
                "label-conflict",
                version=snapshot.version,
            )


def _class_routes(routes: APIRouter, service: Service) -> None:
    @routes.patch("/classes/{name}", response_model=Changed)
    async def rename_class(change: Change, name: str, body: bodies.NewName) -> Response:
        """Rename a class."""
        _refuse_dots([body.name])
        return await change_class(change, name, lambda model, old: model.rename(old, body.name))

    @routes.delete("/classes/{name}", response_model=Changed)
    async def retire_class(change: Change, name: str) -> Response:
        """Stop predicting a class; its nodes lose their label."""
        return await change_class(change, name, lambda model, old: model.retire(old))

    @routes.post("/classes/{name}/merge", response_model=Changed)
    async def merge_class(change: Change, name: str, body: bodies.Into) -> Response:
        """Merge a class into another class."""
        return await change_class(change, name, lambda model, old: model.merge(old, body.into))

    async def change_class(
        change: ChangeRequest, name: str, apply_to: Callable[[GraphClassifier, str], object]
    ) -> Response:
        old = sent_text(name)

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            if snapshot.model.label_store_.find(old) is None:
                became = _former_classes(snapshot).get(snapshot.model.label_store_.form(old))
                why = f"class {quoted(old)} {became}" if became else f"the model knows no class {quoted(old)}"
                text = f"{why}: /v1/classes lists the classes."
                raise Problem(409, text, "former-class") if became else Problem(404, text, "unknown-class")
            apply_to(model, old)

        return await service.change(change, apply)


def _graph_routes(routes: APIRouter, service: Service) -> None:
    @routes.post("/nodes", response_model=Changed)
    async def add_nodes(change: Change, body: bodies.NewNodes) -> Response:
        """Add nodes with features or texts, or update them.

        ``on_existing`` says what happens to nodes that exist with other features. The new nodes have no edges.
        """
        _refuse_dots(body.ids)
        refuse_many(len(body.ids), service.limits.labels, "ids")

        def apply(model: GraphClassifier, _: Snapshot) -> None:
            model.add_nodes(body.ids, body.features, texts=body.texts, on_existing=body.on_existing)

        return await service.change(change, apply)

    @routes.post("/edges", response_model=Changed)
    async def add_edges(change: Change, body: bodies.NewEdges) -> Response:
        """Add edges between existing nodes, or update their weights.

        ``on_existing`` says what happens to edges that exist with another weight.
        """
        refuse_many(max(len(body.sources), len(body.targets)), service.limits.labels, "edges")

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            require_rows(snapshot, [*body.sources, *body.targets])
            weights = None if body.weights is None else np.array(body.weights, dtype=np.float64)
            model.add_edges(body.sources, body.targets, weights, on_existing=body.on_existing)

        return await service.change(change, apply)
