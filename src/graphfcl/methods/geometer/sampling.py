"""Episodes of Geometer: biased ones on session 0, and those of an incremental session."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.methods.learner import Labelled
from graphfcl.methods.shared.episodes import Episode, NodePools, flatten, split_draw
from graphfcl.stream.sessions import BaseSession

MULTIPLES = 4  # a class with many nodes has K, 2K, … so many times K supports in the episode of a session


@dataclass
class BiasedSampler:
    """Biased sampling: every class has a random number of supports, 1 to ``most_supports``, and the same of queries.

    A class with fewer nodes than asked for gives what it has.
    """

    pools: NodePools
    columns: np.ndarray
    most_supports: int
    queries: int

    @classmethod
    def of(cls, base: BaseSession, pseudo_novel: np.ndarray, most_supports: int, queries: int) -> "BiasedSampler":
        """Episodes over the base classes and some of the pseudo-novel columns."""
        pools = NodePools(base.train, base.train_labels, len(base.classes))
        columns = np.concatenate([np.arange(len(base.base_classes)), pseudo_novel])
        return cls(pools, columns[pools.sizes[columns] > 1], most_supports, queries)  # one node cannot be both

    def sample(self, random: np.random.Generator) -> Episode:
        places = np.arange(self.columns.size)
        wanted = random.integers(1, self.most_supports + 1, places.size)
        drawn = self.pools.draw(self.columns, np.full(places.size, self.most_supports + self.queries), random)
        kept, asked = split_draw(drawn, self.most_supports, self.queries)
        kept = np.where(np.cumsum(kept >= 0, axis=1) <= wanted[:, None], kept, -1)
        return Episode.of_one_task(places.size, flatten(kept, places), flatten(asked, places))

    def values(self) -> dict[str, Any]:
        return {}

    def load(self, values: dict[str, Any]) -> None:
        """Episodes do not depend on those before."""


@dataclass(frozen=True, eq=False)
class SessionClasses:
    """All classes known at a session that have a labelled node, by positions 0..class_count−1.

    pools: labelled nodes of each. new: (class_count,) which arrive in this session. arrived: supports of the session.
    shot: K. queries: of each class in a balanced episode.
    """

    pools: NodePools
    new: np.ndarray
    arrived: Labelled
    shot: int
    queries: int

    @classmethod
    def of(
        cls, labelled: Labelled, arrived: Labelled, new_columns: np.ndarray, *, shot: int, queries: int
    ) -> "SessionClasses":
        """labelled: (nodes, columns) all that are kept, those that arrived among them."""
        columns, places = np.unique(labelled[1], return_inverse=True)
        return cls(
            pools=NodePools(labelled[0], places, columns.size),
            new=np.isin(columns, new_columns),
            arrived=(arrived[0], np.searchsorted(columns, arrived[1])),
            shot=shot,
            queries=queries,
        )

    @property
    def class_count(self) -> int:
        return int(self.new.size)

    def sample(self, replay: str, *, leave_out: bool, random: np.random.Generator) -> Episode:
        """All nodes of a class with at most K are supports, of others K to 4K, or what there are.

        replay: which queries, ``balanced`` or ``released``. leave_out: note which of them are supports too.
        """
        places, sizes = np.arange(self.class_count), self.pools.sizes
        wanted = self.shot * random.integers(1, MULTIPLES + 1, places.size)
        supports = flatten(self.pools.draw(places, np.where(sizes <= self.shot, sizes, wanted), random), places)
        if replay == "balanced":
            queries = flatten(self.pools.draw(places, np.full(places.size, self.queries), random), places)
        else:
            nodes, classes = self.arrived
            asked = np.bincount(random.integers(places.size, size=nodes.size), minlength=places.size)
            others = flatten(self.pools.draw(places, asked, random), places)
            queries = np.concatenate([nodes, others[0]]), np.concatenate([classes, others[1]])
        return Episode.of_one_task(places.size, supports, queries, _own(supports, queries) if leave_out else None)


def _own(supports: Labelled, queries: Labelled) -> np.ndarray:
    """(q,) where each query stands among the supports, -1 if it does not or is the only one of its class."""
    order = np.argsort(supports[0])
    place = order[np.searchsorted(supports[0], queries[0], sorter=order).clip(max=order.size - 1)]
    alone = np.bincount(supports[1])[queries[1]] == 1
    return np.where((supports[0][place] == queries[0]) & ~alone, place, -1)
