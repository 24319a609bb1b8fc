"""Grow, update and shrink a graph in one step, and list the nodes that the step touched."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError, quoted, shown
from graphfcl.graph.build import adjacency_from_edges
from graphfcl.graph.ids import list_of_nodes, listed
from graphfcl.graph.tables.columns import UNKNOWN_ENDS, ReadColumns
from graphfcl.graph.tables.edge_table import LISTED
from graphfcl.graph.tables.frames import is_table
from graphfcl.production.graph import ModelGraph
from graphfcl.production.graph.feature_columns import clean_new_ids
from graphfcl.production.labels.history import Entry

NewNodes = tuple[Sequence[Any], Any, Sequence[str] | None]  # ids, features, texts
NewEdges = tuple[Sequence[Any], Sequence[Any], np.ndarray | None]  # ids of sources, ids of targets, weights
EdgeEnds = tuple[Sequence[Any], Sequence[Any]]  # ids of sources, ids of targets
ON_EXISTING = ("refuse", "skip", "update")
BEFORE = ("updated_", "skipped_", "same_")  # what was done with nodes and edges that existed already
UNKNOWN_EDGES = "unknown_edges"  # number of skipped edges to nodes that are not in the graph
CHOICES = "take on_existing='skip' or 'update' (--on-existing)"
LISTED_FEATURES = 5  # changed features that the history names


@dataclass(frozen=True, eq=False)
class GraphChange:
    """A changed graph.

    Attributes:
        graph: Graph after the change.
        touched: Numbers of nodes that are new or whose features or edges changed, in arrays that may overlap.
        entry: Fields of the history entry.
        removed: Numbers of the removed nodes.
    """

    graph: ModelGraph
    touched: list[np.ndarray]
    entry: dict[str, Any]
    removed: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def as_new_nodes(source: Any, graph: ModelGraph, columns: ReadColumns | None) -> NewNodes | None:
    """Read new nodes from a tuple, a DataFrame or a table; None stays None. ``columns``: columns of the tables of the
    fit.
    """
    if source is None:
        return None
    if is_table(source):
        from graphfcl.production.changes.new_nodes import read_nodes

        return read_nodes(source, graph, columns)
    ids, features, texts = _members(source, "nodes", "a DataFrame, or ids, features and texts")
    if texts is not None:
        if isinstance(texts, str) or not isinstance(texts, Iterable):
            raise InputError(
                f"the texts are {shown(texts)}: give a list, a text for each new node; nothing was changed."
            )
        texts = list(texts)
        strange = next((place for place, text in enumerate(texts) if not isinstance(text, str)), None)
        if strange is not None:
            raise InputError(
                f"the text of new node {strange + 1} is {shown(texts[strange])}: give a text; nothing was changed."
            )
    return list_of_nodes(ids, "the new nodes"), features, texts


def as_new_edges(source: Any, columns: ReadColumns | None) -> NewEdges | None:
    """Read new edges from a tuple, a DataFrame or a table; None stays None."""
    if source is None:
        return None
    if is_table(source):
        from graphfcl.production.changes.user_tables import read_edges

        return read_edges(source, columns)
    first, second, weights = _members(source, "edges", "a DataFrame, or sources, targets and weights")
    sources, targets = list_of_nodes(first, "the sources of edges"), list_of_nodes(second, "the targets of edges")
    if len(sources) != len(targets):
        raise InputError(
            f"there are {len(sources)} sources and {len(targets)} targets of edges: give as many of each; nothing was "
            "changed."
        )
    if weights is not None and np.shape(weights) != (len(sources),):
        raise InputError(
            f"there are {len(sources)} edges and {np.size(weights)} weights: give a weight for each; nothing was "
            "changed."
        )
    return sources, targets, weights


def _members(source: Any, what: str, wanted: str) -> list[Any]:
    """Return the three members of a tuple; the last ones may be missing and are then None."""
    if not isinstance(source, tuple | list) or not 0 < len(source) <= 3:
        raise InputError(f"{what} is {shown(source)}: give {wanted}; nothing was changed.")
    return [*source, *[None] * (3 - len(source))]


def grown(
    before: ModelGraph,
    nodes: NewNodes | None,
    edges: NewEdges | None,
    on_existing: str,
    repeated: str,
    unknown_ends: str,
) -> GraphChange:
    """Add nodes, then edges, which may lead to the new nodes.

    A node or an edge that exists already with the same features or the same weight changes nothing.

    Args:
        before: Graph of the model.
        nodes: Nodes to add.
        edges: Edges to add.
        on_existing: If others exist, ``refuse`` all, ``skip`` them, or ``update`` the graph.
        repeated: How to combine several edges between two nodes, as in :class:`TableColumns`.
        unknown_ends: What to do with edges to unknown nodes, as in :class:`TableColumns`.
    """
    if on_existing not in ON_EXISTING:
        raise InputError(f"on_existing is {shown(on_existing)}: take refuse, skip or update.")
    if unknown_ends not in UNKNOWN_ENDS:
        raise InputError(f"unknown_ends is {shown(unknown_ends)}: take refuse or skip.")
    if not (nodes is not None and len(nodes[0])) and not (edges is not None and len(edges[0])):
        raise InputError("there is nothing to add: give nodes, edges or both.")
    change = GraphChange(before, [], {"what": "grow", "nodes": 0, "edges": 0})
    if nodes is not None:
        change = _with_nodes(change, nodes, on_existing)
    if edges is not None:
        change, edges = _with_known_ends(change, edges, unknown_ends)
        change = _with_edges(change, edges, on_existing, repeated)
    if UNKNOWN_EDGES not in change.entry and not any(
        change.entry.get(f"{prefix}{what}") for prefix in ("", *BEFORE) for what in ("nodes", "edges")
    ):
        raise InputError("all edges are self-loops or have weight 0: leave them out; nothing was changed.")
    return change


def _with_nodes(change: GraphChange, nodes: NewNodes, on_existing: str) -> GraphChange:
    """Extend a change by nodes to add or update."""
    graph, (_, values, texts) = change.graph, nodes
    given = listed(nodes[0])
    ids, features = clean_new_ids(given, graph), graph.columns.features_of(values, texts=texts)
    graph.columns.refuse_other_shape(features, ids.size)
    rows = graph.rows_of_ids(ids)
    new, there = np.flatnonzero(rows < 0), np.flatnonzero(rows >= 0)
    different = sparse.coo_array(graph.features_at(rows[there]) != features[there])
    other = there[np.unique(different.row)]
    if other.size and on_existing == "refuse":
        stored = graph.ids_at(rows[other[:1]])[0]
        spelled = "" if str(stored) == str(given[other[0]]) else f" (as {quoted(stored)})"
        raise InputError(
            f"node {quoted(given[other[0]])}{_more(other)} is in the graph already{spelled}, with other features: "
            f"leave it out, or {CHOICES}; nothing was changed."
        )
    taken, touched, changed = new, [], {}
    if on_existing == "update":
        graph, taken = graph.with_features(rows[other], features[other]), np.union1d(new, other)
        columns, times = np.unique(different.col, return_counts=True)
        most = np.argsort(-times, kind="stable")[:LISTED_FEATURES]
        changed = {graph.columns.raw_name(columns[place]): int(times[place]) for place in most.tolist()}
        touched.append(graph.numbers_at(rows[other]))
    graph, numbers = graph.with_nodes(ids[new], features[new])
    words = graph.columns.words_of(features[taken], None if texts is None else [texts[row] for row in taken.tolist()])
    counts = _counts("nodes", new.size, other.size, there.size - other.size, on_existing)
    named = {"features": changed} if changed else {}
    return GraphChange(graph, [*touched, numbers], {**change.entry, **counts, **named, **words})


def _with_known_ends(change: GraphChange, edges: NewEdges, unknown_ends: str) -> tuple[GraphChange, NewEdges]:
    """Leave out edges to unknown nodes if they are to be skipped; the history entry names the first ones."""
    if unknown_ends == "refuse":
        return change, edges
    (source, target), weights = map(listed, edges[:2]), edges[2]
    is_unknown = [change.graph.rows_of_ids(ids) < 0 for ids in edges[:2]]
    kept = np.flatnonzero(~(is_unknown[0] | is_unknown[1]))
    if kept.size == len(source):
        return change, edges
    skipped = np.delete(np.arange(len(source)), kept)
    place = getattr(edges[0], "place", lambda row: f"edge {row + 1}")
    first = [
        {"node": (source if is_unknown[0][row] else target)[row], "place": place(row).rpartition(", ")[2]}
        for row in skipped[:LISTED].tolist()
    ]
    entry = {**change.entry, UNKNOWN_EDGES: skipped.size, "unknown_ends": first}
    ends = [[ids[row] for row in kept.tolist()] for ids in (source, target)]
    known = ends[0], ends[1], None if weights is None else np.asarray(weights)[kept]
    return replace(change, entry=entry), known


def _with_edges(change: GraphChange, edges: NewEdges, on_existing: str, repeated: str) -> GraphChange:
    """Extend a change by edges to add or update; a weight of 0 removes an existing edge."""
    if not len(edges[0]):
        return change
    graph = change.graph
    first, second, weights = _pairs(graph.rows_of_ends(*edges[:2]), edges[2], "the new edges", repeated)
    before = graph.weights_between(first, second)
    if edges[2] is None and repeated not in ("sum", "count"):  # the table has no weights for existing edges
        weights = np.where(before > 0, before, weights)
    new, other = (before == 0) & (weights > 0), np.flatnonzero((before > 0) & (before != weights))
    if other.size and on_existing == "refuse":
        place = other[0]
        ends = " and ".join(quoted(each) for each in graph.ids_at(np.array([first[place], second[place]])).tolist())
        raise InputError(
            f"the edge between {ends}{_more(other)} is in the graph already, with weight {before[place]:g} and not "
            f"{weights[place]:g}: leave it out, or {CHOICES}; nothing was changed."
        )
    taken = (before != weights) if on_existing == "update" else new
    first, second = first[taken], second[taken]
    graph = graph.with_weights(first, second, weights[taken], before[taken])
    added = int(np.count_nonzero(new))
    same = int(np.count_nonzero((before > 0) & (before == weights)))
    counts = _counts("edges", added, other.size, same, on_existing)
    touched = graph.numbers_at(np.union1d(first, second))
    return GraphChange(graph, [*change.touched, touched], {**change.entry, **counts})


def _counts(what: str, new: int, other: int, same: int, on_existing: str) -> Entry:
    """Count nodes or edges that are new, exist with other values, and exist with the same values, for the history
    entry.
    """
    done = "updated" if on_existing == "update" else "skipped"
    existing = {f"{done}_{what}": other, f"same_{what}": same}
    return {what: new, **{name: count for name, count in existing.items() if count}}


def _more(places: np.ndarray) -> str:
    return f" (and {places.size - 1} more)" if places.size > 1 else ""


def _pairs(
    ends: np.ndarray, weights: np.ndarray | None, what: str, repeated: str = "max"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each pair of linked nodes once, as (e,) rows ``first < second``, and its weight: the larger of both
    directions.

    ``ends`` are (2, e) rows, ``what`` names the edges in messages, and ``repeated`` says how to combine several edges
    in one direction.
    """
    rows, places = np.unique(ends, return_inverse=True)
    source, target = places.reshape(ends.shape)
    linked, _ = adjacency_from_edges(source, target, None, rows.size, what)
    found, _ = adjacency_from_edges(source, target, weights, rows.size, what, repeated)
    half = sparse.coo_array(sparse.triu(linked, k=1))  # with pairs whose weight is 0
    if not half.nnz:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    values = np.asarray(found[half.row, half.col], dtype=np.float32).ravel()
    return rows[half.row].astype(np.int64), rows[half.col].astype(np.int64), values


