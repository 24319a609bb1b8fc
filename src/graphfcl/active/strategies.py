"""The simple strategies; ``auto`` is in ``covering.py``."""

import numpy as np

from graphfcl.active.clusters import clusters, principal_components, typicality
from graphfcl.active.contract import ActiveLearningState, Query, Reason, Strategy
from graphfcl.errors import InputError

NEEDS_A_MODEL = "the strategy {!r} needs a model, and there is none: use 'auto' or 'typical'."
MOST_CLUSTERS = 500  # as in the paper of TypiClust


class Random(Strategy):
    """Candidates drawn with equal chance"""

    name = "random"

    def choose(self, state: ActiveLearningState) -> list[Query]:
        return _queries(state.shuffled()[: state.wanted], "random")


class Uncertain(Strategy):
    """Smallest margin between the two likeliest classes"""

    name = "uncertain"
    reference = "Scheffer et al., IDA 2001"

    def choose(self, state: ActiveLearningState) -> list[Query]:
        """Sort candidates by p_1 − p_2, the probabilities of the two most likely classes, smallest first.

        If only one class is known, its probability is used. Ties are broken at random.
        """
        if state.scores is None:
            raise InputError(NEEDS_A_MODEL.format(self.name))
        rows = state.shuffled()
        _, _, margin = state.likeliest(rows)
        return _queries(rows[np.argsort(margin, kind="stable")[: state.wanted]], "between")


class Unknown(Strategy):
    """Highest unknown score first: least like any known class"""

    name = "unknown"

    def choose(self, state: ActiveLearningState) -> list[Query]:
        """Sort candidates by unknown_score, highest first. Ties are broken at random."""
        if state.unknown_score is None:
            raise InputError(NEEDS_A_MODEL.format(self.name))
        rows = state.shuffled()
        return _queries(rows[np.argsort(-state.unknown_score[rows], kind="stable")[: state.wanted]], "unknown")


class Typical(Strategy):
    """Typical nodes of clusters that no label represents"""

    name = "typical"
    reference = "Hacohen et al., ICML 2022 (TypiClust)"

    def choose(self, state: ActiveLearningState) -> list[Query]:
        """Choose one node of each cluster without a label, largest clusters first.

        Candidates and labelled nodes are clustered together by k-means on 64 principal components, with K = labelled
        nodes + budget, at most 500. The most typical candidate of each cluster is chosen: the one with the smallest
        mean distance to its 20 nearest neighbours. When no cluster without a label is left, clusters with the fewest
        labels follow.
        """
        wanted = state.wanted
        if wanted == 0:
            return []
        rows = np.concatenate([state.candidates, state.labelled])
        seed = int(state.random.integers(2**31))
        values = principal_components(state.vectors[rows], seed=seed)
        count = state.candidates.size
        cluster = clusters(values, cluster_count(state), seed=seed)
        typical = typicality(values, cluster, state.random)[:count]
        labels = np.bincount(cluster[count:], minlength=cluster.max() + 1)
        chosen = one_of_each(cluster[:count], typical, labels, wanted)
        return _queries(state.candidates[chosen], "cluster")


def _queries(rows: np.ndarray, reason: Reason) -> list[Query]:
    return [Query(int(row), reason) for row in rows]


def cluster_count(state: ActiveLearningState) -> int:
    """K, so large that ``budget`` clusters remain if every labelled node covers one."""
    return min(state.labelled.size + state.wanted, max(MOST_CLUSTERS, state.wanted))


def one_of_each(cluster: np.ndarray, score: np.ndarray, labels: np.ndarray, wanted: int) -> np.ndarray:
    """Choose the best candidate of each cluster, then the second of each, and so on; return positions, shape (wanted,).

    Clusters with the fewest labels come first, and of these the largest.

    Args:
        cluster: Cluster of each candidate, shape (c,).
        score: Score of each candidate, shape (c,).
        labels: Number of labelled nodes in each cluster, shape (k,).
        wanted: Number of candidates to choose.
    """
    sizes = np.bincount(cluster, minlength=labels.size)
    best_first = np.lexsort((-score, cluster))
    starts = np.cumsum(sizes) - sizes
    turn = np.empty(cluster.size, dtype=np.int64)  # rank of a candidate in its cluster
    turn[best_first] = np.arange(cluster.size) - np.repeat(starts, sizes)
    order = np.lexsort((-sizes[cluster], labels[cluster] + turn))
    return order[:wanted]
