"""Compute the map: positions of nodes in two dimensions, with their predictions in the current version."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.production.answers.row_values import node_rows
from graphfcl.production.labelling.map_layout import MapLayout, lay_out
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.service.effects import changed_nodes
from graphfcl.service.snapshots import Snapshot
from graphfcl.service.writer import Writer

MOST = 20_000  # maximum number of nodes on the map
SHARE = 0.25  # share of the sample that is reserved for changed nodes, and the same for labelled nodes
SIDE = 10_000  # positions are integers from 0 to this number
UNKNOWN, CHANGED, LABELLED = 1, 2, 4  # flags of a node, to be added


@dataclass(frozen=True, eq=False)
class MapNodes:
    """The nodes of a map.

    Attributes:
        layout: Numbers and positions of the nodes.
        changed: (k,) numbers of the nodes whose prediction differs from their prediction in version ``since``.
        since: Number of the previous version; None if there is none, or if its predictions are gone.
    """

    layout: MapLayout
    changed: np.ndarray
    since: int | None


class MapMaker:
    """Makes the maps of successive versions and aligns each map with the previous one. It is not thread-safe."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._layout: MapLayout | None = None

    def make(self, snapshot: Snapshot) -> MapNodes:
        """Choose the nodes of the map of a version and compute their positions."""
        graph = snapshot.graph
        since, changed = self._changes(snapshot)
        everything = np.sort(graph.numbers_at(node_rows(graph.visible)))
        numbers = drawn(everything, by_rank(changed), _labelled(snapshot.model.label_store_))
        rows, vectors = graph.rows_of(numbers), snapshot.model.vectors_by_row
        self._layout = lay_out(numbers, lambda places: vectors(rows[places]), self._layout)
        return MapNodes(self._layout, changed, since)

    def _changes(self, snapshot: Snapshot) -> tuple[int | None, np.ndarray]:
        """Return the previous version and the nodes whose prediction changed; None if its predictions are gone."""
        manifest = self._writer.versions.manifest(snapshot.version)
        parent = manifest["parent"]
        try:
            before = None if parent is None else self._writer.model_of(parent)
        except InputError:  # the previous version or its predictions were deleted
            before = None
        if before is None:
            return None, np.zeros(0, dtype=np.int64)
        return parent, changed_nodes(before, snapshot.model, manifest["changes"])


def by_rank(numbers: np.ndarray) -> np.ndarray:
    """Sort node numbers by a hash: the order looks random, and two numbers always have the same order."""
    return numbers[np.argsort(mixed(numbers.astype(np.uint64)), kind="stable")]


def mixed(values: np.ndarray) -> np.ndarray:
    """Hash uint64 numbers with the finaliser of SplitMix64."""
    values = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def drawn(numbers: np.ndarray, *first: np.ndarray) -> np.ndarray:
    """Choose at most ``MOST`` of the node numbers, ascending.

    The first numbers of each list in ``first`` are chosen, up to a share of ``SHARE`` per list. A uniform draw from all
    numbers fills the rest. Successive versions draw the same nodes, except for nodes that are new, were removed, or
    entered or left a list.
    """
    if numbers.size <= MOST:
        return numbers
    listed = np.concatenate([*(each[: int(SHARE * MOST)] for each in first), by_rank(numbers)])
    _, places = np.unique(listed, return_index=True)
    return np.sort(listed[np.sort(places)[:MOST]])


def _labelled(labels: LabelStore) -> np.ndarray:
    """Return the numbers of all labelled nodes, starting with nodes whose label was learned after the fit."""
    taught = labels.parts == LabelRole.SUPPORT
    return np.concatenate([by_rank(labels.nodes[taught]), by_rank(labels.nodes[~taught])])


def map_answer(snapshot: Snapshot, nodes: MapNodes | None, version: int | None) -> dict[str, Any]:
    """Return the map as JSON values.

    ``nodes`` belong to ``version``, which may be an older version. Both are None before the first layout.
    """
    current = nodes is not None and version == snapshot.version
    columns = _no_columns() if nodes is None else _columns(snapshot, nodes, current)
    return {
        "status": "ready" if current else "computing",
        "layout_version": None if nodes is None else version,
        "shown": len(columns["ids"]),
        "total": snapshot.graph.node_count,
        "changed_since": nodes.since if nodes is not None and current else None,
        "classes": list(snapshot.classes),
        **columns,
    }


def _no_columns() -> dict[str, list[Any]]:
    return {"ids": [], "x": [], "y": [], "class_places": [], "doubts": [], "flags": []}


def _columns(snapshot: Snapshot, nodes: MapNodes, current: bool) -> dict[str, list[Any]]:
    there = snapshot.graph.contains(nodes.layout.numbers)
    numbers = nodes.layout.numbers[there]
    if not numbers.size:
        return _no_columns()
    rows = snapshot.graph.rows_of(numbers)
    predicted, labels = snapshot.predictions(rows), snapshot.labels[rows]
    labelled = labels >= 0
    classes = np.where(labelled, labels, predicted.probabilities.argmax(axis=1))
    highest = np.sort(predicted.probabilities, axis=1)[:, -2:]
    margin = highest[:, -1] - (highest[:, -2] if highest.shape[1] > 1 else 0)
    changed = np.isin(numbers, nodes.changed) if current else np.zeros(numbers.size, dtype=bool)
    flags = UNKNOWN * (predicted.unknown & ~labelled) + CHANGED * changed + LABELLED * labelled
    places = np.rint(SIDE * nodes.layout.positions[there]).clip(0, SIDE).astype(np.int64)
    return {
        "ids": snapshot.ids_at(rows),
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "class_places": classes.tolist(),
        "doubts": np.rint(100 * (1 - margin)).astype(np.int64).tolist(),
        "flags": flags.tolist(),
    }
