"""What closed forms keep of the labelled nodes of classes: statistics that are never changed, only replaced."""

from collections.abc import Callable
from typing import Any, Protocol, Self

import torch

from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.parts import ClassMemory


class Statistics(Protocol):
    """Sums over labelled vectors, class by class. Immutable."""

    @property
    def counts(self) -> torch.Tensor:
        """(C,) labelled nodes of each class."""

    @property
    def nbytes(self) -> int:
        """As they are stored."""

    def exchanged(self, old: Self, new: Self) -> Self:
        """With ``new`` in place of ``old``, which are whole classes of these and empty in all others."""

    def tensors(self) -> Tensors:
        """Their state."""


class ClassStatistics(ClassMemory):
    """The statistics of all classes, and the head that was computed from them last, which is no part of the state.

    read: statistics from the tensors of a state. empty: those of nobody.
    """

    def __init__(self, empty: Any, read: Callable[[Tensors, torch.device], Any]) -> None:
        self.now = empty
        self._read = read
        self._head: Any = None

    def hold(self, statistics: Any) -> None:
        """From now on these."""
        self.now, self._head = statistics, None

    def head(self, compute: Callable[[Any], Any]) -> Any:
        """What ``compute`` makes of the statistics; once for all questions."""
        if self._head is None:
            self._head = compute(self.now)
        return self._head

    @property
    def forgets_exactly(self) -> bool:
        return True

    def stored(self) -> dict[str, int]:
        return {"embeddings": self.now.nbytes}

    def tensors(self) -> Tensors:
        return self.now.tensors()

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:  # noqa: ARG002
        self.hold(self._read(tensors, device))

    def become(self, other: Self, device: torch.device) -> None:  # noqa: ARG002
        self.now, self._head = other.now, other._head
