"""Calibrated probabilities, prediction sets, and the score of "none of the known classes".

After every change of a model, :meth:`Calibration.recalibrated` computes from the current scores:

- The *temperature* of each node (``temperature.py``), from the validation nodes of session 0.
- The *OOD score* s of each node (``ood_scores.py``), and from it the *unknown score*: the share of validation nodes
  with a lower OOD score. Let q be the 95 % quantile of their OOD scores. For s > q the unknown score is
  1 − 0.05/(1 + (s − q)/tail).
- The *threshold* above which a node is called unknown. At most 5 % of the validation nodes are above it, and at most
  about 5 % of the nodes of classes learned later. These classes have no validation nodes, so each of their supports is
  left out in turn.
- The *misses*: the miss of a node is 1 − p of its true class. Their quantiles determine prediction sets (split
  conformal prediction).

OOD score and temperature of a node are called its *readings*. Few-shot classes behave differently from classes with
many labels. A held-out run (``model/held_out_run.py``) measures the difference once per fit and returns a
:class:`HeldOutResult`. The log of the factor by which a temperature increases is called *heat*.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.production.answers.ood_scores import (
    MEASURE_OF,
    Evidence,
    RobustScaler,
    combined,
    default_weights,
    measured,
    measured_left_out,
)
from graphfcl.production.answers.row_values import probabilities_of
from graphfcl.production.answers.temperature import HIGHEST, LOWEST, MOST_LOG_FACTOR, best_temperature

KEPT = 0.95  # share of nodes of known classes below the threshold
SUPPORTS_KEPT = 0.9  # the same for left-out supports; they are so few that their 95 % quantile would be the maximum
LEVELS = np.linspace(0, 1, 1001)
ROUNDING = 1e-4  # possible difference of an OOD score between machines, in spreads
ROWS_AT_A_TIME = 1 << 20  # number of nodes whose readings are computed together
MOST_HEAT = 50.0  # largest heat or slope that a stored model may have


@dataclass(frozen=True)
class HeldOutResult:
    """Result of a held-out run.

    Attributes:
        weights: Weights of the measures of the OOD score, by name.
        slopes: Slopes of the log of a node's temperature in some of the measures, by name.
        few_heat: Extra log temperature for models with few-shot classes. It applies in full if their share of the
            classes is at least ``few_share``, and in proportion below it.
        few_share: Share of few-shot classes among the classes of the run.
        few_limit: 95 % quantile of the OOD scores of nodes of few-shot classes; None without such nodes.
        few_excess: Difference between ``few_limit`` and the 90 % quantile of left-out supports of these classes; None
            if the method cannot leave supports out.
        few_misses: (1001,) quantiles of the misses of nodes of few-shot classes; None without such nodes.
        group_purity: Parameters of :class:`PurityModel`, the purity of groups of nodes of unknown classes; empty if it
            was not measured.
    """

    weights: dict[str, float] = field(default_factory=default_weights)
    slopes: dict[str, float] = field(default_factory=dict)
    few_heat: float = 0.0
    few_share: float = 1.0
    few_limit: float | None = None
    few_excess: float | None = None
    few_misses: tuple[float, ...] | None = None
    group_purity: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Values from which a model is calibrated: scores of all nodes, and labels of validation nodes and supports.

    Attributes:
        evidence: Scores and graph, with the previous temperature.
        rows: (v,) rows of the validation nodes.
        columns: (v,) true columns of the validation nodes.
        class_of_column: (columns,) class of each column; two columns may have one class.
        left_out: Rows of the supports of classes learned after session 0, and their (supports, columns) scores while
            each of them is left out; None if the method cannot leave supports out.
    """

    evidence: Evidence
    rows: np.ndarray
    columns: np.ndarray
    class_of_column: np.ndarray
    left_out: tuple[np.ndarray, np.ndarray] | None = None

    def is_true_class(self) -> np.ndarray:
        """(v, columns) whether a column has the node's true class."""
        return self.class_of_column[self.columns][:, None] == self.class_of_column[None, :]


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities, prediction sets and unknown scores.

    Attributes:
        held_out: Result of the held-out run.
        temperature: Best single temperature for all validation nodes; entropies use it.
        heat: Log ratio of a median node's temperature to ``temperature``.
        threshold: Unknown score above which a node is called unknown.
        middles: Median of each measure of the OOD score over validation nodes, by name.
        spreads: Interquartile range of each measure over validation nodes, by name.
        ood_score: (1001,) quantiles of the OOD score over validation nodes.
        tail: Mean excess of the OOD scores above their 95 % quantile.
        misses: (1001,) quantiles of 1 − p of the true class.
        stale: Whether the calibration belongs to the model before its last change, so that it must be computed again
            from the current scores.
    """

    held_out: HeldOutResult = field(default_factory=HeldOutResult)
    temperature: float = 1.0
    heat: float = 0.0
    threshold: float = KEPT
    middles: dict[str, float] = field(default_factory=dict)
    spreads: dict[str, float] = field(default_factory=dict)
    ood_score: tuple[float, ...] = ()
    tail: float = 1.0
    misses: tuple[float, ...] = ()
    stale: bool = False

    # Apply

    def readings(self, evidence: Evidence) -> np.ndarray:
        """Return (n, 2) OOD scores and temperatures of all nodes.

        ``evidence`` must have the temperature of this calibration.
        """
        names = tuple(self.held_out.weights)
        middles, spreads = (np.array([by[name] for name in names]) for by in (self.middles, self.spreads))
        scaler = RobustScaler(names, middles, spreads)
        return self._read(scaler, measured(evidence, names))

    def _read(self, scaler: RobustScaler, values: np.ndarray) -> np.ndarray:
        """Compute (n, 2) readings from (n, measures) measures of all nodes, in parts to save memory."""
        readings = np.empty((len(values), 2))
        for start in range(0, len(values), ROWS_AT_A_TIME):
            part = slice(start, start + ROWS_AT_A_TIME)
            standard = scaler.apply(values[part])
            readings[part, 0] = combined(standard, self.held_out.weights)
            readings[part, 1] = self.temperature * np.exp(self.heat + heat_of(standard, self.held_out))
        return readings

    def unknown_scores(self, ood_score: np.ndarray) -> np.ndarray:
        """Return (n,) unknown scores in [0, 1]: the share of validation nodes with a lower OOD score."""
        quantiles = np.array(self.ood_score)
        last = quantiles.size - 1
        place = np.searchsorted(quantiles, ood_score, side="left")
        upper = place.clip(1, last)
        above, below = quantiles[upper], quantiles[upper - 1]
        gap = np.where(above > below, above - below, 1.0)
        between = LEVELS[upper - 1] + (ood_score - below) / gap / last
        share = np.where(place == 0, 0.0, np.where(place > last, 1.0, between))
        excess = (ood_score - np.interp(KEPT, LEVELS, quantiles)) / self.tail
        return np.where(excess > 0, 1 - (1 - KEPT) / (1 + np.maximum(excess, 0)), np.minimum(share, KEPT))

    def sets(self, probabilities: np.ndarray, few: np.ndarray, coverage: float) -> np.ndarray:
        """Return (n, classes) whether a class is in the prediction set of a node.

        A class with probability p is in the set if 1 − p is at most the quantile, at level ``coverage``, of the misses
        of true classes. The likeliest class is always in the set. For classes of session 0, the quantile comes from v
        validation nodes, with the (v + 1)/v correction of split conformal prediction. For classes learned later, it is
        the larger of this quantile and the quantile of the held-out run.

        The set contains the true class with about the probability ``coverage``, on average over nodes of session-0
        classes and not for each class or node. The guarantee of split conformal prediction holds only approximately,
        because the temperature is fitted to the same validation nodes.

        Args:
            probabilities: (n, classes) probabilities.
            few: (classes,) whether a class was learned after session 0.
            coverage: Wanted probability that the set contains the true class.
        """
        if not 0 < coverage < 1:
            raise InputError(f"the coverage is {coverage:g}: choose a number between 0 and 1, such as 0.9.")
        if not self.misses:
            raise InputError("this model has no quantiles for prediction sets: fit it again.")
        place = int(np.ceil(coverage * (LEVELS.size - 1) - 1e-9))
        many_limit = self.misses[place]
        few_misses = self.held_out.few_misses
        few_limit = many_limit if few_misses is None else max(many_limit, few_misses[place])
        in_set = 1 - probabilities <= np.where(few, few_limit, many_limit)
        in_set[np.arange(len(in_set)), probabilities.argmax(axis=1)] = True
        return in_set

    # Compute

    def recalibrated(self, model_scores: ModelScores) -> tuple["Calibration", np.ndarray]:
        """Return the calibration of the current model, and the (n, 2) readings of all nodes."""
        rows, held_out = model_scores.rows, self.held_out
        scores, is_true = model_scores.evidence.scores[rows], model_scores.is_true_class()
        columns = np.where(is_true, scores, -np.inf).argmax(axis=1)  # the likeliest column of each node's true class
        temperature = best_temperature(scores, columns, start=self.temperature)
        evidence = replace(model_scores.evidence, temperature=temperature)
        names = tuple(held_out.weights)
        values = measured(evidence, names)
        scaler = RobustScaler.of(names, values[rows])
        heats = np.exp(heat_of(scaler.apply(values[rows]), held_out))
        own = best_temperature(scores / heats[:, None], columns, start=temperature)
        few_share = float(evidence.few.mean())
        calibration = Calibration(
            held_out=held_out,
            temperature=temperature,
            heat=float(np.log(own / temperature)) + held_out.few_heat * min(1.0, few_share / held_out.few_share),
            middles=dict(zip(names, scaler.middles.tolist(), strict=True)),
            spreads=dict(zip(names, scaler.spreads.tolist(), strict=True)),
        )
        readings = calibration._read(scaler, values)
        ood_scores, temperatures = readings[rows].T
        limit = float(np.quantile(ood_scores, KEPT)) + ROUNDING
        excess = ood_scores[ood_scores > limit] - limit
        probabilities = probabilities_of(scores, temperatures)
        calibration = replace(
            calibration,
            ood_score=short(np.quantile(ood_scores, LEVELS)),
            tail=float(excess.mean()) if excess.size and excess.mean() > 0 else 1.0,
            misses=miss_quantiles(1 - np.where(is_true, probabilities, 0).sum(axis=1)),
        )
        if evidence.few.any():
            limit = max(limit, self._few_limit(evidence, values, scaler, model_scores.left_out))
        return replace(calibration, threshold=float(calibration.unknown_scores(np.array([limit]))[0])), readings

    def _few_limit(
        self,
        evidence: Evidence,
        values: np.ndarray,
        scaler: RobustScaler,
        left_out: tuple[np.ndarray, np.ndarray] | None,
    ) -> float:
        """Estimate the OOD score that most nodes of few-shot classes do not exceed; −∞ if it cannot be estimated."""
        held_out = self.held_out
        if left_out is None or not left_out[0].size:
            return -np.inf if held_out.few_limit is None else held_out.few_limit
        left = combined(scaler.apply(measured_left_out(evidence, values, scaler.names, *left_out)), held_out.weights)
        if held_out.few_excess is None:
            return float(np.quantile(left, KEPT))
        return float(np.quantile(left, SUPPORTS_KEPT)) + held_out.few_excess

    # Store

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        values = asdict(self)
        if not self.stale:
            del values["stale"]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Calibration":
        """Make a calibration from the values of :meth:`as_json`.

        Raises:
            ValueError: If a value cannot be used.
        """

        def plain(fields: dict[str, Any]) -> dict[str, Any]:
            return {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}

        held_out = HeldOutResult(**plain(values["held_out"]))
        return cls(**{**plain(values), "held_out": held_out}).checked()

    def checked(self) -> "Calibration":
        """Return the calibration itself, or raise ValueError if a value cannot be used."""
        if not self.temperature > 0:
            raise ValueError("its temperature is not above 0")
        held_out = self.held_out
        numbers = [self.temperature, self.heat, self.threshold, self.tail, held_out.few_heat, held_out.few_share]
        numbers += [each for each in (held_out.few_limit, held_out.few_excess) if each is not None]
        for value in held_out.group_purity.values():
            numbers += value if isinstance(value, list) else [value]
        for by_name in (self.middles, self.spreads, held_out.weights, held_out.slopes):
            numbers += by_name.values()
        for quantiles in (self.ood_score, self.misses, held_out.few_misses or ()):
            numbers += quantiles
            if len(quantiles) not in (0, LEVELS.size) or (np.diff(quantiles) < 0).any():
                raise ValueError("its calibration has invalid quantiles")
        finite = bool(np.isfinite(np.array(numbers, dtype=np.float64)).all())
        measures = set(held_out.weights)
        heats = [self.heat, held_out.few_heat, *held_out.slopes.values()]
        bounded = all(abs(heat) < MOST_HEAT for heat in heats) and all(spread > 0 for spread in self.spreads.values())
        if not bounded or not measures <= MEASURE_OF.keys() or not measures:
            raise ValueError("its calibration has invalid values")
        fits = set(self.middles) == set(self.spreads) == measures
        if not (finite and fits and self.tail > 0 and held_out.few_share > 0):
            raise ValueError("its calibration cannot be used")
        return self


def heat_of(standard: np.ndarray, held_out: HeldOutResult) -> np.ndarray:
    """Return the (n,) terms that measures add to the log of a node's temperature.

    ``standard`` are (n, measures) measures in spreads from the median.
    """
    slopes = np.array([held_out.slopes.get(name, 0.0) for name in held_out.weights])
    return np.clip(np.clip(standard, LOWEST, HIGHEST) @ slopes, -MOST_LOG_FACTOR, MOST_LOG_FACTOR)


def short(values: np.ndarray) -> tuple[float, ...]:
    """Round values to the precision of 32 bits, because a query for one node reads little else than quantiles."""
    return tuple(float(f"{value:.7g}") for value in values.tolist())


def miss_quantiles(misses: np.ndarray) -> tuple[float, ...]:
    """Return the (1001,) quantiles of v misses: at each level the ⌈(v + 1) · level⌉-th smallest miss.

    The quantile is 1 if there are fewer misses than this number.
    """
    places = np.ceil((misses.size + 1) * LEVELS - 1e-9).astype(np.int64)
    ordered = np.concatenate([[0.0], np.sort(misses), [1.0]])
    # Round up, so that the class of a node with exactly this miss is in its set.
    return short(np.minimum(1.0, ordered[np.minimum(places, misses.size + 1)] * (1 + 1e-6) + 1e-9))


def unknown_share(calibration: Calibration, ood_score: np.ndarray) -> float:
    """Return the share of nodes that are called unknown, from (n,) OOD scores."""
    unknown = calibration.unknown_scores(ood_score) > calibration.threshold
    return float(unknown.mean()) if unknown.size else 0.0
