"""What a learner has: parts that own their state. A learner's state is the sum of its parts' states."""

from typing import Any, Self

import numpy as np
import torch

from graphfcl.methods.learner import Labelled, Tensors
from graphfcl.methods.shared.learned_attributes import pack, unpack
from graphfcl.stream.sessions import BaseSession


class Part:
    """A part of a learner whose state belongs to the learner's.

    saved: the attributes that are its state: tensors, arrays, plain values, and tuples and dictionaries of these; or
        objects that have such a ``saved_state``, as optimisers do.
    name: with what their names begin in the learner's state.
    """

    name: str = ""
    saved: tuple[str, ...] = ()

    @property
    def _owner(self) -> Any:
        """Whose attributes they are."""
        return self

    def _pack(self, tensors: Tensors) -> dict[str, Any]:
        attributes = {f"{self.name}.{each}": getattr(self._owner, each) for each in self.saved}
        return {name: pack(getattr(value, "saved_state", value), name, tensors) for name, value in attributes.items()}

    def tensors(self) -> Tensors:
        """Its state, as far as it is tensors."""
        tensors: Tensors = {}
        self._pack(tensors)
        return tensors

    def values(self) -> dict[str, Any]:
        """Its state, as far as it is plain values."""
        return self._pack({})

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        """Become the part that both were taken from; they are those of the whole learner."""
        for each in self.saved:
            name = f"{self.name}.{each}"
            before, loaded = getattr(self._owner, each), unpack(values[name], name, tensors, device)
            if hasattr(before, "saved_state"):
                before.saved_state = loaded
                continue
            kinds = {float if isinstance(x, int | float) else type(x) for x in (before, loaded) if x is not None}
            if len(kinds) > 1:
                raise ValueError(f"{name} is a {type(loaded).__name__}")
            setattr(self._owner, each, loaded)

    def become(self, other: Self, device: torch.device) -> None:
        """Be the same part of a copy of the learner. A part with large tensors shares those that it never writes to."""
        self.load(other.values(), other.tensors(), device)

    def stored(self) -> dict[str, int]:
        """Bytes kept between sessions, by kind; weights of the network are not the part's."""
        return {}

    def chosen(self) -> dict[str, Any]:
        """What it settled on, as plain values."""
        return {}


class OwnAttributes(Part):
    """Attributes of the learner itself as a part. stored_as: the kind that the bytes of their tensors count as."""

    def __init__(self, owner: Any, *saved: str, name: str = "own", stored_as: str = "") -> None:
        self._learner, self.saved, self.name, self._kind = owner, saved, name, stored_as

    @property
    def _owner(self) -> Any:
        return self._learner

    def stored(self) -> dict[str, int]:
        return {self._kind: sum(tensor.nbytes for tensor in self.tensors().values())} if self._kind else {}


class ClassMemory(Part):
    """What is kept of labelled nodes between sessions. This one keeps nothing."""

    name = "memory"

    @property
    def forgets_exactly(self) -> bool:
        """Whether a restated memory holds no trace of labels that were taken away."""
        return False

    def begin(self, base: BaseSession) -> None:
        """Note what is kept of session 0, before any training."""

    def restate(self, train: Labelled, supports: Labelled, many: int) -> bool:  # noqa: ARG002
        """Hold exactly these labelled nodes; False if the memory cannot. many: classes of session 0."""
        return False

    def drop(self, nodes: np.ndarray) -> None:
        """These nodes leave the graph for good: keep none of them."""
