"""A visible graph on a device, and which rows of it a computation needs.

The operator at the bottom of everything is "rows R of Â·H". It reads only the neighbourhood of R. The first layer's Â·X
has no parameter in it and is computed once for a graph.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph.views import Features
from graphfcl.graph.visible import VisibleGraph
from graphfcl.nn.edges import EdgePattern
from graphfcl.nn.matrices import DenseRows, DenseTable, SparseMatrix, tensor_of

EPSILON = 1e-6  # added to a degree before its logarithm is taken
DENSE_ABOVE = 0.3  # a matrix with a larger share of nonzeros is stored dense
WHOLE_BELOW = 4e9  # nodes × features up to which a GPU computes all rows; about 30 times Reddit's


FeatureRows = SparseMatrix | DenseRows


@dataclass(frozen=True, eq=False)
class GcnRows:
    """What two GCN layers need for the rows R: Â·X of their neighbours, and the block of Â that gathers them.

    inputs: (s, d) rows of Â·X for the s neighbours of R (R included).
    gather: (r, s) the block of Â.
    log_degrees: (r,) log(degree + ε) of R in the visible graph, without the self loop.
    lead: (rows, neighbours) of a leading part of R whose neighbours come first, see :meth:`head`.
    chosen: (r,) if ``inputs`` and ``gather`` are those of the whole graph, the rows to choose from the result.
    """

    inputs: FeatureRows
    gather: SparseMatrix
    log_degrees: torch.Tensor
    lead: tuple[int, int]
    chosen: torch.Tensor | None = None

    def aggregate(self, values: torch.Tensor) -> torch.Tensor:
        """(r, h): rows R of Â·H for the (s, h) values of the neighbours."""
        gathered = self.gather @ values
        return gathered if self.chosen is None else gathered.index_select(0, self.chosen)

    def head(self) -> "GcnRows":
        """The leading rows alone; they share the inputs, so that two networks read the features once."""
        rows, neighbours = self.lead
        if self.chosen is not None:
            return replace(self, log_degrees=self.log_degrees[:rows], chosen=self.chosen[:rows])
        block = self.gather.host[:rows, :neighbours]
        return GcnRows(
            inputs=self.inputs.head(neighbours),
            gather=SparseMatrix(block, self.gather.device),
            log_degrees=self.log_degrees[:rows],
            lead=self.lead,
        )


@dataclass(frozen=True, eq=False)
class GatRows:
    """What two GAT layers need for the rows R: raw features two hops around, and the edges of both hops.

    features: (n₀, d) of the outer neighbourhood.
    hops: outermost first, each (edges, own): the edges and self loops from the nodes of the previous set to those of
        the next, and where the latter stand among the former.
    """

    features: FeatureRows
    hops: tuple[tuple[EdgePattern, torch.Tensor], ...]


class GraphInputs:
    """A visible graph ready for computation. What no parameter touches is cached here. Threads may share it.

    sparing: compute nothing for all nodes that only some need; for a few rows of a graph that is asked about once.
    """

    def __init__(self, visible: VisibleGraph, device: torch.device, *, sparing: bool = False) -> None:
        self.visible = visible
        self.device = device
        self.sparing = sparing
        self.log_degrees = np.log(visible.degrees + np.float32(EPSILON))

    @property
    def feature_count(self) -> int:
        return int(self.visible.features.shape[1])

    @cached_property
    def whole_is_cheaper(self) -> bool:
        """On a GPU a graph up to some size is computed whole faster than the host finds the rows of an episode."""
        small = self.visible.node_count * self.feature_count < WHOLE_BELOW
        return self.device.type == "cuda" and small and not self.sparing

    def gcn_rows(self, rows: np.ndarray | torch.Tensor, lead: int = 0) -> GcnRows:
        """For some rows, which may be on the device already; the neighbours of the first ``lead`` rows come first."""
        if self.whole_is_cheaper:
            chosen = rows if isinstance(rows, torch.Tensor) else torch.from_numpy(rows).to(self.device)
            degrees = self.all_gcn_rows.log_degrees[chosen]
            return replace(self.all_gcn_rows, log_degrees=degrees, lead=(lead, 0), chosen=chosen)
        rows = rows.cpu().numpy() if isinstance(rows, torch.Tensor) else rows
        block = self.visible.normalised[rows]
        leading = np.unique(block.indices[: block.indptr[lead]])
        neighbours = np.concatenate([leading, self._others(block.indices, leading)])
        columns = self._places(neighbours)[block.indices]
        gather = sparse.csr_array((block.data, columns, block.indptr), shape=(rows.size, neighbours.size))
        return GcnRows(
            inputs=self._smoothed_rows(neighbours),
            gather=SparseMatrix(gather, self.device),
            log_degrees=torch.from_numpy(self.log_degrees[rows]).to(self.device),
            lead=(lead, leading.size),
        )

    def _others(self, rows: np.ndarray, left_out: np.ndarray) -> np.ndarray:
        """The different rows that are not among those left out, ascending."""
        marked = np.zeros(self.visible.node_count, dtype=bool)
        marked[rows] = True
        marked[left_out] = False
        return np.flatnonzero(marked)

    def _places(self, nodes: np.ndarray) -> np.ndarray:
        """(n,) where each of some nodes stands among them; no meaning for all others.

        Made for each call: two threads may use one graph at once. Memory that is not written costs nothing.
        """
        places = np.empty(self.visible.node_count, dtype=np.int32)
        places[nodes] = np.arange(nodes.size, dtype=np.int32)
        return places

    @cached_property
    def all_gcn_rows(self) -> GcnRows:
        """For every row of the graph."""
        return GcnRows(
            inputs=self._smoothed,
            gather=self.adjacency,
            log_degrees=torch.from_numpy(self.log_degrees).to(self.device),
            lead=(0, 0),
        )

    def rows_of_whole_graph(self, rows: np.ndarray) -> GcnRows:
        """For some rows that are computed again and again; the first layer is computed for all nodes."""
        return replace(
            self.all_gcn_rows,
            gather=SparseMatrix(sparse.csr_array(self.visible.normalised[rows]), self.device, reused=True),
            log_degrees=self.all_gcn_rows.log_degrees[torch.from_numpy(rows).to(self.device)],
        )

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """Â."""
        return SparseMatrix(self.visible.normalised, self.device, reused=True)

    def _smoothed_rows(self, rows: np.ndarray) -> FeatureRows:
        if not self.sparing:
            return _chosen(self._smoothed, rows)
        return _on_device(self.visible.normalised[rows] @ self.visible.features, self.device)

    @cached_property
    def _smoothed(self) -> FeatureRows:
        """Â·X, sparse or dense, whichever is smaller."""
        features = self.visible.features
        if isinstance(features, np.ndarray):
            return DenseRows(DenseTable(self.adjacency.product(tensor_of(features, self.device))))
        product = sparse.csr_array(self.visible.normalised @ features)
        if product.nnz > DENSE_ABOVE * product.shape[0] * product.shape[1]:
            return _on_device(product.toarray(), self.device)
        product.sort_indices()
        return _on_device(product, self.device, reused=True)

    def gat_rows(self, rows: np.ndarray) -> GatRows:
        """For some rows."""
        inner, neighbours = self._gat_hop(rows)
        outer, around = self._gat_hop(neighbours)
        return GatRows(features=self._raw_rows(around), hops=(outer, inner))

    @cached_property
    def all_gat_rows(self) -> GatRows:
        """For every row of the graph."""
        everything = np.arange(self.visible.node_count)
        hop, _ = self._gat_hop(everything)
        return GatRows(features=self._raw_rows(everything), hops=(hop, hop))

    def _gat_hop(self, rows: np.ndarray) -> tuple[tuple[EdgePattern, torch.Tensor], np.ndarray]:
        """The edges into some rows, and the nodes they come from."""
        block = self.visible.normalised[rows]  # its pattern is the edges and the self loops
        nodes = self._others(block.indices, np.zeros(0, dtype=np.int64))
        places = self._places(nodes)
        pattern = sparse.csr_array((block.data, places[block.indices], block.indptr), shape=(rows.size, nodes.size))
        own = torch.from_numpy(places[rows].astype(np.int64)).to(self.device)
        return (EdgePattern(pattern, self.device), own), nodes

    def raw(self, rows: np.ndarray | None = None) -> FeatureRows:
        """The features themselves, of all nodes or of some."""
        return self._raw if rows is None else self._raw_rows(rows)

    def _raw_rows(self, rows: np.ndarray) -> FeatureRows:
        if not self.sparing:
            return _chosen(self._raw, rows)
        return _on_device(self.visible.features[rows], self.device)

    @cached_property
    def _raw(self) -> FeatureRows:
        return _on_device(self.visible.features, self.device, reused=True)


def _on_device(features: Features, device: torch.device, *, reused: bool = False) -> FeatureRows:
    if isinstance(features, np.ndarray):
        return DenseRows(DenseTable(tensor_of(features, device)))
    return SparseMatrix(sparse.csr_array(features), device, reused=reused)


def _chosen(table: FeatureRows, rows: np.ndarray) -> FeatureRows:
    if isinstance(table, SparseMatrix):
        return SparseMatrix(table.host[rows], table.device)
    return DenseRows(table.table, torch.from_numpy(rows).to(table.table.values.device))
