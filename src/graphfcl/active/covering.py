"""The strategy ``auto``: cover the regions that contain few labels (in the manner of ProbCover).

A class without a label appears as a region in which few nodes are labelled compared with other regions. Nodes in such
regions get a high weight. The strategy chooses nodes one by one, so that together they cover as much weight as
possible.
"""

from dataclasses import dataclass, replace

import numpy as np

from graphfcl.active.clusters import BLOCK, likeliest_of, nearest_neighbours, principal_components, unit_rows
from graphfcl.active.contract import ActiveLearningState, Query, Strategy

MOST = 4_000  # candidates with the largest weight, among which nodes are chosen
AT_ONCE = 1_000  # nodes that are chosen before these candidates are selected again
AGAIN = 32  # rows whose gain is recomputed at a time


@dataclass(frozen=True)
class CoveringSettings:
    """Settings, chosen on development graphs; see ``docs/active-learning.md``.

    Attributes:
        components: Number of principal components by which nodes are compared.
        neighbours: Number of nearest neighbours that decide whether labels reach a node.
        usual: Quantile, over candidates, of the share of labelled neighbours that counts as the usual share.
        reached: A candidate is fully reached if its share is at least this fraction of the usual share.
        doubt: Influence of the model's uncertainty on the weight, from 0 to 1.
        width: Width of the kernel, in units of the median distance to the tenth neighbour.
        enough: Number of labels with which a late class has enough.
        least: Smallest factor of the weight of nodes that the model assigns to a late class with enough labels.
    """

    components: int = 128
    neighbours: int = 15
    usual: float = 0.6
    reached: float = 0.5
    doubt: float = 0.5
    width: float = 1.0
    enough: int = 5
    least: float = 0.1


