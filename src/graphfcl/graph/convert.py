"""Convert graphs from and to scipy, PyG and networkx."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph.build import adjacency_from_edges, build_graph, warn_of_others
from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.graph import Features, Graph, TextSettings
from graphfcl.graph.ids import text_array
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.graph.tables.frames import is_frame, library_of
from graphfcl.graph.tables.words import count_words
from graphfcl.runtime.lazy_names import import_extra

WHERE = "the networkx graph"


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
        notes=_unused_note(where, unused, masks),
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


def _unused_note(where: str, names: list[str], more: str = "") -> list[str]:
    """Return a note on attributes of the source that are not used."""
    return [f"Not used of {where}: {', '.join(names)}{more}."] if names else []


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


def from_networkx(
    network: Any,
    *,
    label: str | None = "label",
    features: str | Sequence[str] | None = None,
    text: str | None = None,
    weight: str | None = None,
    name: str = "graph",
) -> Graph:
    """Make a graph from a networkx graph.

    Args:
        network: Directed or undirected networkx graph. Its nodes are the node ids.
        label: Node attribute with the class. The class of a node without the attribute is unknown. None if no class
            is known.
        features: Node attribute, or several, with a number or a vector of numbers. By default ``features``, if nodes
            have it and ``text`` is not set.
        text: Node attribute with a text, whose words become features.
        weight: Edge attribute with the weight. By default ``weight``, if edges have it.
        name: Name of the graph.

    Returns:
        The graph. A note names node attributes that are not used.

    Raises:
        InputError: If no node or edge has a named attribute, or feature vectors differ in length.

    Examples:
        >>> import networkx as nx
        >>> from graphfcl import from_networkx
        >>> network = nx.path_graph(["a", "b", "c"])
        >>> nx.set_node_attributes(network, {"a": "tea", "b": "tea", "c": "cup"}, "label")
        >>> nx.set_node_attributes(network, {"a": "green tea", "b": "black tea", "c": "tea cup"}, "text")
        >>> from_networkx(network, text="text")
        Graph('graph', 3 nodes, 2 edges, 4 features, 2 classes)
    """
    ids = list(network.nodes)
    attributes = [values for _, values in network.nodes(data=True)]
    of_nodes = dict.fromkeys(key for values in attributes for key in values)
    numbers: list[Any] = [features] if isinstance(features, str) else list(features or ())
    for attribute, what in ((label, "label"), *((each, "features") for each in numbers), (text, "text")):
        if attribute is not None and ids and attribute not in of_nodes:
            raise _no_attribute("node", attribute, what, of_nodes)
    if features is None and text is None and "features" in of_nodes:
        numbers = ["features"]
    adjacency, notes = _network_adjacency(network, ids, weight)
    rows, names, settings = _features(ids, attributes, numbers if ids else [], text)
    labels = np.empty(len(ids), dtype=object)
    labels[:] = [None if label is None else values.get(label) for values in attributes]
    unused = [str(key) for key in of_nodes if key not in (label, text, *numbers)]
    return build_graph(
        adjacency,
        rows,
        labels,
        node_ids=ids if all(isinstance(node, int | np.integer) for node in ids) else [str(node) for node in ids],
        feature_names=names,
        text=settings,
        name=name,
        where=WHERE,
        notes=[*_unused_note(WHERE, unused), *notes],
    )


def _network_adjacency(network: Any, ids: list[Any], weight: str | None) -> tuple[Any, list[str]]:
    """Return the adjacency matrix of a networkx graph, with rows in the order of ``ids``, and notes on its edges."""
    position = {node: number for number, node in enumerate(ids)}
    pairs = [(position[a], position[b], values.get(weight or "weight")) for a, b, values in network.edges(data=True)]
    ends = np.array([pair[:2] for pair in pairs], dtype=np.int64).reshape(-1, 2)
    edge_values = [pair[2] for pair in pairs]
    if weight is not None and pairs and all(value is None for value in edge_values):
        attributes = dict.fromkeys(key for *_, values in network.edges(data=True) for key in values)
        raise _no_attribute("edge", weight, "weight", attributes)
    weights = None
    if any(value is not None for value in edge_values):
        weights = np.array([1 if value is None else value for value in edge_values])
    if not network.is_directed():
        ends = np.concatenate([ends, ends[ends[:, 0] != ends[:, 1]][:, ::-1]])
        if weights is not None:
            weights = np.concatenate([weights, weights[[pair[0] != pair[1] for pair in pairs]]])
    return adjacency_from_edges(ends[:, 0], ends[:, 1], weights, len(ids), WHERE)


def _no_attribute(of: str, attribute: Any, what: str, attributes: Iterable[Any]) -> InputError:
    names = [str(key) for key in attributes]
    hint = did_you_mean(str(attribute), names) if names else f"{of}s have no attributes."
    leave = " If no class is known, give label=None." if what == "label" else ""
    return InputError(f"{WHERE}: no {of} has the attribute {attribute!r} for {what}=: {hint}{leave}")


def _features(
    ids: list[Any], attributes: list[dict[str, Any]], numbers: list[str], text: str | None
) -> tuple[Features | None, np.ndarray | None, TextSettings | None]:
    """Return features, their names or None, and text settings if words are among the features.

    Columns of words come first, then all single numbers, which form one group, then vectors, which form a group each.
    """
    parts = {each: _feature_rows(ids, attributes, each) for each in numbers}
    singles = [each for each, rows in parts.items() if rows.shape[1] == 1]
    vectors = [each for each in parts if each not in singles]
    blocks = [parts[each] for each in (*singles, *vectors)]
    if text is None and len(blocks) < 2:
        return (blocks[0] if blocks else None), None, None
    names = [*map(str, singles), *(f"{each}_{at}" for each in vectors for at in range(parts[each].shape[1]))]
    if text is None:
        is_sparse = any(map(sparse.issparse, blocks))
        return (sparse.hstack(blocks, format="csr") if is_sparse else np.hstack(blocks)), text_array(names), None
    counts, words = count_words([str(values.get(text) or "") for values in attributes])
    groups = tuple(width for width in (len(singles), *(parts[each].shape[1] for each in vectors)) if width)
    beside = [sparse.csr_array(block) for block in blocks]
    return (
        sparse.csr_array(sparse.hstack([counts, *beside], format="csr")) if beside else counts,
        text_array([*words.tolist(), *names]),
        TextSettings(beside=groups),
    )


def _feature_rows(ids: list[Any], attributes: list[dict[str, Any]], features: str) -> Any:
    """Return (n, d) the feature vectors of all nodes, sparse or dense like the vectors."""
    missing = next((node for node, values in zip(ids, attributes, strict=True) if features not in values), None)
    if missing is not None:
        raise InputError(f"{WHERE}: node {missing!r} has no attribute {features!r}, others have it; add it.")
    rows = [_row(values[features], f"{WHERE}: node {node!r}") for node, values in zip(ids, attributes, strict=True)]
    wrong = next((node for node, row in zip(ids, rows, strict=True) if row.shape != rows[0].shape), None)
    if wrong is not None:
        raise InputError(f"{WHERE}: node {wrong!r} has another number of features than the first node.")
    return sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.concatenate(rows)


def _row(features: Any, where: str) -> Any:
    """Return (1, d) the features of one node, sparse or dense like the value."""
    if sparse.issparse(features):
        return sparse.csr_array(features.reshape(1, -1), dtype=np.float32)
    try:
        return np.asarray(features, dtype=np.float32).reshape(1, -1)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} has features that are not numbers; give a vector of numbers.") from error


def to_networkx(graph: Graph) -> Any:
    """Convert a graph to ``networkx.Graph``.

    Args:
        graph: The graph.

    Returns:
        Undirected networkx graph whose nodes are the user's ids. Node attributes are ``features``, one row (1, d),
        sparse or dense, and ``label``, the class as the user writes it, or None. Edges of a weighted graph have
        ``weight``.

    Raises:
        InputError: If networkx is not installed.

    Examples:
        >>> from graphfcl import load_dataset, to_networkx
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> network = to_networkx(graph)
        >>> network.number_of_edges(), network.nodes[0]["label"]
        (800, 'class-01')
    """
    networkx = import_extra("networkx", "networkx", "to_networkx")

    network, classes = networkx.Graph(name=graph.name), graph.class_labels
    for number, (node, label) in enumerate(zip(graph.node_ids.tolist(), graph.labels.tolist(), strict=True)):
        name = classes[label] if label >= 0 else None
        network.add_node(node, features=graph.features[[number]], label=name)
    upper = sparse.triu(graph.adjacency, k=1, format="coo")
    ends = graph.node_ids[upper.row].tolist(), graph.node_ids[upper.col].tolist()
    if graph.weighted:
        network.add_weighted_edges_from(zip(*ends, upper.data.tolist(), strict=True))
    else:
        network.add_edges_from(zip(*ends, strict=True))
    return network


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
