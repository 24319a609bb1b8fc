"""Probabilities that mean something, sets of classes that hold the true one, and "none of the known classes".

After every change of a model :meth:`Calibration.recalibrated` computes all three again, from the scores of now:

- the *temperature* of each node (``temperature.py``), from the validation nodes of session 0. With all of them right
  the best one would be 0, and every probability 1; so many nodes cannot show that. Each node counts as if a share
  1/(v + 2) of it were of another class;
- the *ood_score* of a node (``ood_score/weighing.py``), and the unknown score: the share of known nodes that are
  less strange. Above the 95 % quantile q of the v validation nodes it goes on as 1 − 0.05/(1 + (s − q)/tail);
- the *threshold* above which a node is called unknown: it keeps 95 % of the validation nodes, and of the nodes of
  classes that were learned later. Those have no validation nodes, but their supports can be left out in turn;
- the *misses*, 1 − p of the true class, whose quantiles make prediction sets (split conformal prediction).

What classes are like that a model knows by a few nodes cannot be seen on those it was trained on. A *rehearsal* shows
it once per fit (``rehearsal.py``); :class:`HeldOutResult` is what is kept of it.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.production.answers.ood_scores import (
    MEASURES,
    Evidence,
    Ruler,
    combined,
    default_weights,
    measured,
    measured_left_out,
)
from graphfcl.production.answers.temperature import HIGHEST, HOTTEST, LOWEST, best_temperature

KEPT = 0.95  # share of known nodes that the threshold keeps
SUPPORTS_KEPT = 0.9  # of supports that were left out; there are few of them, and 95 % would be the strangest alone
LEVELS = np.linspace(0, 1, 1001)
ROUNDING = 1e-4  # spreads by which a node may look stranger on another machine
ROWS_AT_A_TIME = 1 << 20  # of nodes whose measures are turned into readings
WIDEST = 50.0  # of heats and slopes that a model can have


@dataclass(frozen=True)
class HeldOutResult:
    """What a rehearsal taught.

    weights: of the measures of ood_score, by name. slopes: how a node's temperature follows some of them.
    few_heat: what the log of temperatures is higher by if few-shot classes count too, by their number; few_share: the
        share of classes that they were then.
    few_limit: the ood_score that 95 % of the nodes of few-shot classes stay below; None without such nodes.
    few_excess: how far that is above what 90 % of their supports stay below, while they are left out; None if the
        method cannot leave out.
    few_misses: (1001,) quantiles of the misses of nodes of few-shot classes, or None.
    """

    weights: dict[str, float] = field(default_factory=default_weights)
    slopes: dict[str, float] = field(default_factory=dict)
    few_heat: float = 0.0
    few_share: float = 1.0
    few_limit: float | None = None
    few_excess: float | None = None
    few_misses: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False)
class Readings:
    """What nodes are asked by besides their scores. ood_score, temperatures: (n,)."""

    ood_score: np.ndarray
    temperatures: np.ndarray


@dataclass(frozen=True, eq=False)
class Answered:
    """What a model is calibrated on: its scores of all nodes, and what is known of some.

    evidence: its temperature is that of before. rows, columns: (v,) validation nodes and their true columns.
    class_of_column: (columns,) two columns may be one class. left_out: rows of supports of classes learned after
        session 0, and their (supports, columns) scores while each is left out; None if the method cannot say.
    """

    evidence: Evidence
    rows: np.ndarray
    columns: np.ndarray
    class_of_column: np.ndarray
    left_out: tuple[np.ndarray, np.ndarray] | None = None

    def likeliest_columns(self) -> np.ndarray:
        """(v,) of the columns of each node's true class the one with the highest score."""
        same = self.class_of_column[self.columns][:, None] == self.class_of_column[None, :]
        return np.where(same, self.evidence.scores[self.rows], -np.inf).argmax(axis=1)


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities, sets and unknown scores.

    temperature: the best one for all validation nodes; entropies are measured by it. heat: the log of the factor to a
        node's own temperature, for a node in the middle of all measures.
    threshold: a node is called unknown if its unknown score is above.
    middles, spreads: of the measures of ood_score, by name, over validation nodes. ood_score: (1001,) quantiles of
        it there.
    tail: the mean of what lies above the 95 % quantile. misses: (1001,) quantiles of 1 − p of the true class.
    stale: it is of the model before a change, and is computed again with the scores of all nodes.
    """

    rehearsed: HeldOutResult = field(default_factory=HeldOutResult)
    temperature: float = 1.0
    heat: float = 0.0
    threshold: float = KEPT
    middles: dict[str, float] = field(default_factory=dict)
    spreads: dict[str, float] = field(default_factory=dict)
    ood_score: tuple[float, ...] = ()
    tail: float = 1.0
    misses: tuple[float, ...] = ()
    stale: bool = False

    # Asking

    def readings(self, evidence: Evidence) -> "Readings":
        """What all nodes are asked by, besides their scores. The temperature of the evidence must be this one's."""
        names = tuple(self.rehearsed.weights)
        middles, spreads = (np.array([by[name] for name in names]) for by in (self.middles, self.spreads))
        ruler = Ruler(names, middles, spreads)
        return self._read(ruler, measured(evidence, names))

    def _read(self, ruler: Ruler, values: np.ndarray) -> "Readings":
        """values: (n, measures) of all nodes; what is computed of them takes the memory of some rows."""
        ood_score, temperatures = (np.empty(len(values)) for _ in range(2))
        for start in range(0, len(values), ROWS_AT_A_TIME):
            part = slice(start, start + ROWS_AT_A_TIME)
            standard = ruler.apply(values[part])
            ood_score[part] = combined(standard, self.rehearsed.weights)
            temperatures[part] = self.temperature * np.exp(self.heat + heat_of(standard, self.rehearsed))
        return Readings(ood_score, temperatures)

    def unknown_scores(self, ood_score: np.ndarray) -> np.ndarray:
        """(n,) in [0, 1]: the share of known nodes that are less strange; those that are as strange do not count."""
        known = np.array(self.ood_score)
        place = np.searchsorted(known, ood_score, side="left")
        above, below = known[place.clip(1, known.size - 1)], known[place.clip(1, known.size - 1) - 1]
        gap = np.where(above > below, above - below, 1.0)
        between = LEVELS[place.clip(1, known.size - 1) - 1] + (ood_score - below) / gap / (known.size - 1)
        found = np.where(place == 0, 0.0, np.where(place == known.size, 1.0, between))
        excess = (ood_score - np.interp(KEPT, LEVELS, known)) / self.tail
        return np.where(excess > 0, 1 - (1 - KEPT) / (1 + np.maximum(excess, 0)), np.minimum(found, KEPT))

    def sets(self, probabilities: np.ndarray, few: np.ndarray, coverage: float) -> np.ndarray:
        """(n, classes) whether a class is in the set of a node. few: (classes,) learned after session 0.

        A class is in it if its miss 1 − p is not above the quantile ``coverage`` of true classes of its kind, and the
        likeliest class always is. For classes of session 0 the quantile is that of v validation nodes, with the (v +
        1)/v of split conformal prediction: the set holds the true class with this probability at least. For the others
        it is the larger of this and the rehearsal's.
        """
        if not 0 < coverage < 1:
            raise InputError(f"a coverage of {coverage:g} makes no sense: choose one between 0 and 1, such as 0.9.")
        if not self.misses:
            raise InputError("this model has no quantiles for prediction sets: fit it again.")
        place = int(np.ceil(coverage * (LEVELS.size - 1) - 1e-9))
        many_limit = self.misses[place]
        few_limit = many_limit
        if self.rehearsed.few_misses is not None:
            few_limit = max(many_limit, self.rehearsed.few_misses[place])
        found = 1 - probabilities <= np.where(few, few_limit, many_limit)
        found[np.arange(len(found)), probabilities.argmax(axis=1)] = True
        return found

    # After a change

    def recalibrated(self, answered: Answered) -> tuple["Calibration", "Readings"]:
        """The calibration of the current model, and the readings of all nodes."""
        rows, taught = answered.rows, self.rehearsed
        asked = answered.evidence.scores[rows]
        columns = answered.likeliest_columns()
        temperature = best_temperature(asked, columns, start=self.temperature)
        evidence = replace(answered.evidence, temperature=temperature)
        names = tuple(taught.weights)
        values = measured(evidence, names)
        ruler = Ruler.of(names, values[rows])
        heats = np.exp(heat_of(ruler.apply(values[rows]), taught))
        own = best_temperature(asked / heats[:, None], columns, start=temperature)
        few_share = float(evidence.few.mean())
        found = Calibration(
            rehearsed=taught,
            temperature=temperature,
            heat=float(np.log(own / temperature)) + taught.few_heat * min(1.0, few_share / taught.few_share),
            middles=dict(zip(names, ruler.middles.tolist(), strict=True)),
            spreads=dict(zip(names, ruler.spreads.tolist(), strict=True)),
        )
        readings = found._read(ruler, values)
        known = readings.ood_score[rows]
        limit = float(np.quantile(known, KEPT)) + ROUNDING
        excess = known[known > limit] - limit
        found = replace(
            found,
            ood_score=short(np.quantile(known, LEVELS)),
            tail=float(excess.mean()) if excess.size and excess.mean() > 0 else 1.0,
            misses=miss_quantiles(found_misses(probabilities_of(asked, readings.temperatures[rows]), answered)),
        )
        if answered.evidence.few.any():
            limit = max(limit, self._few_limit(evidence, values, ruler, answered))
        return replace(found, threshold=float(found.unknown_scores(np.array([limit]))[0])), readings

    def _few_limit(self, evidence: Evidence, values: np.ndarray, ruler: Ruler, answered: Answered) -> float:
        """The ood_score that most nodes of few-shot classes stay below; −∞ if nothing is known of them."""
        taught = self.rehearsed
        if answered.left_out is None or not answered.left_out[0].size:
            return -np.inf if taught.few_limit is None else taught.few_limit
        rows, scores = answered.left_out
        left = combined(ruler.apply(measured_left_out(evidence, values, ruler.names, rows, scores)), taught.weights)
        if taught.few_excess is None:
            return float(np.quantile(left, KEPT))
        return float(np.quantile(left, SUPPORTS_KEPT)) + taught.few_excess

    # Keeping

    def as_json(self) -> dict[str, Any]:
        """Its fields as JSON values."""
        values = asdict(self)
        if not self.stale:
            del values["stale"]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Calibration":
        """The reverse of :meth:`as_json`."""
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        taught: dict[str, Any] = {
            key: tuple(v) if isinstance(v, list) else v for key, v in plain.pop("rehearsed").items()
        }
        return cls(rehearsed=HeldOutResult(**taught), **plain).checked()

    def checked(self) -> "Calibration":
        """Itself; ValueError if a value cannot be used."""
        if not self.temperature > 0:
            raise ValueError("its temperature is not above 0")
        taught = self.rehearsed
        numbers = [self.temperature, self.heat, self.threshold, self.tail, taught.few_heat, taught.few_share]
        numbers += [each for each in (taught.few_limit, taught.few_excess) if each is not None]
        for by_name in (self.middles, self.spreads, taught.weights, taught.slopes):
            numbers += by_name.values()
        for quantiles in (self.ood_score, self.misses, taught.few_misses or ()):
            numbers += quantiles
            if len(quantiles) not in (0, LEVELS.size) or (np.diff(quantiles) < 0).any():
                raise ValueError("its calibration has quantiles that are none")
        finite = bool(np.isfinite(np.array(numbers, dtype=np.float64)).all())
        measures = set(taught.weights)
        heats = [self.heat, taught.few_heat, *taught.slopes.values()]
        bounded = all(abs(heat) < WIDEST for heat in heats) and all(spread > 0 for spread in self.spreads.values())
        if not bounded or not measures <= {each.name for each in MEASURES} or not measures:
            raise ValueError("its calibration has values that cannot be")
        fits = set(self.middles) == set(self.spreads) == measures
        if not (finite and fits and self.tail > 0 and taught.few_share > 0):
            raise ValueError("its calibration cannot be used")
        return self


