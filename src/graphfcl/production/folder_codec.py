"""A graph that stays on the disk as trees of arrays, and back: the digest of its graph folder, and what was added."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.production.graph_codec import check_features, csr_of, ids_in_memory
from graphfcl.production.storage.block_arrays import BlockArrays
from graphfcl.production.storage.damage import Damaged, need
from graphfcl.production.storage.ids import read_ids, write_ids
from graphfcl.production.storage.strict_json import whole_number
from graphfcl.production.storage.trees import Tree, TreeName, read_tree, write_tree
from graphfcl.production.view_codec import decode_views, encode_views

if TYPE_CHECKING:
    from graphfcl.graph.folder import GraphFolder
    from graphfcl.graph.visible_folder import Means
    from graphfcl.production.folder_model_graph import FolderModelGraph

BLOCK = 1 << 17  # bytes of a block: an edge more changes the last one
IDS = 1024  # of added nodes in one block


def encode_folder_graph(graph: "FolderModelGraph", arrays: BlockArrays) -> dict[str, TreeName]:
    """The trees ``nodes``, ``edges`` and ``features``."""
    growth = graph.growth
    ids = write_ids(arrays, growth.ids, np.arange(IDS, growth.ids.size, IDS))
    values = {
        "graph": graph.base.digest,
        "nodes": graph.base.node_count,
        "edges": graph.edge_count,
        "next_number": graph.next_number,
        "restate_due": graph.restate_due,
    }
    stored = growth.arrays()
    edges = {name: arrays.write(stored[name], block=BLOCK) for name in ("first", "second", "weights", "before")}
    found: dict[str, Any] = {}
    if "rows" in stored:
        found["dense"] = arrays.write(stored["rows"], block=BLOCK)
    else:
        found["counts"] = arrays.write(np.diff(stored["indptr"]).astype(np.int32), block=BLOCK)
        found["columns"] = arrays.write(stored["indices"].astype(np.int32), block=BLOCK)
        found["data"] = arrays.write(stored["data"].astype(np.float32), block=BLOCK)
    views = encode_views(graph.text_weights, graph.standardisation, arrays)
    features = Tree(found | views.arrays, {"width": graph.base.feature_count, **views.values})
    trees = {"nodes": Tree(ids, values), "edges": Tree(edges), "features": features}
    return {name: write_tree(arrays.objects, tree) for name, tree in trees.items()}


def digest_of(trees: Mapping[str, TreeName], arrays: BlockArrays) -> str:
    """The digest of the graph folder."""
    digest = read_tree(arrays.objects, trees.get("nodes")).value("graph")
    need(isinstance(digest, str), "it does not name its graph folder")
    return digest


def counts_of(trees: Mapping[str, TreeName], arrays: BlockArrays) -> tuple[int, int]:
    """How many nodes and edges there are; the graph folder is not opened."""
    tree = read_tree(arrays.objects, trees.get("nodes"))
    return tuple(whole_number(tree.value(name), name) for name in ("next_number", "edges"))  # type: ignore[return-value]


def decode_folder_graph(
    trees: Mapping[str, TreeName], arrays: BlockArrays, folder: "GraphFolder", means: "Means"
) -> "FolderModelGraph":
    """The graph, checked. folder: the one whose digest it names."""
    from graphfcl.graph.folder.growth import Growth
    from graphfcl.production.folder_model_graph import FolderModelGraph

    nodes, edges, features = (read_tree(arrays.objects, trees.get(name)) for name in ("nodes", "edges", "features"))
    ids = ids_in_memory(read_ids(arrays, nodes.arrays))
    due = nodes.value("restate_due")
    need(isinstance(due, bool), "it does not say whether its sums are those of its graph")
    need(nodes.value("nodes") == folder.node_count, "its graph folder has another number of nodes")
    width = whole_number(features.value("width"), "the number of features", 0)
    need(width == folder.feature_count, "its graph folder has other features")
    need(np.unique(ids).size == ids.size, "an id stands twice")
    if "dense" in features.arrays:
        rows: Any = arrays.read(features.index("dense"))
    else:
        counts, columns, data = (arrays.read(features.index(name)) for name in ("counts", "columns", "data"))
        rows = csr_of(counts, columns, data, (ids.size, width), "features")
    check_features(rows, (ids.size, width), None)
    text, standardisation = decode_views(features, arrays, width, dense=isinstance(rows, np.ndarray))
    growth = Growth(ids, rows, *_edges(edges, arrays, folder.node_count + ids.size))
    return FolderModelGraph(folder, growth, means, text, standardisation, due)


def _edges(tree: Tree, arrays: BlockArrays, count: int) -> tuple[np.ndarray, ...]:
    first, second, weights, before = (
        arrays.read(tree.index(name)) for name in ("first", "second", "weights", "before")
    )
    if not first.shape == second.shape == weights.shape == before.shape or first.ndim != 1:
        raise Damaged("its added edges differ in number")
    need(first.dtype == second.dtype == np.int64, "its added edges name no nodes")
    need(weights.dtype == before.dtype == np.float32, "its added edges weigh nothing")
    need(bool(((first >= 0) & (first < second) & (second < count)).all()), "an added edge leads out of the graph")
    need(bool((np.isfinite(weights) & (weights > before) & (before >= 0)).all()), "an added edge has no weight above 0")
    ascending = (np.diff(first) > 0) | ((np.diff(first) == 0) & (np.diff(second) > 0))
    need(bool(ascending.all()), "its added edges are not in order")
    return first, second, weights, before
