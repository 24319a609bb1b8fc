"""Turn the learner's scores into predicted classes, probabilities and prediction sets."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.graph.ids import ClassLabel
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.answers.row_values import RowValues, probabilities_of
from graphfcl.production.labels.label_store import LabelStore

Predictions = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Answers:
    """The values from which answers about some nodes are computed.

    Attributes:
        scores: (n, columns) scores of the learner.
        readings: (n, 2) OOD score and temperature of each node.
    """

    scores: Any
    readings: Any

    def of(self, rows: np.ndarray | slice) -> "Answers":
        """Select the values of some rows, in any order."""
        return Answers(self.scores[rows], self.readings[rows])

    @property
    def ood_score(self) -> np.ndarray:
        """(n,) OOD scores, in memory."""
        return RowValues.of(self.readings).whole()[:, 0]

    @property
    def temperatures(self) -> np.ndarray:
        """(n,) temperatures, in memory."""
        return RowValues.of(self.readings).whole()[:, 1]


@dataclass(frozen=True, eq=False)
class ModelAnswers(Answers):
    """The values from which answers about all nodes are computed, by row.

    Scores and readings are arrays, or tables on disk from which only the needed rows are read. Values of a row without
    a node have no meaning.

    Attributes:
        calibration: Calibration that turns the values into answers.
        accuracy: Accuracy as the history stores it, if it was measured with these values.
    """

    calibration: Calibration
    accuracy: dict[str, Any] | None = None

    @property
    def row_bytes(self) -> int:
        """Bytes of memory per row."""
        return 4 * RowValues.of(self.scores).shape[1] + 2 * 8


def class_probabilities(labels: LabelStore, answers: Answers) -> np.ndarray:
    """Return (n, classes) probabilities in the order of ``labels.classes``; rows sum to 1.

    If a class has several columns, their probabilities are added.
    """
    class_of_column = labels.class_of_column()
    shares = probabilities_of(answers.scores[:, class_of_column >= 0], answers.temperatures)
    joined = np.zeros((len(shares), len(labels.classes)), dtype=shares.dtype)
    np.add.at(joined.T, class_of_column[class_of_column >= 0], shares.T)
    return joined


def few_shot_classes(labels: LabelStore) -> np.ndarray:
    """Return (classes,) whether each class was learned after session 0."""
    session_zero = set(labels.names[: labels.session_zero_columns])
    return np.array([name not in session_zero for name in labels.classes], dtype=bool)


def class_sets(
    calibration: Calibration, labels: LabelStore, probabilities: np.ndarray, coverage: float
) -> list[tuple[ClassLabel, ...]]:
    """Return the prediction set of each node, likeliest class first. ``coverage`` is as in :meth:`Calibration.sets`."""
    in_set = calibration.sets(probabilities, few_shot_classes(labels), coverage)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    names = labels.label_array()
    chosen = np.take_along_axis(in_set, order, axis=1)
    return [tuple(names[row[kept]].tolist()) for row, kept in zip(order, chosen, strict=True)]


def predictions(
    calibration: Calibration,
    labels: LabelStore,
    ids: np.ndarray,
    answers: Answers,
    coverage: float | None = None,
    top: int = 1,
) -> Predictions:
    """Return the columns ``node``, ``class``, ``probability``, ``unknown_score`` and ``unknown``.

    With a coverage there is also the column ``set``.

    Args:
        calibration: Calibration of the model.
        labels: Classes of the model.
        ids: (n,) the user's ids of the nodes.
        answers: Scores and readings of the nodes.
        coverage: Coverage of the prediction sets. None returns no sets.
        top: Number of classes per node. Values above 1 add ``class_2``, ``probability_2`` and so on, as far as
            there are classes.

    Returns:
        Arrays by column name.
    """
    probabilities = class_probabilities(labels, answers)
    names = labels.label_array()
    best = probabilities.argmax(axis=1)
    unknown = calibration.unknown_scores(answers.ood_score)
    columns = {
        "node": ids,
        "class": names[best],
        "probability": probabilities[np.arange(best.size), best],
        "unknown_score": unknown,
        "unknown": unknown > calibration.threshold,
    }
    if top > 1:
        order = np.argsort(-probabilities, axis=1, kind="stable")[:, 1:top]
        for place, column in enumerate(order.T, 2):
            columns[f"class_{place}"] = names[column]
            columns[f"probability_{place}"] = probabilities[np.arange(column.size), column]
    if coverage is not None:
        sets = class_sets(calibration, labels, probabilities, coverage)
        columns["set"] = np.fromiter(sets, dtype=object, count=len(sets))
    return columns
