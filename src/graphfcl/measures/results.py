"""The figures of a session and of a stream."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SessionMeasures:
    """After session t. ``values`` holds every session measure by its name; None where it does not exist."""

    session: int
    classes: int
    values: dict[str, float | None]

    @property
    def balanced_accuracy(self) -> float:
        return _number(self.values, "balanced_accuracy")

    @property
    def accuracy(self) -> float:
        return _number(self.values, "accuracy")

    @property
    def base(self) -> float:
        return _number(self.values, "base")

    @property
    def novel(self) -> float | None:
        return self.values["novel"]

    @property
    def harmonic_mean(self) -> float | None:
        return self.values["harmonic_mean"]

    @property
    def macro_f1(self) -> float:
        return _number(self.values, "macro_f1")


@dataclass(frozen=True, eq=False)
class StreamMeasures:
    """After the last session T. ``values`` holds every stream measure by its name; None where it does not exist.

    matrix, plain_matrix: (T + 1, T + 1) a_{t,j}: balanced and plain accuracy after session t on the classes of session
        j, in the joint label space; NaN for j > t.
    """

    sessions: tuple[SessionMeasures, ...]
    values: dict[str, float | None]
    matrix: np.ndarray
    plain_matrix: np.ndarray

    @property
    def pd(self) -> float:
        return _number(self.values, "pd")

    @property
    def rpd(self) -> float | None:
        return self.values["rpd"]

    @property
    def average(self) -> float:
        return _number(self.values, "average")

    @property
    def forgetting(self) -> float | None:
        return self.values["forgetting"]

    @property
    def plain_pd(self) -> float:
        return _number(self.values, "plain_pd")

    @property
    def plain_rpd(self) -> float | None:
        return self.values["plain_rpd"]

    @property
    def plain_average(self) -> float:
        return _number(self.values, "plain_average")

    @property
    def plain_forgetting(self) -> float | None:
        return self.values["plain_forgetting"]


def _number(values: dict[str, float | None], name: str) -> float:
    value = values[name]
    assert value is not None, name
    return value
