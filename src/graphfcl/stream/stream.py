"""A graph cut into sessions."""

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
    """The nodes asked about after a session, and their columns. For evaluators only, never for a learner."""

    nodes: np.ndarray
    labels: np.ndarray


class Stream:
    """``base`` is session 0; ``for session in stream`` walks through the novel sessions 1..T.

    A learner is handed the sessions, never the stream: the stream knows the whole graph and the query labels.

    node_of_number: (n,) the node of the graph behind each number that learners know nodes by. Sessions, visible graphs
        and queries speak of nodes by these numbers; the split and a saved stream do not.
    view: what a learner sees of the raw features.
    """

    def __init__(self, graph: AnyGraph, protocol: Protocol, seed: int, split: Split, view: FeatureView | None) -> None:
        self.graph = graph
        self.protocol = protocol
        self.seed = seed
        self.split = split
        self.view = view
        self.node_of_number = draw_numbers(graph, seed)
        # By number, like all else here.
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
        """(classes,) the session in which each column arrives; 0 for base and pseudo-novel classes."""
        return self.split.session_of_column

    def classes_seen(self, session: int) -> int:
        """Number of classes known after a session."""
        return int((self.split.session_of_column <= session).sum())

    @property
    def n_train(self) -> int:
        """Number of nodes whose labels a learner is trained on: train nodes of session 0 and all supports.

        Validation nodes do not count.
        """
        return int((self._roles == Role.TRAIN).sum()) + self.n_supports

    @property
    def n_supports(self) -> int:
        """Number of supports of all sessions; under ``active`` their budgets."""
        if self.protocol.track == "active":
            return sum(self.budget(session) for session in range(1, len(self) + 1))
        return int((self._roles == Role.SUPPORT).sum())

    @property
    def n_test(self) -> int:
        """Number of query nodes of the last session."""
        return int(self.queries(len(self)).nodes.size)

    def fresh(self) -> "Stream":
        """The same stream with nothing computed yet, so that two walks share no visible graph."""
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
        """Session 1..T.

        with_query_labels: a :class:`PaperSession`, which only the protocol ``paper`` has.
        with_pool_labels: a :class:`PooledSession`, for learners that declare it.
        """
        if with_query_labels and self.protocol.name != "paper":
            raise InputError(f"the protocol {self.protocol.name!r} has no sessions with query labels: use 'paper'.")
        if with_query_labels and with_pool_labels:
            raise InputError("no session has both query labels and pool labels: ask for one of them.")
        if self.protocol.track == "active":
            raise InputError(
                "sessions of the track 'active' are made of the nodes that a strategy names: use `evaluate` with a "
                "strategy, or `active_session`."
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
        """How many nodes may be asked about in a session of the track ``active``: K for each class it would bring."""
        return self.protocol.shot * int((self.session_of_class == session).sum())

    @property
    def candidates(self) -> np.ndarray:
        """Numbers of the nodes that a strategy may name, ascending; none but under the track ``active``."""
        return np.flatnonzero(self._roles == Role.CANDIDATE)

    def columns_of(self, nodes: np.ndarray) -> np.ndarray:
        """The columns of nodes, by number. For evaluators only: these are the answers to what a strategy asks."""
        return self._columns[nodes]

    def active_session(
        self, number: int, new_classes: tuple[str, ...], nodes: np.ndarray, columns: np.ndarray
    ) -> Session:
        """Session 1..T of the track ``active``, from answers.

        new_classes: found for the first time, in the order of their columns. nodes: numbers. columns: as the learner
        counts classes, in the order in which they were found.
        """
        return Session(number, new_classes, nodes, columns, self.visible_graph(number), self.protocol.track)

    def visible_graph(self, session: int) -> VisibleNodes:
        """What a learner sees while it learns a session: under ``isolated`` its own nodes alone."""
        if self.protocol.track == "isolated":
            return self._cut(np.flatnonzero(self._sessions == session))
        return self.evaluation_graph(session)

    def evaluation_graph(self, session: int) -> VisibleNodes:
        """What a learner sees when it is asked after a session: a graph with all edges among its nodes.

        ``transductive`` and ``isolated``: the nodes of all classes seen. ``open`` and ``active``: every node.
        """
        return self._cut(self.evaluation_numbers(session))

    def evaluation_numbers(self, session: int) -> np.ndarray:
        """Numbers of the nodes that are visible when a learner is asked after a session, ascending."""
        if self.protocol.shows_all:
            return np.arange(self.graph.node_count)
        return np.flatnonzero(self._sessions <= session)

    def queries(self, session: int) -> Queries:
        """All test nodes of the classes seen (``strict``), or the sampled ones (``paper``). For evaluators only.

        Under the track ``active`` those of all classes: a class of which no node was labelled yet counts too.
        """
        if self.protocol.name == "paper":
            nodes = np.flatnonzero(np.isin(self.node_of_number, self.split.queries[session]))
        else:
            last = len(self) if self.protocol.track == "active" else session
            nodes = np.flatnonzero((self._roles == Role.TEST) & (self._sessions <= last))
        return Queries(nodes=nodes, labels=self._columns[nodes])

    def _cut(self, numbers: np.ndarray) -> VisibleNodes:
        """Cut the graph; the last one is kept, because a session is learned and asked about on the same graph."""
        if self._last_cut is not None:
            if np.array_equal(self._last_cut.nodes, numbers):
                return self._last_cut
            self._last_cut = None  # make room before the next one is cut
        self._last_cut = self.graph.visible(numbers, self.view, self.node_of_number)
        return self._last_cut


def make_stream(graph: AnyGraph, protocol: Protocol | None = None, *, seed: int = 0, **changes: Any) -> Stream:
    """Cut a graph into sessions.

    graph: may be PyG data or a networkx graph too.
    protocol: the rules; without them a suggestion for the graph (about 30/25/45 % of the classes, ten sessions).
    changes: rules to change, for instance ``way=1, track="open"``.
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
    """What learners see of the features, fitted on what is known at session 0; None if they see them as they are.

    Texts: TF-IDF. Sparse features: the columns that pass the minimum count of the graph (``column_min_nodes``) among
    the nodes of session 0, which are all nodes if the track shows all. Dense ones: standardised by the train nodes.
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
