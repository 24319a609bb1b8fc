"""Graphs of other libraries: from and to scipy, PyG and networkx."""

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
    """A graph from scipy matrices or arrays; ``options`` are those of :func:`graphfcl.graph.build_graph`."""
    return build_graph(adjacency, features, labels, **options)


def to_scipy(graph: Graph) -> tuple[sparse.csr_array, Any, np.ndarray]:
    """Copies of the adjacency, the features (sparse or dense) and the labels."""
    return graph.adjacency.copy(), graph.features.copy(), graph.labels.copy()


def from_edge_index(
    edge_index: Any, features: Any, labels: Any, *, edge_weight: Any = None, where: str = "the edges", **options: Any
) -> Graph:
    """A graph from (2, edges) node numbers, (n, d) features or None, and (n,) classes, of numpy or torch.

    An undirected edge may stand once or in both directions. edge_weight: (edges,). where: what to call the source in a
    message; other ``options`` are those of :func:`graphfcl.graph.build_graph`, such as class_names and node_ids.
    """
    ends, features, labels = _edge_index(edge_index, where), _array(features), _array(labels)
    weights = None if edge_weight is None else _one_column(np.asarray(_array(edge_weight)))
    count = len(labels) if features is None else np.shape(features)[0]
    adjacency, notes = adjacency_from_edges(ends[0], ends[1], weights, count, where)
    return build_graph(adjacency, features, labels, where=where, notes=[*options.pop("notes", ()), *notes], **options)


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
    """(2, edges) whole numbers."""
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
    """A tensor as an array, or as a scipy matrix if it is sparse; anything else as it is."""
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
    """(n,) of (n, 1), as PyG often has it."""
    return values[:, 0] if getattr(values, "ndim", 0) == 2 and values.shape[1] == 1 else values


def _unused_note(where: str, names: list[str], more: str = "") -> list[str]:
    """What is said of parts of a graph that say nothing here."""
    return [f"Not used of {where}: {', '.join(names)}{more}."] if names else []


def to_pyg(graph: Graph) -> Any:
    """``torch_geometric.data.Data``; sparse features become a sparse CSR tensor. Unknown labels are -1."""
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
    """A graph from networkx. Node attributes hold the label, and numbers or a text or both.

    label: the attribute of the class; a node without it has an unknown class; None: no class is known. features: the
    attribute of a vector or a number, or several of them, by default ``features`` if a node has it and there is no
    text. weight: that of edges, by default ``weight`` if an edge has it. An attribute that is named and stands nowhere
    is an error; those that are not used are named in a note.
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
    """The adjacency of a networkx graph, and notes on it. ids: its nodes, in the order of rows."""
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
    """Features, their names if they have some, and how words among them are read.

    Words come first, then single numbers, which are one group beside words, then vectors, of which each is one.
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
    """(n, d) the vectors of all nodes, sparse or dense as they came."""
    missing = next((node for node, values in zip(ids, attributes, strict=True) if features not in values), None)
    if missing is not None:
        raise InputError(f"{WHERE}: node {missing!r} has no attribute {features!r}, others have it; add it.")
    rows = [_row(values[features], f"{WHERE}: node {node!r}") for node, values in zip(ids, attributes, strict=True)]
    wrong = next((node for node, row in zip(ids, rows, strict=True) if row.shape != rows[0].shape), None)
    if wrong is not None:
        raise InputError(f"{WHERE}: node {wrong!r} has another number of features than the first node.")
    return sparse.vstack(rows, format="csr") if sparse.issparse(rows[0]) else np.concatenate(rows)


def _row(features: Any, where: str) -> Any:
    """One node's features as (1, d), sparse or dense as they came."""
    if sparse.issparse(features):
        return sparse.csr_array(features.reshape(1, -1), dtype=np.float32)
    try:
        return np.asarray(features, dtype=np.float32).reshape(1, -1)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} has features that are not numbers; give a vector of numbers.") from error


def to_networkx(graph: Graph) -> Any:
    """``networkx.Graph`` with the user's own ids; a node's ``features`` are one row (1, d), sparse or dense.

    The ``label`` of a node is its class as the user writes it, or None.
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
    """Whether something is a graph of this package, in memory or on the disk."""
    return isinstance(value, Graph | GraphFolder)


def as_graph(value: object, who: str) -> AnyGraph:
    """A graph as it is; PyG data and networkx graphs with their usual names as one; anything else is an error.

    who: what needs it, for the message.
    """
    if isinstance(value, Graph | GraphFolder):
        return value
    # A caller that has such an object has imported its library.
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
    hint = "give one graph of it, such as dataset[0]" if is_dataset else _hint(value)
    raise InputError(f"{who} needs a graph, and got {described}: {hint}.")


def _hint(value: object) -> str:
    """How to make a graph of something."""
    if isinstance(value, tuple) and value and isinstance(value[0], Graph):
        return "load_dataset returns the graph and a protocol, give the first of them"
    if is_frame(value):
        return "from_frames(nodes, edges) makes one of the tables of nodes and edges"
    if sparse.issparse(value) or isinstance(value, np.ndarray):
        return "from_scipy(adjacency, features, labels) or from_edge_index(edge_index, features, labels) makes one"
    if isinstance(value, str | Path):
        return "load_dataset(name) reads one by its name or its path"
    return "from_frames, from_pyg, from_networkx, from_scipy and load_dataset make one"
