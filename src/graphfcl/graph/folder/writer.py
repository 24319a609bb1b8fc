"""A graph in memory → a graph folder."""

from pathlib import Path

import numpy as np
from scipy import sparse

from graphfcl.graph.folder import manifest as names
from graphfcl.graph.folder.blocks import BLOCK, SMALL_BLOCK
from graphfcl.graph.folder.manifest import Manifest, row_type
from graphfcl.graph.folder.permutation import Shuffle
from graphfcl.graph.folder.text_keys import pack_texts, text_keys
from graphfcl.graph.folder.workspace import Workspace, publish, workspace
from graphfcl.graph.graph import Graph


def write_folder(graph: Graph, out: str | Path, *, seed: int = 0) -> None:
    """Write a graph folder; its nodes are shuffled by ``seed``."""
    out = Path(out)
    shuffle = Shuffle(graph.node_count, seed)
    positions = shuffle.positions(np.arange(graph.node_count))
    with workspace(out) as space:
        moved = graph.adjacency[positions][:, positions]
        moved.sort_indices()
        _write(space, names.INDPTR, moved.indptr, "<i8")
        _write(space, names.INDICES, moved.indices, row_type(graph.node_count))
        if graph.weighted:
            _write(space, names.WEIGHTS, moved.data, "<f4")
        features = graph.features[positions]
        if sparse.issparse(features):
            _write(space, names.FEATURE_INDPTR, features.indptr, "<i8")
            _write(space, names.FEATURE_INDICES, features.indices, "<i4")
            _write(space, names.FEATURE_VALUES, features.data, "<f4")
        else:
            _write(space, names.ROWS, features, "<f4")
        _write(space, names.LABELS, graph.labels[positions], "<i4")
        kind, hash_seed = _write_ids(space, graph.node_ids, positions)
        if graph.feature_names is not None:
            content, starts = pack_texts(graph.feature_names.tolist())
            _write(space, names.NAME_TEXT, content, "|u1")
            _write(space, names.NAME_STARTS, starts, "<i8")
        found = Manifest(
            name=graph.name,
            nodes=graph.node_count,
            edges=graph.edge_count,
            features=int(graph.features.shape[1]),
            weighted=graph.weighted,
            sparse_features=sparse.issparse(features),
            class_names=graph.class_names,
            ids=kind,
            hash_seed=hash_seed,
            feature_names=graph.feature_names is not None,
            min_nodes=None if graph.text is None else graph.text.min_nodes,
            shuffle=seed,
            source=graph.name,
            notes=graph.notes,
            cleaned=graph.cleaned,
            files=space.entries,
        )
        publish(space, found, out)


def _write(space: Workspace, name: str, values: np.ndarray, dtype: str, block: int = BLOCK) -> None:
    space.file(name, dtype, block).append(values)
    space.close(name)


def _write_ids(space: Workspace, ids: np.ndarray, positions: np.ndarray) -> tuple[str, int]:
    """The kind of the ids and the seed of their keys."""
    row = row_type(ids.size)
    if ids.dtype.kind == "i":
        if np.array_equal(ids, np.arange(ids.size)):
            return "range", 0
        moved = ids[positions]
        order = np.argsort(moved, kind="stable")
        _write(space, names.IDS, moved, "<i8", SMALL_BLOCK)
        _write(space, names.ID_KEYS, moved[order], "<i8", SMALL_BLOCK)
        _write(space, names.ID_ORDER, order, row, SMALL_BLOCK)
        return "numbers", 0
    content, starts = pack_texts(ids[positions].tolist())
    seed = 0
    while np.unique(keys := text_keys(content, starts, seed)).size < keys.size:
        seed += 1
    order = np.argsort(keys)
    _write(space, names.ID_TEXT, content, "|u1", SMALL_BLOCK)
    _write(space, names.ID_STARTS, starts, "<i8", SMALL_BLOCK)
    _write(space, names.ID_KEYS, keys[order], "<u8", SMALL_BLOCK)
    _write(space, names.ID_ORDER, order, row, SMALL_BLOCK)
    return "texts", seed
