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
    """How labels are learned. Options that are left out have the defaults of the service.

    Attributes:
        by: Name of the person who gives the labels.
        on_conflict: What to do if a node has another label: ``refuse`` the request (default), ``keep`` the old label or
            ``replace`` it.
        on_unknown: What to do if a node is not in the graph: ``refuse`` the request (default) or ``skip`` its labels.
        again: Whether the name of a retired, renamed or merged class may start a new class.
        new_classes: Which classes may be new. True (default) allows every name that does not look like the name of a
            known class, a list allows exactly its names, and False allows none.
    """

    by: str
    on_conflict: str
    on_unknown: str
    again: bool
    new_classes: NewClasses


class Client:
    """A client of one service.

    There is a method for each operation of the service, with the name of the operation. Each returns a dataclass of
    :mod:`graphfcl.client.answers`. These arguments have the same meaning in all methods:

    - ``limit`` is the largest number of entries on a page, and ``cursor`` is the ``next_cursor`` of the previous page.
      :meth:`pages` reads all pages.
    - ``if_version`` makes a change only if the model has this version.
    - ``key`` is the idempotency key of a change, by default a new one. A change is sent again if no answer comes; the
      key ensures that it is made at most once.

    Args:
        url: Address of the service, such as ``http://127.0.0.1:8765``.
        token: Token that the service requires for changes.
        timeout: Seconds to wait for an answer.
        retries: Number of further attempts if no answer comes or the status is 502, 503 or 504.

    Raises:
        InputError: If the address is not the address of a service.
        ServiceError: From every method, if the service refuses the request.
        NoAnswerError: From every method, if no answer comes after all attempts.

    Examples:
        >>> client = Client("http://127.0.0.1:8765", token="…")  # doctest: +SKIP
        >>> client.learn({"games": ["ri-li"]}, by="ann").version  # doctest: +SKIP
        2
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 120.0, retries: int = 3) -> None:
        self.transport = Transport(url, token, timeout, retries)
        self._send, self._change = self.transport.send, self.transport.change

    def __repr__(self) -> str:
        return f"Client({self.transport.url!r})"

    def pages(self, list_page: Callable[..., Page], *arguments: Any, **options: Any) -> Iterator[Page]:
        """Read all pages of a list.

        Args:
            list_page: Method that lists, such as ``client.list_labels``.
            *arguments: Arguments of the method.
            **options: Keyword arguments of the method.

        Yields:
            One page at a time.
        """
        cursor = None
        while True:
            page: Any = list_page(*arguments, **options, cursor=cursor)
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    # The model

    def get_model(self) -> answers.Model:
        """Describe the model: method, numbers of nodes, edges and classes."""
        return self._send(answers.Model, "GET", "/v1/model")

    def list_classes(self) -> answers.Classes:
        """List all classes with their labels, recall and expected gain from more labels."""
        return self._send(answers.Classes, "GET", "/v1/classes")

    def get_class(self, name: ClassName) -> answers.OneClass:
        """Describe one class, as in the list of all classes."""
        return self._send(answers.OneClass, "GET", address("classes", name))

    def list_versions(self, limit: int = 100, cursor: str | None = None) -> answers.Versions:
        """List the versions of the model and their changes, newest first."""
        return self._send(answers.Versions, "GET", "/v1/versions", query={"limit": limit, "cursor": cursor})

    def get_effect(self, version: int) -> Effect:
        """Compare the predictions of a version with those of the version before.

        Returns:
            The comparison; empty while its ``status`` is ``computing``.
        """
        return self._send(Effect, "GET", address("versions", version, "effect"))

    def list_moved_nodes(self, version: int, number: int, limit: int = 50, cursor: str | None = None) -> MovedNodes:
        """List the nodes of one move of an effect that is ready.

        Args:
            version: Version of the effect.
            number: Number of the move in the effect.
            limit: Largest number of nodes on the page.
            cursor: Cursor of the page.
        """
        query = {"limit": limit, "cursor": cursor}
        return self._send(MovedNodes, "GET", address("versions", version, "moves", number), query=query)

    # Nodes

    def list_nodes(self, q: str = "", limit: int = 20, cursor: str | None = None) -> answers.Nodes:
        """List nodes whose id equals, starts with or contains the text ``q``, by default all nodes."""
        return self._send(answers.Nodes, "GET", "/v1/nodes", query={"q": q, "limit": limit, "cursor": cursor})

    def get_node(self, node: Id) -> answers.Node:
        """Describe one node: label, prediction, unknown score and largest features."""
        return self._send(answers.Node, "GET", address("nodes", node))

    def get_neighbours(self, node: Id, limit: int = 150) -> answers.Neighbours:
        """List the nodes around a node, with positions to draw them at."""
        return self._send(answers.Neighbours, "GET", address("nodes", node, "neighbours"), query={"limit": limit})

    def explain_node(self, node: Id) -> answers.Explanation:
        """Explain the prediction for a node, in sentences and numbers."""
        return self._send(answers.Explanation, "GET", address("nodes", node, "explanation"))

    def predict(self, ids: Sequence[Id], *, on_unknown: str = "refuse") -> answers.Predictions:
        """Predict the classes of nodes.

        Args:
            ids: Ids of the nodes, at most 1,000.
            on_unknown: What to do if a node is not in the graph: ``refuse`` the request or ``skip`` the node.

        Returns:
            Predictions in columns.
        """
        body = {"ids": list(ids), "on_unknown": on_unknown}
        return self._send(answers.Predictions, "POST", "/v1/predictions", body)

    def measure_spread(self, ids: Sequence[Id]) -> answers.Spread:
        """Measure whether some nodes are diverse enough to teach a class from."""
        return self._send(answers.Spread, "POST", "/v1/spread", {"ids": list(ids)})

    def get_map(self) -> answers.Map:
        """Return positions of nodes in two dimensions; similar nodes lie together."""
        return self._send(answers.Map, "GET", "/v1/map")

    # Labels, and what to label next

    def list_members(self, name: ClassName, limit: int = 50, cursor: str | None = None) -> Members:
        """List the nodes without a label that are predicted as a class, the most doubtful first."""
        return self._send(Members, "GET", address("classes", name, "members"), query={"limit": limit, "cursor": cursor})

    def list_label_issues(self, limit: int = 50, cursor: str | None = None) -> LabelIssues:
        """List labels on which people disagree, or which the model disputes."""
        return self._send(LabelIssues, "GET", "/v1/label-issues", query={"limit": limit, "cursor": cursor})

    def list_labels(
        self, class_name: ClassName | None = None, limit: int = 100, cursor: str | None = None
    ) -> answers.NodeLabels:
        """List labels, by default of all classes, with who gave each label and when."""
        query = {"class": class_name, "limit": limit, "cursor": cursor}
        return self._send(answers.NodeLabels, "GET", "/v1/labels", query=query)

    def list_suggestions(self, budget: int = 20, strategy: str = "auto") -> answers.Suggestions:
        """Suggest nodes to label next.

        Args:
            budget: Number of suggestions.
            strategy: Name of the active-learning strategy.

        Returns:
            The suggestions; empty while their ``status`` is ``computing``.
        """
        query = {"budget": budget, "strategy": strategy}
        return self._send(answers.Suggestions, "GET", "/v1/suggestions", query=query)

    def list_groups(self, count: int = 5) -> answers.Groups:
        """List groups of similar nodes that look unknown, to be named.

        Args:
            count: Largest number of groups.

        Returns:
            The groups; empty while their ``status`` is ``computing``.
        """
        return self._send(answers.Groups, "GET", "/v1/groups", query={"count": count})

    def list_queue(self, limit: int = 20, cursor: str | None = None) -> answers.Queue:
        """List all nodes without a label, in the order in which to label them."""
        query = {"limit": limit, "cursor": cursor}
        return self._send(answers.Queue, "GET", "/v1/queue", query=query)

    def claim_nodes(self, holder: str, ids: Sequence[Id]) -> answers.Claimed:
        """Lease nodes that are about to be shown, and release all other leases of the holder.

        Args:
            holder: Identifier of the holder, such as one browser tab.
            ids: Ids of the nodes, at most 20.

        Returns:
            The leased nodes, and the nodes that other holders have leased.
        """
        return self._send(answers.Claimed, "POST", "/v1/queue/leases", {"holder": holder, "ids": list(ids)})

    def export_label_studio(
        self, nodes: str = "unlabelled", limit: int = 100, cursor: str | None = None
    ) -> answers.LabelStudioTasks:
        """Export nodes as tasks for Label Studio.

        Args:
            nodes: Which nodes to export: ``unlabelled``, ``labelled`` or ``all``.
            limit: Largest number of tasks on the page.
            cursor: Cursor of the page.
        """
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
        """Learn labels.

        Args:
            supports: Ids of the labelled nodes of each class: ``{"class name": [node ids]}``.
            reason: Why the nodes were suggested; stored with each label.
            note: Comment; stored with each label.
            if_version: Make the change only if the model has this version.
            key: Idempotency key.
            **how: Options of :class:`Teaching`.

        Returns:
            The new version, and how many labels were learned.
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
        """Learn the completed tasks of a JSON export of Label Studio.

        Args:
            tasks: Tasks as Label Studio exports them.
            if_version: Make the change only if the model has this version.
            key: Idempotency key.
            **how: Options of :class:`Teaching`; ``by`` is by default the user of each annotation.

        Returns:
            The new version, and how many labels were learned.
        """
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
        """Accept the predictions for a class. The model does not learn from accepted labels.

        Args:
            members: A page of :meth:`list_members`, which names the class and the version.
            threshold: Smallest probability that is accepted.
            leave_out: Ids of members that are not accepted although they reach the threshold.
            by: Name of the person who accepts the predictions.
            if_version: Make the change only if the model has this version.
            key: Idempotency key.

        Returns:
            The new version, and how many predictions were accepted.
        """
        body = {"version": members.version, "threshold": threshold, "leave_out": list(leave_out), "by": by}
        path = address("classes", members.name, "accept")
        return self._change(Changed, "POST", path, body, if_version=if_version, key=key)

    def review_labels(
        self, ids: Sequence[Id], *, by: str = "", if_version: int | None = None, key: str | None = None
    ) -> Changed:
        """Mark labels as reviewed. They stay and are not listed as label issues again."""
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
        """Name a group: teach some of its members as a class.

        Args:
            groups: List that contains the group, from :meth:`list_groups`.
            number: Number of the group.
            name: Name of the class.
            count: Number of groups with which the list was requested.
            nodes: Members to teach; by default as many typical members as the model has shots.
            by: Name of the person who names the group.
            again: Whether the name of a retired, renamed or merged class may start a new class.
            new_classes: Which classes may be new, as in :class:`Teaching`.
            key: Idempotency key.

        Returns:
            The new version, and how many labels were learned.
        """
        body: dict[str, Any] = {"name": name, "version": groups.version, "count": count, "by": by}
        body |= {} if nodes is None else {"nodes": list(nodes)}
        body |= {"again": again, "new_classes": new_classes}
        return self._change(Changed, "POST", address("groups", number, "name"), body, key=key)

    def rename_class(
        self, name: ClassName, new: ClassName, *, if_version: int | None = None, key: str | None = None
    ) -> Changed:
        """Rename a class."""
        body = {"name": new}
        return self._change(Changed, "PATCH", address("classes", name), body, if_version=if_version, key=key)

    def retire_class(self, name: ClassName, *, if_version: int | None = None, key: str | None = None) -> Changed:
        """Stop predicting a class. Its nodes lose their label."""
        return self._change(Changed, "DELETE", address("classes", name), if_version=if_version, key=key)

    def merge_class(
        self, name: ClassName, into: ClassName, *, if_version: int | None = None, key: str | None = None
    ) -> Changed:
        """Merge a class into another class."""
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
        """Add nodes without edges, or update existing nodes.

        Args:
            ids: Ids of the nodes.
            features: Features of each node, as a row of numbers or as ``{name: value}``.
            texts: Text of each node instead of features.
            on_existing: What to do if a node exists with other features: ``refuse`` the request, ``skip`` the node or
                ``update`` it.
            if_version: Make the change only if the model has this version.
            key: Idempotency key.

        Returns:
            The new version, and how many nodes were added, updated or skipped.
        """
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
        """Add edges between existing nodes, or update their weights.

        Args:
            sources: Id of the first end of each edge.
            targets: Id of the second end of each edge.
            weights: Weight of each edge; by default 1 for new edges.
            on_existing: What to do if an edge exists with another weight: ``refuse`` the request, ``skip`` the edge or
                ``update`` it.
            if_version: Make the change only if the model has this version.
            key: Idempotency key.

        Returns:
            The new version, and how many edges were added, updated or skipped.
        """
        body = {"sources": sources, "targets": targets, "weights": weights, "on_existing": on_existing}
        return self._change(Changed, "POST", "/v1/edges", body, if_version=if_version, key=key)

    def roll_back(self, version: int, *, if_version: int | None = None, key: str | None = None) -> Changed:
        """Write a new version that equals an old one."""
        path = address("versions", version, "rollback")
        return self._change(Changed, "POST", path, if_version=if_version, key=key)
