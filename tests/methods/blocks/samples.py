"""Small graph folders, and the same graphs in memory."""

from pathlib import Path

import numpy as np
from scipy import sparse

from graphfcl import Graph, GraphFolder, Resources, Tasks, VisibleGraph
from graphfcl.graph.folder import write_folder
from graphfcl.graph.folder.visible import VisibleFolder

ROOMY = 4 << 30


def random_graph(nodes: int = 500, *, weighted: bool = False, words: bool = False, seed: int = 0) -> Graph:
    """Three to five neighbours a node, some nodes alone; classes that features and edges tell of."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 9, nodes)
    order = np.argsort(labels + random.random(nodes) * 0.4)  # neighbours in this order are mostly of one class
    first = np.repeat(np.arange(nodes - 6), 2)
    pairs = np.stack([order[first], order[first + random.integers(1, 6, first.size)]])
    data = random.random(first.size).astype(np.float32) + 0.5 if weighted else np.ones(first.size, dtype=np.float32)
    half = sparse.coo_array((data, pairs), shape=(nodes, nodes)).tocsr()
    adjacency = sparse.csr_array(half.maximum(half.T))
    adjacency.setdiag(0)
    adjacency.eliminate_zeros()
    if not weighted:
        adjacency.data[:] = 1  # a pair that was drawn twice had 2
    adjacency.sort_indices()
    centres = random.standard_normal((9, 40)) * 1.5
    features = (centres[labels] + random.standard_normal((nodes, 40))).astype(np.float32)
    return Graph(
        adjacency=adjacency,
        features=sparse.csr_array(np.maximum(features - 1, 0)) if words else features,
        labels=labels,
        class_names=tuple(f"class {number}" for number in range(9)),
        node_ids=np.arange(nodes),
    )


def separate_rings(nodes: int = 270, *, features: bool = True) -> Graph:
    """Nine rings, each a class; features name the class, so that nothing about a node is in doubt."""
    labels, size = np.arange(nodes) % 9, nodes // 9
    places = np.arange(nodes)
    after = (places // 9 + 1) % size * 9 + labels
    half = sparse.coo_array((np.ones(nodes, dtype=np.float32), (places, after)), shape=(nodes, nodes)).tocsr()
    adjacency = sparse.csr_array(half.maximum(half.T))
    adjacency.sort_indices()
    return Graph(
        adjacency=adjacency,
        features=np.eye(9, dtype=np.float32)[labels] if features else np.zeros((nodes, 0), dtype=np.float32),
        labels=labels,
        class_names=tuple(f"class {number}" for number in range(9)),
        node_ids=np.arange(nodes),
    )


def folder_of(graph: Graph, path: Path) -> GraphFolder:
    write_folder(graph, path)
    return GraphFolder.open(path)


def visible_folder(
    folder: GraphFolder, work: Path, mask: np.ndarray | None = None, *, workers: int = 1, memory: int = ROOMY
) -> VisibleFolder:
    return VisibleFolder.of(
        folder.rows,
        mask,
        None,
        Resources(work, memory, Tasks(workers=workers)),
        class_count=len(folder.class_names),
    )


def in_memory(folder: GraphFolder, mask: np.ndarray | None = None) -> VisibleGraph:
    """The visible graph of the same rows, cut out by hand."""
    part = folder.neighbours(0, folder.node_count)
    weights = np.ones(part.indices.size, dtype=np.float32) if part.weights is None else part.weights
    whole = sparse.csr_array((weights, part.indices, part.indptr), shape=(folder.node_count,) * 2)
    rows = np.arange(folder.node_count) if mask is None else np.flatnonzero(mask)
    cut = whole[rows][:, rows]
    cut.sort_indices()
    return VisibleGraph(rows, cut, folder.features(0, folder.node_count)[rows])
