"""One ood_score out of several measures: in spreads of known nodes, weighed by a rehearsal.

With m_j(v) a measure, and middle and spread (quartile to quartile) of it over known validation nodes::

    ood_score(v) = Σ_j w_j · clip( (m_j(v) − middle_j) / spread_j , ± limit_j )

The weights are those of a logistic regression that tells the nodes of held-out classes from known ones in the
rehearsal, every class counting the same. Without a rehearsal it is the energy around alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphfcl.production.answers.ood_scores import ENERGY, ENERGY_AROUND, MEASURES, Evidence, Measure, find_measure
from graphfcl.production.answers.ood_scores.energy import energy

MANY_NODES = 1_000_000
PENALTY = 0.3  # of the squared weights, where known and unknown nodes weigh 1 each per stage


def unrehearsed() -> dict[str, float]:
    """The weights if no class could be held out."""
    return {ENERGY_AROUND.name: 1.0}


def measured(evidence: Evidence, names: Sequence[str]) -> np.ndarray:
    """(n, names) the measures of all nodes; in 32 bits if they are more than ``MANY_NODES``."""
    kind = np.float32 if len(evidence.scores) > MANY_NODES else np.float64
    found = np.empty((len(evidence.scores), len(names)), dtype=kind)
    for place, values in enumerate(_columns(evidence, [find_measure(name) for name in names])):
        found[:, place] = values
    return found


def _columns(evidence: Evidence, measures: Sequence[Measure]) -> Iterator[np.ndarray]:
    """(n,) each measure of all nodes. What two neighbours in the list start from is computed once: on a graph folder
    it takes a pass over all scores."""
    start, values = None, np.zeros(0)
    for measure in measures:
        if measure.of is not start:
            start, values = measure.of, measure.of(evidence)
        yield evidence.around(values) if measure.around else values


def measured_left_out(
    evidence: Evidence, values: np.ndarray, names: Sequence[str], rows: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """(rows, names) the measures of labelled nodes as if they had not been learned.

    values: (n, names) the measures of all nodes. scores: (rows, columns) of these nodes while each is left out. Only
    energies are those of a node left out: methods that ask the graph do not ask it again for every node.
    """
    found = values[rows].copy()
    moved = energy(scores) - energy(evidence.scores[rows])
    for place, name in enumerate(names):
        if name == ENERGY.name:
            found[:, place] += moved
        elif name == ENERGY_AROUND.name:
            found[:, place] += evidence.own_share_around(rows) * moved
    return found


@dataclass(frozen=True, eq=False)
class Ruler:
    """Middle and spread of each measure over known nodes. names, middles, spreads: (measures,)."""

    names: tuple[str, ...]
    middles: np.ndarray
    spreads: np.ndarray

    @classmethod
    def of(cls, names: Sequence[str], known: np.ndarray) -> "Ruler":
        """known: (nodes, names) the measures of known nodes."""
        low, middle, high = np.percentile(known, [25, 50, 75], axis=0)
        spread = np.maximum(high - low, 1e-3 * np.abs(middle) + 1e-6)
        standard = np.array([find_measure(name).standard for name in names])
        return cls(tuple(names), np.where(standard, middle, 0.0), np.where(standard, spread, 1.0))

    def apply(self, values: np.ndarray) -> np.ndarray:
        """(n, measures) in spreads from the middle, clipped."""
        limits = np.array([find_measure(name).limit for name in self.names])
        return np.clip((values - self.middles) / self.spreads, -limits, limits)


@dataclass(frozen=True, eq=False)
class Stage:
    """A moment of the rehearsal.

    standard: (v, measures) of the nodes asked about, in spreads of those of session 0. columns: (v,) their classes.
    learned: classes below are known by now.
    """

    standard: np.ndarray
    columns: np.ndarray
    learned: int


def weigh(stages: Sequence[Stage]) -> dict[str, float]:
    """The weights of all measures, from the stages that have known and unknown nodes."""
    from sklearn.linear_model import LogisticRegression

    rows, unknown, weights = [], [], []
    for stage in stages:
        strange = stage.columns >= stage.learned
        if strange.all() or not strange.any():
            continue
        weight = np.empty(strange.size)
        for here in (strange, ~strange):
            weight[here] = balanced_weights(stage.columns[here])
        rows.append(stage.standard)
        unknown.append(strange)
        weights.append(weight)
    if not rows:
        return unrehearsed()
    model = LogisticRegression(C=1 / (2 * PENALTY), max_iter=1000)
    model.fit(np.concatenate(rows), np.concatenate(unknown), sample_weight=np.concatenate(weights))
    return {each.name: float(weight) for each, weight in zip(MEASURES, model.coef_[0], strict=True)}


def combined(standard: np.ndarray, weights: Mapping[str, float]) -> np.ndarray:
    """(n,) the ood_score. standard: (n, measures) in the order of the weights."""
    return standard @ np.array(list(weights.values()))


def separations(stage: Stage, weights: Mapping[str, float]) -> dict[str, float]:
    """AUROC of each measure, and of all together, for telling unknown nodes from known ones at a stage."""
    unknown = stage.columns >= stage.learned
    values = {each.name: stage.standard[:, place] for place, each in enumerate(MEASURES)}
    values["all"] = combined(stage.standard, weights)
    return {name: separation(value[unknown], value[~unknown]) for name, value in values.items()}


def balanced_weights(columns: np.ndarray) -> np.ndarray:
    """(n,) weights that sum to 1, every class counting the same."""
    _, places, counts = np.unique(columns, return_inverse=True, return_counts=True)
    weights = 1 / counts[places]
    return weights / weights.sum()


def separation(high: np.ndarray, low: np.ndarray) -> float:
    """AUROC: how likely a value of the first lies above one of the second; ties count half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([high, low]))[: high.size]
    return float((ranks.sum() - high.size * (high.size + 1) / 2) / (high.size * low.size))
