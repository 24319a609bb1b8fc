"""The topologies that session 0 is trained on: the visible graph, groups of classes, and no edges at all."""

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph.visible import VisibleGraph
from graphfcl.nn import GatEncoder, GcnEncoder, GraphInputs, Linear, dropout
from graphfcl.nn.encoders import GatLayer


class ClassGroups:
    """The labelled nodes alone, from whose edges graphs of class groups are drawn.

    A drawn graph is what a session of its own would show of N classes: all edges between classes of different groups
    are gone. Nodes without a label belong to no group, so they are not in it.

    adjacency: (n, n) of all nodes. rows: (t,) of the labelled ones. labels: (t,) their classes. way: N. share: random
    edges as a share of the edges of each group.
    """

    def __init__(
        self, adjacency: sparse.csr_array, rows: np.ndarray, labels: np.ndarray, way: int, share: float
    ) -> None:
        self.edges = sparse.csr_array(adjacency[rows][:, rows])
        self.sources = np.repeat(np.arange(rows.size), np.diff(self.edges.indptr))
        self.labels, self.way, self.share = labels, way, share

    def draw(self, random: np.random.Generator) -> sparse.csr_array:
        """(t, t) edges inside groups of N classes, drawn anew; what is left over of the classes is a smaller group."""
        count = int(self.labels.max(initial=0)) + 1
        group_of = np.empty(count, dtype=np.int64)
        group_of[random.permutation(count)] = np.arange(count) // self.way
        groups = group_of[self.labels]
        inside = groups[self.sources] == groups[self.edges.indices]
        ends = np.concatenate([[0], np.cumsum(inside)]).astype(self.edges.indptr.dtype)
        kept = (self.edges.data[inside], self.edges.indices[inside], ends[self.edges.indptr])
        inner = sparse.csr_array(kept, shape=self.edges.shape)
        edges = np.bincount(groups[self.sources[inside]], minlength=int(groups.max(initial=0)) + 1) / 2
        return inner.maximum(self._random_edges(groups, np.rint(self.share * edges).astype(np.int64), random))

    @staticmethod
    def _random_edges(groups: np.ndarray, counts: np.ndarray, random: np.random.Generator) -> sparse.csr_array:
        """(t, t) so many edges in each group, between any two of its nodes."""
        members = np.argsort(groups, kind="stable")
        sizes = np.bincount(groups, minlength=counts.size)
        starts = np.cumsum(sizes) - sizes
        of = np.repeat(np.arange(counts.size), counts)
        first, second = members[starts[of] + (random.random((2, of.size)) * sizes[of]).astype(np.int64)]
        proper = first != second
        first, second = first[proper], second[proper]
        both = (np.concatenate([first, second]), np.concatenate([second, first]))
        drawn = sparse.csr_array((np.ones(both[0].size, np.float32), both), shape=(groups.size, groups.size))
        drawn.data[:] = 1  # a pair that was drawn twice is one edge
        return drawn


def inputs_of(adjacency: sparse.csr_array, device: torch.device) -> GraphInputs:
    """A graph of edges alone, ready for :func:`encode`."""
    count = adjacency.shape[0]
    featureless = np.zeros((count, 0), dtype=np.float32)
    return GraphInputs(VisibleGraph(np.arange(count), adjacency, featureless), device)


def encode(
    encoder: GcnEncoder | GatEncoder,
    projected: torch.Tensor,
    graph: GraphInputs | None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """(n, size): what the encoder makes of X W₁ on the edges of a graph, or without any.

    The first layer is linear before it aggregates, so all topologies share one product with the features.
    """
    hidden = torch.relu(_aggregated(encoder.first, projected, graph))
    hidden = dropout(hidden, encoder.dropout, generator)
    output = _aggregated(encoder.second, hidden @ encoder.second.weight, graph)
    return torch.relu(output) if encoder.last_relu else output


def _aggregated(layer: Linear | GatLayer, projected: torch.Tensor, graph: GraphInputs | None) -> torch.Tensor:
    """A layer after its product with W. A node without edges has itself as its only neighbour."""
    if graph is None:
        return projected + layer.bias
    if isinstance(layer, GatLayer):
        edges, own = graph.all_gat_rows.hops[0]
        return layer(projected, edges, own)
    return graph.adjacency @ projected + layer.bias
