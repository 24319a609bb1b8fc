"""Encode the graph of a model on disk as parts: the digest of its graph folder, and the differences from it."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.answers.version_cache import CacheKeys
from graphfcl.production.graph.contract import StoredGraph
from graphfcl.production.graph.growing_codec import decode_rows, decode_views, encode_views, sparse_arrays
from graphfcl.production.graph.place import FolderUse, find_graph, seen_at
from graphfcl.production.store.checks import Damaged, need, whole_number
from graphfcl.production.store.ids import id_arrays, read_ids
from graphfcl.production.store.parts import Part, PartSource
from graphfcl.runtime.devices import device_on_disk

if TYPE_CHECKING:
    from graphfcl.graph.folder import GraphFolder
    from graphfcl.graph.folder.grown import Growth
    from graphfcl.production.graph.folder_model_graph import FolderModelGraph
    from graphfcl.runtime.resources import Resources

CHUNK = 1 << 17  # bytes; small, because a new edge changes the last chunk
EDGES = ("first", "second", "weights", "before")


def encode_graph(graph: "FolderModelGraph") -> dict[str, PartSource]:
    """Return the parts ``nodes``, ``edges`` and ``features``."""
    return {
        "nodes": PartSource(lambda: _encode_nodes(graph)),
        "edges": PartSource(lambda: Part({}, {name: getattr(graph.growth, name) for name in EDGES}, chunk=CHUNK)),
        "features": PartSource(lambda: _encode_features(graph)),
    }


def _encode_nodes(graph: "FolderModelGraph") -> Part:
    growth = graph.growth
    values = {
        "graph": graph.base.sha256,
        "nodes": graph.node_count,
        "edges": graph.edge_count,
        "folder_nodes": graph.base.node_count,
        "next_number": graph.next_number,
        "edge_change": growth.edge_change,
        "restate_due": graph.restate_due,
    }
    return Part(values, {**id_arrays(growth.ids), "places": growth.places, "gone": growth.gone}, chunk=CHUNK)


def _encode_features(graph: "FolderModelGraph") -> Part:
    rows, views = graph.growth.features, encode_views(graph.text_weights, graph.standardisation)
    arrays = {"dense": rows} if isinstance(rows, np.ndarray) else sparse_arrays(rows)
    return Part({"width": graph.base.feature_count, **views.values}, {**arrays, **views.arrays}, chunk=CHUNK)


class StoredFolderGraph(StoredGraph):
    """Graph on disk of a version. ``part`` reads a part, and ``folder`` is the folder of the model."""

    passes: ClassVar[bool] = True

    def __init__(self, part: "Callable[[str], Part]", folder: Path, use: FolderUse) -> None:
        self._part, self._folder, self._use = part, folder, use
        self._nodes = part("nodes")

    @property
    def digest(self) -> str:
        """Digest of the graph folder."""
        digest = self._nodes.value("graph")
        need(isinstance(digest, str), "it does not name its graph folder")
        return str(digest)

    def read(self) -> "FolderModelGraph":
        return self._read

    @cached_property
    def _place(self) -> "tuple[GraphFolder, Resources]":
        return find_graph(self._folder, self.digest, self._use)

    @cached_property
    def _read(self) -> "FolderModelGraph":
        from graphfcl.production.graph.folder_model_graph import FolderModelGraph

        folder, resources = self._place
        due = self._nodes.value("restate_due")
        need(isinstance(due, bool), "it does not say whether its learner has to be restated")
        need(self._nodes.value("folder_nodes") == folder.node_count, "its graph folder has another number of nodes")
        features = self._part("features")
        width = whole_number(features.value("width"), "the number of features", 0)
        need(width == folder.feature_count, "its graph folder has other features")
        growth = self._growth(features, folder.node_count, width)
        text, standardisation = decode_views(features, width, dense=isinstance(growth.features, np.ndarray))
        graph = FolderModelGraph(folder, growth, resources, text, standardisation, due)
        need(self.counts() == (graph.node_count, graph.edge_count), "its numbers of nodes and edges are wrong")
        return graph

    def index(self) -> "FolderModelGraph":
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

    def find_answers(self, keys: CacheKeys, columns: int) -> ModelAnswers | None:
        from graphfcl.production.graph.work_files import find_answers

        return find_answers(self._place[1].work, keys.readings, self._row_count, columns)

    @property
    def _row_count(self) -> int:
        return whole_number(self._nodes.value("next_number"), "the next number of a node")

    def _rows(self, name: str) -> np.ndarray:
        rows = self._nodes.array(name)
        need(
            rows.dtype == np.int64 and rows.ndim == 1 and bool((np.diff(rows) > 0).all()),
            f"its {name} are not ascending row numbers",
        )
        return rows

    def _growth(self, features: Part, count: int, width: int) -> "Growth":
        """Decode the differences from the graph folder, which has ``count`` nodes and ``width`` features."""
        from graphfcl.graph.folder.grown import Growth

        ids, places, gone = read_ids(self._nodes), self._rows("places"), self._rows("gone")
        need(np.unique(ids).size == ids.size == places.size, "an id occurs twice")
        need(places.size == 0 or (places[0] >= 0 and places[-1] < self._row_count), "an added node has no row")
        need(not np.isin(places, gone).any(), "a removed node has features")
        need(gone.size == 0 or (gone[0] >= 0 and gone[-1] < count), "a removed node is not in its graph folder")
        need(self._row_count >= count, "it has fewer rows than its graph folder")
        change = self._nodes.value("edge_change")
        need(type(change) is int, "it does not say how many edges were added")
        return Growth(
            row_count=self._row_count,
            places=places,
            ids=ids,
            features=decode_rows(features, (ids.size, width)),
            gone=gone,
            edge_change=change,
            **_decode_edges(self._part("edges"), self._row_count),
        )


def _decode_edges(part: Part, count: int) -> dict[str, np.ndarray]:
    first, second, weights, before = (part.array(name) for name in EDGES)
    if not first.shape == second.shape == weights.shape == before.shape or first.ndim != 1:
        raise Damaged("the arrays of its changed edges differ in length")
    need(first.dtype == second.dtype == np.int64, "its changed edges have node numbers of a wrong type")
    need(weights.dtype == before.dtype == np.float32, "its changed edges have weights of a wrong type")
    need(
        bool(((first >= 0) & (first < second) & (second < count)).all()),
        "a changed edge names a node that is not in the graph",
    )
    plain = np.isfinite(weights) & np.isfinite(before) & (weights >= 0) & (before >= 0) & (weights != before)
    need(bool(plain.all()), "a changed edge has an invalid weight")
    ascending = (np.diff(first) > 0) | ((np.diff(first) == 0) & (np.diff(second) > 0))
    need(bool(ascending.all()), "its changed edges are not in order")
    return {"first": first, "second": second, "weights": weights, "before": before}
