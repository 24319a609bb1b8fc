"""Convert graphs from and to scipy, arrays and PyG, and whatever a user passes as a graph."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.build import adjacency_from_edges, build_graph, unused_note, warn_of_others
from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.graph import Graph
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.graph.networks import from_networkx
from graphfcl.graph.tables.frames import is_frame, library_of
from graphfcl.runtime.lazy_names import import_extra


def from_scipy(adjacency: Any, features: Any, labels: Any, **options: Any) -> Graph:
    """Make a graph from scipy matrices or arrays.

    Args:
        adjacency: (n, n) scipy sparse matrix or dense array of edge weights, or of 0 and 1.
        features: (n, d) sparse or dense matrix, or None.
        labels: (n,) Class numbers (-1 where unknown) or class names (None where unknown).
        **options: Other arguments of :func:`build_graph`, such as ``node_ids`` and ``class_names``.

    Returns:
        The graph.

    Raises:
        InputError: If the arrays do not describe a graph; see :func:`build_graph`.

    Examples:
        >>> from scipy import sparse
        >>> from graphfcl import from_scipy
        >>> adjacency = sparse.csr_array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> from_scipy(adjacency, sparse.eye_array(3), [0, 1, 1])
        Graph('graph', 3 nodes, 2 edges, 3 features, 2 classes)
    """
    return build_graph(adjacency, features, labels, **options)


def to_scipy(graph: Graph) -> tuple[sparse.csr_array, Any, np.ndarray]:
    """Copy a graph to scipy and numpy.

    Args:
        graph: The graph.

    Returns:
        Adjacency matrix (n, n), features (n, d), sparse or dense, and labels (n,), which are positions in
        ``graph.class_names`` or -1 where unknown.

    Examples:
        >>> from graphfcl import load_dataset, to_scipy
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> adjacency, features, labels = to_scipy(graph)
        >>> adjacency.shape, features.shape, labels.shape
        ((200, 200), (200, 30), (200,))
    """
    return graph.adjacency.copy(), graph.features.copy(), graph.labels.copy()


def from_edge_index(
    edge_index: Any, features: Any, labels: Any, *, edge_weight: Any = None, where: str = "the edges", **options: Any
) -> Graph:
    """Make a graph from an edge index of numpy or torch.

    Args:
        edge_index: (2, edges) Integer node numbers. An undirected edge may be listed once or in both directions.
        features: (n, d) matrix or tensor, sparse or dense, or None.
        labels: (n,) Class numbers (-1 where unknown) or class names (None where unknown).
        edge_weight: (edges,) Weights, finite and not negative. Default: 1 for each edge.
        where: Name of the source in error messages.
        **options: Other arguments of :func:`build_graph`, such as ``node_ids`` and ``class_names``.

    Returns:
        The graph.

    Raises:
        InputError: If an array has a wrong shape or type, or an edge leads to a node that does not exist.

    Examples:
        >>> import numpy as np
        >>> from graphfcl import from_edge_index
        >>> edges = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> from_edge_index(edges, np.eye(3), ["tea", "tea", "cup"])
        Graph('graph', 3 nodes, 2 edges, 3 features, 2 classes)
    """
    ends, features, labels = _edge_index(edge_index, where), _array(features), _array(labels)
    weights = None if edge_weight is None else _one_column(np.asarray(_array(edge_weight)))
    count = len(labels) if features is None else np.shape(features)[0]
    adjacency, notes = adjacency_from_edges(ends[0], ends[1], weights, count, where)
    return build_graph(adjacency, features, labels, where=where, notes=[*options.pop("notes", ()), *notes], **options)


def from_pyg(data: Any, *, name: str = "graph") -> Graph:
    """Make a graph from ``torch_geometric.data.Data``.

    Args:
        data: Homogeneous data with ``edge_index``, ``x`` (dense or sparse) and ``y`` (class numbers or a list of
            names). ``edge_weight``, a one-dimensional ``edge_attr``, ``class_names`` and ``node_ids`` are used where
            they exist. Masks and all other attributes are not used, and a note of the graph names them.
        name: Name of the graph.

    Returns:
        The graph.

    Raises:
        InputError: If the data is heterogeneous, or lacks ``edge_index`` or ``y``.

    Examples:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from graphfcl import from_pyg
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]), y=torch.tensor([0, 1, 1]))
        >>> from_pyg(data, name="path")
        Graph('path', 3 nodes, 2 edges, 3 features, 2 classes)
    """
    where = "the PyG data"
    if hasattr(data, "node_types") and len(data.node_types) != 1:
        raise InputError(f"{where} is heterogeneous ({len(data.node_types)} node types); take out one type.")
    if hasattr(data, "edge_types"):
        raise InputError(f"{where} is heterogeneous (HeteroData); call .to_homogeneous() on it first.")
    for key in ("edge_index", "y"):
        if data.get(key) is None:
            raise InputError(f"{where} has no {key!r}; it needs edge_index, x and y.")
    used = {"edge_index", "x", "y", "class_names", "node_ids", "num_nodes", "edge_weight"}
    weights = data.get("edge_weight")
    if weights is None and getattr(data.get("edge_attr"), "ndim", 0) == 1:
        weights = data.edge_attr
        used.add("edge_attr")
    unused = sorted(str(key) for key in data.keys() if key not in used)  # noqa: SIM118
    masks = " (which nodes are trained on is drawn, masks play no part)" if any("mask" in key for key in unused) else ""
    return from_edge_index(
        data.edge_index,
        data.get("x"),
        data.y,
        edge_weight=weights,
        class_names=data.get("class_names"),
        node_ids=data.get("node_ids"),
        name=name,
        where=where,
        notes=unused_note(where, unused, masks),
    )


def _edge_index(values: Any, where: str) -> np.ndarray:
    """Check an edge index and return it as (2, edges) integers."""
    edges = _array(values)
    edges = edges if sparse.issparse(edges) else np.asarray(edges)
    if sparse.issparse(edges) or edges.ndim != 2 or edges.shape[0] != 2:
        turn = ": give edge_index.T" if edges.ndim == 2 and edges.shape[1] == 2 else ""
        raise InputError(f"{where}: edge_index has shape {edges.shape}, it must be (2, edges){turn}.")
    if not edges.size:
        return edges.astype(np.int64)  # numpy takes empty lists for floats
    if edges.dtype.kind not in "iu":
        raise InputError(f"{where}: edge_index holds {edges.dtype}, it must hold numbers of nodes: give int64.")
    return edges


def _array(values: Any) -> Any:
    """Turn a tensor into an array, or into a scipy matrix if it is sparse. Other values stay as they are."""
    torch = sys.modules.get("torch")  # a caller that has a tensor has imported it
    if torch is None or not isinstance(values, torch.Tensor):
        return values
    tensor = values.detach().cpu()
    tensor = tensor.float() if tensor.is_floating_point() else tensor  # numpy has no bfloat16
    if tensor.layout == torch.strided:
        return tensor.numpy()
    rows = tensor.to_sparse_csr()
    parts = (rows.values().numpy(), rows.col_indices().numpy(), rows.crow_indices().numpy())
    return sparse.csr_array(parts, shape=tuple(tensor.shape))


def _one_column(values: Any) -> Any:
    """Turn (n, 1) weights, which PyG often has, into (n,)."""
    return values[:, 0] if getattr(values, "ndim", 0) == 2 and values.shape[1] == 1 else values


def to_pyg(graph: Graph) -> Any:
    """Convert a graph to ``torch_geometric.data.Data``.

    Args:
        graph: The graph.

    Returns:
        Data with ``x`` (a sparse CSR tensor if the features are sparse), ``edge_index``, ``y`` (-1 where unknown),
        ``class_names`` and ``node_ids``; with ``edge_weight`` if the graph is weighted.

    Raises:
        InputError: If PyG is not installed.

    Examples:
        >>> from graphfcl import load_dataset, to_pyg
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> data = to_pyg(graph)
        >>> data.num_nodes, tuple(data.edge_index.shape)
        (200, (2, 1600))
    """
    import torch

    data_type = import_extra("torch_geometric.data", "pyg", "to_pyg").Data
    coo = graph.adjacency.tocoo()
    if sparse.issparse(graph.features):
        parts = (graph.features.indptr, graph.features.indices, graph.features.data)
        crow, columns, values = (torch.from_numpy(part.copy()) for part in parts)
        features = torch.sparse_csr_tensor(crow, columns, values, size=graph.features.shape)
    else:
        features = torch.from_numpy(graph.features.copy())
    data = data_type(
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


def is_graph(value: object) -> bool:
    """Tell whether a value is a graph of this package, in memory or on disk."""
    return isinstance(value, Graph | GraphFolder)


def as_graph(value: object, who: str) -> AnyGraph:
    """Return a graph unchanged, and convert PyG data and networkx graphs with default attribute names.

    Any other value raises an InputError, in which ``who`` names the function that needs the graph.
    """
    if isinstance(value, Graph | GraphFolder):
        return value
    # If the value comes from one of these libraries, the caller has imported it.
    pyg, networkx = sys.modules.get("torch_geometric.data"), sys.modules.get("networkx")
    graph = None
    if pyg is not None and isinstance(value, pyg.Data | pyg.HeteroData):
        graph = from_pyg(value)
    elif networkx is not None and isinstance(value, networkx.Graph):
        graph = from_networkx(value)
    if graph is not None:
        warn_of_others(graph.notes)
        return graph
    library, kind = library_of(value), type(value).__name__
    described = kind if library == "builtins" else f"{kind} of {library}"
    is_dataset = pyg is not None and isinstance(value, pyg.Dataset)
    hint = "pass one of its graphs, such as dataset[0]" if is_dataset else _hint(value)
    raise InputError(f"{who} needs a graph, and got {described}: {hint}.")


def _hint(value: object) -> str:
    """Say which function makes a graph from a value."""
    if isinstance(value, tuple) and value and isinstance(value[0], Graph):
        return "load_dataset returns the graph and a protocol; pass only the graph"
    if is_frame(value):
        return "from_frames(nodes, edges) makes one from tables of nodes and edges"
    if sparse.issparse(value) or isinstance(value, np.ndarray):
        return "from_scipy(adjacency, features, labels) or from_edge_index(edge_index, features, labels) makes one"
    if isinstance(value, str | Path):
        return "load_dataset(name) reads one by its name or path"
    return "from_frames, from_pyg, from_networkx, from_scipy and load_dataset make one"
