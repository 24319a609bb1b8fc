"""Temperatures that calibrate probabilities on labelled nodes.

:func:`best_temperature` fits one temperature for all nodes. Nodes far from all classes, such as nodes of few-shot
classes, are predicted correctly less often than their scores suggest. Therefore the temperature of a node depends on
the measures z_j of its OOD score, which are standardised on validation nodes and clipped::

    T(v) = T exp( Σ_j b_j z_j(v) )

The slopes b are fitted in the held-out run (:func:`best_slopes`), and T is fitted to the current validation nodes.
"""

import numpy as np

MOST_STEPS = 100
CLOSE = 1e-4  # the search ends when a step of the log temperature is smaller
SLOPE_PENALTY = 0.02  # L2 penalty of the slopes
MOST_LOG_FACTOR = 4.0  # log of the largest factor by which measures can change a temperature
LOWEST, HIGHEST = -2.0, 4.0  # range, in spreads, to which measures are clipped


def _targets(scores: np.ndarray, columns: np.ndarray, classes: np.ndarray | int) -> np.ndarray:
    """Compute (v,) (1 − ε) s_y + ε · mean_{c≠y} s_c. ``classes`` is the number of classes, of all nodes or per node."""
    own, share = scores[np.arange(columns.size), columns], 1 / (columns.size + 2)
    others = (scores.sum(axis=1) - own) / np.maximum(1, classes - 1)
    return (1 - share) * own + share * others


def best_temperature(scores: np.ndarray, columns: np.ndarray, start: float = 1.0) -> float:
    """Find the temperature with the smallest label-smoothed loss, for scores of any scale.

    The temperature is 1 if there is only one class or no labelled node. The loss is the mean of −log p of the true
    class, with label smoothing ε = 1/(v + 2)::

        L = (1/v) Σ_i [ log Σ_c exp(s_ic/T) − (1 − ε) s_iy/T − ε mean_{c≠y} s_ic/T ]

    The smoothing is always applied. Without it, T would tend to 0 if all v nodes were predicted correctly, and
    probabilities would reach 1. L is convex in β = 1/T, with L' = mean(Σ_c p_c s_c − target) and L'' = mean(Var_p(s)).
    We take Newton steps of at most 1 in log β, beginning at ``start`` and within bounds that depend on the scale of the
    scores.
    """
    from scipy.special import softmax  # not needed to read stored answers

    if scores.shape[1] < 2 or not columns.size:
        return 1.0
    scores = scores - scores.max(axis=1, keepdims=True)
    targets = _targets(scores, columns, scores.shape[1])
    scale = float(np.abs(scores).mean()) or 1.0
    low, high = np.log(1e-3 / scale), np.log(1e5 / scale)
    place = float(np.clip(-np.log(start), low, high))
    for _ in range(MOST_STEPS):
        beta = np.exp(place)
        shares = softmax(beta * scores, axis=1)
        means = (shares * scores).sum(axis=1)
        slope = float((means - targets).mean())
        bend = float(((shares * scores**2).sum(axis=1) - means**2).mean())
        # In log β: slope β, bend β² + slope β, which is not positive where the loss is flat.
        curve = bend * beta**2 + slope * beta
        step = -slope * beta / curve if curve > 0 else -np.sign(slope)
        moved = float(np.clip(place + np.clip(step, -1, 1), low, high))
        if abs(moved - place) < CLOSE:
            return float(np.exp(-moved))
        place = moved
    return float(np.exp(-place))


def best_slopes(
    scores: np.ndarray, columns: np.ndarray, standard: np.ndarray, weights: np.ndarray, start: float
) -> tuple[float, np.ndarray]:
    """Find log T and the (j,) slopes b that minimise the weighted smoothed loss plus ``SLOPE_PENALTY`` · |b|².

    Args:
        scores: (v, classes) scores; −∞ for a class that is not learned yet.
        columns: (v,) true classes.
        standard: (v, j) measures in spreads, clipped.
        weights: (v,) weights that sum to 1.
        start: Initial temperature.
    """
    from scipy.optimize import minimize
    from scipy.special import logsumexp, softmax

    present = np.isfinite(scores)
    filled = np.where(present, scores, 0.0)
    targets = _targets(filled, columns, present.sum(axis=1))

    def loss(place: np.ndarray) -> tuple[float, np.ndarray]:
        log_factors = standard @ place[1:]
        beta = np.exp(-place[0] - np.clip(log_factors, -MOST_LOG_FACTOR, MOST_LOG_FACTOR))
        shares = softmax(beta[:, None] * scores, axis=1)
        value = weights @ (logsumexp(beta[:, None] * scores, axis=1) - beta * targets)
        slope = -weights * beta * ((shares * filled).sum(axis=1) - targets)
        bent = np.where(np.abs(log_factors) < MOST_LOG_FACTOR, slope, 0.0)
        gradient = np.concatenate([[slope.sum()], standard.T @ bent + 2 * SLOPE_PENALTY * place[1:]])
        return float(value + SLOPE_PENALTY * (place[1:] ** 2).sum()), gradient

    first = np.concatenate([[np.log(start)], np.zeros(standard.shape[1])])
    best = minimize(loss, first, jac=True, method="L-BFGS-B").x
    return float(best[0]), best[1:]
