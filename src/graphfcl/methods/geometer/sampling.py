"""Episodes of Geometer: biased ones on session 0, and those of an incremental session."""

from dataclasses import dataclass

import numpy as np

from graphfcl.methods.learner import Labelled, join_labelled
from graphfcl.methods.shared.episodes import Episode, NodePools, TaskSampler, flatten, split_draw

MULTIPLES = 4  # a class with many nodes has K, 2K, … so many times K supports in the episode of a session


class BiasedSampler(TaskSampler):
    """Biased sampling: every class has a random number of supports, 1 to ``shot``, and the same number of queries.

    A class with fewer nodes than requested gives what it has.
    """

    def sample(self, random: np.random.Generator) -> Episode:
        places = np.arange(self.columns.size)
        wanted = random.integers(1, self.shot + 1, places.size)
        drawn = self.pools.draw(self.columns, np.full(places.size, self.shot + self.queries), random)
        kept, asked = split_draw(drawn, self.shot, self.queries)
        kept = np.where(np.cumsum(kept >= 0, axis=1) <= wanted[:, None], kept, -1)
        return Episode.of(places.size, flatten(kept, places), flatten(asked, places))


@dataclass(frozen=True, eq=False)
class SessionClasses:
    """All classes known at a session that have a labelled node, by positions.

    pools: labelled nodes of each. new: (classes,) which arrive in this session. arrived: supports of the session.
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
        pools, here = NodePools(labelled[0], places, columns.size), (arrived[0], np.searchsorted(columns, arrived[1]))
        return cls(pools, np.isin(columns, new_columns), here, shot, queries)

    def sample(self, replay: str, *, leave_out: bool, random: np.random.Generator) -> Episode:
        """All nodes of a class with at most K are supports, of others K to 4K, or what there are.

        replay: which queries, ``balanced`` or ``released``. leave_out: note which of them are supports too.
        """
        places, sizes = np.arange(self.new.size), self.pools.sizes
        wanted = self.shot * random.integers(1, MULTIPLES + 1, places.size)
        supports = flatten(self.pools.draw(places, np.where(sizes <= self.shot, sizes, wanted), random), places)
        if replay == "balanced":
            queries = flatten(self.pools.draw(places, np.full(places.size, self.queries), random), places)
        else:
            asked = np.bincount(random.integers(places.size, size=self.arrived[0].size), minlength=places.size)
            queries = join_labelled(self.arrived, flatten(self.pools.draw(places, asked, random), places))
        return Episode.of(places.size, supports, queries, _own(supports, queries) if leave_out else None)


def _own(supports: Labelled, queries: Labelled) -> np.ndarray:
    """(q,) where each query stands among the supports, -1 if it does not or is the only one of its class."""
    order = np.argsort(supports[0])
    place = order[np.searchsorted(supports[0], queries[0], sorter=order).clip(max=order.size - 1)]
    alone = np.bincount(supports[1])[queries[1]] == 1
    return np.where((supports[0][place] == queries[0]) & ~alone, place, -1)
