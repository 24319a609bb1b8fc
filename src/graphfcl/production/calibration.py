"""Probabilities that mean something, and a score for "none of the known classes".

The classes that a model was trained on leave two questions open: how sure may it be of a class that it knows by a few
nodes, and what does a node of an unknown class look like? A *rehearsal* answers them once per fit: a learner is fitted
without the held-out classes, asked about their nodes (which are unknown then), taught them with K supports each, and
asked again. Three findings are kept. None of them depends on the scale of scores:

- which strangeness score told unknown nodes from known ones best (``unknown_by``);
- the loss of few-shot classes over the temperature, in units of the temperature that is best for the other classes;
- the share of few-shot nodes that stays when a share p of the other nodes does.

After every change of the model, :meth:`Calibration.refit` computes temperature and threshold again: from the current
scores of the validation nodes of session 0, and from these two curves for the classes that have no validation nodes.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from graphfcl.production.strangeness import STRANGENESS, find_strangeness

KEPT = 0.95  # share of known nodes that the threshold keeps
RELATIVE = np.geomspace(0.25, 8, 41)  # temperatures, in units of the one that is best for classes with many labels
LEVELS = np.linspace(0, 1, 201)
QUANTILES = np.linspace(0, 1, 1001)

Answers = tuple[np.ndarray, np.ndarray]  # (n, columns) scores of nodes, and the true column of each


@dataclass(frozen=True)
class Calibration:
    """How scores become probabilities and unknown scores.

    unknown_by: name of the strangeness score.
    few_losses: (41,) mean −log p of few-shot nodes at the temperatures ``RELATIVE``. few_kept: (201,) share of few-shot
        nodes kept at ``LEVELS``. Both are None if no class could be held out: few-shot classes then count as others do.
    temperature: scores are divided by it.
    threshold: a node is called unknown if its unknown score is above.
    strangeness: (1001,) quantiles of the strangeness of known validation nodes.
    """

    unknown_by: str = "probability"
    few_losses: tuple[float, ...] | None = None
    few_kept: tuple[float, ...] | None = None
    temperature: float = 1.0
    threshold: float = KEPT
    strangeness: tuple[float, ...] = ()

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """(n, columns) that sum to 1."""
        return softmax(scores / self.temperature, axis=1)

    def unknown_scores(self, scores: np.ndarray) -> np.ndarray:
        """(n,) in [0, 1]: the share of known nodes, every class counting the same, that are less strange."""
        strange = find_strangeness(self.unknown_by).of(scores / self.temperature)
        return np.interp(strange, self.strangeness, QUANTILES, left=0.0, right=1.0)

    def recalibrated(self, scores: np.ndarray, columns: np.ndarray, few_share: float) -> "Calibration":
        """Temperature and threshold for the current model.

        scores: (v, columns) of the validation nodes. columns: (v,) their true columns.
        few_share: share of the classes that were learned from few nodes.
        """
        weights = balanced_weights(columns)
        best = best_temperature(scores, columns, weights)
        temperature = best
        if self.few_losses is not None and few_share > 0:
            losses = np.array([weighted_loss(scores / (best * t), columns, weights) for t in RELATIVE])
            mixed = (1 - few_share) * losses + few_share * np.array(self.few_losses)
            temperature = best * float(RELATIVE[mixed.argmin()])
        threshold = KEPT
        if self.few_kept is not None and few_share > 0:
            kept = (1 - few_share) * LEVELS + few_share * np.array(self.few_kept)
            threshold = float(LEVELS[min(int(np.searchsorted(kept, KEPT)), LEVELS.size - 1)])
        strange = find_strangeness(self.unknown_by).of(scores / temperature)
        return replace(
            self,
            temperature=temperature,
            threshold=threshold,
            strangeness=tuple(weighted_quantiles(strange, weights, QUANTILES).tolist()),
        )

    def as_json(self) -> dict[str, Any]:
        """Its fields as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Calibration":
        """The reverse of :meth:`as_json`."""
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        return cls(**plain)


def learn_from_rehearsal(before: Answers, after: Answers, known: int) -> tuple[Calibration, dict[str, float]]:
    """The calibration that a rehearsal teaches, and how well each strangeness score found unknown nodes (AUROC).

    before, after: answers for all validation nodes, before and after the held-out classes were learned.
    known: the held-out classes have this column and later ones.
    """
    separations = unknown_separations(before, known)
    unknown_by = max(separations, key=lambda name: separations[name])

    scores, columns = after
    few = columns >= known
    many_weights, few_weights = balanced_weights(columns[~few]), balanced_weights(columns[few])
    best = best_temperature(scores[~few], columns[~few], many_weights)
    losses = [weighted_loss(scores[few] / (best * t), columns[few], few_weights) for t in RELATIVE]
    strange = find_strangeness(unknown_by).of(scores / best)
    limits = weighted_quantiles(strange[~few], many_weights, LEVELS)
    kept = [float((few_weights * (strange[few] <= limit)).sum()) for limit in limits]
    kept[-1] = 1.0  # the last limit keeps everything
    return Calibration(unknown_by, tuple(losses), tuple(kept)), separations


def unknown_separations(answers: Answers, known: int) -> dict[str, float]:
    """AUROC of each strangeness score, nodes with the column ``known`` and later against the others."""
    scores, columns = answers
    unknown = columns >= known
    weights = balanced_weights(columns[~unknown])
    temperature = best_temperature(scores[~unknown], columns[~unknown], weights)
    return {
        each.name: separation(each.of(scores[unknown] / temperature), each.of(scores[~unknown] / temperature))
        for each in STRANGENESS
    }


def balanced_weights(columns: np.ndarray) -> np.ndarray:
    """(n,) weights that sum to 1, every class counting the same."""
    _, places, counts = np.unique(columns, return_inverse=True, return_counts=True)
    weights = 1 / counts[places]
    return weights / weights.sum()


def weighted_loss(logits: np.ndarray, columns: np.ndarray, weights: np.ndarray) -> float:
    """Σ w_i · −log softmax(logits_i)[column_i]."""
    own = logits[np.arange(columns.size), columns]
    return float((weights * (logsumexp(logits, axis=1) - own)).sum())


def best_temperature(scores: np.ndarray, columns: np.ndarray, weights: np.ndarray) -> float:
    """The temperature with the smallest loss, to half a percent, whatever the scale of scores."""
    from scipy.optimize import minimize_scalar

    finite = scores - scores.max(axis=1, keepdims=True)
    scale = float(np.abs(finite).mean()) or 1.0

    def loss(log: float) -> float:
        return weighted_loss(finite / (scale * np.exp(log)), columns, weights)

    grid = np.linspace(-7, 5, 25)
    start = grid[int(np.argmin([loss(log) for log in grid]))]
    found = minimize_scalar(loss, bounds=(start - 0.5, start + 0.5), method="bounded", options={"xatol": 0.005})
    return scale * float(np.exp(found.x))


def weighted_quantiles(values: np.ndarray, weights: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Values below which each level of the weight lies, from the smallest at 0 to the largest at 1; ascending."""
    order = np.argsort(values, kind="stable")
    middle = np.cumsum(weights[order]) - weights[order] / 2
    span = middle[-1] - middle[0]
    return np.interp(levels, (middle - middle[0]) / (span if span > 0 else 1.0), values[order])


def separation(high: np.ndarray, low: np.ndarray) -> float:
    """AUROC: how likely a value of the first lies above one of the second; ties count half."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([high, low]))[: high.size]
    return float((ranks.sum() - high.size * (high.size + 1) / 2) / (high.size * low.size))
