"""From and to the graph types of scipy and PyG."""

from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.build import adjacency_from_edges, build_graph
from graphfcl.graph.graph import Graph


def from_scipy(adjacency: Any, features: Any, labels: Any, **options: Any) -> Graph:
    """A graph from scipy matrices or arrays; ``options`` are those of :func:`graphfcl.graph.build_graph`."""
    return build_graph(adjacency, features, labels, **options)


def to_scipy(graph: Graph) -> tuple[sparse.csr_array, Any, np.ndarray]:
    """Copies of the adjacency, the features (sparse or dense) and the labels."""
    return graph.adjacency.copy(), graph.features.copy(), graph.labels.copy()


def from_pyg(data: Any, *, name: str = "graph") -> Graph:
    """A graph from ``torch_geometric.data.Data`` with ``edge_index``, ``x`` (dense or sparse) and ``y``.

    ``y`` holds class numbers, or a list of names. Masks and whatever else it holds are not used; a note of the graph
    names them.
    """
    where = "the PyG data"
    if hasattr(data, "node_types") and len(data.node_types) != 1:
        raise InputError(f"{where} is heterogeneous ({len(data.node_types)} node types); take out one type.")
    if hasattr(data, "edge_types"):
        raise InputError(f"{where} is heterogeneous (HeteroData); call .to_homogeneous() on it first.")
    for key in ("edge_index", "y"):
        if data.get(key) is None:
            raise InputError(f"{where} has no {key!r}; it needs edge_index, x and y.")
    edges = _edge_index(data.edge_index, where)
    used = {"edge_index", "x", "y", "class_names", "node_ids", "num_nodes", "edge_weight"}
    weights = data.get("edge_weight")
    if weights is None and getattr(data.get("edge_attr"), "ndim", 0) == 1:
        weights = data.edge_attr
        used.add("edge_attr")
    adjacency, notes = adjacency_from_edges(
        edges[0], edges[1], None if weights is None else _one_column(_array(weights)), int(data.num_nodes), where
    )
    unused = sorted(str(key) for key in data.keys() if key not in used)  # noqa: SIM118
    masks = " (which nodes are trained on is drawn, masks play no part)" if any("mask" in key for key in unused) else ""
    return build_graph(
        adjacency,
        _array(data.get("x")),
        _array(data.y),
        class_names=data.get("class_names"),
        node_ids=data.get("node_ids"),
        name=name,
        where=where,
        notes=[*_unused_note(where, unused, masks), *notes],
    )


def _edge_index(given: Any, where: str) -> np.ndarray:
    """(2, edges) whole numbers."""
    edges = _array(given)
    edges = edges if sparse.issparse(edges) else np.asarray(edges)
    if sparse.issparse(edges) or edges.ndim != 2 or edges.shape[0] != 2:
        turn = ": give edge_index.T" if edges.ndim == 2 and edges.shape[1] == 2 else ""
        raise InputError(f"{where}: edge_index has shape {edges.shape}, it must be (2, edges){turn}.")
    if edges.dtype.kind not in "iu":
        raise InputError(f"{where}: edge_index holds {edges.dtype}, it must hold numbers of nodes: give int64.")
    return edges


def _array(given: Any) -> Any:
    """A tensor as an array, or as a scipy matrix if it is sparse; anything else as it is."""
    import torch

    if not isinstance(given, torch.Tensor):
        return given
    tensor = given.detach().cpu()
    tensor = tensor.float() if tensor.is_floating_point() else tensor  # numpy has no bfloat16
    if tensor.layout == torch.strided:
        return tensor.numpy()
    rows = tensor.to_sparse_csr()
    parts = (rows.values().numpy(), rows.col_indices().numpy(), rows.crow_indices().numpy())
    return sparse.csr_array(parts, shape=tuple(tensor.shape))


def _one_column(values: Any) -> Any:
    """(n,) of (n, 1), as PyG often has it."""
    return values[:, 0] if getattr(values, "ndim", 0) == 2 and values.shape[1] == 1 else values


def _unused_note(where: str, names: list[str], more: str = "") -> list[str]:
    """What is said of parts of a graph that say nothing here."""
    return [f"Not used of {where}: {', '.join(names)}{more}."] if names else []


def to_pyg(graph: Graph) -> Any:
    """``torch_geometric.data.Data``; sparse features become a sparse CSR tensor. Unknown labels are -1."""
    import torch
    from torch_geometric.data import Data

    coo = graph.adjacency.tocoo()
    if sparse.issparse(graph.features):
        parts = (graph.features.indptr, graph.features.indices, graph.features.data)
        crow, columns, values = (torch.from_numpy(part.copy()) for part in parts)
        features = torch.sparse_csr_tensor(crow, columns, values, size=graph.features.shape)
    else:
        features = torch.from_numpy(graph.features.copy())
    data = Data(
        x=features,
        edge_index=torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64)),
        y=torch.from_numpy(graph.labels.copy()),
        num_nodes=graph.node_count,
    )
    if graph.weighted:
        data.edge_weight = torch.from_numpy(coo.data.copy())
    data.class_names = list(graph.class_labels)
    data.node_ids = graph.node_ids.tolist()
    return data
