"""From scores of columns to answers about classes."""

import numpy as np

from graphfcl.production.model_parts import ModelParts

Predictions = dict[str, np.ndarray]


def class_probabilities(parts: ModelParts, scores: np.ndarray) -> np.ndarray:
    """(n, classes) in the order of the ledger's classes; columns of one class are added up. Rows sum to 1."""
    class_of_column = parts.ledger.class_of_column()
    shares = parts.calibration.probabilities(_active(parts, scores))
    joined = np.zeros((len(scores), len(parts.ledger.classes)), dtype=shares.dtype)
    np.add.at(joined.T, class_of_column[class_of_column >= 0], shares.T)
    return joined


def unknown_scores(parts: ModelParts, scores: np.ndarray) -> np.ndarray:
    """(n,) the share of known nodes that look less strange."""
    return parts.calibration.unknown_scores(_active(parts, scores))


def predictions(parts: ModelParts, ids: np.ndarray, scores: np.ndarray) -> Predictions:
    """Columns ``node, class, probability, unknown_score, unknown``. ids: (n,) the user's ids of the nodes."""
    probabilities = class_probabilities(parts, scores)
    best = probabilities.argmax(axis=1)
    unknown = unknown_scores(parts, scores)
    return {
        "node": ids,
        "class": np.array(parts.ledger.classes, dtype=object)[best],
        "probability": probabilities[np.arange(best.size), best],
        "unknown_score": unknown,
        "unknown": unknown > parts.calibration.threshold,
    }


def _active(parts: ModelParts, scores: np.ndarray) -> np.ndarray:
    """Scores of the columns that are not retired."""
    return scores[:, parts.ledger.class_of_column() >= 0]
