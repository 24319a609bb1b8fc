"""Draw the role of each node, once for a graph, a protocol and a seed."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from graphfcl.graph.interfaces import AnyGraph
from graphfcl.runtime.arrays import read_only
from graphfcl.stream.classes import BASE_TRAIN_NODES, ClassRoles, choose_classes, node_split_sizes
from graphfcl.stream.protocol import CANDIDATE_SHARE, Protocol

NEVER = np.iinfo(np.int32).max  # session of nodes whose class is not used


class Role(IntEnum):
    """Role of a node.

    Nodes of base and pseudo-novel classes are TRAIN, VALIDATION or TEST; nodes of novel classes are TEST, SUPPORT or
    POOL. On the track ``active`` a share of each class is CANDIDATE instead of TRAIN, SUPPORT or POOL.
    """

    NONE = 0
    TRAIN = 1
    VALIDATION = 2
    TEST = 3
    SUPPORT = 4
    POOL = 5
    CANDIDATE = 6


class _Draw(IntEnum):
    """Purposes of random draws. Each has its own generator, so that one draw does not change another."""

    CLASSES = 0
    NODES = 1
    TASKS = 3
    QUERIES = 4
    NUMBERS = 5
    EVALUATION_ORDER = 6
    CANDIDATES = 7
    STRATEGY = 8


@dataclass(frozen=True, eq=False)
class Split:
    """Roles of all classes and nodes.

    Learners know a class by its column. Base classes come first, then pseudo-novel classes, both ordered by their
    numbers in the graph, then novel classes in order of arrival. The column of a class never changes.

    Args:
        classes: Class number in the graph of each column.
        base_count: Number of base classes.
        pseudo_novel_count: Number of pseudo-novel classes.
        session_of_column: (columns,) Session in which each class arrives; 0 for base and pseudo-novel classes.
        pseudo_novel_tasks: Columns of the pseudo-novel classes, divided into tasks of N.
        roles: (nodes,) int8 values of :class:`Role`.
        queries: Sampled query nodes of sessions 0 to T under ``paper``, else empty.
        left_out: Names of classes that are too small for any role, with the reason.
    """

    classes: tuple[int, ...]
    base_count: int
    pseudo_novel_count: int
    session_of_column: np.ndarray
    pseudo_novel_tasks: tuple[tuple[int, ...], ...]
    roles: np.ndarray
    queries: tuple[np.ndarray, ...]
    left_out: dict[str, str]

    def __post_init__(self) -> None:
        for array in (self.session_of_column, self.roles, *self.queries):
            read_only(array)

    @property
    def session_count(self) -> int:
        """Number of novel sessions T."""
        return int(self.session_of_column.max())

    @cached_property
    def base_columns(self) -> range:
        return range(self.base_count)

    @cached_property
    def pseudo_novel_columns(self) -> range:
        return range(self.base_count, self.base_count + self.pseudo_novel_count)

    def columns_of_nodes(self, graph: AnyGraph) -> np.ndarray:
        """Return (nodes,) int64 columns of the nodes' classes; -1 if a class is not used or unknown."""
        column_of_class = np.full(len(graph.class_names) + 1, -1, dtype=np.int64)
        column_of_class[list(self.classes)] = np.arange(len(self.classes))
        return column_of_class[graph.labels]  # an unknown label, -1, reads the last item, which is -1

    def sessions_of_nodes(self, graph: AnyGraph) -> np.ndarray:
        """Return (nodes,) int32 sessions in which the nodes' classes arrive, or NEVER."""
        sessions = np.append(self.session_of_column, NEVER).astype(np.int32)
        return sessions[self.columns_of_nodes(graph)]


def draw_split(graph: AnyGraph, protocol: Protocol, seed: int) -> Split:
    """Draw classes, nodes, tasks and (under ``paper``) queries."""
    chosen = choose_classes(graph, protocol, _generator(seed, _Draw.CLASSES))
    classes = (*chosen.base, *chosen.pseudo_novel, *chosen.novel)
    arrival = 1 + np.arange(len(chosen.novel)) // protocol.way
    first = len(chosen.base) + len(chosen.pseudo_novel)
    session_of_column = np.concatenate([np.zeros(first, dtype=np.int64), arrival])
    pseudo_novel = np.arange(len(chosen.base), first)
    roles = _draw_roles(graph, protocol, chosen, seed)
    if protocol.track == "active":
        _draw_candidates(roles, graph, protocol, chosen, seed)
    return Split(
        classes=classes,
        base_count=len(chosen.base),
        pseudo_novel_count=len(chosen.pseudo_novel),
        session_of_column=session_of_column,
        pseudo_novel_tasks=draw_tasks(pseudo_novel, protocol.way, seed),
        roles=roles,
        queries=_draw_queries(graph, protocol, classes, session_of_column, roles, seed),
        left_out=chosen.left_out,
    )


def draw_numbers(graph: AnyGraph, seed: int) -> np.ndarray:
    """Draw (n,) the node of the graph for each node number that learners see, a random permutation.

    The order of nodes in a file often follows their classes, so learners must not see it. The fingerprint of the graph
    is part of the seed, so that a learner, which does not have the graph, cannot repeat the draw.
    """
    return _secret_generator(graph, seed, _Draw.NUMBERS).permutation(graph.node_count)


