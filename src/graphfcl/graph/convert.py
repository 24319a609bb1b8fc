"""From and to the graph types of other libraries."""

from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph.build import adjacency_from_edges, build_graph
from graphfcl.graph.graph import Graph, TextSettings
from graphfcl.graph.text import count_words


def from_scipy(adjacency: Any, features: Any, labels: Any, **options: Any) -> Graph:
    """A graph from scipy matrices or arrays; ``options`` are those of :func:`graphfcl.graph.build_graph`."""
    return build_graph(adjacency, features, labels, **options)


def to_scipy(graph: Graph) -> tuple[sparse.csr_array, Any, np.ndarray]:
    """Copies of the adjacency, the features (sparse or dense) and the labels."""
    return graph.adjacency.copy(), graph.features.copy(), graph.labels.copy()


def from_pyg(data: Any, *, name: str = "graph") -> Graph:
    """A graph from ``torch_geometric.data.Data`` with ``edge_index``, ``x`` (dense or sparse) and ``y``.

    Masks and whatever else it holds are not used; a note of the graph names them.
    """
    import torch

    where = "the PyG data"
    if hasattr(data, "node_types") and len(data.node_types) != 1:
        raise InputError(f"{where} is heterogeneous ({len(data.node_types)} node types); take out one type.")
    if hasattr(data, "edge_types"):
        raise InputError(f"{where} is heterogeneous (HeteroData); call .to_homogeneous() on it first.")
    for key in ("edge_index", "y"):
        if data.get(key) is None:
            raise InputError(f"{where} has no {key!r}; it needs edge_index, x and y.")
    edges = data.edge_index.cpu().numpy()
    used = {"edge_index", "x", "y", "class_names", "node_ids", "num_nodes", "edge_weight"}
    weights = data.get("edge_weight")
    if weights is None and data.get("edge_attr") is not None and data.edge_attr.dim() == 1:
        weights = data.edge_attr
        used.add("edge_attr")
    adjacency, notes = adjacency_from_edges(
        edges[0], edges[1], None if weights is None else weights.detach().cpu().numpy(), int(data.num_nodes), where
    )
    features: Any = data.get("x")
    if features is not None and features.layout != torch.strided:
        rows = features.detach().cpu().to_sparse_csr()
        parts = (rows.values().numpy(), rows.col_indices().numpy(), rows.crow_indices().numpy())
        features = sparse.csr_array(parts, shape=tuple(features.shape))
    elif features is not None:
        features = features.detach().cpu().float().numpy()
    return build_graph(
        adjacency,
        features,
        data.y.cpu().numpy(),
        class_names=data.get("class_names"),
        node_ids=data.get("node_ids"),
        name=name,
        where=where,
        notes=[*_unused_note(sorted(str(key) for key in data.keys() if key not in used)), *notes],  # noqa: SIM118
    )


def _unused_note(keys: list[str]) -> list[str]:
    """What is said of parts of PyG data that say nothing here."""
    if not keys:
        return []
    masks = " (which nodes are trained on is drawn, masks play no part)" if any("mask" in key for key in keys) else ""
    return [f"Not used of the PyG data: {', '.join(keys)}{masks}."]


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
    data.class_names = list(graph.class_names)
    data.node_ids = graph.node_ids.tolist()
    return data


