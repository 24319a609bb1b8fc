"""Routes that read. Each takes the current snapshot once and never waits for another request."""

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
    """All routes that read the model. Fast ones are async, since starting a thread would take longer than the work."""
    routes = APIRouter(prefix="/v1", tags=["ask"])
    _model_routes(routes, service)
    _node_routes(routes, service)
    _label_routes(routes, service)
    _label_next_routes(routes, service)
    return routes


def _model_routes(routes: APIRouter, service: Service) -> None:
    @routes.get("/model", response_model=answers.Model)
    async def get_model() -> Response:
        """The model that is served, and its version."""
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
        """All classes: labels, recall before and after the last change, and what it would gain from more labels."""
        snapshot = service.writer.current
        listed, say = cards.class_cards(snapshot)
        return answered({"classes": listed, "say": say}, snapshot.version)

    @routes.get("/classes/{name}", response_model=answers.OneClass)
    def get_class(name: str) -> Response:
        """One class."""
        snapshot, wanted = service.writer.current, sent_text(name)
        for card in cards.class_cards(snapshot)[0]:
            if str(card["name"]) == wanted:
                return answered(card, snapshot.version)
        raise Problem(404, f"the model knows no class {quoted(wanted)}: /v1/classes lists them.", "unknown-class")

    @routes.get("/versions", response_model=answers.Versions)
    def list_versions(limit: Limit = 100, cursor: Cursor = None) -> Response:
        """What each version changed, the newest first."""
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
        q: Annotated[str, Query(max_length=1000)] = "", limit: Limit = LISTED, cursor: Cursor = None
    ) -> Response:
        """Nodes whose id equals, starts with or contains a text; all nodes without one."""
        refuse_many(limit, service.limits.nodes, "nodes")
        snapshot = service.writer.current
        return answered(_node_page(snapshot, q, limit, cursor), snapshot.version)

    @routes.get("/nodes/{node}", response_model=answers.Node)
    async def get_node(node: str) -> Response:
        """One node: its label, the model's prediction, its features."""
        snapshot = service.writer.current
        (row,) = require_rows(snapshot, [sent_text(node)])
        return answered(cards.node_card(snapshot, row), snapshot.version)

    @routes.get("/nodes/{node}/neighbours", response_model=answers.Neighbours)
    def get_neighbours(node: str, limit: Limit = 150) -> Response:
        """The nodes around a node, with positions to draw them at."""
        refuse_many(limit, service.limits.nodes, "nodes")
        snapshot = service.writer.current
        (row,) = require_rows(snapshot, [sent_text(node)])
        return answered(cards.neighbours_card(snapshot, row, limit), snapshot.version)

    @routes.get("/nodes/{node}/explanation", response_model=answers.Explanation)
    def explain_node(node: str) -> Response:
        """Why a node gets its class."""
        snapshot = service.writer.current
        (row,) = require_rows(snapshot, [sent_text(node)])
        return answered(cards.explanation_card(snapshot, row), snapshot.version)

    @routes.post("/predictions", response_model=answers.Predictions)
    def predict(body: Batch) -> Response:
        """The classes of many nodes, in columns."""
        refuse_many(len(body.ids), service.limits.ids, "ids")
        snapshot = service.writer.current
        places = unknown_places(snapshot, body.ids, body.on_unknown)
        columns = cards.prediction_columns(snapshot, without(body.ids, places))
        return answered({**columns, "left_out": left_out_cards(body.ids, places)}, snapshot.version)

    @routes.post("/spread", response_model=answers.Spread)
    def measure_spread(body: Ids) -> Response:
        """Whether some nodes are diverse enough to teach a class from."""
        refuse_many(len(body.ids), service.limits.ids, "ids")
        snapshot = service.writer.current
        require_rows(snapshot, body.ids)
        spread = snapshot.model.spread(body.ids)
        values = {"spread": float(spread.value), "alike": bool(spread.alike), "say": str(spread.say)}
        return answered(values, snapshot.version)


def _node_page(snapshot: Snapshot, q: str, limit: int, cursor: str | None) -> dict[str, Any]:
    """Nodes whose id holds a text, from a cursor on."""
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
        class_name: Annotated[str | None, Query(alias="class", max_length=CLASS_NAME.longest)] = None,
        limit: Limit = 100,
        cursor: Cursor = None,
    ) -> Response:
        """Labels with class, role, who gave them and when. class: list only labels of this class."""
        refuse_many(limit, service.limits.labels, "labels")
        snapshot = service.writer.current
        return answered(label_page(snapshot, class_name, limit, cursor), snapshot.version)


def _label_next_routes(routes: APIRouter, service: Service) -> None:
    StrategyName = Annotated[str, Query(max_length=100, json_schema_extra={"enum": [*REGISTRY.names()]})]

    @routes.get("/suggestions", response_model=answers.Suggestions)
    async def list_suggestions(budget: Limit = LISTED, strategy: StrategyName = "auto") -> Response:
        """Nodes to label next, computed in the background: ``status`` says whether they are ready for this version."""
        refuse_many(budget, service.limits.suggestions, "suggestions")
        find_strategy(strategy)  # refuse an unknown one at once
        question = ("suggestions", budget, strategy)

        def compute(snapshot: Snapshot) -> Any:
            return snapshot.model.suggest(budget, strategy=strategy)

        return _computed(service, question, compute, cards.suggestion_cards)

    @routes.get("/groups", response_model=answers.Groups)
    async def list_groups(count: Limit = 5) -> Response:
        """Groups of similar nodes that look unknown, to be named; computed in the background like suggestions."""
        refuse_many(count, service.limits.groups, "groups")
        return _computed(service, ("groups", count), lambda snapshot: snapshot.model.groups(count), cards.group_cards)

    @routes.get("/queue", response_model=answers.Queue)
    def list_queue(limit: Limit = LISTED, cursor: Cursor = None) -> Response:
        """Nodes without a label, in the order in which to label them; ``unlabelled`` counts all of them.

        The order is computed in the background. Until that of this version is ready, ``status`` is ``computing`` and
        the order is that of ``order_version``, or a simple one if that is null. The nodes and their predictions are
        always those of this version. Pages with the same ``version`` and ``order_version`` are parts of one list; a
        cursor of another list is refused.
        """
        refuse_many(limit, service.limits.nodes, "nodes")
        snapshot = service.writer.current
        computed = service.background.find(("queue",), queue_order, snapshot)
        order = None if computed is None else computed.value  # none if it could not be computed
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
    """A result for this version; an empty list while it is being computed."""
    snapshot = service.writer.current
    computed = service.background.find(question, compute, snapshot)
    if computed is None or computed.version != snapshot.version:
        return answered({"status": "computing", question[0]: []}, snapshot.version)
    if computed.error is not None:
        raise Problem(422, computed.error, version=snapshot.version)
    return answered({"status": "ready", question[0]: as_json(computed.value)}, snapshot.version)
