"""Classes of metrics, the records they are computed from, and their results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

Accuracy = Callable[[np.ndarray, np.ndarray | None], float]  # of a confusion matrix, over the classes in a mask
Place = Literal["column", "print", "report"]
EVERYWHERE: tuple[Place, ...] = ("column", "print", "report")


@dataclass(frozen=True, eq=False)
class StreamRecord:
    """Data from which the metrics of a whole stream are computed.

    Attributes:
        confusions: One confusion matrix for each of the sessions 0..T.
        session_of_class: Session in which each class arrives, shape (classes,).
    """

    confusions: Sequence[np.ndarray]
    session_of_class: np.ndarray
    _matrices: dict[Accuracy, np.ndarray] = field(default_factory=dict, repr=False)

    def curve(self, accuracy: Accuracy) -> np.ndarray:
        """A_t, the accuracy after each session over all classes seen, shape (T + 1,)."""
        return np.array([accuracy(confusion, None) for confusion in self.confusions])

    def matrix(self, accuracy: Accuracy) -> np.ndarray:
        """a_{t,j}, the accuracy after session t over the classes of session j, shape (T + 1, T + 1); NaN for j > t."""
        if accuracy not in self._matrices:
            matrix = np.full((len(self.confusions), len(self.confusions)), np.nan)
            for t, confusion in enumerate(self.confusions):
                arrival = self.session_of_class[: confusion.shape[0]]
                for j in range(t + 1):
                    matrix[t, j] = accuracy(confusion, arrival == j)
            self._matrices[accuracy] = matrix
        return self._matrices[accuracy]


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """Name, description and places of a metric.

    Attributes:
        name: Key in result.json and name of the Parquet column.
        title: Head of the column in printed tables.
        what: Meaning in one line.
        share: Whether the value lies between 0 and 1 and is printed in percent.
        places: Where the metric appears: ``column`` in the Parquet file of a cell, ``print`` in the table of `graphfcl
            run`, ``report`` among the further metrics of a report. The main table and curves of a report always show
            balanced accuracy and the metrics derived from it.
    """

    name: str
    title: str
    what: str
    share: bool = True
    places: tuple[Place, ...] = EVERYWHERE

    @property
    def scale(self) -> float:
        """Factor by which values are multiplied when they are shown."""
        return 100.0 if self.share else 1.0

    def text(self, value: float | None) -> str:
        """Format a value for printing; an undefined value is an empty text."""
        return "" if value is None else f"{self.scale * value:.2f}"


@dataclass(frozen=True, kw_only=True)
class SessionMetric(_Shown):
    """A metric with a value for every session.

    Attributes:
        of: Function of the (classes, classes) confusion matrix after the session, the (classes,) sessions in which
            these classes arrived, and the number of the session. It returns None where the metric is undefined.
    """

    of: Callable[[np.ndarray, np.ndarray, int], float | None]


@dataclass(frozen=True, eq=False)
class ActiveRecord:
    """Data from which the metrics of the track ``active`` are computed, for the sessions 0..T.

    Attributes:
        labels: Number of labels used until each session, shape (T + 1,); the first is 0.
        budget: Number of labels that the whole stream may use.
        balanced: Balanced accuracy over all classes of the stream, shape (T + 1,). A class without a labelled node
            counts as 0.
        novel: The same over the novel classes, shape (T + 1,).
        classes_found: Number of novel classes with a labelled node, shape (T + 1,).
        classes: Number of novel classes.
    """

    labels: np.ndarray
    budget: int
    balanced: np.ndarray
    novel: np.ndarray
    classes_found: np.ndarray
    classes: int

    def at(self, share: float, curve: np.ndarray) -> float:
        """Value of a curve when ``share`` of the budget is used, interpolated linearly between sessions."""
        return float(np.interp(share * self.budget, self.labels, curve))


@dataclass(frozen=True, kw_only=True)
class ActiveMetric(_Shown):
    """A metric with one value for a stream of the track ``active``; results of other tracks do not contain it.

    Attributes:
        of: Function of an :class:`ActiveRecord`.
    """

    of: Callable[[ActiveRecord], float]


@dataclass(frozen=True, kw_only=True)
class StreamMetric(_Shown):
    """A metric with one value for a whole stream.

    Attributes:
        of: Function of a :class:`StreamRecord`. It returns None where the metric is undefined.
        note: Text in brackets after the value. Successive metrics with the same note are printed in one line.
    """

    of: Callable[[StreamRecord], float | None]
    note: str = ""


def _metric(name: str) -> Any:
    """Make a property that returns one of the ``values``. The annotation where it is used gives its type."""
    return property(lambda self: self.values[name])


@dataclass(frozen=True)
class SessionMetrics:
    """Metrics after one session.

    Attributes:
        session: Number t of the session.
        classes: Number of classes seen.
        values: Every session metric by its name; None where it is undefined.
    """

    session: int
    classes: int
    values: dict[str, float | None]
    balanced_accuracy: ClassVar[float] = _metric("balanced_accuracy")
    accuracy: ClassVar[float] = _metric("accuracy")
    base: ClassVar[float] = _metric("base")
    novel: ClassVar[float | None] = _metric("novel")
    harmonic_mean: ClassVar[float | None] = _metric("harmonic_mean")
    macro_f1: ClassVar[float] = _metric("macro_f1")


@dataclass(frozen=True, eq=False)
class StreamMetrics:
    """Metrics of a stream after its last session T.

    Attributes:
        sessions: Metrics after each session.
        values: Every stream metric by its name; None where it is undefined.
        matrix: Balanced accuracy a_{t,j} after session t on the classes of session j, in the joint label space, shape
            (T + 1, T + 1); NaN for j > t.
        plain_matrix: The same for plain accuracy.
    """

    sessions: tuple[SessionMetrics, ...]
    values: dict[str, float | None]
    matrix: np.ndarray
    plain_matrix: np.ndarray
    pd: ClassVar[float] = _metric("pd")
    rpd: ClassVar[float | None] = _metric("rpd")
    average: ClassVar[float] = _metric("average")
    forgetting: ClassVar[float | None] = _metric("forgetting")
    plain_pd: ClassVar[float] = _metric("plain_pd")
    plain_rpd: ClassVar[float | None] = _metric("plain_rpd")
    plain_average: ClassVar[float] = _metric("plain_average")
    plain_forgetting: ClassVar[float | None] = _metric("plain_forgetting")
