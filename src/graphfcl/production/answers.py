"""From scores of columns to answers about classes."""

from dataclasses import dataclass

import numpy as np

from graphfcl.graph.ids import ClassLabel
from graphfcl.production.calibration import Calibration, probabilities_of
from graphfcl.production.ledger import Ledger

Predictions = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says of some nodes, before it is put into words.

    scores: (n, columns) of the learner. strangeness, temperatures: (n,).
    """

    scores: np.ndarray
    strangeness: np.ndarray
    temperatures: np.ndarray

    def of(self, rows: np.ndarray) -> "Answers":
        """Those of some rows."""
        return Answers(self.scores[rows], self.strangeness[rows], self.temperatures[rows])


def class_probabilities(ledger: Ledger, answers: Answers) -> np.ndarray:
    """(n, classes) in the order of the ledger's classes; columns of one class are added up. Rows sum to 1."""
    class_of_column = ledger.class_of_column()
    shares = probabilities_of(answers.scores[:, class_of_column >= 0], answers.temperatures)
    joined = np.zeros((len(shares), len(ledger.classes)), dtype=shares.dtype)
    np.add.at(joined.T, class_of_column[class_of_column >= 0], shares.T)
    return joined


def few_shot_classes(ledger: Ledger) -> np.ndarray:
    """(classes,) whether a class was learned after session 0."""
    many = {name for name in ledger.names[: ledger.session_zero_columns] if name is not None}
    return np.array([name not in many for name in ledger.classes], dtype=bool)


def class_sets(
    calibration: Calibration, ledger: Ledger, probabilities: np.ndarray, coverage: float
) -> list[tuple[ClassLabel, ...]]:
    """For each node the classes that hold the true one with probability ``coverage``, likeliest first."""
    found = calibration.sets(probabilities, few_shot_classes(ledger), coverage)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    labels = ledger.label_array()
    chosen = np.take_along_axis(found, order, axis=1)
    return [tuple(labels[row[kept]].tolist()) for row, kept in zip(order, chosen, strict=True)]


def predictions(
    calibration: Calibration,
    ledger: Ledger,
    ids: np.ndarray,
    answers: Answers,
    coverage: float | None = None,
    top: int = 1,
) -> Predictions:
    """Columns ``node, class, probability, unknown_score, unknown``, and ``set`` if a coverage is asked for.

    ids: (n,) the user's ids of the nodes. top: with more than 1 also ``class_2, probability_2``, and so on, as far as
    there are classes.
    """
    probabilities = class_probabilities(ledger, answers)
    labels = ledger.label_array()
    best = probabilities.argmax(axis=1)
    unknown = calibration.unknown_scores(answers.strangeness)
    found = {
        "node": ids,
        "class": labels[best],
        "probability": probabilities[np.arange(best.size), best],
        "unknown_score": unknown,
        "unknown": unknown > calibration.threshold,
    }
    if top > 1:
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, 1:top]
        for place, column in enumerate(order.T, 2):
            found[f"class_{place}"] = labels[column]
            found[f"probability_{place}"] = probabilities[np.arange(column.size), column]
    if coverage is not None:
        sets = class_sets(calibration, ledger, probabilities, coverage)
        found["set"] = np.fromiter(sets, dtype=object, count=len(sets))
    return found
