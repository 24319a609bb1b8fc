"""The typed client: a method for each operation of the service, with the same name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, Unpack

import graphfcl.client.answers as answers
from graphfcl.client.answers import Changed, ClassName, Effect, LabelIssues, Members, MovedNodes
from graphfcl.client.transport import Transport, address

Id = str | int
Page = TypeVar("Page")
NewClasses = bool | Sequence[ClassName]


class Teaching(TypedDict, total=False):
    """How labels are learned; what is left out has the default of the service."""

    by: str  # who gave the labels
    on_conflict: str  # a node has another label: "refuse" all, "keep" it or "replace" it
    on_unknown: str  # a node is not in the graph: "refuse" all or "skip" its labels
    again: bool  # a class may be called as one was that is gone
    new_classes: NewClasses  # the only classes that may be new, or whether any may


class Client:
    """A client of one service.

    >>> client = Client("http://127.0.0.1:8765", token="…")  # doctest: +SKIP
    >>> client.learn({"games": ["ri-li"]}, by="ann").version  # doctest: +SKIP
    2

    A change is sent with an idempotency key and repeated if no answer comes, so it is made at most once. With
    ``if_version`` it is made only if the model has this version; ``key`` is the idempotency key, by default a new one.
    A refused request raises :class:`ServiceError`; no answer after all retries raises :class:`NoAnswerError`.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 120.0, retries: int = 3) -> None:
        """timeout: seconds to wait for an answer. retries: after no answer, or after 502, 503 and 504."""
        self.transport = Transport(url, token, timeout, retries)
        self._send, self._change = self.transport.send, self.transport.change

    def __repr__(self) -> str:
        return f"Client({self.transport.url!r})"

    def pages(self, list_page: Callable[..., Page], *arguments: Any, **options: Any) -> Iterator[Page]:
        """All pages of a list: ``for page in client.pages(client.list_labels): …``."""
        cursor = None
        while True:
            page: Any = list_page(*arguments, **options, cursor=cursor)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    # The model

    def get_model(self) -> answers.Model:
        return self._send(answers.Model, "GET", "/v1/model")

    def list_classes(self) -> answers.Classes:
        return self._send(answers.Classes, "GET", "/v1/classes")

    def get_class(self, name: ClassName) -> answers.OneClass:
        return self._send(answers.OneClass, "GET", address("classes", name))

    def list_versions(self, limit: int = 100, cursor: str | None = None) -> answers.Versions:
        return self._send(answers.Versions, "GET", "/v1/versions", query={"limit": limit, "cursor": cursor})

    def get_effect(self, version: int) -> Effect:
        """What a version changed, compared with the one before."""
        return self._send(Effect, "GET", address("versions", version, "effect"))

    def list_moved_nodes(self, version: int, number: int, limit: int = 50, cursor: str | None = None) -> MovedNodes:
        """The nodes of one move of an effect."""
        query = {"limit": limit, "cursor": cursor}
        return self._send(MovedNodes, "GET", address("versions", version, "moves", number), query=query)

    # Nodes

    def list_nodes(self, q: str = "", limit: int = 20, cursor: str | None = None) -> answers.Nodes:
        """Nodes whose id equals, starts with or contains ``q``; by default all nodes."""
        return self._send(answers.Nodes, "GET", "/v1/nodes", query={"q": q, "limit": limit, "cursor": cursor})

    def get_node(self, node: Id) -> answers.Node:
        return self._send(answers.Node, "GET", address("nodes", node))

    def get_neighbours(self, node: Id, limit: int = 150) -> answers.Neighbours:
        return self._send(answers.Neighbours, "GET", address("nodes", node, "neighbours"), query={"limit": limit})

    def explain_node(self, node: Id) -> answers.Explanation:
        return self._send(answers.Explanation, "GET", address("nodes", node, "explanation"))

    def predict(self, ids: Sequence[Id], *, on_unknown: str = "refuse") -> answers.Predictions:
        """Predict the classes of nodes. on_unknown: ``refuse`` all if a node is not in the graph, or ``skip`` it."""
        body = {"ids": list(ids), "on_unknown": on_unknown}
        return self._send(answers.Predictions, "POST", "/v1/predictions", body)

    def measure_spread(self, ids: Sequence[Id]) -> answers.Spread:
        return self._send(answers.Spread, "POST", "/v1/spread", {"ids": list(ids)})

    def get_map(self) -> answers.Map:
        return self._send(answers.Map, "GET", "/v1/map")

    # Labels, and what to label next

    def list_members(self, name: ClassName, limit: int = 50, cursor: str | None = None) -> Members:
        """Nodes without a label that are predicted as a class, the most doubtful first."""
        return self._send(Members, "GET", address("classes", name, "members"), query={"limit": limit, "cursor": cursor})

    def list_label_issues(self, limit: int = 50, cursor: str | None = None) -> LabelIssues:
        """Labels on which people disagree, or which the model disputes."""
        return self._send(LabelIssues, "GET", "/v1/label-issues", query={"limit": limit, "cursor": cursor})

    def list_labels(
        self, class_name: ClassName | None = None, limit: int = 100, cursor: str | None = None
    ) -> answers.NodeLabels:
        query = {"class": class_name, "limit": limit, "cursor": cursor}
        return self._send(answers.NodeLabels, "GET", "/v1/labels", query=query)

    def list_suggestions(self, budget: int = 20, strategy: str = "auto") -> answers.Suggestions:
        query = {"budget": budget, "strategy": strategy}
        return self._send(answers.Suggestions, "GET", "/v1/suggestions", query=query)

    def list_groups(self, count: int = 5) -> answers.Groups:
        return self._send(answers.Groups, "GET", "/v1/groups", query={"count": count})

    def list_queue(self, limit: int = 20, cursor: str | None = None) -> answers.Queue:
        query = {"limit": limit, "cursor": cursor}
        return self._send(answers.Queue, "GET", "/v1/queue", query=query)

    def claim_nodes(self, holder: str, ids: Sequence[Id]) -> answers.Claimed:
        """Lease nodes that are about to be shown, so that others do not get them, and release all others."""
        return self._send(answers.Claimed, "POST", "/v1/queue/leases", {"holder": holder, "ids": list(ids)})

    def export_label_studio(
        self, nodes: str = "unlabelled", limit: int = 100, cursor: str | None = None
    ) -> answers.LabelStudioTasks:
        """Nodes as tasks: ``unlabelled`` ones, ``labelled`` ones or ``all``."""
        query = {"nodes": nodes, "limit": limit, "cursor": cursor}
        return self._send(answers.LabelStudioTasks, "GET", "/v1/export/label-studio", query=query)

    # Changes

    def learn(
        self,
        supports: Mapping[ClassName, Sequence[Id]],
        *,
        reason: str = "",
        note: str = "",
        if_version: int | None = None,
        key: str | None = None,
        **how: Unpack[Teaching],
    ) -> Changed:
        """Learn labels: ``{"class name": [node ids]}``. reason, note: kept with each of them.

        how: ``by``, ``on_conflict``, ``on_unknown``, ``again`` and ``new_classes``, see :class:`Teaching`.
        """
        kept = {"reason": reason, "note": note}
        labels = [{"id": node, "class": name, **kept} for name, nodes in supports.items() for node in nodes]
        return self._change(Changed, "POST", "/v1/labels", {"labels": labels, **how}, if_version=if_version, key=key)

    def import_label_studio(
        self,
        tasks: Sequence[Mapping[str, Any]],
        *,
        if_version: int | None = None,
        key: str | None = None,
        **how: Unpack[Teaching],
    ) -> Changed:
        """Learn the completed tasks of a JSON export of Label Studio. how: as of :meth:`learn`; by: as in the tasks."""
        path = "/v1/import/label-studio"
        return self._change(Changed, "POST", path, {"tasks": list(tasks), **how}, if_version=if_version, key=key)

    def accept_members(
        self,
        members: Members,
        threshold: float,
        *,
        leave_out: Sequence[Id] = (),
        by: str = "",
        if_version: int | None = None,
        key: str | None = None,
    ) -> Changed:
        """Accept the predictions for a class with at least the probability ``threshold``."""
        body = {"version": members.version, "threshold": threshold, "leave_out": list(leave_out), "by": by}
        path = address("classes", members.name, "accept")
        return self._change(Changed, "POST", path, body, if_version=if_version, key=key)

    def review_labels(
        self, ids: Sequence[Id], *, by: str = "", if_version: int | None = None, key: str | None = None
    ) -> Changed:
        """Mark labels as reviewed: they stay and are not listed as label issues again."""
        body = {"ids": list(ids), "by": by}
        return self._change(Changed, "POST", "/v1/labels/review", body, if_version=if_version, key=key)

    def unlearn(self, ids: Sequence[Id], *, if_version: int | None = None, key: str | None = None) -> Changed:
        """Remove the labels of some nodes."""
        return self._change(Changed, "DELETE", "/v1/labels", {"ids": list(ids)}, if_version=if_version, key=key)

    def name_group(
        self,
        groups: answers.Groups,
        number: int,
        name: ClassName,
        *,
        count: int = 5,
        nodes: Sequence[Id] | None = None,
        by: str = "",
        again: bool = False,
        new_classes: NewClasses = True,
        key: str | None = None,
    ) -> Changed:
        """Teach members of a group of a list as a class: ``nodes``, or as many typical ones as the model has shots.

        count: with which the list was asked for.
        """
        body: dict[str, Any] = {"name": name, "version": groups.version, "count": count, "by": by}
        body |= {} if nodes is None else {"nodes": list(nodes)}
        body |= {"again": again, "new_classes": new_classes}
        return self._change(Changed, "POST", address("groups", number, "name"), body, key=key)

    def rename_class(
        self, name: ClassName, new: ClassName, *, if_version: int | None = None, key: str | None = None
    ) -> Changed:
        body = {"name": new}
        return self._change(Changed, "PATCH", address("classes", name), body, if_version=if_version, key=key)

    def retire_class(self, name: ClassName, *, if_version: int | None = None, key: str | None = None) -> Changed:
        """Stop predicting a class; its nodes lose their label."""
        return self._change(Changed, "DELETE", address("classes", name), if_version=if_version, key=key)

    def merge_class(
        self, name: ClassName, into: ClassName, *, if_version: int | None = None, key: str | None = None
    ) -> Changed:
        path = address("classes", name, "merge")
        return self._change(Changed, "POST", path, {"into": into}, if_version=if_version, key=key)

    def add_nodes(
        self,
        ids: Sequence[Id],
        features: Sequence[Mapping[str, float] | Sequence[float]] | None = None,
        *,
        texts: Sequence[str] | None = None,
        on_existing: str = "refuse",
        if_version: int | None = None,
        key: str | None = None,
    ) -> Changed:
        """Add nodes, or update them. on_existing: ``refuse``, ``skip`` or ``update``."""
        body = {"ids": ids, "features": features, "texts": texts, "on_existing": on_existing}
        return self._change(Changed, "POST", "/v1/nodes", body, if_version=if_version, key=key)

    def add_edges(
        self,
        sources: Sequence[Id],
        targets: Sequence[Id],
        weights: Sequence[float] | None = None,
        *,
        on_existing: str = "refuse",
        if_version: int | None = None,
        key: str | None = None,
    ) -> Changed:
        """Add edges between nodes, or update their weights. on_existing: ``refuse``, ``skip`` or ``update``."""
        body = {"sources": sources, "targets": targets, "weights": weights, "on_existing": on_existing}
        return self._change(Changed, "POST", "/v1/edges", body, if_version=if_version, key=key)

    def roll_back(self, version: int, *, if_version: int | None = None, key: str | None = None) -> Changed:
        """Write a new version that equals an old one."""
        path = address("versions", version, "rollback")
        return self._change(Changed, "POST", path, if_version=if_version, key=key)
