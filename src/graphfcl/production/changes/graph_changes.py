"""Growing and shrinking a graph in one step, with the nodes that the step touched."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphfcl.errors import InputError, shown
from graphfcl.graph.ids import list_of_nodes
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.graph.tables.frames import is_frame
from graphfcl.production.graph import ModelGraph

NewNodes = tuple[Sequence[Any], Any, Sequence[str] | None]  # ids, features, texts
NewEdges = tuple[Sequence[Any], Sequence[Any], np.ndarray | None]  # ids of sources, ids of targets, weights
EdgeEnds = tuple[Sequence[Any], Sequence[Any]]  # ids of sources, ids of targets


@dataclass(frozen=True, eq=False)
class GraphChange:
    """A changed graph.

    touched: numbers of its nodes that are new or whose edges changed, in arrays that may overlap.
    removed: numbers of the nodes that left.
    entry: what the history says of the change.
    """

    graph: ModelGraph
    touched: list[np.ndarray]
    entry: dict[str, Any]
    removed: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def as_new_nodes(source: Any, graph: ModelGraph, columns: ReadColumns | None) -> NewNodes | None:
    """New nodes of a tuple, a DataFrame, or none. columns: of the tables of the fit."""
    if source is None:
        return None
    if is_frame(source):
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
    """New edges of a tuple, a DataFrame, or none."""
    if source is None:
        return None
    if is_frame(source):
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
    """The three members of a tuple, of which the last ones may be missing."""
    if not isinstance(source, tuple | list) or not 0 < len(source) <= 3:
        raise InputError(f"{what} is {shown(source)}: give {wanted}; nothing was changed.")
    return [*source, *[None] * (3 - len(source))]


def grown(before: ModelGraph, nodes: NewNodes | None, edges: NewEdges | None) -> GraphChange:
    """Add nodes, then edges, which may lead to the new nodes."""
    if not (nodes is not None and len(nodes[0])) and not (edges is not None and len(edges[0])):
        raise InputError("there is nothing to add: give nodes, edges or both.")
    graph, touched = before, []
    words: dict[str, int] = {}
    if nodes is not None:
        ids, values, texts = nodes
        features = graph.columns.features_of(values, texts=texts)
        graph, fresh = graph.with_nodes(ids, features)
        words = graph.columns.words_of(features, texts)
        touched.append(fresh)
    if edges is not None:
        graph, ends = graph.with_edges(*edges)
        touched.append(ends)
    nodes_more, edges_more = graph.node_count - before.node_count, graph.edge_count - before.edge_count
    return GraphChange(graph, touched, {"what": "grow", "nodes": nodes_more, "edges": edges_more, **words})


def shrunk(before: ModelGraph, nodes: Sequence[Any] | None, edges: EdgeEnds | None) -> GraphChange:
    """Remove edges, then nodes with the edges that they still have."""
    if not (nodes is not None and len(nodes)) and not (edges is not None and len(edges[0])):
        raise InputError("there is nothing to remove: give nodes, edges or both.")
    graph, touched, removed = before, [], np.zeros(0, dtype=np.int64)
    if edges is not None:
        graph, ends = graph.without_edges(*edges)
        touched.append(ends)
    if nodes is not None:
        graph, removed, around = graph.without_nodes(nodes)
        touched = [ends[~np.isin(ends, removed)] for ends in touched] + [around]
    nodes_less, edges_less = before.node_count - graph.node_count, before.edge_count - graph.edge_count
    return GraphChange(graph, touched, {"what": "shrink", "nodes": nodes_less, "edges": edges_less}, removed)
