"""Routes that read the model. Each takes the current snapshot once and never waits for another request."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

import graphfcl.client.answers as answers
import graphfcl.service.cards as cards
from graphfcl.active.registry import REGISTRY, find_strategy
from graphfcl.errors import quoted
from graphfcl.graph.ids import CLASS_NAME
from graphfcl.service.background import Question
from graphfcl.service.bodies import Batch, Ids
from graphfcl.service.listed_labels import label_page
from graphfcl.service.paging import Cursor, Limit, cursor_at, lost_cursor, make_cursor, page_start, read_cursor
from graphfcl.service.problems import Problem
from graphfcl.service.queue import queue_cards, queue_order, queued_rows, simple_order
from graphfcl.service.service import (
    Service,
    answered,
    left_out_cards,
    refuse_many,
    require_rows,
    sent_text,
    unknown_places,
    without,
)
from graphfcl.service.snapshots import Snapshot

LISTED = 20


def read_routes(service: Service) -> APIRouter:
    """Make the routes that read the model. Fast routes are async, since starting a thread would take longer."""
    routes = APIRouter(prefix="/v1", tags=["read"])
    _model_routes(routes, service)
    _node_routes(routes, service)
    _batch_routes(routes, service)
    _label_routes(routes, service)
    _label_next_routes(routes, service)
    return routes


def _model_routes(routes: APIRouter, service: Service) -> None:
    @routes.get("/model", response_model=answers.Model)
    async def get_model() -> Response:
        """Describe the model: method, numbers of nodes, edges and classes, and when it changed last."""
        snapshot = service.writer.current
        graph, trouble = snapshot.graph, service.writer.trouble
        return answered(
            {
                **({} if trouble is None else {"warning": trouble}),
                "method": snapshot.model.method,
                "nodes": graph.node_count,
                "edges": graph.edge_count,
                "classes": len(snapshot.classes),
                "changed_at": snapshot.changes[-1].when if snapshot.changes else "",
                "needs_token": service.rules.token is not None,
                "reads_need_token": service.rules.reads and service.rules.token is not None,
            },
            snapshot.version,
        )

    @routes.get("/classes", response_model=answers.Classes)
    def list_classes() -> Response:
        """List all classes with their labels, recall and expected gain from more labels.

        Recall is given now and before the last change. ``gain`` is the estimated gain in recall from 10 more labels.
        """
        snapshot = service.writer.current
        listed, say = cards.class_cards(snapshot)
        return answered({"classes": listed, "say": say}, snapshot.version)

    @routes.get("/classes/{name}", response_model=answers.OneClass)
    def get_class(name: str) -> Response:
        """Describe one class, as in the list of all classes."""
        snapshot, wanted = service.writer.current, sent_text(name)
        for card in cards.class_cards(snapshot)[0]:
            if str(card["name"]) == wanted:
                return answered(card, snapshot.version)
        raise Problem(404, f"the model knows no class {quoted(wanted)}: /v1/classes lists them.", "unknown-class")

    @routes.get("/versions", response_model=answers.Versions)
    def list_versions(limit: Limit = 100, cursor: Cursor = None) -> Response:
        """List the versions of the model and what each of them changed, the newest first."""
        refuse_many(limit, service.limits.versions, "versions")
        snapshot = service.writer.current
        (below,) = [None] if cursor is None else read_cursor(cursor, int)
        listed = [change for change in reversed(snapshot.changes) if below is None or change.version < below]
        integers, page = snapshot.model.label_store_.integers, listed[:limit]
        values = {
            "versions": [change.as_json(integers) for change in page],
            "next_cursor": make_cursor(page[-1].version) if len(listed) > limit else None,
        }
        return answered(values, snapshot.version)


def _node_routes(routes: APIRouter, service: Service) -> None:
    @routes.get("/nodes", response_model=answers.Nodes)
    def list_nodes(
        q: Annotated[str, Query(max_length=1000, description="A text, such as the beginning of an id.")] = "",
        limit: Limit = LISTED,
        cursor: Cursor = None,
    ) -> Response:
        """List nodes whose id equals, starts with or contains the text ``q``.

        Without ``q``, all nodes are listed.
        """
        refuse_many(limit, service.limits.nodes, "nodes")
        snapshot = service.writer.current
        return answered(_node_page(snapshot, q, limit, cursor), snapshot.version)

    @routes.get("/nodes/{node}", response_model=answers.Node)
    async def get_node(node: str) -> Response:
        """Describe one node: its label and who gave it, the prediction, the unknown score, and its largest features.

        ``classes`` holds the five most likely classes. ``kept`` of a statement holds the reason and the note.
        """
        snapshot = service.writer.current
        (row,) = require_rows(snapshot, [sent_text(node)])
        return answered(cards.node_card(snapshot, row), snapshot.version)

    @routes.get("/nodes/{node}/neighbours", response_model=answers.Neighbours)
    def get_neighbours(node: str, limit: Limit = 150) -> Response:
        """List the nodes around a node, with positions to draw them at.

        ``total`` counts the nodes within two hops; it is null if the node has more than 5,000 neighbours.
        """
        refuse_many(limit, service.limits.nodes, "nodes")
        snapshot = service.writer.current
        (row,) = require_rows(snapshot, [sent_text(node)])
        return answered(cards.neighbours_card(snapshot, row, limit), snapshot.version)

    @routes.get("/nodes/{node}/explanation", response_model=answers.Explanation)
    def explain_node(node: str) -> Response:
        """Explain the prediction for a node, in sentences and numbers."""
        snapshot = service.writer.current
        (row,) = require_rows(snapshot, [sent_text(node)])
        return answered(cards.explanation_card(snapshot, row), snapshot.version)


def _batch_routes(routes: APIRouter, service: Service) -> None:
    @routes.post("/predictions", response_model=answers.Predictions)
    def predict(body: Batch) -> Response:
        """Predict the classes of up to 1,000 nodes; the answer has columns.

        With ``"on_unknown": "skip"``, nodes that are not in the graph are listed in ``left_out`` with the reason, and
        the other nodes are predicted.
        """
        refuse_many(len(body.ids), service.limits.ids, "ids")
        snapshot = service.writer.current
        places = unknown_places(snapshot, body.ids, body.on_unknown)
        columns = cards.prediction_columns(snapshot, without(body.ids, places))
        return answered({**columns, "left_out": left_out_cards(body.ids, places)}, snapshot.version)

    @routes.post("/spread", response_model=answers.Spread)
    def measure_spread(body: Ids) -> Response:
        """Say whether some nodes are diverse enough to teach a class from."""
        refuse_many(len(body.ids), service.limits.ids, "ids")
        snapshot = service.writer.current
        require_rows(snapshot, body.ids)
        spread = snapshot.model.spread(body.ids)
        values = {"spread": float(spread.value), "alike": bool(spread.alike), "say": str(spread.say)}
        return answered(values, snapshot.version)


def _node_page(snapshot: Snapshot, q: str, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return a page of the nodes whose id contains a text."""
    search, after = snapshot.search, None
    if cursor is not None:
        place, node = read_cursor(cursor, int, str)
        after = search.place_of(node, place)
        if after < 0:
            raise lost_cursor()
    places = search.search(q, limit + 1, after)
    more, places = len(places) > limit, places[:limit]
    rows = snapshot.graph.rows_of_ids(search.ids[places]).tolist()
    listed = [cards.short_card(snapshot, row) for row in rows]
    next_cursor = make_cursor(places[-1], listed[-1]["id"]) if more else None
    return {"nodes": listed, "next_cursor": next_cursor}


