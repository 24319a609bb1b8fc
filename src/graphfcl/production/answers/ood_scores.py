"""The out-of-distribution (OOD) score of a node says how little the node resembles any known class.

It combines several measures m_j(v). With the median middle_j and the interquartile range spread_j of each measure over
validation nodes of known classes::

    ood_score(v) = Σ_j w_j · clip( (m_j(v) − middle_j) / spread_j , ± limit_j )

The weights w come from a logistic regression that separates nodes of held-out classes from nodes of known classes in
the held-out run of a fit, with equal weight for every class. If no class can be held out, the score is the
energy averaged over the neighbourhood. The measures are:

- Energy: −log Σ exp of the scores of the node (Liu, Wang, Owens, Li: Energy-based Out-of-distribution Detection.
  NeurIPS 2020), and its average over the neighbourhood (Wu, Chen, Yang, Yan: Energy-based Out-of-Distribution Detection
  for Graph Neural Networks. ICLR 2023).
- Entropy of the probabilities of the node, and its average over the neighbourhood.
- Scarcity of labelled nodes in the neighbourhood. Nodes of an unknown class have no labelled neighbours of their class.
  Nodes of a class with five labels have hardly any either, so this measure is clipped at two spreads.
- Whether the predicted class was learned after session 0. Nodes predicted as such a class have higher scores than
  others.

To add a measure, write a function and add it to ``MEASURES``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphfcl.production.answers.row_values import RowValues

if TYPE_CHECKING:  # stored answers are read without scipy
    from graphfcl.graph.interfaces import VisibleNodes

SMOOTHING_STEPS = 2  # number of times that a value is averaged with the values of the neighbours
MANY_NODES = 1_000_000
PENALTY = 0.3  # L2 penalty of the weights; in each stage, known nodes have total weight 1, and so have unknown nodes


@dataclass(frozen=True, eq=False)
class Evidence:
    """Values from which measures are computed, for all n rows of a graph.

    Attributes:
        scores: (n, columns) scores of the classes in use.
        temperature: Scores are divided by it before they become probabilities.
        few: (columns,) whether a class was learned after session 0.
        visible: Nodes and edges.
        labelled: (n,) whether the learner has learned the label of a node.
    """

    scores: RowValues
    temperature: float
    few: np.ndarray
    visible: "VisibleNodes"
    labelled: np.ndarray

    def map_scores(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return (n,) values of a function that maps scores to one value per row. It is applied to blocks of rows."""
        return np.concatenate([function(block) for block in self.scores.blocks()])

    @cached_property
    def degrees(self) -> np.ndarray:
        return self.visible.degrees.astype(np.float64)

    def mean_of_neighbours(self, values: np.ndarray) -> np.ndarray:
        """Return the (n,) weighted means over the neighbours of each node. An isolated node keeps its own value."""
        return np.where(self.degrees > 0, self.visible.product(values) / np.maximum(self.degrees, 1e-12), values)

    def smooth(self, values: np.ndarray) -> np.ndarray:
        """Return (n,) values averaged with the mean of the neighbours, ``SMOOTHING_STEPS`` times."""
        for _ in range(SMOOTHING_STEPS):
            values = 0.5 * values + 0.5 * self.mean_of_neighbours(values)
        return values

    def own_share_in_smooth(self, rows: np.ndarray) -> np.ndarray:
        """Return the (rows,) weights of the nodes' own values in :meth:`smooth`.

        The weight is ¼ + ¼ r, where r is the probability that a random walk returns in two steps. It is 1 for an
        isolated node.
        """
        links = self.visible.neighbours_at(rows)
        returns = links.multiply(links) @ (1 / np.maximum(self.degrees, 1e-12)) / np.maximum(self.degrees[rows], 1e-12)
        return np.where(self.degrees[rows] > 0, 0.25 + 0.25 * returns, 1.0)


@dataclass(frozen=True)
class Measure:
    """A named value of every node. Higher values mean that the node resembles known classes less.

    Attributes:
        name: Name in histories and model folders.
        compute: Function from the evidence to (n,) values.
        smooth: Average the values over the neighbourhood (:meth:`Evidence.smooth`).
        limit: Clip values at this many spreads from the median.
        standardise: Express values in spreads from the median. A measure that is 0 or 1 is not standardised.
        tempers: Let the temperature of a node depend on this measure.
    """

    name: str
    compute: Callable[[Evidence], np.ndarray]
    smooth: bool = False
    limit: float = 6.0
    standardise: bool = True
    tempers: bool = False


def energy(scores: np.ndarray) -> np.ndarray:
    """Return (n,) −log Σ exp of (n, columns) scores."""
    from scipy.special import logsumexp  # not needed to read stored answers

    return -logsumexp(scores, axis=1)


