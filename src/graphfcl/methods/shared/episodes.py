"""Episodes: what one is, ordinary few-shot tasks, and Graph Pseudo Incremental Learning (Section 4.1 of the paper)."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from graphfcl.methods.shared.sampling import NodePools, flatten, split_draw
from graphfcl.stream.sessions import BaseSession


@dataclass(frozen=True, eq=False)
class Episode:
    """One task: supports and queries as node numbers, classes as positions 0..class_count−1, the base classes first.

    supports: (s,) those of classes known by few supports come first, ``few_shot`` of them.
    own: (q,) where a query stands among the supports (it is then left out of its own prototype), or -1.
    tasks: (t, N) classes of each task after the base task, -1 where a task has fewer; the last is the current one.
    """

    class_count: int
    base_count: int
    supports: np.ndarray
    support_classes: np.ndarray
    few_shot: int
    queries: np.ndarray
    query_classes: np.ndarray
    own: np.ndarray
    tasks: np.ndarray

    @property
    def task_of_class(self) -> np.ndarray:
        """(class_count,) 0 for the base task, j for the j-th task after it."""
        result = np.zeros(self.class_count, dtype=np.int64)
        task, place = np.nonzero(self.tasks >= 0)
        result[self.tasks[task, place]] = task + 1
        return result


class Sampler(Protocol):
    """An endless row of episodes, whose place in it can be saved."""

    def sample(self, random: np.random.Generator) -> Episode:
        """The next episode."""

    def values(self) -> dict[str, Any]:
        """The place, as plain values."""

    def load(self, values: dict[str, Any]) -> None:
        """Go on from that place."""


@dataclass
class TaskSampler:
    """Ordinary few-shot tasks: ``way`` of the classes (all, if there are fewer), K supports and m queries each."""

    pools: NodePools
    columns: np.ndarray
    way: int
    shot: int
    queries: int

    @classmethod
    def of(cls, base: BaseSession, pseudo_novel: np.ndarray, way: int, queries: int) -> "TaskSampler":
        """Tasks over the base classes and some of the pseudo-novel columns, as many supports as a session has."""
        pools = NodePools(base.train, base.train_labels, len(base.classes))
        columns = np.concatenate([np.arange(len(base.base_classes)), pseudo_novel])
        return cls(
            pools=pools,
            columns=columns[pools.sizes[columns] > 1],  # one node cannot be support and query
            way=way,
            shot=base.shot,
            queries=queries,
        )

    def sample(self, random: np.random.Generator) -> Episode:
        chosen = random.permutation(self.columns)[: self.way]
        drawn = self.pools.draw(chosen, np.full(chosen.size, self.shot + self.queries), random)
        places = np.arange(chosen.size)
        kept, asked = split_draw(drawn, self.shot, self.queries)
        supports, support_classes = flatten(kept, places)
        queries, query_classes = flatten(asked, places)
        return Episode(
            class_count=chosen.size,
            base_count=0,
            supports=supports,
            support_classes=support_classes,
            few_shot=supports.size,
            queries=queries,
            query_classes=query_classes,
            own=np.full(queries.size, -1, dtype=np.int64),
            tasks=places[None],
        )

    def values(self) -> dict[str, Any]:
        return {}

    def load(self, values: dict[str, Any]) -> None:
        """Tasks do not depend on those before."""


@dataclass
class PseudoIncrementalSampler:
    """Graph Pseudo Incremental Learning: an endless row of sessions over the pseudo-novel classes.

    Each session takes N pseudo-novel classes (all, if there are fewer) that are not known yet, with K supports that
    stay cached while the class counts among the known ones. When fewer than N are left all return, and the cache is
    emptied.
    """

    pools: NodePools
    base_columns: np.ndarray
    pseudo_novel_columns: np.ndarray
    way: int
    shot: int
    base_supports: int
    queries: int

    def __post_init__(self) -> None:
        self.known = np.zeros(0, dtype=np.int64)  # (known,) columns in the order of learning
        self.cached = np.zeros((0, self.shot), dtype=np.int64)  # (known, K) their supports

    @classmethod
    def of(
        cls, base: BaseSession, pseudo_novel: np.ndarray, base_supports: int, queries: int
    ) -> "PseudoIncrementalSampler":
        """Episodes over the train nodes of session 0, with some of its pseudo-novel columns."""
        return cls(
            pools=NodePools(base.train, base.train_labels, len(base.classes)),
            base_columns=np.arange(len(base.base_classes)),
            pseudo_novel_columns=pseudo_novel,
            way=base.way,
            shot=base.shot,
            base_supports=base_supports,
            queries=queries,
        )

    def sample(self, random: np.random.Generator) -> Episode:
        """The next session. The newly learned classes are known from now on."""
        size = min(self.way, self.pseudo_novel_columns.size)
        left = np.setdiff1d(self.pseudo_novel_columns, self.known)
        if left.size < size:
            self.known, self.cached = self.known[:0], self.cached[:0]
            left = self.pseudo_novel_columns
        new = random.permutation(left)[:size]
        supports = self.pools.draw(new, np.full(size, self.shot), random)
        self.known, self.cached = np.concatenate([self.known, new]), np.concatenate([self.cached, supports])

        base = self.base_columns
        wanted = np.full(base.size, self.base_supports + self.queries)
        drawn = self.pools.draw(base, wanted, random)
        base_supports, base_queries = split_draw(drawn, self.base_supports, self.queries)
        drawn = self.pools.draw(self.known, np.full(self.known.size, self.shot + self.queries), random)
        novel_queries = self._without_supports(drawn)
        places = np.arange(base.size + self.known.size)
        few, few_classes = flatten(self.cached, places[base.size :])
        many, many_classes = flatten(base_supports, places[: base.size])
        first, first_classes = flatten(base_queries, places[: base.size])
        second, second_classes = flatten(novel_queries, places[base.size :])
        tasks = np.full((self.known.size // size, self.way), -1, dtype=np.int64)
        tasks[:, :size] = places[base.size :].reshape(-1, size)
        return Episode(
            class_count=places.size,
            base_count=base.size,
            supports=np.concatenate([few, many]),
            support_classes=np.concatenate([few_classes, many_classes]),
            few_shot=few.size,
            queries=np.concatenate([first, second]),
            query_classes=np.concatenate([first_classes, second_classes]),
            own=np.full(first.size + second.size, -1, dtype=np.int64),
            tasks=tasks,
        )

    def values(self) -> dict[str, Any]:
        return {"known": self.known.tolist(), "cached": self.cached.tolist()}

    def load(self, values: dict[str, Any]) -> None:
        self.known = np.array(values["known"], dtype=np.int64)
        self.cached = np.array(values["cached"], dtype=np.int64).reshape(-1, self.shot)

    def _without_supports(self, drawn: np.ndarray) -> np.ndarray:
        """The first m drawn nodes of each known class that are not among its cached supports."""
        free = (drawn >= 0) & ~(drawn[:, :, None] == self.cached[:, None, :]).any(axis=2)
        return np.where(free & (np.cumsum(free, axis=1) <= self.queries), drawn, -1)


@dataclass(frozen=True, eq=False)
class KnownClasses:
    """All classes known at an incremental session, as fine-tuning sees them. Positions are columns.

    pools: train nodes of the ``many`` first classes (base and pseudo-novel); those after them are known by supports.
    supports, support_classes: of the latter, in any order.
    tasks: classes of every task after the base task, oldest first.
    """

    pools: NodePools
    base_count: int
    many: int
    class_count: int
    supports: np.ndarray
    support_classes: np.ndarray
    tasks: list[list[int]]
    way: int

    def sample(self, base_supports: int, queries: int, random: np.random.Generator) -> Episode:
        """Queries are train nodes, left out of their means, and supports, left out of their prototypes."""
        columns = np.arange(self.many)
        drawn = self.pools.draw(columns, np.full(self.many, base_supports + queries), random)
        kept, asked = split_draw(drawn, base_supports, queries)
        first, first_classes = flatten(asked, columns)
        shots = np.bincount(self.support_classes, minlength=self.class_count)
        own = np.flatnonzero(shots[self.support_classes] > 1)  # a single support cannot be left out
        return self._episode(
            kept,
            queries=np.concatenate([first, self.supports[own]]),
            query_classes=np.concatenate([first_classes, self.support_classes[own]]),
            own=np.concatenate([np.full(first.size, -1, dtype=np.int64), own]),
        )

    def with_queries(
        self, queries: np.ndarray, labels: np.ndarray, base_supports: int, random: np.random.Generator
    ) -> Episode:
        """An episode with given labelled queries, as the protocol ``paper`` has them."""
        kept = self.pools.draw(np.arange(self.many), np.full(self.many, base_supports), random)
        return self._episode(kept, queries, labels, np.full(queries.size, -1, dtype=np.int64))

    def _episode(self, kept: np.ndarray, queries: np.ndarray, query_classes: np.ndarray, own: np.ndarray) -> Episode:
        """kept: (many, width) the nodes that make the means of the classes with many labels."""
        many, many_classes = flatten(kept, np.arange(self.many))
        return Episode(
            class_count=self.class_count,
            base_count=self.base_count,
            supports=np.concatenate([self.supports, many]),
            support_classes=np.concatenate([self.support_classes, many_classes]),
            few_shot=self.supports.size,
            queries=queries,
            query_classes=query_classes,
            own=own,
            tasks=tasks_matrix(self.tasks, self.way),
        )


def tasks_matrix(tasks: list[list[int]], way: int) -> np.ndarray:
    """(tasks, N) with -1 where a task has fewer than N classes; a task with more is split."""
    pieces = [task[start : start + way] for task in tasks for start in range(0, len(task), way)]
    matrix = np.full((len(pieces), way), -1, dtype=np.int64)
    for row, piece in zip(matrix, pieces, strict=True):
        row[: len(piece)] = piece
    return matrix
