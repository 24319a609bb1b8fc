"""Convert graphs from and to networkx."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph.build import adjacency_from_edges, build_graph, unused_note
from graphfcl.graph.graph import Features, Graph, TextSettings
from graphfcl.graph.ids import text_array
from graphfcl.graph.tables.words import count_words
from graphfcl.runtime.lazy_names import import_extra

WHERE = "the networkx graph"


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
        notes=[*unused_note(WHERE, unused), *notes],
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
