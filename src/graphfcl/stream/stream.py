"""Streams: a graph divided into sessions of new classes."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.graph import (
    AnyGraph,
    Features,
    FeatureView,
    KnownColumns,
    Standardisation,
    TextWeights,
    VisibleNodes,
)
from graphfcl.graph.convert import as_graph
from graphfcl.stream.classes import adapt_protocol
from graphfcl.stream.protocol import Protocol
from graphfcl.stream.sessions import BaseSession, PaperSession, PooledSession, Session
from graphfcl.stream.split import Role, Split, draw_numbers, draw_split


@dataclass(frozen=True, eq=False)
class Queries:
    """Query nodes after a session and their columns. Only evaluators may see them."""

    nodes: np.ndarray
    labels: np.ndarray


class Stream:
    """A graph divided into session 0 (``base``) and novel sessions 1 to T (``for session in stream``).

    Make streams with :func:`make_stream` or :func:`load_stream`. Learners receive sessions, never the stream, which
    has the whole graph and the query labels.

    Args:
        graph: The whole graph.
        protocol: The rules.
        seed: Seed of the random draw.
        split: Role of each class and node.
        view: Turns raw features into the features that learners see. None keeps raw features.

    Attributes:
        node_of_number: (n,) Node of the graph for each node number. Sessions, visible graphs and queries use these
            random numbers. The split and saved streams use nodes and ids of the graph.

    Examples:
        >>> from graphfcl import load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> stream = make_stream(graph, base=2, pseudo_novel=1, way=1, shot=2)
        >>> for session in stream:
        ...     print(session.number, session.new_classes, session.visible_graph)
        1 ('class-02',) VisibleGraph(163 nodes, 607 edges)
        2 ('class-03',) VisibleGraph(187 nodes, 722 edges)
        3 ('class-05',) VisibleGraph(200 nodes, 800 edges)
    """

    def __init__(self, graph: AnyGraph, protocol: Protocol, seed: int, split: Split, view: FeatureView | None) -> None:
        self.graph = graph
        self.protocol = protocol
        self.seed = seed
        self.split = split
        self.view = view
        self.node_of_number = draw_numbers(graph, seed)
        # The arrays below are indexed by node number.
        self._roles = split.roles[self.node_of_number]
        self._columns = split.columns_of_nodes(graph)[self.node_of_number]
        self._sessions = split.sessions_of_nodes(graph)[self.node_of_number]
        self._last_cut: VisibleNodes | None = None

    def __repr__(self) -> str:
        return (
            f"Stream({self.graph.name!r}, seed {self.seed}, {self.protocol.name}/{self.protocol.track}, "
            f"{self.split.base_count} base + {self.split.pseudo_novel_count} pseudo-novel classes, "
            f"{len(self)} sessions of {self.protocol.way}-way {self.protocol.shot}-shot)"
        )

    def __len__(self) -> int:
        """Number of novel sessions T."""
        return self.split.session_count

    def __iter__(self) -> Iterator[Session]:
        return (self.session(number) for number in range(1, len(self) + 1))

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in the order of their columns."""
        return tuple(self.graph.class_names[number] for number in self.split.classes)

    @property
    def session_of_class(self) -> np.ndarray:
        """(classes,) Session in which each column arrives; 0 for base and pseudo-novel classes."""
        return self.split.session_of_column

    def classes_seen(self, session: int) -> int:
        """Count the classes that learners know after a session.

        Args:
            session: Number of the session, from 0.

        Returns:
            The number of classes, including base and pseudo-novel ones.
        """
        return int((self.split.session_of_column <= session).sum())

    @property
    def n_train(self) -> int:
        """Number of labels for training: training nodes of session 0 and all supports, without validation nodes."""
        return int((self._roles == Role.TRAIN).sum()) + self.n_supports

    @property
    def n_supports(self) -> int:
        """Number of supports of all sessions. On the track ``active``: the sum of the budgets."""
        if self.protocol.track == "active":
            return sum(self.budget(session) for session in range(1, len(self) + 1))
        return int((self._roles == Role.SUPPORT).sum())

    @property
    def n_test(self) -> int:
        """Number of query nodes of the last session."""
        return int(self.queries(len(self)).nodes.size)

    def fresh(self) -> "Stream":
        """Return the same stream without cached graphs, so that two evaluations share no visible graph."""
        return Stream(self.graph, self.protocol, self.seed, self.split, self.view)

    @property
    def base(self) -> BaseSession:
        """Session 0."""
        split, names = self.split, self.classes
        train, validation = (np.flatnonzero(self._roles == role) for role in (Role.TRAIN, Role.VALIDATION))
        return BaseSession(
            base_classes=names[: split.base_count],
            pseudo_novel_classes=tuple(names[column] for column in split.pseudo_novel_columns),
            train=train,
            train_labels=self._columns[train],
            validation=validation,
            validation_labels=self._columns[validation],
            pseudo_novel_tasks=split.pseudo_novel_tasks,
            visible_graph=self.visible_graph(0),
            way=self.protocol.way,
            shot=self.protocol.shot,
            track=self.protocol.track,
            protocol=self.protocol.name,
        )

    def session(self, number: int, *, with_query_labels: bool = False, with_pool_labels: bool = False) -> Session:
        """Return a novel session.

        Args:
            number: Number of the session, 1 to T.
            with_query_labels: Return a :class:`PaperSession`, which only the protocol ``paper`` has.
            with_pool_labels: Return a :class:`PooledSession`, for learners that declare it.

        Returns:
            The session.

        Raises:
            InputError: If there is no session of this number or kind, or the track is ``active``.
        """
        if with_query_labels and self.protocol.name != "paper":
            raise InputError(f"the protocol {self.protocol.name!r} has no sessions with query labels: use 'paper'.")
        if with_query_labels and with_pool_labels:
            raise InputError("a session cannot have both query labels and pool labels: choose one of them.")
        if self.protocol.track == "active":
            raise InputError(
                "on the track 'active' a strategy chooses the nodes of each session: use `evaluate` with a strategy, "
                "or `active_session`."
            )
        if not 1 <= number <= len(self):
            raise InputError(f"session {number} does not exist: the stream has sessions 1 to {len(self)}.")
        supports = np.flatnonzero((self._roles == Role.SUPPORT) & (self._sessions == number))
        names = self.classes
        arguments: dict[str, Any] = {
            "number": number,
            "new_classes": tuple(names[c] for c in np.flatnonzero(self.session_of_class == number)),
            "supports": supports,
            "support_labels": self._columns[supports],
            "visible_graph": self.visible_graph(number),
            "track": self.protocol.track,
        }
        if with_pool_labels:
            pool = np.flatnonzero((self._roles == Role.POOL) & (self._sessions == number))
            return PooledSession(**arguments, pool=pool, pool_labels=self._columns[pool])
        if not with_query_labels:
            return Session(**arguments)
        queries = self.queries(number)
        return PaperSession(**arguments, queries=queries.nodes, query_labels=queries.labels)

    def budget(self, session: int) -> int:
        """Return how many labels a strategy may request in a session of the track ``active``.

        Args:
            session: Number of the session, 1 to T.

        Returns:
            K for each class that arrives in this session on other tracks.
        """
        return self.protocol.shot * int((self.session_of_class == session).sum())

    @property
    def candidates(self) -> np.ndarray:
        """(m,) Node numbers that a strategy may choose from, ascending. Empty unless the track is ``active``."""
        return np.flatnonzero(self._roles == Role.CANDIDATE)

    def columns_of(self, nodes: np.ndarray) -> np.ndarray:
        """Return the true columns of nodes. Only evaluators may call it, to answer a strategy.

        Args:
            nodes: (m,) Node numbers.

        Returns:
            (m,) int64 Columns; -1 for nodes of unused or unknown classes.
        """
        return self._columns[nodes]

    def active_session(
        self, number: int, new_classes: tuple[str, ...], nodes: np.ndarray, columns: np.ndarray
    ) -> Session:
        """Make a session of the track ``active`` from the labels that a strategy requested.

        Args:
            number: Number of the session, 1 to T.
            new_classes: Names of classes that these labels show for the first time, in the order of their columns.
            nodes: (m,) Node numbers.
            columns: (m,) Columns as the learner numbers classes, in the order in which they were first seen.

        Returns:
            The session.
        """
        return Session(number, new_classes, nodes, columns, self.visible_graph(number), self.protocol.track)

    def visible_graph(self, session: int) -> VisibleNodes:
        """Return the graph that a learner sees while it learns a session.

        Args:
            session: Number of the session, from 0.

        Returns:
            The visible graph. On the track ``isolated`` it has only the nodes of this session.
        """
        if self.protocol.track == "isolated":
            return self._cut(np.flatnonzero(self._sessions == session))
        return self.evaluation_graph(session)

    def evaluation_graph(self, session: int) -> VisibleNodes:
        """Return the graph that a learner sees while it predicts after a session.

        Args:
            session: Number of the session, from 0.

        Returns:
            The nodes of all classes seen (``transductive``, ``isolated``) or all nodes (``open``, ``active``), with all
            edges among them.
        """
        return self._cut(self.evaluation_numbers(session))

    def evaluation_numbers(self, session: int) -> np.ndarray:
        """Return the numbers of the nodes in :meth:`evaluation_graph`.

        Args:
            session: Number of the session, from 0.

        Returns:
            (m,) Node numbers, ascending.
        """
        if self.protocol.shows_all:
            return np.arange(self.graph.node_count)
        return np.flatnonzero(self._sessions <= session)

    def queries(self, session: int) -> Queries:
        """Return the query nodes after a session and their columns. Only evaluators may call it.

        Args:
            session: Number of the session, from 0.

        Returns:
            Under ``strict`` all test nodes of the classes seen, and on the track ``active`` all test nodes of all
            classes, even if a class has no label yet. Under ``paper`` the sampled queries.
        """
        if self.protocol.name == "paper":
            nodes = np.flatnonzero(np.isin(self.node_of_number, self.split.queries[session]))
        else:
            last = len(self) if self.protocol.track == "active" else session
            nodes = np.flatnonzero((self._roles == Role.TEST) & (self._sessions <= last))
        return Queries(nodes=nodes, labels=self._columns[nodes])

    def _cut(self, numbers: np.ndarray) -> VisibleNodes:
        """Cut the graph and cache the result: learning and prediction after a session mostly use the same graph."""
        if self._last_cut is not None:
            if np.array_equal(self._last_cut.nodes, numbers):
                return self._last_cut
            self._last_cut = None  # free its memory before the next graph is cut
        self._last_cut = self.graph.visible(numbers, self.view, self.node_of_number)
        return self._last_cut


