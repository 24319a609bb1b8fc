"""Episodes over the classes that are known: ordinary few-shot tasks, and what fine-tuning in a session sees."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.methods.shared.episodes import Episode, NodePools, flatten, split_draw
from graphfcl.stream.sessions import BaseSession


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
