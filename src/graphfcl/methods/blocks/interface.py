"""Tables of all nodes of a visible graph, resident on a device or in files: what an algorithm is written against.

A :class:`Table` is an (n, D) array with a row for each row of the graph. :class:`NodeTables` makes tables of features,
of what lies around nodes, and of functions of a :class:`RowBlock`: some rows at a time, each row by itself. A function
of a block is the only place where a formula is written; it must be a function of a module, because workers of a graph
on disk import it.

Tables of a graph on disk are computed when something reads them. A table that is read for the last time
(``last_use``) is removed afterwards: its files are deleted, or its memory is used again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.graph.views import Features
from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.blocks.work_folder import Arrays
from graphfcl.methods.learner import Labelled, Progress
from graphfcl.nn import GraphInputs

Tensors = dict[str, torch.Tensor]
TYPES = {"<f2": torch.float16, "<f4": torch.float32, "<i4": torch.int32}
UNLABELLED = -1
ROWS = 4096  # rows that a function turns into wider types at a time


class Table(Protocol):
    """An (n, D) array of all rows of a graph."""

    @property
    def columns(self) -> int:
        """D."""

    @property
    def random_access(self) -> bool:
        """Whether reading a few rows costs no more than these rows."""

    def leading(self, columns: int) -> "Table":
        """The first columns; of a table that is not computed yet, only these are."""

    def kept(self) -> "Table":
        """This table, computed once for several that are made of it."""

    def rows_at(self, rows: np.ndarray) -> torch.Tensor:
        """(m, D) some rows, in any order, on the device."""

    def part(self, start: int, stop: int) -> torch.Tensor:
        """(stop − start, D) the rows of a block, as a function of it reads them."""

    def readable(self) -> Any:
        """An object with ``shape`` that answers ``table[rows]`` as a numpy array does: an array, or a stored table."""

    def remove(self, *, unless: "Table | None" = None) -> None:
        """Free what it takes; nothing reads it any more. unless: a table that stays, and may have the same content."""


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Rows ``start`` to ``stop`` − 1 as a function sees them.

    features_at: rows of X, from a first row to an end. tables: read when the function needs them.
    shown: (n, 1) above 0 where a row is visible; None if all are.
    tensors: the same for all rows. values: numbers and texts that do.
    """

    start: int
    stop: int
    features_at: Callable[[int, int], Features]
    tables: Mapping[str, Table]
    shown: Table | None
    tensors: Tensors
    values: Mapping[str, Any]

    def __len__(self) -> int:
        return self.stop - self.start

    def rows(self, name: str) -> torch.Tensor:
        """(rows, D) of a table."""
        return self.tables[name].part(self.start, self.stop)

    def features(self) -> Features:
        """(rows, d) of X."""
        return self.features_at(self.start, self.stop)

    @cached_property
    def visible(self) -> torch.Tensor | None:
        """(rows,) bool; None if all are."""
        return None if self.shown is None else self.shown.part(self.start, self.stop)[:, 0] > 0

    def only_visible(self, values: torch.Tensor) -> torch.Tensor:
        """The values of its visible rows."""
        return values if self.visible is None else values[self.visible]

    def labelled(self, name: str, labels: str = "labels") -> tuple[torch.Tensor, torch.Tensor]:
        """(m, D) rows of a table that have a label, and their (m,) columns."""
        columns = self.rows(labels)[:, 0].long()
        chosen = torch.nonzero(columns != UNLABELLED)[:, 0]
        if len(chosen) == len(self):
            return self.rows(name), columns
        if not len(chosen):
            return torch.zeros(0, self.tables[name].columns, device=columns.device), columns[:0]
        return self.rows(name)[chosen], columns[chosen]


RowMap = Callable[[RowBlock], torch.Tensor]
RowSums = Callable[[RowBlock], Tensors]


@dataclass(frozen=True, eq=False)
class RowPhase:
    """A function of blocks of rows, and what it reads. name: for people, and of the files of a graph on disk."""

    name: str
    function: Callable[[RowBlock], Any]
    tables: Mapping[str, Table]
    tensors: Tensors
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Held:
    """Bytes that the main process holds for some time, and the words for what they are."""

    size: int
    what: str

    @classmethod
    def of_rows(cls, what: str, rows: int, columns: int, each: int) -> "Held":
        """Rows of a table for some purpose. each: bytes of a number."""
        return cls(rows * columns * each, f"{what} on {rows:,} rows of {columns:,} columns")


