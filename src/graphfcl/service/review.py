"""Routes to review labels: list labels that need a second look, and mark labels as reviewed."""

from typing import Any

from fastapi import APIRouter, Response
from pydantic import Field

from graphfcl.client.answers import Changed, LabelIssues
from graphfcl.production import GraphClassifier
from graphfcl.production.labels.history import now
from graphfcl.production.labels.statements import REVIEWED
from graphfcl.service.bodies import Body, By, Id
from graphfcl.service.disputes import SETTLED, Disputes, VoteLog
from graphfcl.service.listed_labels import label_cards
from graphfcl.service.paging import Cursor, Limit, cursor_at, page_start
from graphfcl.service.service import Service, answered, refuse_many, require_rows
from graphfcl.service.snapshots import Snapshot
from graphfcl.service.writes import Change

ON_DISK = "Disputes of a model on a graph folder are computed by `graphfcl label-issues`."


class Reviewed(Body):
    """Labels that were reviewed and stay.

    Attributes:
        ids: Ids of the labelled nodes.
        by: Name of the person who reviewed the labels.
    """

    ids: list[Id] = Field(min_length=1)
    by: By = ""


def review_routes(service: Service) -> APIRouter:
    """Make the route that lists labels that need a second look."""
    routes = APIRouter(prefix="/v1", tags=["read"])
    disputes, votes = Disputes(), VoteLog(service.writer.versions)

    @routes.get("/label-issues", response_model=LabelIssues)
    def list_label_issues(limit: Limit = 50, cursor: Cursor = None) -> Response:
        """List labels that need a second look: disagreements, then disputes, the most probably wrong first.

        A *disagreement* is a node to which people gave different classes, by the newest statement of each person. A
        review, a removal, or a label with the reason ``review`` ends it. A *dispute* is a label that models trained
        without it contradict. Disputes take as long as a few fits, so they are computed in the background, only when
        this list is read, and for a newer version only after ten times the last computing time has passed. Until
        those of this version are ready, ``status`` is ``computing`` and the list has the disputes of
        ``disputes_version`` whose labels are unchanged. For a model on a graph folder only the command ``graphfcl
        label-issues`` computes disputes. Labels that were reviewed or given with the reason ``review`` are not listed
        again.
        """
        refuse_many(limit, service.limits.nodes, "labels")
        snapshot = service.writer.current
        computed = disputes.find(snapshot)
        found = {each.id: each for each in ((computed.value or ()) if computed else ())}
        people = votes.disagreements(snapshot)
        issues = [
            {
                **card,
                "disagreement": [vars(vote) for vote in people.get(card["id"], ())],
                "dispute": None
                if dispute is None
                else {
                    "confidence": dispute.confidence,
                    "guess": dispute.guess,
                    "probability": dispute.probability,
                },
            }
            for card, dispute in (
                (card, _open_dispute(found.get(card["id"]), card)) for card in _cards(snapshot, [*people, *found])
            )
            if dispute is not None or card["id"] in people
        ]
        why = computed.error if computed else None
        if snapshot.model.has_graph_folder:
            why = ON_DISK
        one_list = (snapshot.version, 0 if computed is None else computed.version)
        start = page_start(cursor, *one_list)
        values = {
            "status": "ready" if computed is not None and computed.version == snapshot.version else "computing",
            "disputes_version": None if computed is None else computed.version,
            "why": why,
            "total": len(issues),
            "next_cursor": cursor_at(start + limit, len(issues), *one_list),
            "issues": issues[start : start + limit],
        }
        return answered(values, snapshot.version)

    return routes


def _cards(snapshot: Snapshot, ids: list[str]) -> list[dict[str, Any]]:
    """Return the labels of some nodes, each once, in this order; nodes without a label are left out."""
    if not ids:
        return []
    rows = snapshot.graph.rows_of_ids(list(dict.fromkeys(ids)))
    return label_cards(snapshot, rows[(rows >= 0) & (snapshot.labels[rows] >= 0)])


def _open_dispute(dispute: Any, card: dict[str, Any]) -> Any:
    """Return a dispute, or None if the label has changed since, was reviewed, or was given in a review."""
    same = dispute is not None and str(card["class"]) == dispute.label
    kept = [each["kept"] for each in card["statements"]]
    settled = any(REVIEWED in each or each.get("reason") == SETTLED for each in kept)
    return dispute if same and not settled else None


def keep_routes(service: Service) -> APIRouter:
    """Make the route that marks labels as reviewed."""
    routes = APIRouter(prefix="/v1", tags=["change"])

    @routes.post("/labels/review", response_model=Changed)
    async def review_labels(change: Change, body: Reviewed) -> Response:
        """Mark labels as reviewed, so that they are not listed as label issues again."""
        refuse_many(len(body.ids), service.limits.labels, "ids")

        def apply(model: GraphClassifier, snapshot: Snapshot) -> None:
            require_rows(snapshot, body.ids)
            model.review(body.ids, by=body.by, when=now())

        return await service.change(change, apply)

    return routes
