"""The interface of tables of all nodes, which algorithms use for graphs in memory and on disk alike.

A :class:`Table` is an (n, D) array with a row for each row of the graph. :class:`NodeTables` makes tables of features,
of propagated features, and of row-wise functions. Such a function takes a :class:`RowBlock`, a chunk of rows, and
treats each row independently, so a formula is written once for both kinds of graphs. It must be defined at module
level, because worker processes import it.

Tables of a graph on disk are computed when something reads them. A table named in ``last_use`` is removed after it is
read: its files are deleted, or its memory is reused.
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
from graphfcl.methods.learner import Progress
from graphfcl.methods.state import Labelled
from graphfcl.nn import GraphInputs

Tensors = dict[str, torch.Tensor]
TYPES = {"<f2": torch.float16, "<f4": torch.float32, "<i4": torch.int32}
UNLABELLED = -1
ROWS = 4096  # rows that a function converts to wider types at a time


class Table(Protocol):
    """An (n, D) array with a row for each row of a graph."""

    @property
    def columns(self) -> int:
        """Number of columns D."""

    @property
    def random_access(self) -> bool:
        """Whether a few rows can be read without a pass over the table."""

    def leading(self, columns: int) -> "Table":
        """Return the first columns. If the table is not computed yet, only these columns will be."""

    def kept(self) -> "Table":
        """Return this table so that it is computed once for several tables that depend on it."""

    def rows_at(self, rows: np.ndarray) -> torch.Tensor:
        """Read (m, D) some rows, in any order, to the device."""

    def part(self, start: int, stop: int) -> torch.Tensor:
        """Read the (stop − start, D) rows of a chunk."""

    def readable(self) -> Any:
        """Return an array or a stored table; both have ``shape`` and support ``table[rows]``."""

    def remove(self, *, unless: "Table | None" = None) -> None:
        """Free the table's memory or files, but not those of ``unless``, which may have the same content."""