def shrunk(before: ModelGraph, nodes: Sequence[Any] | None, edges: EdgeEnds | None) -> GraphChange:
    """Remove edges, then nodes with the edges that they still have."""
    if not (nodes is not None and len(nodes)) and not (edges is not None and len(edges[0])):
        raise InputError("there is nothing to remove: give nodes, edges or both.")
    graph, touched, removed = before, [], np.zeros(0, dtype=np.int64)
    if edges is not None:
        ends = graph.rows_of_ends(*edges)
        missing = np.flatnonzero(graph.weights_between(ends.min(axis=0), ends.max(axis=0)) == 0)
        if missing.size:
            pair = " and ".join(quoted(each) for each in graph.ids_at(ends[:, missing[0]]).tolist())
            raise InputError(f"there is no edge between {pair}: leave it out; nothing was changed.")
        first, second, gone = _pairs(ends, None, "the edges to remove")
        weights = graph.weights_between(first, second)
        graph = graph.with_weights(first, second, np.zeros_like(gone), weights)
        touched.append(graph.numbers_at(np.union1d(first, second)))
    if nodes is not None:
        graph, removed, around = graph.without_nodes(nodes)
        touched = [each[~np.isin(each, removed)] for each in touched] + [around]
    nodes_less, edges_less = before.node_count - graph.node_count, before.edge_count - graph.edge_count
    return GraphChange(graph, touched, {"what": "shrink", "nodes": nodes_less, "edges": edges_less}, removed)
