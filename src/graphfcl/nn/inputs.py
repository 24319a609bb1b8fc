"""Inputs of graph encoders: a visible graph on a device, and the rows that a computation needs.

Two-layer encoders compute rows R of Â·H, for which only the neighbourhood of R is needed. The product Â·X of the first
GCN layer has no parameters and is computed once per graph.
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

EPSILON = 1e-6  # added to a degree before taking the logarithm
DENSE_ABOVE = 0.3  # matrices with a larger share of non-zero values are stored dense
WHOLE_BELOW = 4e9  # below this number of nodes × features a GPU computes all rows; about 30 times Reddit


FeatureRows = SparseMatrix | DenseRows


@dataclass(frozen=True, eq=False)
class GcnRows:
    """Inputs of two GCN layers for r rows R.

    Args:
        inputs: (s, d) Rows of Â·X for the s neighbours of R, including R.
        gather: (r, s) Block of Â from these neighbours to R.
        log_degrees: (r,) log(degree + ε) of R in the visible graph, without the self loop.
        lead: Numbers of leading rows of R and of their neighbours, which come first; see :meth:`head`.
        chosen: (r,) Rows to select from the result, if ``inputs`` and ``gather`` are of the whole graph.
    """

    inputs: FeatureRows
    gather: SparseMatrix
    log_degrees: torch.Tensor
    lead: tuple[int, int]
    chosen: torch.Tensor | None = None

    def aggregate(self, values: torch.Tensor) -> torch.Tensor:
        """Compute (r, h) rows R of Â·H from the (s, h) values of the neighbours."""
        gathered = self.gather @ values
        return gathered if self.chosen is None else gathered.index_select(0, self.chosen)

    def head(self) -> "GcnRows":
        """Return the inputs of the leading rows only, which share the features with these inputs."""
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
    """Inputs of two GAT layers for rows R.

    Args:
        features: (n₀, d) Raw features of all nodes within two hops of R.
        hops: For the outer and then the inner hop: edges and self loops from source nodes to target nodes, and the
            positions of the targets among the sources.
    """

    features: FeatureRows
    hops: tuple[tuple[EdgePattern, torch.Tensor], ...]


class GraphInputs:
    """A visible graph on a device, with cached products that do not depend on parameters. It is thread-safe.

    Args:
        visible: The graph.
        device: Device of the tensors.
        sparing: Compute only the rows that are needed, for graphs of which a few rows are read once.
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
        """Whether to compute all rows: on a GPU this is faster than finding the needed rows on the host."""
        small = self.visible.node_count * self.feature_count < WHOLE_BELOW
        return self.device.type == "cuda" and small and not self.sparing

    def gcn_rows(self, rows: np.ndarray | torch.Tensor, lead: int = 0) -> GcnRows:
        """Collect GCN inputs for rows (an array, or a tensor on the device).

        The neighbours of the first ``lead`` rows come first among the neighbours.
        """
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
        """Return the different rows, ascending, except ``left_out``."""
        marked = np.zeros(self.visible.node_count, dtype=bool)
        marked[rows] = True
        marked[left_out] = False
        return np.flatnonzero(marked)

    def _places(self, nodes: np.ndarray) -> np.ndarray:
        """Return (n,) positions of nodes in ``nodes``; values of other nodes are undefined.

        The array is allocated for each call, because several threads may use the graph. Unwritten memory costs nothing.
        """
        places = np.empty(self.visible.node_count, dtype=np.int32)
        places[nodes] = np.arange(nodes.size, dtype=np.int32)
        return places

    @cached_property
    def all_gcn_rows(self) -> GcnRows:
        """GCN inputs for all rows."""
        return GcnRows(
            inputs=self._smoothed,
            gather=self.adjacency,
            log_degrees=torch.from_numpy(self.log_degrees).to(self.device),
            lead=(0, 0),
        )

    def rows_of_whole_graph(self, rows: np.ndarray) -> GcnRows:
        """Collect GCN inputs for rows that are computed repeatedly; the first layer is computed for all nodes."""
        return replace(
            self.all_gcn_rows,
            gather=SparseMatrix(sparse.csr_array(self.visible.normalised[rows]), self.device, reused=True),
            log_degrees=self.all_gcn_rows.log_degrees[torch.from_numpy(rows).to(self.device)],
        )

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """The normalised adjacency matrix Â."""
        return SparseMatrix(self.visible.normalised, self.device, reused=True)

    def _smoothed_rows(self, rows: np.ndarray) -> FeatureRows:
        if not self.sparing:
            return _chosen(self._smoothed, rows)
        return _on_device(self.visible.normalised[rows] @ self.visible.features, self.device)

    @cached_property
    def _smoothed(self) -> FeatureRows:
        """Â·X, stored sparse or dense depending on its share of non-zero values."""
        features = self.visible.features
        if isinstance(features, np.ndarray):
            return DenseRows(DenseTable(self.adjacency.product(tensor_of(features, self.device))))
        product = sparse.csr_array(self.visible.normalised @ features)
        if product.nnz > DENSE_ABOVE * product.shape[0] * product.shape[1]:
            return _on_device(product.toarray(), self.device)
        product.sort_indices()
        return _on_device(product, self.device, reused=True)

    def gat_rows(self, rows: np.ndarray) -> GatRows:
        """Collect GAT inputs for rows."""
        inner, neighbours = self._gat_hop(rows)
        outer, around = self._gat_hop(neighbours)
        return GatRows(features=self._raw_rows(around), hops=(outer, inner))

    @cached_property
    def all_gat_rows(self) -> GatRows:
        """GAT inputs for all rows."""
        everything = np.arange(self.visible.node_count)
        hop, _ = self._gat_hop(everything)
        return GatRows(features=self._raw_rows(everything), hops=(hop, hop))

    def _gat_hop(self, rows: np.ndarray) -> tuple[tuple[EdgePattern, torch.Tensor], np.ndarray]:
        """Return the edges into rows with the positions of these rows among the sources, and the source nodes."""
        block = self.visible.normalised[rows]  # its non-zero entries are the edges and the self loops
        nodes = self._others(block.indices, np.zeros(0, dtype=np.int64))
        places = self._places(nodes)
        pattern = sparse.csr_array((block.data, places[block.indices], block.indptr), shape=(rows.size, nodes.size))
        own = torch.from_numpy(places[rows].astype(np.int64)).to(self.device)
        return (EdgePattern(pattern, self.device), own), nodes

    def raw(self, rows: np.ndarray | None = None) -> FeatureRows:
        """Return the raw features of some or all nodes."""
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