@dataclass(frozen=True, eq=False)
class RowBlock:
    """A chunk of rows, ``start`` to ``stop`` − 1, as the input of a row-wise function.

    Args:
        start: First row.
        stop: End of the rows, exclusive.
        features_at: Reads rows of X, from a first row to an end.
        tables: Tables by name; rows are read when the function needs them.
        shown: (n, 1) table that is positive for visible rows; None if all rows are visible.
        tensors: Tensors that all chunks share.
        values: Numbers and strings that all chunks share.
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
        """Read the (rows, D) chunk of a table."""
        return self.tables[name].part(self.start, self.stop)

    def features(self) -> Features:
        """Read the (rows, d) chunk of X."""
        return self.features_at(self.start, self.stop)

    @cached_property
    def visible(self) -> torch.Tensor | None:
        """(rows,) mask of visible rows; None if all rows are visible."""
        return None if self.shown is None else self.shown.part(self.start, self.stop)[:, 0] > 0

    def only_visible(self, values: torch.Tensor) -> torch.Tensor:
        """Select the values of visible rows."""
        return values if self.visible is None else values[self.visible]

    def labelled(self, name: str, labels: str = "labels") -> tuple[torch.Tensor, torch.Tensor]:
        """Read the (m, D) rows of a table that have a label, and their (m,) class columns."""
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
    """A row-wise function with its inputs. ``name`` appears in progress reports and in file names."""

    name: str
    function: Callable[[RowBlock], Any]
    tables: Mapping[str, Table]
    tensors: Tensors
    values: Mapping[str, Any]


@dataclass(frozen=True)
class MemoryNeed:
    """Memory that the main process needs for some time: its bytes, and a description for error messages."""

    size: int
    what: str

    @classmethod
    def of_rows(cls, what: str, rows: int, columns: int, each: int) -> "MemoryNeed":
        """State the memory for rows of a table, with ``each`` bytes per number."""
        return cls(rows * columns * each, f"{what} on {rows:,} rows of {columns:,} columns")


class NodeTables(Protocol):
    """The tables of a visible graph with features X and normalised adjacency Â.

    The argument ``unit`` of :func:`open_tables` determines whether rows of X have unit length.

    Attributes:
        visible: The graph with its original features.
        device: Device of tensors.
        class_count: Number of classes for which memory is planned; 0 if unknown.
        whole: The whole graph on the device, for networks that need it; None if it stays on disk.
    """

    visible: VisibleNodes
    device: torch.device
    class_count: int = 0
    whole: GraphInputs | None = None

    @property
    def node_count(self) -> int:
        """Number of visible nodes."""
        return self.visible.node_count

    @property
    def feature_count(self) -> int:
        """Number of columns of X."""

    @property
    def has_feature_columns(self) -> bool:
        """Whether the columns of X are the graph's feature columns, and not hashed ones."""

    @property
    def mean_weight(self) -> float:
        """Mean weight of an edge; 1 if there is no edge."""

    def watch(self, progress: Progress) -> None:
        """Report passes over the graph to ``progress``."""

    # Memory

    def require(self, *held: MemoryNeed, columns: int = 0, slice_copies: int = 0) -> None:
        """Raise an error if the memory limit is too small.

        Args:
            *held: Memory that the main process needs.
            columns: Number of columns of the widest rows that a function reads.
            slice_copies: Copies of a slice of columns in memory, 2 for hops and 3 for smoothing.
        """

    # Tables

    def leading_vectors(self, rank: int, seed: int, *, exact: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute B, the leading right singular vectors of X, in 8 bits, and the (k,) scales of its columns.

        With ``exact``, the result does not depend on the order of nodes, and is the same in memory and on disk.
        """

    def own(self, basis: torch.Tensor) -> Table:
        """Compute the (n, k) table XB."""

    def hops(self, own: Table, counts: Sequence[int]) -> Sequence[Table]:
        """Compute the (n, k) table Â…ÂXB for each number of hops."""

    def side_by_side(self, tables: Sequence[Table], kind: str = "<f4") -> Table:
        """Join tables to an (n, ΣD) table of number type ``kind``; on disk they keep their types."""

    def smoothed(self, table: Table, share: float, steps: int, *, last_use: bool = False) -> Table:
        """Compute (n, C) P after ``steps`` of P ← s Â P + (1 − s) P₀; rows are not renormalised."""

    def linked(self, table: Table) -> Table:
        """Compute (n, C) d^(−1/2) A P with edge weights of mean 1; d of an isolated node is 1."""

    def link_roots(self) -> Table:
        """Compute (n, 1) d^(1/2) with edge weights of mean 1; 1 for an isolated node, 0 for a hidden row."""

    def labels(self, labelled: Labelled) -> Table:
        """Make an (n, 1) table of the class columns of labelled nodes; ``UNLABELLED`` for all other nodes."""

    def take(self, values: torch.Tensor) -> Table:
        """Make a table from an (n, D) tensor."""

    def widened(self, table: Table) -> Table:
        """Convert a table to 32 bits for several passes; a large table stays unchanged."""

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
        """Apply a function to all chunks of rows; the result is an (n, columns) table.

        ``last_use`` names the tables that nothing reads afterwards.
        """
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
        """Sum the tensors that a function returns over all chunks of rows, in 64 bits."""
        return self._sums(RowPhase(phase, function, tables or {}, tensors or {}, values))

    def _table(self, phase: RowPhase, columns: int, kind: str, last_use: Sequence[str]) -> Table: ...

    def _sums(self, phase: RowPhase) -> Tensors: ...

    def remember(
        self, phase: str, compute: Callable[[], Arrays], tables: Mapping[str, Table], arrays: Arrays, **values: Any
    ) -> Arrays:
        """Compute small arrays from tables, arrays and values, and store them so that a resumed run reads them."""

    def column_means(self, table: Table) -> torch.Tensor:
        """Compute (D,) means over visible rows in 32 bits."""
        total = self.sums("means", column_sums, tables={"values": table})["total"]
        return (total / max(1, self.node_count)).float()

    # A few nodes

    def neighbourhood(self, nodes: np.ndarray, hops: int) -> tuple[GraphInputs, np.ndarray]:
        """Return a graph with at least all nodes within some hops of a few nodes, and the rows of these nodes in it."""

    def numbers(self, near: VisibleGraph, rows: np.ndarray) -> np.ndarray:
        """Translate rows of a graph from :meth:`neighbourhood` to node numbers."""

    def stored_behind(self, *tables: Table) -> list[Any]:
        """List the folders of these tables and of the tables computed for them on this visible graph alone."""


def column_sums(block: RowBlock) -> Tensors:
    """Sum the visible rows of the table ``values`` to (D,) in 64 bits."""
    values = block.only_visible(block.rows("values"))
    total = torch.zeros(values.shape[1], dtype=torch.float64, device=values.device)
    for start in range(0, len(values), ROWS):
        total += values[start : start + ROWS].double().sum(dim=0)
    return {"total": total}


def some_of_each_class(labelled: Labelled, most: int, seed: int) -> Labelled:
    """Draw at most ``most`` nodes of each class by the seed, and keep their order."""
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
    """Count the labels that remain with at most ``most`` per class."""
    return columns.size if most is None else int(np.minimum(np.bincount(columns), most).sum())
