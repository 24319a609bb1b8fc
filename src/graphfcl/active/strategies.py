"""The strategies that need no more than a few lines; ``auto`` has a file of its own (``covering.py``)."""

import numpy as np

from graphfcl.active.clusters import clusters, principal_components, typicality
from graphfcl.active.contract import ActiveLearningState, Query, Reason, Strategy
from graphfcl.errors import InputError

NEEDS_A_MODEL = "the strategy {!r} needs a model, and there is none: take 'auto' or 'typical'."
MOST_CLUSTERS = 500  # of TypiClust, as in the paper


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
        """Candidates by p_1 − p_2, the probabilities of the two likeliest classes, smallest first.

        With a single class known, by its probability. Ties are broken by chance.
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
        """Candidates by unknown_score, highest first. Ties are broken by chance."""
        if state.unknown_score is None:
            raise InputError(NEEDS_A_MODEL.format(self.name))
        rows = state.shuffled()
        return _queries(rows[np.argsort(-state.unknown_score[rows], kind="stable")[: state.wanted]], "unknown")


class Typical(Strategy):
    """Typical nodes of clusters that no label represents"""

    name = "typical"
    reference = "Hacohen et al., ICML 2022 (TypiClust)"

    def choose(self, state: ActiveLearningState) -> list[Query]:
        """One node of each cluster without a label, largest cluster first.

        Candidates and labelled nodes are clustered together by k-means on 64 principal components, with K = labelled
        nodes + budget, at most 500. In each cluster without a label the candidate that is most like its 20 nearest is
        named. If labels cover so much that clusters run out, those with the fewest labels follow.
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
    """K: so many clusters that ``budget`` of them remain when every labelled node covers one."""
    return min(state.labelled.size + state.wanted, max(MOST_CLUSTERS, state.wanted))


def one_of_each(cluster: np.ndarray, score: np.ndarray, labels: np.ndarray, wanted: int) -> np.ndarray:
    """(wanted,) positions: of each cluster its best, clusters with fewest labels first, larger ones before smaller.

    cluster, score: (c,) of the candidates. labels: (k,) labelled nodes of each cluster. When every cluster has given
    its best, each gives its second, and so on.
    """
    sizes = np.bincount(cluster, minlength=labels.size)
    best_first = np.lexsort((-score, cluster))
    starts = np.cumsum(sizes) - sizes
    turn = np.empty(cluster.size, dtype=np.int64)  # how many of its cluster stand before a candidate
    turn[best_first] = np.arange(cluster.size) - np.repeat(starts, sizes)
    order = np.lexsort((-sizes[cluster], labels[cluster] + turn))
    return order[:wanted]