def make_stream(graph: AnyGraph, protocol: Protocol | None = None, *, seed: int = 0, **changes: Any) -> Stream:
    """Divide a graph into sessions.

    Args:
        graph: The graph. PyG data and networkx graphs are converted.
        protocol: The rules. By default they are suggested from the graph: about 30 % base, 25 % pseudo-novel and 45 %
            novel classes in about ten sessions.
        seed: Seed of the random draw.
        **changes: Rules to change, for instance ``way=1, track="open"``. None leaves a rule unchanged.

    Returns:
        The stream.

    Raises:
        InputError: If a rule is wrong, the graph has too few classes of sufficient size, or the track needs a graph in
            memory.

    Examples:
        >>> from graphfcl import load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> make_stream(graph, base=2, pseudo_novel=1, way=1, shot=2)
        Stream('synthetic', seed 0, strict/transductive, 2 base + 1 pseudo-novel classes, 3 sessions of 1-way 2-shot)
    """
    graph = as_graph(graph, "make_stream")
    rules = adapt_protocol(graph, protocol, changes)
    if rules.track in graph.unsupported_tracks:
        raise InputError(
            f"the track {rules.track!r} needs a graph in memory, and {graph.name} stays on the disk: take open, "
            "transductive or isolated, or a larger --memory."
        )
    split = draw_split(graph, rules, seed)
    if split.left_out:
        listed = "; ".join(f"{name} ({reason})" for name, reason in split.left_out.items())
        warnings.warn(f"{graph.name}: classes too small for any part were left out: {listed}.", GraphfclWarning, 2)
    novel = len(split.classes) - split.base_count - split.pseudo_novel_count
    if rules.way > novel:
        warnings.warn(f"{graph.name}: {rules.way} classes per session, but there are only {novel}.", GraphfclWarning, 2)
    return Stream(graph, rules, seed, split, fit_view(graph, rules, split))


def fit_view(graph: AnyGraph, protocol: Protocol, split: Split) -> FeatureView | None:
    """Fit the transformation from raw features to the features that learners see, on session 0. None changes nothing.

    Word counts are weighted by TF-IDF. Of other sparse features, learners see the columns that at least
    ``column_min_nodes`` nodes of session 0 have (of all nodes, if the track shows all). Dense features are
    standardised by the training nodes.
    """
    if not graph.sparse_features:
        train = split.roles == Role.TRAIN
        return Standardisation.fit_blocks(lambda: graph.feature_blocks(train)) if protocol.standardise else None
    every = np.ones(graph.node_count, dtype=bool)
    session_zero = every if protocol.shows_all else split.sessions_of_nodes(graph) == 0

    def blocks() -> Iterator[Features]:
        return graph.feature_blocks(session_zero)

    if graph.text is not None:
        return TextWeights.fit_blocks(blocks, graph.text.min_nodes, graph.text.beside)
    if protocol.shows_all and graph.column_min_nodes == 1:
        return None
    return KnownColumns.fit_blocks(blocks, graph.column_min_nodes)
