"""What a learner has: parts that own their state. A learner's state is the sum of its parts' states."""

from copy import deepcopy
from typing import Any, Self

import numpy as np
import torch

from graphfcl.methods.learner import Labelled, Tensors
from graphfcl.stream.sessions import BaseSession


class Part:
    """A part of a learner whose state belongs to the learner's. Its names in both dictionaries are its own."""

    def tensors(self) -> Tensors:
        """Its state, as far as it is tensors."""
        return {}

    def values(self) -> dict[str, Any]:
        """Its state, as far as it is plain values."""
        return {}

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        """Become the part that both were taken from; they are those of the whole learner."""

    def become(self, other: Self, device: torch.device) -> None:
        """Be the same part of a copy of the learner. A part with large tensors shares those that it never writes to."""
        tensors = {name: tensor.detach().clone() for name, tensor in other.tensors().items()}
        self.load(deepcopy(other.values()), tensors, device)

    def stored(self) -> dict[str, int]:
        """Bytes kept between sessions, by kind; weights of the network are not the part's."""
        return {}

    def chosen(self) -> dict[str, Any]:
        """What it settled on, as plain values."""
        return {}


class OwnAttributes(Part):
    """Attributes of the learner itself as a part: ``{name in the state: name of the attribute}``.

    values: plain values that JSON gives back as they were. tensors: tensors, or None, which is not stored.
    """

    def __init__(
        self, owner: Any, *, values: dict[str, str] | None = None, tensors: dict[str, str] | None = None
    ) -> None:
        self._owner, self._values, self._tensors = owner, values or {}, tensors or {}

    def tensors(self) -> Tensors:
        found = {name: getattr(self._owner, attribute) for name, attribute in self._tensors.items()}
        return {name: tensor.cpu() for name, tensor in found.items() if tensor is not None}

    def values(self) -> dict[str, Any]:
        # Copies: a state stays what it was while the learner goes on.
        return {name: deepcopy(getattr(self._owner, attribute)) for name, attribute in self._values.items()}

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        for name, attribute in self._values.items():
            setattr(self._owner, attribute, deepcopy(values[name]))
        for name, attribute in self._tensors.items():
            tensor = tensors.get(name)
            setattr(self._owner, attribute, None if tensor is None else tensor.to(device))


class ClassMemory(Part):
    """What is kept of labelled nodes between sessions. This one keeps nothing."""

    @property
    def forgets_exactly(self) -> bool:
        """Whether a restated memory holds no trace of labels that were taken away."""
        return False

    def begin(self, base: BaseSession) -> None:
        """Note what is kept of session 0, before any training."""

    def restate(self, train: Labelled, supports: Labelled) -> bool:  # noqa: ARG002
        """Hold exactly these labelled nodes; False if the memory cannot.

        train: those of the classes of session 0. supports: those of all others.
        """
        return False

    def drop(self, nodes: np.ndarray) -> None:
        """These nodes leave the graph for good: keep none of them."""
