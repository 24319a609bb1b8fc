"""From and to networkx."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph.build import adjacency_from_edges, build_graph
from graphfcl.graph.graph import Features, Graph, TextSettings
from graphfcl.graph.ids import text_array
from graphfcl.graph.text import count_words

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
    for given, what in ((label, "label"), *((each, "features") for each in numbers), (text, "text")):
        if given is not None and ids and given not in of_nodes:
            raise _no_attribute("node", given, what, of_nodes)
    if features is None and text is None and "features" in of_nodes:
        numbers = ["features"]
    adjacency, notes = _network_adjacency(network, ids, weight)
    found, names, settings = _features(ids, attributes, numbers if ids else [], text)
    labels = np.empty(len(ids), dtype=object)
    labels[:] = [None if label is None else values.get(label) for values in attributes]
    unused = [str(key) for key in of_nodes if key not in (label, text, *numbers)]
    return build_graph(
        adjacency,
        found,
        labels,
        node_ids=ids if all(isinstance(node, int | np.integer) for node in ids) else [str(node) for node in ids],
        feature_names=names,
        text=settings,
        name=name,
        where=WHERE,
        notes=[*([f"Not used of {WHERE}: {', '.join(unused)}."] if unused else []), *notes],
    )


def _network_adjacency(network: Any, ids: list[Any], weight: str | None) -> tuple[Any, list[str]]:
    """The adjacency of a networkx graph, and notes on it. ids: its nodes, in the order of rows."""
    position = {node: number for number, node in enumerate(ids)}
    pairs = [(position[a], position[b], values.get(weight or "weight")) for a, b, values in network.edges(data=True)]
    ends = np.array([pair[:2] for pair in pairs], dtype=np.int64).reshape(-1, 2)
    given = [pair[2] for pair in pairs]
    if weight is not None and pairs and all(value is None for value in given):
        known = dict.fromkeys(key for *_, values in network.edges(data=True) for key in values)
        raise _no_attribute("edge", weight, "weight", known)
    weights = None if all(value is None for value in given) else np.array([1 if v is None else v for v in given])
    if not network.is_directed():
        ends = np.concatenate([ends, ends[ends[:, 0] != ends[:, 1]][:, ::-1]])
        if weights is not None:
            weights = np.concatenate([weights, weights[[pair[0] != pair[1] for pair in pairs]]])
    return adjacency_from_edges(ends[:, 0], ends[:, 1], weights, len(ids), WHERE)


def _no_attribute(of: str, given: Any, what: str, known: Iterable[Any]) -> InputError:
    names = [str(key) for key in known]
    hint = did_you_mean(str(given), names) if names else f"{of}s have no attributes."
    leave = " If no class is known, give label=None." if what == "label" else ""
    return InputError(f"{WHERE}: no {of} has the attribute {given!r} for {what}=: {hint}{leave}")


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
    import networkx

    network, classes = networkx.Graph(name=graph.name), graph.class_labels
    for number, (node, label) in enumerate(zip(graph.node_ids.tolist(), graph.labels.tolist(), strict=True)):
        known = classes[label] if label >= 0 else None
        network.add_node(node, features=graph.features[[number]], label=known)
    upper = sparse.triu(graph.adjacency, k=1, format="coo")
    ends = graph.node_ids[upper.row].tolist(), graph.node_ids[upper.col].tolist()
    if graph.weighted:
        network.add_weighted_edges_from(zip(*ends, upper.data.tolist(), strict=True))
    else:
        network.add_edges_from(zip(*ends, strict=True))
    return network
