"""The graph of a model on disk as trees of arrays: the digest of its graph folder, and what differs from it."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphfcl.production.answers.version_cache import CacheKeys
from graphfcl.production.graph.growing_codec import check_features, csr_of, ids_in_memory
from graphfcl.production.graph.place import FolderUse, find_graph, seen_at
from graphfcl.production.graph.view_codec import decode_views, encode_views
from graphfcl.production.store.block_arrays import BlockArrays
from graphfcl.production.store.damage import Damaged, need
from graphfcl.production.store.ids import read_ids, write_ids
from graphfcl.production.store.strict_json import whole_number
from graphfcl.production.store.trees import Tree, TreeName, read_tree, write_tree
from graphfcl.runtime.devices import device_on_disk

if TYPE_CHECKING:
    from graphfcl.graph.folder import GraphFolder
    from graphfcl.graph.folder.grown import Growth
    from graphfcl.production.answers.answers import ModelAnswers
    from graphfcl.production.graph.contract import ModelGraph
    from graphfcl.runtime.resources import Resources

BLOCK = 1 << 17  # bytes of a block: an edge more changes the last one
IDS = 1024  # of added nodes in one block
ID_ARRAYS = ("places", "gone")


def encode_graph(graph: Any, arrays: BlockArrays) -> dict[str, TreeName]:
    """The trees ``nodes``, ``edges`` and ``features``."""
    growth = graph.growth
    stored = growth.arrays()
    nodes = write_ids(arrays, growth.ids, np.arange(IDS, growth.ids.size, IDS))
    nodes |= {name: arrays.write(stored[name], block=BLOCK) for name in ID_ARRAYS}
    values = {
        "graph": graph.base.sha256,
        "nodes": graph.node_count,
        "edges": graph.edge_count,
        "folder_nodes": graph.base.node_count,
        "next_number": graph.next_number,
        "edge_change": growth.edge_change,
        "restate_due": graph.restate_due,
    }
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
    trees = {"nodes": Tree(nodes, values), "edges": Tree(edges), "features": features}
    return {name: write_tree(arrays.objects, tree) for name, tree in trees.items()}


class StoredFolderGraph:
    """See :class:`StoredGraph`. nodes: its tree of nodes. make: a graph of its fields. folder: of the model."""

    passes: ClassVar[bool] = True

    def __init__(
        self,
        trees: Mapping[str, TreeName],
        arrays: BlockArrays,
        nodes: Tree,
        make: "Callable[..., ModelGraph]",
        folder: Path,
        use: FolderUse,
    ) -> None:
        self._trees, self._arrays, self._nodes, self._make = trees, arrays, nodes, make
        self._folder, self._use = folder, use

    @property
    def digest(self) -> str:
        """That of the graph folder."""
        digest = self._nodes.value("graph")
        need(isinstance(digest, str), "it does not name its graph folder")
        return str(digest)

    def read(self) -> "ModelGraph":
        return self._read

    @cached_property
    def _place(self) -> "tuple[GraphFolder, Resources]":
        return find_graph(self._folder, self.digest, self._use)

    @cached_property
    def _read(self) -> "ModelGraph":

        folder, resources = self._place
        due = self._nodes.value("restate_due")
        need(isinstance(due, bool), "it does not say whether its sums are those of its graph")
        need(self._nodes.value("folder_nodes") == folder.node_count, "its graph folder has another number of nodes")
        features = read_tree(self._arrays.objects, self._trees.get("features"))
        width = whole_number(features.value("width"), "the number of features", 0)
        need(width == folder.feature_count, "its graph folder has other features")
        growth = self._growth(features, folder.node_count, width)
        text, standardisation = decode_views(
            features, self._arrays, width, dense=isinstance(growth.features, np.ndarray)
        )
        graph = self._make(folder, growth, resources, text, standardisation, due)
        need(self.counts() == (graph.node_count, graph.edge_count), "its nodes and edges are miscounted")
        return graph

    def index(self) -> "ModelGraph":
        return self.read()

    def counts(self) -> tuple[int, int]:
        nodes, edges = (whole_number(self._nodes.value(name), name) for name in ("nodes", "edges"))
        return nodes, edges

    def contains(self, numbers: np.ndarray) -> np.ndarray:
        inside = (numbers >= 0) & (numbers < self._row_count)
        inside &= ~np.isin(numbers, self._rows("gone"))
        added = numbers >= whole_number(self._nodes.value("folder_nodes"), "the nodes of its graph folder")
        return inside & (~added | np.isin(numbers, self._rows("places")))

    def origin(self) -> dict[str, Any]:
        return {"graph_folder": seen_at(self._folder), "digest": self.digest}

    def device(self, wanted: str) -> str:
        return device_on_disk(wanted)

    def find_answers(self, keys: CacheKeys, columns: int) -> "ModelAnswers | None":
        from graphfcl.production.graph.work_files import find_answers

        return find_answers(self._place[1].work, keys.readings, self._row_count, columns)

    @property
    def _row_count(self) -> int:
        return whole_number(self._nodes.value("next_number"), "the next number of a node")

    def _rows(self, name: str) -> np.ndarray:
        rows = self._arrays.read(self._nodes.index(name))
        need(rows.dtype == np.int64 and rows.ndim == 1 and bool((np.diff(rows) > 0).all()), f"its {name} are no rows")
        return rows

    def _growth(self, features: Tree, count: int, width: int) -> "Growth":
        """What differs from the graph folder. count, width: of nodes and features of the folder."""
        from graphfcl.graph.folder.grown import Growth

        arrays, nodes = self._arrays, self._nodes
        ids = ids_in_memory(read_ids(arrays, {name: nodes.arrays[name] for name in nodes.arrays.keys() - ID_ARRAYS}))
        places, gone = self._rows("places"), self._rows("gone")
        need(np.unique(ids).size == ids.size == places.size, "an id stands twice")
        need(places.size == 0 or (places[0] >= count and places[-1] < self._row_count), "an added node has no row")
        need(gone.size == 0 or (gone[0] >= 0 and gone[-1] < count), "a removed node was never there")
        need(self._row_count >= count, "it has fewer rows than its graph folder")
        if "dense" in features.arrays:
            rows: Any = arrays.read(features.index("dense"))
        else:
            counts, columns, data = (arrays.read(features.index(name)) for name in ("counts", "columns", "data"))
            rows = csr_of(counts, columns, data, (ids.size, width), "features")
        check_features(rows, (ids.size, width), None)
        change = nodes.value("edge_change")
        need(type(change) is int, "it does not say how many edges were added")
        edges = read_tree(arrays.objects, self._trees.get("edges"))
        return Growth(
            row_count=self._row_count,
            places=places,
            ids=ids,
            features=rows,
            gone=gone,
            edge_change=change,
            **_edges(edges, arrays, self._row_count),
        )


def _edges(tree: Tree, arrays: BlockArrays, count: int) -> dict[str, np.ndarray]:
    first, second, weights, before = (
        arrays.read(tree.index(name)) for name in ("first", "second", "weights", "before")
    )
    if not first.shape == second.shape == weights.shape == before.shape or first.ndim != 1:
        raise Damaged("its changed edges differ in number")
    need(first.dtype == second.dtype == np.int64, "its changed edges name no nodes")
    need(weights.dtype == before.dtype == np.float32, "its changed edges weigh nothing")
    need(bool(((first >= 0) & (first < second) & (second < count)).all()), "a changed edge leads out of the graph")
    plain = np.isfinite(weights) & np.isfinite(before) & (weights >= 0) & (before >= 0) & (weights != before)
    need(bool(plain.all()), "a changed edge has no weight that can be")
    ascending = (np.diff(first) > 0) | ((np.diff(first) == 0) & (np.diff(second) > 0))
    need(bool(ascending.all()), "its changed edges are not in order")
    return {"first": first, "second": second, "weights": weights, "before": before}