def _label_routes(routes: APIRouter, service: Service) -> None:
    @routes.get("/labels", response_model=answers.NodeLabels)
    def list_labels(
        class_name: Annotated[
            str | None, Query(alias="class", max_length=CLASS_NAME.longest, description="List only this class.")
        ] = None,
        limit: Limit = 100,
        cursor: Cursor = None,
    ) -> Response:
        """List labels: class, role, who gave each label and when.

        ``role`` is ``train`` or ``validation`` (used by the fit), ``support`` (learned later) or ``accepted`` (a
        prediction that a person accepted; the model does not learn from it).
        """
        refuse_many(limit, service.limits.labels, "labels")
        snapshot = service.writer.current
        return answered(label_page(snapshot, class_name, limit, cursor), snapshot.version)


def _label_next_routes(routes: APIRouter, service: Service) -> None:
    StrategyName = Annotated[str, Query(max_length=100, json_schema_extra={"enum": [*REGISTRY.names()]})]

    @routes.get("/suggestions", response_model=answers.Suggestions)
    async def list_suggestions(budget: Limit = LISTED, strategy: StrategyName = "auto") -> Response:
        """Suggest nodes to label next.

        Suggestions take seconds to compute, so they are computed in the background for each version. Until they are
        ready, ``status`` is ``computing`` and the list is empty.
        """
        refuse_many(budget, service.limits.suggestions, "suggestions")
        find_strategy(strategy)  # refuse an unknown strategy at once
        question = ("suggestions", budget, strategy)

        def compute(snapshot: Snapshot) -> Any:
            return snapshot.model.suggest(budget, strategy=strategy)

        return _computed(service, question, compute, cards.suggestion_cards)

    @routes.get("/groups", response_model=answers.Groups)
    async def list_groups(count: Limit = 5) -> Response:
        """List groups of similar nodes that look unknown, to be named.

        Groups are computed in the background, like suggestions.
        """
        refuse_many(count, service.limits.groups, "groups")
        return _computed(service, ("groups", count), lambda snapshot: snapshot.model.groups(count), cards.group_cards)

    @routes.get("/queue", response_model=answers.Queue)
    def list_queue(limit: Limit = LISTED, cursor: Cursor = None) -> Response:
        """List all nodes without a label, in the order in which to label them.

        The order is computed in the background for each version. Until it is ready, ``status`` is ``computing`` and the
        nodes have the order of ``order_version``, or a simple order if that is null. The nodes, their number
        (``unlabelled``) and their predictions are always those of ``version``. Pages with the same ``version`` and
        ``order_version`` are parts of one list. If either changes, start again without a cursor.
        """
        refuse_many(limit, service.limits.nodes, "nodes")
        snapshot = service.writer.current
        computed = service.background.find(("queue",), queue_order, snapshot)
        order = None if computed is None else computed.value  # also None if the computation failed
        rows = queued_rows(snapshot, simple_order(snapshot) if order is None else order)
        order_version = None if computed is None or order is None else computed.version
        one_list = (snapshot.version, order_version or 0)
        start = page_start(cursor, *one_list)
        values = {
            "status": "ready" if computed is not None and computed.version == snapshot.version else "computing",
            "order_version": order_version,
            "unlabelled": rows.size,
            "nodes": queue_cards(snapshot, rows[start : start + limit]),
            "next_cursor": cursor_at(start + limit, rows.size, *one_list),
        }
        return answered(values, snapshot.version)


def _computed(
    service: Service, question: Question, compute: Callable[[Snapshot], Any], as_json: Callable[[Any], list[Any]]
) -> Response:
    """Answer with a result for this version, or with an empty list while it is being computed."""
    snapshot = service.writer.current
    computed = service.background.find(question, compute, snapshot)
    if computed is None or computed.version != snapshot.version:
        return answered({"status": "computing", question[0]: []}, snapshot.version)
    if computed.error is not None:
        raise Problem(422, computed.error, version=snapshot.version)
    return answered({"status": "ready", question[0]: as_json(computed.value)}, snapshot.version)