class NodeTables(Protocol):
    """The tables of one visible graph.

    Features X have rows of unit length where ``unit`` says so (:func:`open_tables`); Â is the normalised adjacency.

    visible: the graph as it is. device: where tensors are.
    class_count: classes for which memory is planned; 0 if nothing is known of them.
    whole: the whole graph on the device, for networks that need it; None if it stays on the disk.
    """

    visible: VisibleNodes
    device: torch.device
    class_count: int = 0
    whole: GraphInputs | None = None

    @property
    def node_count(self) -> int:
        """Visible nodes."""
        return self.visible.node_count

    @property
    def feature_count(self) -> int:
        """Columns of X."""

    @property
    def has_feature_columns(self) -> bool:
        """Whether a column of X is a column of the graph's features."""

    @property
    def mean_weight(self) -> float:
        """Of an edge; 1 if there is none."""

    def watch(self, progress: Progress) -> None:
        """Report passes over the graph to ``progress``."""

    # Memory

    def require(self, *held: Held, columns: int = 0, slice_copies: int = 0) -> None:
        """Refuse a limit of memory that is too small for what follows.

        columns: of the widest rows that a function reads. slice_copies: of a slice of columns that hops (2) or
        smoothing (3) hold.
        """

    # Tables

    def leading_vectors(self, rank: int, seed: int, *, exact: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """B, the leading right singular vectors of X, in 8 bits, and the (k,) scales of its columns.

        exact: the same for every order of the nodes, and so in memory and on disk.
        """

    def own(self, basis: torch.Tensor) -> Table:
        """(n, k) XB."""

    def hops(self, own: Table, counts: Sequence[int]) -> Sequence[Table]:
        """(n, k) Â…ÂXB for each number of hops."""

    def side_by_side(self, tables: Sequence[Table], kind: str = "<f4") -> Table:
        """(n, ΣD) tables joined by row, rounded to the type ``kind``; on disk they keep their types."""

    def smoothed(self, table: Table, share: float, steps: int, *, last_use: bool = False) -> Table:
        """(n, C) P after ``steps`` of P ← s Â P + (1 − s) P₀; rows are not made to add up to 1."""

    def linked(self, table: Table) -> Table:
        """(n, C) d^(−1/2) A P with edge weights of mean 1; d of a lone node is 1."""

    def link_roots(self) -> Table:
        """(n, 1) d^(1/2) with edge weights of mean 1, 1 for a lone node, 0 for a hidden row."""

    def labels(self, labelled: Labelled) -> Table:
        """(n, 1) the columns of labelled nodes; ``UNLABELLED`` for all others."""

    def take(self, values: torch.Tensor) -> Table:
        """A table of an (n, D) tensor that is there."""

    def widened(self, table: Table) -> Table:
        """The same numbers in 32 bits, for several passes over them; a large table stays as it is."""

    def table(
        self,
        phase: str,
        function: RowMap,
        columns: int,
        *,
        tables: Mapping[str, Table] | None = None,
        tensors: Tensors | None = None,
        kind: str = "<f4",
        last_use: Sequence[str] = (),
        **values: Any,
    ) -> Table:
        """(n, columns) the function's rows of every block. last_use: names of tables that nothing reads afterwards."""
        return self._table(RowPhase(phase, function, tables or {}, tensors or {}, values), columns, kind, last_use)

    def sums(
        self,
        phase: str,
        function: RowSums,
        *,
        tables: Mapping[str, Table] | None = None,
        tensors: Tensors | None = None,
        **values: Any,
    ) -> Tensors:
        """The function's tensors added over all blocks, in 64 bits."""
        return self._sums(RowPhase(phase, function, tables or {}, tensors or {}, values))

    def _table(self, phase: RowPhase, columns: int, kind: str, last_use: Sequence[str]) -> Table: ...

    def _sums(self, phase: RowPhase) -> Tensors: ...

    def remember(
        self, phase: str, compute: Callable[[], Arrays], tables: Mapping[str, Table], arrays: Arrays, **values: Any
    ) -> Arrays:
        """Small arrays that follow from these tables, arrays and values: a run that goes on finds them."""

    def column_means(self, table: Table) -> torch.Tensor:
        """(D,) in 32 bits, over visible rows."""
        total = self.sums("means", column_sums, tables={"values": table})["total"]
        return (total / max(1, self.node_count)).float()

    # A few nodes

    def near(self, nodes: np.ndarray, hops: int) -> tuple[GraphInputs, np.ndarray]:
        """A graph that holds at least all within some hops of a few nodes, and their rows in it."""

    def numbers(self, near: VisibleGraph, rows: np.ndarray) -> np.ndarray:
        """The node numbers of rows of a graph that :meth:`near` returned."""

    def stored_behind(self, *tables: Table) -> list[Any]:
        """The folders of these tables, and of all that was computed for them on this visible graph alone."""


def column_sums(block: RowBlock) -> Tensors:
    """(D,) of the visible rows of the table ``values``, in 64 bits."""
    values = block.only_visible(block.rows("values"))
    total = torch.zeros(values.shape[1], dtype=torch.float64, device=values.device)
    for start in range(0, len(values), ROWS):
        total += values[start : start + ROWS].double().sum(dim=0)
    return {"total": total}


def some_of_each_class(labelled: Labelled, most: int, seed: int) -> Labelled:
    """At most so many nodes of each class, drawn by the seed, in their order."""
    nodes, columns = labelled
    counts = np.bincount(columns)
    if not counts.size or counts.max() <= most:
        return labelled
    order = np.random.default_rng([seed, 9]).permutation(columns.size)
    order = order[np.argsort(columns[order], kind="stable")]
    firsts = (counts.cumsum() - counts)[columns[order]]
    kept = np.sort(order[np.arange(columns.size) - firsts < most])
    return nodes[kept], columns[kept]


def count_of_each_class(columns: np.ndarray, most: int | None) -> int:
    """How many nodes of these columns are taken, if of each class at most so many are."""
    return columns.size if most is None else int(np.minimum(np.bincount(columns), most).sum())
