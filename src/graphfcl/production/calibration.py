"""Probabilities that mean something, and a score for "none of the known classes".

Two questions cannot be answered by looking at the classes the model was trained on: how sure it may be of a class that
it knows by a handful of nodes, and what a node of an unknown class looks like. A *rehearsal* answers them once: a
learner is fitted without the held-out classes, asked about their nodes (which are unknown then), taught them with K
supports each, and asked again. Three things are kept of it, all free of the scale of scores:

- which score of strangeness told the unknown nodes best from known ones (``unknown_by``);
- the loss of few-shot classes over the temperature, in units of the temperature that is best for the others;
- the share of few-shot nodes that stay when a share p of the others does.

After every change of the model the temperature and the threshold are computed anew from the validation nodes of session
0 with the scores of now, and from these curves for the classes that have no validation nodes.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

KEPT = 0.95  # share of known nodes that the threshold keeps
RELATIVE = np.geomspace(0.25, 8, 41)  # temperatures, in units of the one that is best for classes with many labels
LEVELS = np.linspace(0, 1, 201)
QUANTILES = np.linspace(0, 1, 1001)

Strangeness = Callable[[np.ndarray], np.ndarray]
STRANGENESS: dict[str, Strangeness] = {
    # of (n, classes) scores divided by the temperature
    "probability": lambda logits: logsumexp(logits, axis=1) - logits.max(axis=1),
    "score": lambda logits: -logits.max(axis=1),
    "energy": lambda logits: -logsumexp(logits, axis=1),
}


@dataclass(frozen=True)
class Calibration:
    """few_losses: (41,) mean −log p of few-shot nodes at ``RELATIVE``. few_kept: (201,) their share at ``LEVELS``.

    Both are None if no class could be held out; then few-shot classes are taken to be like the others.
    temperature: scores are divided by it. strangeness: (1001,) quantiles of the strangeness of known validation nodes.
    threshold: a node is called unknown if its unknown score, the share of known nodes that are less strange, is above.
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
        strange = STRANGENESS[self.unknown_by](scores / self.temperature)
        return np.interp(strange, self.strangeness, QUANTILES, left=0.0, right=1.0)

    def set_anew(self, scores: np.ndarray, labels: np.ndarray, few_share: float) -> "Calibration":
        """Temperature and threshold for the model of now.

        scores: (v, columns) of the validation nodes, labels: their columns. few_share: share of few-shot classes.
        """
        weights = balanced_weights(labels)
        best = best_temperature(scores, labels, weights)
        temperature = best
        if self.few_losses is not None and few_share > 0:
            losses = np.array([weighted_loss(scores / (best * t), labels, weights) for t in RELATIVE])
            mixed = (1 - few_share) * losses + few_share * np.array(self.few_losses)
            temperature = best * float(RELATIVE[mixed.argmin()])
        threshold = KEPT
        if self.few_kept is not None and few_share > 0:
            kept = (1 - few_share) * LEVELS + few_share * np.array(self.few_kept)
            threshold = float(LEVELS[min(int(np.searchsorted(kept, KEPT)), LEVELS.size - 1)])
        strange = STRANGENESS[self.unknown_by](scores / temperature)
        return replace(
            self,
            temperature=temperature,
            threshold=threshold,
            strangeness=tuple(weighted_quantiles(strange, weights, QUANTILES).tolist()),
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Calibration":
        plain: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        return cls(**plain)


def rehearse(
    before: tuple[np.ndarray, np.ndarray], after: tuple[np.ndarray, np.ndarray], known: int
) -> tuple[Calibration, dict[str, float]]:
    """What a rehearsal teaches, and how well each score of strangeness told unknown nodes apart (AUROC).

    before, after: (v, columns) scores of all validation nodes, and their labels, before and after the held-out classes
        (labels of ``known`` and more) were learned.
    """
    scores, labels = before
    unknown = labels >= known
    weights = balanced_weights(labels[~unknown])
    temperature = best_temperature(scores[~unknown], labels[~unknown], weights)
    found = {
        name: separation(strange(scores[unknown] / temperature), strange(scores[~unknown] / temperature))
        for name, strange in STRANGENESS.items()
    }
    unknown_by = max(found, key=lambda name: found[name])

    scores, labels = after
    few = labels >= known
    many_weights, few_weights = balanced_weights(labels[~few]), balanced_weights(labels[few])
    best = best_temperature(scores[~few], labels[~few], many_weights)
    losses = [weighted_loss(scores[few] / (best * t), labels[few], few_weights) for t in RELATIVE]
    strange = STRANGENESS[unknown_by](scores / best)
    limits = weighted_quantiles(strange[~few], many_weights, LEVELS)
    kept = [float((few_weights * (strange[few] <= limit)).sum()) for limit in limits]
    kept[-1] = 1.0  # the last limit keeps everything
    return Calibration(unknown_by, tuple(losses), tuple(kept)), found


def balanced_weights(labels: np.ndarray) -> np.ndarray:
    """(n,) weights that sum to 1, every class counting the same."""
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    weights = 1 / counts[places]
    return weights / weights.sum()


def weighted_loss(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Σ w_i · −log softmax(logits_i)[label_i]."""
    own = logits[np.arange(labels.size), labels]
    return float((weights * (logsumexp(logits, axis=1) - own)).sum())


def best_temperature(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """The temperature with the smallest loss, to half a percent, whatever the scale of scores."""
    from scipy.optimize import minimize_scalar

    finite = scores - scores.max(axis=1, keepdims=True)
    scale = float(np.abs(finite).mean()) or 1.0

    def loss(log: float) -> float:
        return weighted_loss(finite / (scale * np.exp(log)), labels, weights)

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