def draw_evaluation_order(graph: AnyGraph, seed: int, session: int, nodes: np.ndarray) -> np.ndarray:
    """Shuffle query nodes into the order in which a learner predicts them after a session."""
    return _secret_generator(graph, seed, _Draw.EVALUATION_ORDER, session).permutation(nodes)


def strategy_generator(graph: AnyGraph, seed: int, session: int) -> np.random.Generator:
    """Return the random generator of a strategy in a session of the track ``active``.

    Its seed is a digest: a strategy can read the seed of its generator, and must not learn the seed of node numbers.
    """
    source = f"{graph.sha256} {seed} {int(_Draw.STRATEGY)} {session}"
    return np.random.default_rng(int(hashlib.sha256(source.encode()).hexdigest(), 16))


def _secret_generator(graph: AnyGraph, seed: int, purpose: _Draw, *further: int) -> np.random.Generator:
    """Return a generator for draws over nodes, seeded with the fingerprint of the graph, which learners do not have.

    A learner that could repeat the draw of roles would find the test nodes of a class.
    """
    return _generator(seed, purpose, *further, int(graph.sha256[:16], 16))


def _generator(seed: int, purpose: _Draw, *further: int) -> np.random.Generator:
    return np.random.default_rng([seed, int(purpose), *further])


def _members(graph: AnyGraph, chosen: ClassRoles) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number of each class that is used, and its nodes."""
    by_class = np.argsort(graph.labels, kind="stable")
    ends = np.searchsorted(graph.labels[by_class], np.arange(len(graph.class_names) + 1))
    for number in (*chosen.base, *chosen.pseudo_novel, *chosen.novel):
        yield number, by_class[ends[number] : ends[number + 1]]


def _draw_roles(graph: AnyGraph, protocol: Protocol, chosen: ClassRoles, seed: int) -> np.ndarray:
    roles = np.zeros(graph.node_count, dtype=np.int8)
    for number, members in _members(graph, chosen):
        drawn = _secret_generator(graph, seed, _Draw.NODES, number).permutation(members)
        if number in chosen.novel:
            labelled = protocol.drawn_shot + int((drawn.size - protocol.drawn_shot) * protocol.pool_share)
            supports = labelled if protocol.pool_as_supports else protocol.shot
            parts = (Role.SUPPORT, supports), (Role.POOL, labelled - supports)
        else:
            train, validation, _ = node_split_sizes(drawn.size, protocol)
            parts = (Role.TRAIN, train), (Role.VALIDATION, validation)
        roles[drawn] = Role.TEST
        start = 0
        for role, size in parts:
            roles[drawn[start : start + size]] = role
            start += size
    return roles


def _draw_candidates(roles: np.ndarray, graph: AnyGraph, protocol: Protocol, chosen: ClassRoles, seed: int) -> None:
    """Make 30 % of the nodes of each class candidates, in place. Test nodes stay test nodes.

    The share is the same in each class, so a candidate is as likely to belong to a novel class as any other node. This
    does not hold among unlabelled nodes. With the default shares, 50 % of a session-0 class stay labelled (30 % train,
    20 % validation), and 60 % of its unlabelled nodes are candidates, the rest test nodes. Novel classes have no
    labelled nodes, and 30 % of their nodes are candidates.

    A small session-0 class has fewer candidates if it needs the nodes for training.
    """
    needed = dict.fromkeys(chosen.base, BASE_TRAIN_NODES) | dict.fromkeys(chosen.pseudo_novel, protocol.drawn_shot + 1)
    for number, members in _members(graph, chosen):
        free = np.sort(members[np.isin(roles[members], (Role.TRAIN, Role.SUPPORT, Role.POOL))])
        count = min(round(CANDIDATE_SHARE * members.size), free.size - needed.get(number, 0))
        roles[_secret_generator(graph, seed, _Draw.CANDIDATES, number).permutation(free)[:count]] = Role.CANDIDATE


def draw_tasks(pseudo_novel: np.ndarray, way: int, seed: int) -> tuple[tuple[int, ...], ...]:
    drawn = _generator(seed, _Draw.TASKS).permutation(pseudo_novel).tolist()
    return tuple(tuple(drawn[start : start + way]) for start in range(0, len(drawn), way))


def _draw_queries(
    graph: AnyGraph,
    protocol: Protocol,
    classes: tuple[int, ...],
    session_of_column: np.ndarray,
    roles: np.ndarray,
    seed: int,
) -> tuple[np.ndarray, ...]:
    """Draw queries under ``paper``: in each session, m test nodes of each class seen so far (or all, if fewer)."""
    if protocol.name != "paper":
        return ()
    wanted = protocol.queries or protocol.drawn_shot
    test = np.flatnonzero(roles == Role.TEST)
    by_class = {number: test[graph.labels[test] == number] for number in classes}
    queries = []
    for session in range(int(session_of_column.max()) + 1):
        seen = [number for number, arrival in zip(classes, session_of_column, strict=True) if arrival <= session]
        drawn = [
            _secret_generator(graph, seed, _Draw.QUERIES, session, number).permutation(by_class[number])[:wanted]
            for number in seen
        ]
        queries.append(np.sort(np.concatenate(drawn)))
    return tuple(queries)