class Covering(Strategy):
    """Nodes that stand for the most of what no label reaches, spread"""

    name = "auto"
    reference = "coverage as in Yehuda et al., NeurIPS 2022 (ProbCover)"
    settings = CoveringSettings()

    def choose(self, state: ActiveLearningState) -> list[Query]:
        """Choose greedily the candidate c with the largest Σ_v w(v) · max(0, k(v, c) − covered(v)) over candidates v.

        w(v) = max(0, 1 − share(v) / (reached · usual share)) · (1 − doubt + 2 · doubt · rank(v)) · need(v), with

        - share(v): share of labelled nodes among the 15 nearest;
        - rank(v): rank of 1 − the highest probability among the candidates, from 0 to 1;
        - need(v): smaller if the most likely class is late and has many labels;
        - k: Gaussian kernel of the cosine distance in 128 principal components;
        - covered(v): the largest k(v, ·) to a chosen node or to a labelled node of a late class.

        A late class was learned after session 0, or has few labels if there was no session 0.
        """
        if state.wanted == 0:
            return []
        seed = int(state.random.integers(2**31))
        state = replace(state, candidates=state.shuffled())  # ties are broken at random
        values, neighbours, distances = state.memory.find((self.name, seed), lambda: self._neighbours(state, seed))
        unreached = self._unreached(state, neighbours)
        weight = unreached * self._model_weight(state)
        usual = float(np.median(distances[unreached >= np.median(unreached), min(9, distances.shape[1] - 1)]))
        width = max(1e-3, self.settings.width * usual)
        covered = self._covered(state, values, width)
        chosen = cover(values[state.candidates], weight, covered, width, state.wanted)
        any_label = state.labelled.size > 0
        return [
            Query(int(state.candidates[place]), "uncovered" if any_label and unreached[place] > 0.5 else "cluster")
            for place in chosen
        ]

    def _neighbours(self, state: ActiveLearningState, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find the nearest nodes of the candidates. Rows without a visible node are not neighbours of any candidate.

        Returns:
            Vectors of unit length by which nodes are compared, shape (n, d), and the nearest nodes of the candidates
            with their distances, each of shape (c, k).
        """
        visible, vectors, candidates = state.visible, state.vectors, state.candidates
        if visible.node_count == visible.row_count:
            values = unit_rows(principal_components(vectors, self.settings.components, seed=seed))
            return values, *nearest_neighbours(values, candidates, self.settings.neighbours, seed=seed)
        rows = np.sort(visible.rows(visible.nodes))
        compact = unit_rows(principal_components(vectors[rows], self.settings.components, seed=seed))
        places, count = np.searchsorted(rows, candidates), self.settings.neighbours
        neighbours, distances = nearest_neighbours(compact, places, count, seed=seed)
        values = np.zeros((len(vectors), compact.shape[1]), dtype=compact.dtype)
        values[rows] = compact
        return values, rows[neighbours], distances

    def _unreached(self, state: ActiveLearningState, neighbours: np.ndarray) -> np.ndarray:
        """From 0 (as many labelled neighbours as usual) to 1 (none), shape (c,); 1 everywhere without labels."""
        labelled = np.zeros(state.vectors.shape[0], dtype=np.float32)
        labelled[state.labelled] = 1
        share = labelled[neighbours].mean(axis=1)
        usual = self.settings.reached * float(np.quantile(share, self.settings.usual))
        if usual <= 0:
            usual = float(share.max())
        return np.clip(1 - share / usual, 0, 1) if usual > 0 else np.ones(share.size, dtype=np.float32)

    def _model_weight(self, state: ActiveLearningState) -> np.ndarray:
        """The model's factor of the weight of each candidate: uncertainty · need, shape (c,); 1 without a model."""
        if state.scores is None:
            return np.ones(state.candidates.size)
        best, highest, _ = state.likeliest(state.candidates)
        counts = np.bincount(state.columns, minlength=state.scores.shape[1])
        # max(least, 1 − labels / enough) for late classes, 1 for the others
        need = np.maximum(self.settings.least, 1 - counts / self.settings.enough)
        need[~state.late] = 1
        if highest.size < 2:
            return need[best]
        # The factor is 1 on average, and larger where the model is less certain.
        rank = np.empty(highest.size)
        rank[np.argsort(1 - highest, kind="stable")] = np.arange(highest.size) / (highest.size - 1)
        return (1 - self.settings.doubt + 2 * self.settings.doubt * rank) * need[best]

    def _covered(self, state: ActiveLearningState, values: np.ndarray, width: float) -> np.ndarray:
        """How well labelled nodes of late classes cover each candidate, shape (c,)."""
        late = state.labelled[state.late[state.columns]]
        if late.size == 0:
            return np.zeros(state.candidates.size, dtype=np.float32)
        return _kernel(likeliest_of(values[state.candidates], values[late])[1], width)


def cover(values: np.ndarray, weight: np.ndarray, covered: np.ndarray, width: float, wanted: int) -> np.ndarray:
    """Choose rows with :func:`greedy_cover` in rounds, each among the ``MOST`` rows with the largest remaining weight.

    ``values`` has rows of unit length. Memory does not grow with the budget.
    """
    chosen, free = np.zeros(0, dtype=np.int64), np.ones(len(values), dtype=bool)
    while chosen.size < wanted:
        counts = np.where(free, weight * (1 - covered), -1)
        top = np.argsort(-counts, kind="stable")[: min(MOST, int(free.sum()))]
        count = min(AT_ONCE, wanted - chosen.size)
        taken = top[greedy_cover(values[top], weight[top], covered[top], width, count)]
        chosen, free[taken] = np.concatenate([chosen, taken]), False
        if chosen.size < wanted:
            covered = np.maximum(covered, _kernel(likeliest_of(values, values[taken])[1], width))
    return chosen


def greedy_cover(values: np.ndarray, weight: np.ndarray, covered: np.ndarray, width: float, wanted: int) -> np.ndarray:
    """Choose rows one by one, each with the largest gain Σ_v w(v) max(0, k(v, c) − covered(v)).

    The gain of a row only shrinks when other rows are chosen, so its last value is an upper bound. Only rows with the
    largest bounds are recomputed (lazy greedy, Minoux 1978).
    """
    kernel = _kernel(values @ values.T, width)
    weight, covered = weight.astype(np.float32), covered.astype(np.float32)
    blocks = range(0, len(values), BLOCK)
    bound = np.concatenate([np.maximum(kernel[start : start + BLOCK] - covered, 0) @ weight for start in blocks])
    exact, taken = np.ones(len(values), dtype=bool), np.zeros(0, dtype=np.int64)
    while taken.size < min(wanted, len(values)):
        best = int(bound.argmax())
        if not exact[best]:
            again = np.argsort(-bound, kind="stable")[:AGAIN]
            bound[again] = np.maximum(kernel[again] - covered, 0) @ weight
            bound[taken], exact[again] = -1, True
            continue
        taken, bound[best] = np.append(taken, best), -1
        covered = np.maximum(covered, kernel[best])
        exact[:] = False
    return taken


def _kernel(cosine: np.ndarray, width: float) -> np.ndarray:
    """Gaussian kernel exp(−‖a − b‖² / 2 width²) of rows of unit length, from their cosine."""
    return np.exp(-(2 - 2 * np.clip(cosine, -1, 1)) / (2 * width**2)).astype(np.float32)