def probabilities_of(scores: np.ndarray, temperatures: np.ndarray) -> np.ndarray:
    """(n, columns) that sum to 1. temperatures: (n,)."""
    logits = scores / temperatures[:, None]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def heat_of(standard: np.ndarray, taught: HeldOutResult) -> np.ndarray:
    """(n,) what a node's measures add to the log of its temperature. standard: (n, measures) in spreads."""
    slopes = np.array([taught.slopes.get(name, 0.0) for name in taught.weights])
    return np.clip(np.clip(standard, LOWEST, HIGHEST) @ slopes, -HOTTEST, HOTTEST)


def found_misses(probabilities: np.ndarray, answered: Answered) -> np.ndarray:
    """(v,) 1 − p of the true class of each validation node; columns of one class are added up."""
    same = answered.class_of_column[answered.columns][:, None] == answered.class_of_column[None, :]
    return 1 - np.where(same, probabilities, 0).sum(axis=1)


def short(values: np.ndarray) -> tuple[float, ...]:
    """Values in the digits of 32 bits: a thousand quantiles are most of what a reader of one answer reads."""
    return tuple(float(f"{value:.7g}") for value in values.tolist())


def miss_quantiles(misses: np.ndarray) -> tuple[float, ...]:
    """(1001,) at each level the ⌈(v + 1) · level⌉-th smallest of v misses; 1, all there are, where v is too small."""
    places = np.ceil((misses.size + 1) * LEVELS - 1e-9).astype(np.int64)
    ordered = np.concatenate([[0.0], np.sort(misses), [1.0]])
    # Rounded up: a node that has exactly this miss is in its set.
    return short(np.minimum(1.0, ordered[np.minimum(places, misses.size + 1)] * (1 + 1e-6) + 1e-9))


def unknown_share(calibration: Calibration, ood_score: np.ndarray) -> float:
    """The share of nodes that are called unknown. ood_score: (n,)."""
    unknown = calibration.unknown_scores(ood_score) > calibration.threshold
    return float(unknown.mean()) if unknown.size else 0.0
