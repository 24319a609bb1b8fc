"""What a metric is, and what is computed of a stream."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

Accuracy = Callable[[np.ndarray, np.ndarray | None], float]  # of a confusion matrix, over the classes of a mask
Place = Literal["column", "print", "report"]
EVERYWHERE: tuple[Place, ...] = ("column", "print", "report")


@dataclass(frozen=True, eq=False)
class StreamRecord:
    """What the metrics of a whole stream are computed from.

    confusions: one matrix for each of the sessions 0..T.
    session_of_class: (classes,) the session in which each column arrives.
    """

    confusions: Sequence[np.ndarray]
    session_of_class: np.ndarray
    _matrices: dict[Accuracy, np.ndarray] = field(default_factory=dict, repr=False)

    def curve(self, accuracy: Accuracy) -> np.ndarray:
        """(T + 1,) A_t: the accuracy after each session over all classes seen."""
        return np.array([accuracy(confusion, None) for confusion in self.confusions])

    def matrix(self, accuracy: Accuracy) -> np.ndarray:
        """(T + 1, T + 1) a_{t,j}: the accuracy after session t over the classes of session j; NaN for j > t."""
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

    name: its key in result.json and the name of its Parquet column.
    title: the head of its column where it is printed.
    what: its meaning in one line.
    share: whether it lies between 0 and 1, and is shown in %.
    places: "column" in the Parquet file of a cell, "print" in the table of `graphfcl run`, "report" among the report's
        further metrics. The report's main table and curves show balanced accuracy and what follows from it anyway.
    """

    name: str
    title: str
    what: str
    share: bool = True
    places: tuple[Place, ...] = EVERYWHERE

    @property
    def scale(self) -> float:
        """A figure is shown times this."""
        return 100.0 if self.share else 1.0

    def text(self, value: float | None) -> str:
        """A figure as it is printed; empty where there is none."""
        return "" if value is None else f"{self.scale * value:.2f}"


@dataclass(frozen=True, kw_only=True)
class SessionMetric(_Shown):
    """A figure of every session.

    of: called with the (classes, classes) confusion matrix after the session, the arrival of each of these classes (the
        number of its session), and the number of the session.
    """

    of: Callable[[np.ndarray, np.ndarray, int], float | None]


@dataclass(frozen=True, eq=False)
class ActiveRecord:
    """What the metrics of the track ``active`` are computed from, of the sessions 0..T.

    labels: (T + 1,) labels spent until a session, from 0 on. budget: all that may be spent.
    balanced, novel: (T + 1,) balanced accuracy over all classes of the stream, and over those that session 0 lacks; a
        class without a labelled node counts 0.
    classes_found: (T + 1,) how many of the latter have a labelled node. classes: how many there are.
    """

    labels: np.ndarray
    budget: int
    balanced: np.ndarray
    novel: np.ndarray
    classes_found: np.ndarray
    classes: int

    def at(self, share: float, curve: np.ndarray) -> float:
        """A curve where ``share`` of the budget is spent, linear between sessions."""
        return float(np.interp(share * self.budget, self.labels, curve))


@dataclass(frozen=True, kw_only=True)
class ActiveMetric(_Shown):
    """A figure of a whole stream of the track ``active``; results of other tracks do not have it."""

    of: Callable[[ActiveRecord], float]


@dataclass(frozen=True, kw_only=True)
class StreamMetric(_Shown):
    """A figure of the whole stream.

    note: printed in brackets behind it; neighbours with the same note share a line.
    """

    of: Callable[[StreamRecord], float | None]
    note: str = ""


def _metric(name: str) -> Any:
    """A property that returns one of the ``values``; its type stands where it is used."""
    return property(lambda self: self.values[name])


@dataclass(frozen=True)
class SessionMetrics:
    """After session t. ``values`` holds every session metric by its name; None where it does not exist."""

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
    """After the last session T. ``values`` holds every stream metric by its name; None where it does not exist.

    matrix, plain_matrix: (T + 1, T + 1) a_{t,j}: balanced and plain accuracy after session t on the classes of session
        j, in the joint label space; NaN for j > t.
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
