"""Cover what no label reaches: nodes that stand for as much of it as possible, spread (in the manner of ProbCover).

A class without a label shows as a region where few nodes are labelled compared with elsewhere. Such regions are
weighed, and nodes are taken one by one so that together they stand for the most weight.
"""

from dataclasses import dataclass, replace

import numpy as np

from graphfcl.active.clusters import BLOCK, likeliest_of, nearest_neighbours, principal_components, unit_rows
from graphfcl.active.contract import ActiveLearningState, Query, Strategy

MOST = 4_000  # candidates of the most weight, among which nodes are taken,
AT_ONCE = 1_000  # so many at a time
AGAIN = 32  # rows whose gain is computed again at a time


@dataclass(frozen=True)
class CoveringSettings:
    """Values chosen on development graphs; see ``docs/active-learning.md``.

    components: principal components that nodes are compared by. neighbours: nearest nodes that decide how far labels
    reach. usual: quantile over candidates of the share of labelled neighbours that is usual. reached: the part
    of the usual share that counts as reached. doubt: how much of the weight is the model's doubt. width: of the kernel,
    times the usual distance to the tenth neighbour. enough: labels with which a class that came late has enough; least:
    the part of their weight that nodes keep which the model takes for a class that has enough.
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
        """Greedily the candidate c with the largest Σ_v w(v) · max(0, k(v, c) − covered(v)), over candidates v.

        w(v) = max(0, 1 − share(v) / (reached · usual share)) · (1 − doubt + 2 · doubt · rank(v)) · need(v): share, of
        labelled nodes among the 15 nearest; rank, of 1 − the highest probability among the candidates, from 0 to 1;
        need, less where the likeliest class came late and has labels enough. k: a Gaussian of the cosine distance in
        128 principal components. covered(v): the largest k(v, ·) to a node that was taken, or that is labelled with a
        class that came late.
        """
        if state.wanted == 0:
            return []
        seed = int(state.random.integers(2**31))
        state = replace(state, candidates=state.shuffled())  # of equal candidates chance takes one
        compared = state.memory.find((self.name, seed), lambda: self._compared(state, seed))
        values, neighbours, distances = compared
        reach = self._unreached(state, neighbours)
        weight = reach * self._opinion(state)
        usual = float(np.median(distances[reach >= np.median(reach), min(9, distances.shape[1] - 1)]))
        width = max(1e-3, self.settings.width * usual)
        covered = self._covered(state, values, width)
        taken = cover(values[state.candidates], weight, covered, width, state.wanted)
        any_label = state.labelled.size > 0
        return [
            Query(int(state.candidates[place]), "uncovered" if any_label and reach[place] > 0.5 else "cluster")
            for place in taken
        ]

    def _compared(self, state: ActiveLearningState, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n, d) what nodes are compared by, of unit length; the candidates' (c, k) nearest nodes and distances.

        A row without a visible node is a neighbour of none.
        """
        visible, vectors, candidates = state.visible, state.vectors, state.candidates
        if visible.node_count == visible.row_count:
            values = unit_rows(principal_components(vectors, self.settings.components, seed=seed))
            return values, *nearest_neighbours(values, candidates, self.settings.neighbours, seed=seed)
        shown = np.sort(visible.rows(visible.nodes))
        some = unit_rows(principal_components(vectors[shown], self.settings.components, seed=seed))
        places, count = np.searchsorted(shown, candidates), self.settings.neighbours
        neighbours, distances = nearest_neighbours(some, places, count, seed=seed)
        values = np.zeros((len(vectors), some.shape[1]), dtype=some.dtype)
        values[shown] = some
        return values, shown[neighbours], distances

    def _unreached(self, state: ActiveLearningState, neighbours: np.ndarray) -> np.ndarray:
        """(c,) 0 where as many neighbours are labelled as usual, 1 where none is; 1 everywhere without labels."""
        labelled = np.zeros(state.vectors.shape[0], dtype=np.float32)
        labelled[state.labelled] = 1
        share = labelled[neighbours].mean(axis=1)
        usual = self.settings.reached * float(np.quantile(share, self.settings.usual))
        if usual <= 0:
            usual = float(share.max())
        return np.clip(1 - share / usual, 0, 1) if usual > 0 else np.ones(share.size, dtype=np.float32)

    def _opinion(self, state: ActiveLearningState) -> np.ndarray:
        """(c,) doubt · need of each candidate; 1 without a model."""
        if state.scores is None:
            return np.ones(state.candidates.size)
        best, highest, _ = state.likeliest(state.candidates)
        counts = np.bincount(state.columns, minlength=state.scores.shape[1])
        # max(least, 1 − labels / enough) of a class that came late, 1 of the others.
        need = np.maximum(self.settings.least, 1 - counts / self.settings.enough)
        need[~state.late] = 1
        if highest.size < 2:
            return need[best]
        # 1 on average, larger where the model is less certain.
        rank = np.empty(highest.size)
        rank[np.argsort(1 - highest, kind="stable")] = np.arange(highest.size) / (highest.size - 1)
        return (1 - self.settings.doubt + 2 * self.settings.doubt * rank) * need[best]

    def _covered(self, state: ActiveLearningState, values: np.ndarray, width: float) -> np.ndarray:
        """(c,) how well labelled nodes of classes that came late stand for each candidate."""
        late = state.labelled[state.late[state.columns]]
        if late.size == 0:
            return np.zeros(state.candidates.size, dtype=np.float32)
        return _kernel(likeliest_of(values[state.candidates], values[late])[1], width)


def cover(values: np.ndarray, weight: np.ndarray, covered: np.ndarray, width: float, wanted: int) -> np.ndarray:
    """(wanted,) rows taken by :func:`greedy_cover`, at most ``AT_ONCE`` among the ``MOST`` that count most at a time.

    values: (c, d) of unit length. Memory does not grow with the budget.
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
    """(wanted,) rows, each the one that adds most to Σ_v w(v) max(0, k(v, c) − covered(v)).

    What a row adds only shrinks as others are taken, so what it added before is a bound. Only rows whose bound may be
    the largest are computed again (Minoux 1978).
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


def _kernel(likeness: np.ndarray, width: float) -> np.ndarray:
    """exp(−‖a − b‖² / 2 width²) of rows of unit length, from their cosine."""
    return np.exp(-(2 - 2 * np.clip(likeness, -1, 1)) / (2 * width**2)).astype(np.float32)
