"""What a model says of nodes: from scores of columns to answers about classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.graph.ids import ClassLabel
from graphfcl.production.answers.calibration import Calibration, Readings, probabilities_of
from graphfcl.production.answers.row_values import RowValues
from graphfcl.production.labels.label_store import LabelStore

Predictions = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says of some nodes, before it is put into words.

    scores: (n, columns) of the learner. ood_score, temperatures: (n,).
    """

    scores: np.ndarray
    ood_score: np.ndarray
    temperatures: np.ndarray

    def of(self, rows: np.ndarray | slice) -> "Answers":
        """Those of some rows."""
        return Answers(self.scores[rows], self.ood_score[rows], self.temperatures[rows])


@dataclass(frozen=True, eq=False)
class ModelAnswers:
    """What a model says of all nodes, by row.

    scores: (n, columns) of the learner. readings: (n, 2) ood_score and temperatures. Each is an array, or a table on
    disk of which rows are read. A row without a node has values without meaning.
    calibration: how they become answers. accuracy: as the history keeps it, if it was measured with them.
    """

    scores: Any
    readings: Any
    calibration: Calibration
    accuracy: dict[str, Any] | None = None

    @classmethod
    def in_memory(
        cls, scores: np.ndarray, readings: Readings, calibration: Calibration, accuracy: dict[str, Any] | None = None
    ) -> "ModelAnswers":
        """Those of a graph in memory."""
        together = np.stack([readings.ood_score, readings.temperatures], axis=1)
        return cls(scores, together, calibration, accuracy)

    def of(self, rows: np.ndarray) -> Answers:
        """Those of some rows, in any order."""
        readings = self.readings[rows]
        return Answers(self.scores[rows], readings[:, 0], readings[:, 1])

    @property
    def ood_score(self) -> np.ndarray:
        """(n,) of all rows, in memory."""
        return RowValues.of(self.readings).whole()[:, 0]

    @property
    def temperatures(self) -> np.ndarray:
        """(n,) of all rows, in memory."""
        return RowValues.of(self.readings).whole()[:, 1]

    @property
    def row_bytes(self) -> int:
        """What the answers of one row take in memory."""
        return 4 * RowValues.of(self.scores).shape[1] + 2 * 8


def class_probabilities(label_store: LabelStore, answers: Answers) -> np.ndarray:
    """(n, classes) in the order of the label_store's classes; columns of one class are added up. Rows sum to 1."""
    class_of_column = label_store.class_of_column()
    shares = probabilities_of(answers.scores[:, class_of_column >= 0], answers.temperatures)
    joined = np.zeros((len(shares), len(label_store.classes)), dtype=shares.dtype)
    np.add.at(joined.T, class_of_column[class_of_column >= 0], shares.T)
    return joined


def few_shot_classes(label_store: LabelStore) -> np.ndarray:
    """(classes,) whether a class was learned after session 0."""
    many = {name for name in label_store.names[: label_store.session_zero_columns] if name is not None}
    return np.array([name not in many for name in label_store.classes], dtype=bool)


def class_sets(
    calibration: Calibration, label_store: LabelStore, probabilities: np.ndarray, coverage: float
) -> list[tuple[ClassLabel, ...]]:
    """For each node the classes that hold the true one with probability ``coverage``, likeliest first."""
    found = calibration.sets(probabilities, few_shot_classes(label_store), coverage)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    labels = label_store.label_array()
    chosen = np.take_along_axis(found, order, axis=1)
    return [tuple(labels[row[kept]].tolist()) for row, kept in zip(order, chosen, strict=True)]


def predictions(
    calibration: Calibration,
    label_store: LabelStore,
    ids: np.ndarray,
    answers: Answers,
    coverage: float | None = None,
    top: int = 1,
) -> Predictions:
    """Columns ``node, class, probability, unknown_score, unknown``, and ``set`` if a coverage is asked for.

    ids: (n,) the user's ids of the nodes. top: with more than 1 also ``class_2, probability_2``, and so on, as far as
    there are classes.
    """
    probabilities = class_probabilities(label_store, answers)
    labels = label_store.label_array()
    best = probabilities.argmax(axis=1)
    unknown = calibration.unknown_scores(answers.ood_score)
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
        sets = class_sets(calibration, label_store, probabilities, coverage)
        found["set"] = np.fromiter(sets, dtype=object, count=len(sets))
    return found
