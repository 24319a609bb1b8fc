"""The out-of-distribution score of a node: how little it looks like any known class, from several measures.

With m_j(v) a measure, and middle_j and spread_j its median and interquartile range over validation nodes of known
classes::

    ood_score(v) = Σ_j w_j · clip( (m_j(v) − middle_j) / spread_j , ± limit_j )

The weights w come from a logistic regression that separates nodes of held-out classes from known ones in the held-out
run of a fit, with equal weight for every class. If no class can be held out, the score is the smoothed energy alone.

- energy: −log Σ exp of the scores (Liu, Wang, Owens, Li: Energy-based Out-of-distribution Detection. NeurIPS 2020),
  by itself and averaged over the neighbourhood (Wu, Chen, Yang, Yan: Energy-based Out-of-Distribution Detection for
  Graph Neural Networks. ICLR 2023);
- entropy of the probabilities, by itself and averaged over the neighbourhood;
- how few labelled nodes are near. A class that was never taught has none, a class of five has hardly any; because of
  the second it is clipped at two spreads;
- whether the predicted class was learned after session 0: such classes get higher scores than others.

A measure is added by a function and a line in ``MEASURES``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphfcl.production.answers.row_values import RowValues

if TYPE_CHECKING:  # stored answers are read without scipy
    from graphfcl.graph.interfaces import VisibleNodes

SMOOTHING_STEPS = 2  # how often a value is averaged with those of the neighbours
MANY_NODES = 1_000_000
PENALTY = 0.3  # of the squared weights, where known and unknown nodes weigh 1 each per stage


@dataclass(frozen=True, eq=False)
class Evidence:
    """What measures are computed from, for all n rows of a graph.

    scores: (n, columns) of the classes in use. temperature: what they are divided by before they become probabilities.
    few: (columns,) whether a class was learned after session 0. visible: the nodes and edges. labelled: (n,) whether
    the learner has the label of a node.
    """

    scores: RowValues
    temperature: float
    few: np.ndarray
    visible: "VisibleNodes"
    labelled: np.ndarray

    def map_scores(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """(n,) a function of scores that returns one value per row, applied to blocks of rows."""
        return np.concatenate([function(block) for block in self.scores.blocks()])

    @cached_property
    def degrees(self) -> np.ndarray:
        return self.visible.degrees.astype(np.float64)

    def mean_of_neighbours(self, values: np.ndarray) -> np.ndarray:
        """(n,) the weighted mean over the neighbours of each node; an isolated node keeps its own value."""
        return np.where(self.degrees > 0, self.visible.product(values) / np.maximum(self.degrees, 1e-12), values)

    def smooth(self, values: np.ndarray) -> np.ndarray:
        """(n,) values averaged with the mean of the neighbours, ``SMOOTHING_STEPS`` times."""
        for _ in range(SMOOTHING_STEPS):
            values = 0.5 * values + 0.5 * self.mean_of_neighbours(values)
        return values

    def own_share_in_smooth(self, rows: np.ndarray) -> np.ndarray:
        """(rows,) the weight of a node's own value in :meth:`smooth`.

        It is ¼ + ¼ of the probability that a random walk returns in two steps, and 1 for an isolated node.
        """
        near = self.visible.neighbours_at(rows)
        back = near.multiply(near) @ (1 / np.maximum(self.degrees, 1e-12)) / np.maximum(self.degrees[rows], 1e-12)
        return np.where(self.degrees[rows] > 0, 0.25 + 0.25 * back, 1.0)


@dataclass(frozen=True)
class Measure:
    """A named value of every node: the higher, the less the node looks like any known class.

    name: in histories and model folders. compute: from the evidence to (n,) values.
    smooth: whether values are then averaged over the neighbourhood (:meth:`Evidence.smooth`).
    limit: values are clipped at so many spreads from the middle.
    standardise: whether values are expressed in spreads from the middle; a measure that is 0 or 1 is not.
    tempers: whether a node's temperature depends on it too.
    """

    name: str
    compute: Callable[[Evidence], np.ndarray]
    smooth: bool = False
    limit: float = 6.0
    standardise: bool = True
    tempers: bool = False


def energy(scores: np.ndarray) -> np.ndarray:
    """(n,) −log Σ exp of (n, columns) scores."""
    from scipy.special import logsumexp  # not needed to read stored answers

    return -logsumexp(scores, axis=1)


def _energy(evidence: Evidence) -> np.ndarray:
    return evidence.map_scores(energy)


def _entropy(evidence: Evidence) -> np.ndarray:
    from scipy.special import entr, softmax

    return evidence.map_scores(lambda scores: entr(softmax(scores / evidence.temperature, axis=1)).sum(axis=1))


def _unlabelled_around(evidence: Evidence) -> np.ndarray:
    near = evidence.mean_of_neighbours(evidence.labelled.astype(np.float64))
    return -evidence.smooth(np.where(evidence.degrees > 0, near, 0.0))


def _few_shot_answer(evidence: Evidence) -> np.ndarray:
    return evidence.few[evidence.map_scores(lambda scores: scores.argmax(axis=1))].astype(np.float64)


ENERGY = Measure("energy", _energy, tempers=True)
ENERGY_AROUND = Measure("energy around", _energy, smooth=True, tempers=True)
MEASURES = (
    ENERGY,
    ENERGY_AROUND,
    Measure("entropy", _entropy, tempers=True),
    Measure("entropy around", _entropy, smooth=True, tempers=True),
    Measure("unlabelled around", _unlabelled_around, limit=2.0),
    Measure("few-shot answer", _few_shot_answer, standardise=False),
)


MEASURE_OF = {each.name: each for each in MEASURES}


def measured(evidence: Evidence, names: Sequence[str]) -> np.ndarray:
    """(n, names) the measures of all nodes; in 32 bits if they are more than ``MANY_NODES``."""
    kind = np.float32 if len(evidence.scores) > MANY_NODES else np.float64
    values = np.empty((len(evidence.scores), len(names)), dtype=kind)
    for place, column in enumerate(_columns(evidence, [MEASURE_OF[name] for name in names])):
        values[:, place] = column
    return values


def _columns(evidence: Evidence, measures: Sequence[Measure]) -> Iterator[np.ndarray]:
    """(n,) each measure of all nodes.

    Two consecutive measures with one function compute it once: on a graph folder it takes a pass over all scores.
    """
    compute, values = None, np.zeros(0)
    for measure in measures:
        if measure.compute is not compute:
            compute, values = measure.compute, measure.compute(evidence)
        yield evidence.smooth(values) if measure.smooth else values


def measured_left_out(
    evidence: Evidence, values: np.ndarray, names: Sequence[str], rows: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """(rows, names) the measures of labelled nodes as if they had not been learned.

    values: (n, names) the measures of all nodes. scores: (rows, columns) of these nodes while each is left out. Only
    the energies follow these scores: measures of the neighbourhood are not computed again for every node.
    """
    left_out = values[rows].copy()
    change = energy(scores) - energy(evidence.scores[rows])
    for place, name in enumerate(names):
        if name == ENERGY.name:
            left_out[:, place] += change
        elif name == ENERGY_AROUND.name:
            left_out[:, place] += evidence.own_share_in_smooth(rows) * change
    return left_out


@dataclass(frozen=True, eq=False)
class Ruler:
    """Middle and spread of each measure over nodes of known classes. names, middles, spreads: (measures,)."""

    names: tuple[str, ...]
    middles: np.ndarray
    spreads: np.ndarray

    @classmethod
    def of(cls, names: Sequence[str], values: np.ndarray) -> "Ruler":
        """values: (nodes, names) the measures of nodes of known classes."""
        low, middle, high = np.percentile(values, [25, 50, 75], axis=0)
        spread = np.maximum(high - low, 1e-3 * np.abs(middle) + 1e-6)
        standardise = np.array([MEASURE_OF[name].standardise for name in names])
        return cls(tuple(names), np.where(standardise, middle, 0.0), np.where(standardise, spread, 1.0))

    def apply(self, values: np.ndarray) -> np.ndarray:
        """(n, measures) in spreads from the middle, clipped."""
        limits = np.array([MEASURE_OF[name].limit for name in self.names])
        return np.clip((values - self.middles) / self.spreads, -limits, limits)


@dataclass(frozen=True, eq=False)
class Stage:
    """A stage of the held-out run.

    standard: (v, measures) of the queries, in spreads of session 0's validation nodes. columns: (v,) their classes.
    learned: the number of classes learned so far; classes from there on are unknown.
    """

    standard: np.ndarray
    columns: np.ndarray
    learned: int


def default_weights() -> dict[str, float]:
    """The weights if no class could be held out."""
    return {ENERGY_AROUND.name: 1.0}


def fit_weights(stages: Sequence[Stage]) -> dict[str, float]:
    """The weights of all measures, from the stages that have known and unknown nodes."""
    from sklearn.linear_model import LogisticRegression

    rows, unknown, weights = [], [], []
    for stage in stages:
        is_unknown = stage.columns >= stage.learned
        if is_unknown.all() or not is_unknown.any():
            continue
        weight = np.empty(is_unknown.size)
        for here in (is_unknown, ~is_unknown):
            weight[here] = balanced_weights(stage.columns[here])
        rows.append(stage.standard)
        unknown.append(is_unknown)
        weights.append(weight)
    if not rows:
        return default_weights()
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
    """(n,) weights that sum to 1, with equal weight for every class."""
    _, places, counts = np.unique(columns, return_inverse=True, return_counts=True)
    weights = 1 / counts[places]
    return weights / weights.sum()


def separation(high: np.ndarray, low: np.ndarray) -> float:
    """AUROC: the probability that a value of the first is above one of the second; ties count half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([high, low]))[: high.size]
    return float((ranks.sum() - high.size * (high.size + 1) / 2) / (high.size * low.size))
