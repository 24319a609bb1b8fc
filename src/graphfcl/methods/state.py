"""What a learner stores: sets of labelled nodes, its state, tables on disk and shared encoders."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # commands that use no learner must not wait for the import of torch
    import torch

Tensors = dict[str, "torch.Tensor"]
Labelled = tuple[np.ndarray, np.ndarray]  # node numbers and columns
TABLE_NAME = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}")  # folder name of a table; it cannot point outside the work folder


def no_labels() -> Labelled:
    """Return an empty set of labelled nodes."""
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def join_labelled(*labelled: Labelled) -> Labelled:
    """Concatenate sets of labelled nodes."""
    nodes, columns = (np.concatenate(parts) for parts in zip(*labelled, strict=True))
    return nodes, columns


def select_labelled(labelled: Labelled, which: np.ndarray) -> Labelled:
    """Select labelled nodes by a boolean mask or by positions."""
    return labelled[0][which], labelled[1][which]


@dataclass(frozen=True, eq=False)
class LearnerState:
    """A snapshot of everything a learner has learned.

    Args:
        tensors: Tensors by name.
        values: Values that JSON can represent, among them the method, its settings and the seed.

    Examples:
        >>> from graphfcl import find_method, load_dataset, make_stream
        >>> graph, protocol = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> stream = make_stream(graph, protocol, seed=0)
        >>> learner = find_method("sgc-ridge").make()
        >>> learner.fit(stream.base)
        >>> state = learner.state()
        >>> state.values["method"], state.tensors["classes.sums"].shape[0]
        ('sgc-ridge', 4)
        >>> find_method("sgc-ridge").make().load_state(state)  # continues where the first learner stands
    """

    tensors: Tensors = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


class EncoderStore:
    """A store of pre-trained encoders that several runs share.

    This base class stores nothing. Override :meth:`get` to keep encoders in a place of your own.

    Examples:
        >>> from graphfcl import EncoderStore
        >>> class MemoryStore(EncoderStore):
        ...     def __init__(self):
        ...         self.encoders = {}
        ...     def get(self, key, compute):
        ...         name = str(sorted(key.items()))
        ...         if name not in self.encoders:
        ...             self.encoders[name] = compute()
        ...         return self.encoders[name]
        >>> store = MemoryStore()
        >>> store.get({"seed": 0}, lambda: {"weight": 1}), store.get({"seed": 0}, lambda: {"weight": 2})
        ({'weight': 1}, {'weight': 1})
    """

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:  # noqa: ARG002
        """Return the stored tensors of an encoder, or compute them.

        Args:
            key: Everything that the encoder depends on besides the visible graph and its features; so use one store for
                one graph and one protocol.
            compute: Trains the encoder and returns its tensors.

        Returns:
            The tensors of the encoder by name.
        """
        return compute()


NO_STORE = EncoderStore()


class LastTables:
    """The tables on disk that a learner wrote last.

    They are removed once the tables of the next session are complete, so that a run keeps one session on disk. Tables
    that another learner wrote are not touched. A copy of a learner starts with an empty list, and a resumed run
    restores the list with :meth:`recall`.
    """

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()

    def recall(self, names: Iterable[str]) -> None:
        """Restore names that were recorded before. Anything that is not a table name is ignored."""
        self.names = tuple(name for name in names if TABLE_NAME.fullmatch(name))

    def replace_by(self, folders: Sequence[Path]) -> None:
        """Record these complete tables, and remove the previous ones. All must lie in one work folder.

        Without folders nothing is removed and the names are forgotten.
        """
        kept = tuple(folder.name for folder in folders)
        for name in set(self.names) - set(kept) if folders else ():
            shutil.rmtree(folders[0].parent / name, ignore_errors=True)
        self.names = kept