def _energy(evidence: Evidence) -> np.ndarray:
    return evidence.map_scores(energy)


def _entropy(evidence: Evidence) -> np.ndarray:
    from scipy.special import entr, softmax

    return evidence.map_scores(lambda scores: entr(softmax(scores / evidence.temperature, axis=1)).sum(axis=1))


def _unlabelled_around(evidence: Evidence) -> np.ndarray:
    labelled_share = evidence.mean_of_neighbours(evidence.labelled.astype(np.float64))
    return -evidence.smooth(np.where(evidence.degrees > 0, labelled_share, 0.0))


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
    """Compute the (n, names) measures of all nodes, in 32 bits if there are more than ``MANY_NODES``."""
    kind = np.float32 if len(evidence.scores) > MANY_NODES else np.float64
    values = np.empty((len(evidence.scores), len(names)), dtype=kind)
    for place, column in enumerate(_columns(evidence, [MEASURE_OF[name] for name in names])):
        values[:, place] = column
    return values


def _columns(evidence: Evidence, measures: Sequence[Measure]) -> Iterator[np.ndarray]:
    """Yield the (n,) values of each measure.

    Consecutive measures with the same function share one call of it, because on a graph folder each call takes a pass
    over all scores.
    """
    compute, values = None, np.zeros(0)
    for measure in measures:
        if measure.compute is not compute:
            compute, values = measure.compute, measure.compute(evidence)
        yield evidence.smooth(values) if measure.smooth else values


def measured_left_out(
    evidence: Evidence, values: np.ndarray, names: Sequence[str], rows: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """Compute the (rows, names) measures of labelled nodes as if their labels had not been learned.

    Only the two energies are corrected for the change of a node's own scores. All other measures stay as they are.

    Args:
        evidence: Scores and graph of the model.
        values: (n, names) measures of all nodes.
        names: Names of the measures.
        rows: Rows of the labelled nodes.
        scores: (rows, columns) scores of these nodes while each of them is left out.
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
class RobustScaler:
    """Median (``middles``) and spread (``spreads``) of each measure over nodes of known classes."""

    names: tuple[str, ...]
    middles: np.ndarray
    spreads: np.ndarray

    @classmethod
    def of(cls, names: Sequence[str], values: np.ndarray) -> "RobustScaler":
        """Fit the scaler to (nodes, names) measures of nodes of known classes."""
        low, middle, high = np.percentile(values, [25, 50, 75], axis=0)
        spread = np.maximum(high - low, 1e-3 * np.abs(middle) + 1e-6)
        standardise = np.array([MEASURE_OF[name].standardise for name in names])
        return cls(tuple(names), np.where(standardise, middle, 0.0), np.where(standardise, spread, 1.0))

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Express (n, measures) measures in spreads from the median, and clip them."""
        limits = np.array([MEASURE_OF[name].limit for name in self.names])
        return np.clip((values - self.middles) / self.spreads, -limits, limits)


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of the held-out run.

    Attributes:
        standard: (v, measures) measures of the queries, in spreads of session 0's validation nodes.
        columns: (v,) classes of the queries.
        learned: Number of classes learned so far; classes from this number on are unknown.
    """

    standard: np.ndarray
    columns: np.ndarray
    learned: int


def default_weights() -> dict[str, float]:
    """Return the weights to use if no class could be held out."""
    return {ENERGY_AROUND.name: 1.0}


def fit_weights(stages: Sequence[Stage]) -> dict[str, float]:
    """Fit the weights of all measures to the stages that have both known and unknown nodes."""
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
    """Return (n,) OOD scores from (n, measures) standardised measures in the order of the weights."""
    return standard @ np.array(list(weights.values()))


def separations(stage: Stage, weights: Mapping[str, float]) -> dict[str, float]:
    """Compute how well each measure separates unknown from known nodes at a stage, as AUROC.

    The key ``all`` has the AUROC of the OOD score.
    """
    unknown = stage.columns >= stage.learned
    values = {each.name: stage.standard[:, place] for place, each in enumerate(MEASURES)}
    values["all"] = combined(stage.standard, weights)
    return {name: separation(value[unknown], value[~unknown]) for name, value in values.items()}


def balanced_weights(columns: np.ndarray) -> np.ndarray:
    """Return (n,) weights that sum to 1, with equal weight for every class."""
    _, places, counts = np.unique(columns, return_inverse=True, return_counts=True)
    weights = 1 / counts[places]
    return weights / weights.sum()


def separation(high: np.ndarray, low: np.ndarray) -> float:
    """Return the AUROC: the probability that a value of ``high`` exceeds one of ``low``; ties count half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([high, low]))[: high.size]
    return float((ranks.sum() - high.size * (high.size + 1) / 2) / (high.size * low.size))
