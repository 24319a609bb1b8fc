"""Parts of a learner. Each part owns its state, and the state of a learner is the union of the parts' states."""

from typing import Any, Self

import numpy as np
import torch

from graphfcl.methods.shared.learned_attributes import pack, unpack
from graphfcl.methods.state import Labelled, Tensors
from graphfcl.stream.sessions import BaseSession


class Part:
    """A part of a learner, with a state that is saved as part of the learner's state.

    Attributes:
        name: Prefix of the part's names in the learner's state.
        saved: Names of the attributes that form the state. Their values are tensors, arrays, plain values, tuples or
            dictionaries of these, or objects with such a ``saved_state``, for example optimisers.
    """

    name: str = ""
    saved: tuple[str, ...] = ()

    @property
    def _owner(self) -> Any:
        """The object that has the saved attributes."""
        return self

    def _pack(self, tensors: Tensors) -> dict[str, Any]:
        attributes = {f"{self.name}.{each}": getattr(self._owner, each) for each in self.saved}
        return {name: pack(getattr(value, "saved_state", value), name, tensors) for name, value in attributes.items()}

    def tensors(self) -> Tensors:
        """Return the tensors of the state."""
        tensors: Tensors = {}
        self._pack(tensors)
        return tensors

    def values(self) -> dict[str, Any]:
        """Return the plain values of the state."""
        return self._pack({})

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        """Restore the state from the values and tensors of the whole learner."""
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

    def copy_from(self, other: Self, device: torch.device) -> None:
        """Copy the state of another part. Subclasses may share tensors that are never changed in place."""
        self.load(other.values(), other.tensors(), device)

    def stored(self) -> dict[str, int]:
        """Count the bytes kept between sessions by kind, without the weights of the network."""
        return {}

    def chosen(self) -> dict[str, Any]:
        """Return what validation chose, as plain values."""
        return {}


class OwnAttributes(Part):
    """Attributes of the learner itself as a part. ``stored_as`` is the kind of storage that their bytes count as."""

    def __init__(self, owner: Any, *saved: str, name: str = "own", stored_as: str = "") -> None:
        self._learner, self.saved, self.name, self._kind = owner, saved, name, stored_as

    @property
    def _owner(self) -> Any:
        return self._learner

    def stored(self) -> dict[str, int]:
        return {self._kind: sum(tensor.nbytes for tensor in self.tensors().values())} if self._kind else {}


class ClassMemory(Part):
    """A memory of labelled nodes between sessions. This base class keeps nothing."""

    name = "memory"

    @property
    def forgets_exactly(self) -> bool:
        """Whether a memory rebuilt by :meth:`restate` contains no trace of removed labels."""
        return False

    def begin(self, base: BaseSession) -> None:
        """Store what is kept of session 0, before any training."""

    def restate(self, train: Labelled, supports: Labelled, many: int) -> bool:  # noqa: ARG002
        """Rebuild the memory from these labelled nodes, and return whether the memory supports this."""
        return False

    def drop(self, nodes: np.ndarray) -> None:
        """Forget nodes that leave the graph for good."""