def from_networkx(
    network: Any,
    *,
    label: str | None = "label",
    features: str | None = None,
    text: str | None = None,
    weight: str | None = None,
    name: str = "graph",
) -> Graph:
    """A graph from networkx. Node attributes hold the label and either a feature vector or a text.

    label: the attribute of the class; a node without it has an unknown class; None: no class is known. features: the
    attribute of a vector, by default ``features`` if a node has it. weight: that of edges, by default ``weight`` if an
    edge has it. An attribute that is named and stands nowhere is an error.
    """
    where = "the networkx graph"
    ids = list(network.nodes)
    attributes = [values for _, values in network.nodes(data=True)]
    of_nodes = dict.fromkeys(str(key) for values in attributes for key in values)
    for given, what in ((label, "label"), (features, "features"), (text, "text")):
        if given is not None and ids and given not in of_nodes:
            raise _no_attribute("node", given, what, list(of_nodes))
    adjacency, notes = _network_adjacency(network, ids, weight, where)
    names = None
    matrix: Any = None
    if text is not None:
        matrix, names = count_words([str(values.get(text) or "") for values in attributes])
    elif features is not None or "features" in of_nodes:
        matrix = _feature_rows(ids, attributes, features or "features", where)
    labels = np.empty(len(ids), dtype=object)
    labels[:] = [None if label is None else values.get(label) for values in attributes]
    return build_graph(
        adjacency,
        matrix,
        labels,
        node_ids=ids if all(isinstance(node, int | np.integer) for node in ids) else [str(node) for node in ids],
        feature_names=names,
        text=None if text is None else TextSettings(),
        name=name,
        where=where,
        notes=notes,
    )


def _network_adjacency(network: Any, ids: list[Any], weight: str | None, where: str) -> tuple[Any, list[str]]:
    """The adjacency of a networkx graph, and notes on it. ids: its nodes, in the order of rows."""
    position = {node: number for number, node in enumerate(ids)}
    pairs = [(position[a], position[b], values.get(weight or "weight")) for a, b, values in network.edges(data=True)]
    ends = np.array([pair[:2] for pair in pairs], dtype=np.int64).reshape(-1, 2)
    given = [pair[2] for pair in pairs]
    if weight is not None and pairs and all(value is None for value in given):
        known = dict.fromkeys(str(key) for *_, values in network.edges(data=True) for key in values)
        raise _no_attribute("edge", weight, "weight", list(known))
    weights = None if all(value is None for value in given) else np.array([1 if v is None else v for v in given])
    if not network.is_directed():
        ends = np.concatenate([ends, ends[ends[:, 0] != ends[:, 1]][:, ::-1]])
        if weights is not None:
            weights = np.concatenate([weights, weights[[pair[0] != pair[1] for pair in pairs]]])
    return adjacency_from_edges(ends[:, 0], ends[:, 1], weights, len(ids), where)


def _no_attribute(of: str, given: str, what: str, known: list[str]) -> InputError:
    hint = did_you_mean(given, known) if known else f"{of}s have no attributes."
    leave = " If no class is known, give label=None." if what == "label" else ""
    return InputError(f"the networkx graph: no {of} has the attribute {given!r} for {what}=: {hint}{leave}")


def _feature_rows(ids: list[Any], attributes: list[dict[str, Any]], features: str, where: str) -> Any:
    """(n, d) the vectors of all nodes, sparse or dense as they came."""
    missing = next((node for node, values in zip(ids, attributes, strict=True) if features not in values), None)
    if missing is not None:
        raise InputError(f"{where}: node {missing!r} has no attribute {features!r}, others have it; add it.")
    rows = [_row(values[features], f"{where}: node {node!r}") for node, values in zip(ids, attributes, strict=True)]
    wrong = next((node for node, row in zip(ids, rows, strict=True) if row.shape != rows[0].shape), None)
    if wrong is not None:
        raise InputError(f"{where}: node {wrong!r} has another number of features than the first node.")
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

    The ``label`` of a node is the name of its class, or None.
    """
    import networkx

    network = networkx.Graph(name=graph.name)
    for number, (node, label) in enumerate(zip(graph.node_ids.tolist(), graph.labels.tolist(), strict=True)):
        known = graph.class_names[label] if label >= 0 else None
        network.add_node(node, features=graph.features[[number]], label=known)
    upper = sparse.triu(graph.adjacency, k=1, format="coo")
    ends = graph.node_ids[upper.row].tolist(), graph.node_ids[upper.col].tolist()
    if graph.weighted:
        network.add_weighted_edges_from(zip(*ends, upper.data.tolist(), strict=True))
    else:
        network.add_edges_from(zip(*ends, strict=True))
    return network
