"""Tables of a graph in memory, stored as tensors on the device of the learner.

XB and its hops are computed for a slice of columns at a time and written directly to the table that joins them. Memory
then holds a wide table in 16 bits and only one slice in 32 bits.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph.views import Features
from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.blocks.interface import (
    TYPES,
    UNLABELLED,
    MemoryNeed,
    NodeTables,
    RowBlock,
    RowPhase,
    Table,
    Tensors,
)
from graphfcl.methods.blocks.work_folder import Arrays
from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.untrained_features import WIDEST, leading_vectors
from graphfcl.methods.state import Labelled
from graphfcl.nn import GraphInputs, tensor_of
from graphfcl.nn.matrices import SparseMatrix

BLOCK = 16_384  # rows of a chunk, small enough that intermediate results take little memory
WIDENED = 1 << 28  # tables of up to this size in 32 bits are converted for several passes
COLUMNS = 128  # columns of the basis that are propagated at a time

Slices = dict[int, torch.Tensor]  # computed slices by table, while several tables are computed from them


class ResidentTable:
    """An (n, D) tensor, or a function that computes slices of its columns.

    ``compute`` maps a slice of columns, and the slices computed so far, to an (n, columns) tensor.
    """

    random_access = True

    def __init__(
        self,
        columns: int,
        values: torch.Tensor | None = None,
        compute: Callable[[slice, Slices], torch.Tensor] | None = None,
    ) -> None:
        self.columns = columns
        self._values, self._compute = values, compute
        self._hops: dict[int, ResidentTable] = {}  # Âⁿ times this table, by n

    @classmethod
    def of(cls, values: torch.Tensor) -> "ResidentTable":
        return cls(values.shape[1], values)

    @property
    def values(self) -> torch.Tensor:
        """The (n, D) tensor, computed once."""
        if self._values is None:
            self._values = self.slice(slice(0, self.columns), {})
        return self._values

    def _all_slices(self) -> Iterator[torch.Tensor]:
        for start in range(0, self.columns, COLUMNS):
            yield self.slice(slice(start, min(start + COLUMNS, self.columns)), {})

    def slice(self, part: slice, computed: Slices) -> torch.Tensor:
        """Compute (n, columns) a slice of the columns."""
        if self._values is not None:
            return self._values[:, part]
        if id(self) not in computed:
            assert self._compute is not None, "a table was read after its last use"
            computed[id(self)] = self._compute(part, computed)
        return computed[id(self)]

    def leading(self, columns: int) -> "ResidentTable":
        if columns >= self.columns:
            return self
        if self._values is not None:
            return ResidentTable.of(self._values[:, :columns])
        return ResidentTable(columns, compute=self._compute)

    def kept(self) -> "ResidentTable":
        return ResidentTable.of(self.values)

    def rows_at(self, rows: np.ndarray) -> torch.Tensor:
        if self._values is not None:
            return self._values[torch.from_numpy(rows).to(self._values.device)]
        return torch.cat([part[torch.from_numpy(rows).to(part.device)] for part in self._all_slices()], dim=1)

    def part(self, start: int, stop: int) -> torch.Tensor:
        return self.values[start:stop]

    def readable(self) -> np.ndarray:
        return self.values.cpu().numpy()

    def remove(self, *, unless: Table | None = None) -> None:
        if unless is not self:
            self._values = None

    def hop(self, count: int, adjacency: SparseMatrix) -> "ResidentTable":
        """Multiply by Â ``count`` times. Each hop is computed from the previous one."""
        if count == 0:
            return self
        if count not in self._hops:
            before = self.hop(count - 1, adjacency)
            self._hops[count] = ResidentTable(
                self.columns, compute=lambda part, computed: adjacency @ before.slice(part, computed)
            )
        return self._hops[count]


class _JoinedTable(ResidentTable):
    """Tables side by side, joined when they are read."""

    def __init__(self, tables: Sequence[ResidentTable], rows: int, kind: torch.dtype, device: torch.device) -> None:
        super().__init__(sum(table.columns for table in tables))
        self._tables, self._rows, self._kind, self._device = list(tables), rows, kind, device

    @property
    def values(self) -> torch.Tensor:
        if self._values is None:
            self._values = self._joined(self._rows, slice(None))
        return self._values

    def rows_at(self, rows: np.ndarray) -> torch.Tensor:
        """Compute slices for all rows, and keep only these rows."""
        chosen = torch.from_numpy(rows).to(self._device)
        return self._joined(rows.size, chosen) if self._values is None else self._values[chosen]

    def _joined(self, count: int, chosen: slice | torch.Tensor) -> torch.Tensor:
        values = torch.empty(count, self.columns, dtype=self._kind, device=self._device)
        places = values.split([table.columns for table in self._tables], dim=1)
        for start in range(0, max((table.columns for table in self._tables), default=0), COLUMNS):
            computed: Slices = {}
            for place, table in zip(places, self._tables, strict=True):
                part = slice(start, min(start + COLUMNS, table.columns))
                if part.start < part.stop:
                    place[:, part] = table.slice(part, computed)[chosen]
        return values


class ResidentTables(NodeTables):
    """The tables of a visible graph in memory. ``inputs`` is the graph with the features X on the device."""

    visible: VisibleGraph

    def __init__(self, visible: VisibleGraph, inputs: GraphInputs) -> None:
        self.visible, self.device, self.whole = visible, inputs.device, inputs
        self._inputs = inputs

    @property
    def feature_count(self) -> int:
        return self._inputs.feature_count

    @property
    def has_feature_columns(self) -> bool:
        return 0 < int(self.visible.features.shape[1]) <= WIDEST

    @cached_property
    def mean_weight(self) -> float:
        adjacency = self.visible.adjacency
        return float(adjacency.data.mean()) if adjacency.nnz else 1.0

    def watch(self, progress: Progress) -> None:
        """Do nothing: passes over a graph in memory are short."""

    def require(self, *held: MemoryNeed, columns: int = 0, slice_copies: int = 0) -> None:
        """Do nothing: the graph is in memory already."""

    # Tables

    def leading_vectors(self, rank: int, seed: int, *, exact: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        return leading_vectors(self._inputs, rank, seed, exact=exact)

    def own(self, basis: torch.Tensor) -> ResidentTable:
        basis = basis.to(self.device)
        return ResidentTable(basis.shape[1], compute=lambda part, _: self._inputs.raw() @ basis[:, part])

    def hops(self, own: Table, counts: Sequence[int]) -> list[ResidentTable]:
        return [_resident(own).hop(count, self._inputs.adjacency) for count in counts]

    def side_by_side(self, tables: Sequence[Table], kind: str = "<f4") -> ResidentTable:
        return _JoinedTable([_resident(table) for table in tables], self.node_count, TYPES[kind], self.device)

    def smoothed(self, table: Table, share: float, steps: int, *, last_use: bool = False) -> ResidentTable:  # noqa: ARG002
        first = values = _resident(table).values
        for _ in range(steps):
            values = share * (self._inputs.adjacency @ values) + (1 - share) * first
        return ResidentTable.of(values)

    def linked(self, table: Table) -> ResidentTable:
        return ResidentTable.of(self._links @ _resident(table).values)

    @cached_property
    def _links(self) -> SparseMatrix:
        """d^(−1/2) A with edge weights of mean 1."""
        plain = self.visible.adjacency
        data = plain.data / np.float32(self.mean_weight) / np.repeat(self._roots, np.diff(plain.indptr))
        near = sparse.csr_array((data, plain.indices, plain.indptr), shape=plain.shape)
        return SparseMatrix(near, self.device, reused=True)

    @cached_property
    def _roots(self) -> np.ndarray:
        return np.sqrt(np.maximum(self.visible.degrees / np.float32(self.mean_weight), 1))

    def link_roots(self) -> ResidentTable:
        return self.take(tensor_of(self._roots[:, None], self.device))

    def labels(self, labelled: Labelled) -> ResidentTable:
        every = np.full((self.node_count, 1), UNLABELLED, dtype=np.int32)
        every[self.visible.rows(labelled[0]), 0] = labelled[1]
        return self.take(tensor_of(every, self.device))

    def take(self, values: torch.Tensor) -> ResidentTable:
        return ResidentTable.of(values)

    def widened(self, table: Table) -> ResidentTable:
        values = _resident(table).values
        return ResidentTable.of(values.float()) if 4 * values.numel() <= WIDENED else _resident(table)

    def _table(self, phase: RowPhase, columns: int, kind: str, last_use: Sequence[str]) -> ResidentTable:
        blocks = self._blocks(phase)
        if len(blocks) == 1:
            return ResidentTable.of(phase.function(blocks[0]).to(TYPES[kind]))
        written = self._room(columns, TYPES[kind], [_resident(phase.tables[name]) for name in last_use])
        for block in blocks:
            written[block.start : block.stop] = phase.function(block)
        return ResidentTable.of(written)

    def _room(self, columns: int, kind: torch.dtype, last_use: list[ResidentTable]) -> torch.Tensor:
        """Return a tensor to write to: a table on its last use if its shape and type match, else a new one."""
        for table in last_use:
            values = table.values
            if values.shape == (self.node_count, columns) and values.dtype == kind:
                return values
        return torch.empty(self.node_count, columns, dtype=kind, device=self.device)

    def _sums(self, phase: RowPhase) -> Tensors:
        total: Tensors = {}
        for block in self._blocks(phase):
            for name, each in phase.function(block).items():
                total[name] = total[name] + each.double() if name in total else each.double()
        return total

    def _blocks(self, phase: RowPhase) -> list[RowBlock]:
        count, tables = self.node_count, {name: _resident(each) for name, each in phase.tables.items()}
        there = {name: each.to(self.device) for name, each in phase.tensors.items()}
        return [
            RowBlock(start, min(start + BLOCK, count), self._features, tables, None, there, phase.values)
            for start in range(0, max(count, 1), BLOCK)
        ]

    def _features(self, start: int, stop: int) -> Features:
        return self._inputs.visible.features[start:stop]

    def remember(self, phase: str, compute: Callable[[], Arrays], *_: Any, **__: Any) -> Arrays:  # noqa: ARG002
        return compute()

    # A few nodes

    def neighbourhood(self, nodes: np.ndarray, hops: int) -> tuple[GraphInputs, np.ndarray]:  # noqa: ARG002
        return GraphInputs(self._inputs.visible, self.device, sparing=True), self.visible.rows(nodes)

    def numbers(self, near: VisibleGraph, rows: np.ndarray) -> np.ndarray:
        return near.nodes[rows]

    def stored_behind(self, *tables: Table) -> list[Any]:  # noqa: ARG002
        return []


def _resident(table: Table) -> ResidentTable:
    assert isinstance(table, ResidentTable), "a table of another graph"
    return table
