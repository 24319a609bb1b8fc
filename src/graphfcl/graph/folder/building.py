"""Build a graph folder from a source, in bounded memory."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import graphfcl.graph.folder.manifest as names
from graphfcl.errors import InputError
from graphfcl.graph.build import (
    check_edges,
    clean_features,
    cleaned_note,
    edge_notes,
    edges_to_keep,
    no_features_note,
)
from graphfcl.graph.folder.blocks import SMALL_BLOCK, BlockWriter
from graphfcl.graph.folder.edge_sort import EdgeFacts, EdgeSorter
from graphfcl.graph.folder.manifest import Manifest, row_type
from graphfcl.graph.folder.permutation import Shuffle
from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.folder.row_spool import RowSpool
from graphfcl.graph.folder.source import EdgeBlock, GraphSource, Source, Spool, TextIds, of_graph
from graphfcl.graph.folder.stored_ids import text_keys
from graphfcl.graph.folder.workspace import Workspace, publish, workspace
from graphfcl.graph.graph import Graph
from graphfcl.graph.ids import pack_texts
from graphfcl.runtime.memory import format_bytes

LIBRARIES = 200 << 20  # bytes that Python and its libraries need before anything is read
LEAST_ROOM = 48 << 20  # minimum bytes for blocks and sorting
SHUFFLE_BYTES, LABEL_BYTES, NUMBER_BYTES, TEXT_BYTES = 4, 8, 28, 28  # bytes per node
NODE_BYTES = 64  # bytes per node, in addition to a graph in memory
MEMORY = 2 << 30
SEEDS = 8  # seeds to try for hash keys without collisions; the first one nearly always works
Tell = Callable[[str], None]


def build_folder(
    source: Source,
    out: str | Path,
    *,
    memory: int = MEMORY,
    name: str | None = None,
    tell: Tell = lambda _: None,
) -> GraphFolder:
    """Build a graph folder.

    Args:
        source: Source of the graph, or a function that opens one and may keep temporary files until the folder is
            built.
        out: Folder to create.
        memory: Bytes that the process may use.
        name: Name of the graph. Default: the name of the source.
        tell: Called with a sentence after each step.
    """
    out = Path(out)
    with workspace(out) as space:
        own = space.spool / "source"
        own.mkdir()
        if not isinstance(source, GraphSource):
            source = source(Spool(own, max(memory - LIBRARIES, LEAST_ROOM)))
        room = _room(source, memory)
        table = _write_order(space, source)
        labels = np.empty(source.node_count, dtype="<i4")
        labels[table] = source.labels.numbers
        space.write(names.LABELS, labels, "<i4")
        kind, hash_seed = _write_ids(space, source, table, room)
        tell(f"{source.node_count:,} nodes: labels and ids are written.")
        _write_features(space, source, table, room)
        tell(f"{source.feature_count:,} features are written.")
        facts, loops = _write_edges(space, source, table, Spool(own, room // 2))
        if source.feature_names is not None:
            content, starts = pack_texts(source.feature_names.tolist())
            space.write(names.NAME_TEXT, content, "|u1", SMALL_BLOCK)
            space.write(names.NAME_STARTS, starts, "<i8", SMALL_BLOCK)
        manifest = Manifest(
            name=name or source.name,
            nodes=source.node_count,
            edges=facts.pairs // 2,
            features=source.feature_count,
            weighted=facts.weighted,
            sparse_features=source.sparse_features,
            class_names=source.labels.names,
            integer_classes=source.labels.integers,
            ids=kind,
            hash_seed=hash_seed,
            feature_names=source.feature_names is not None,
            min_nodes=None if source.text is None else source.text.min_nodes,
            beside=() if source.text is None else source.text.beside,
            columns=None if source.columns is None else source.columns.as_json(),
            column_min_nodes=source.column_min_nodes,
            source=source.made_of,
            notes=_notes(source, edge_notes(loops, facts.one_way, facts.merged, source.repeated)),
            cleaned=source.cleaned,
            files=space.finish(),
        )
        publish(space, manifest, out)
    return GraphFolder.open(out)


def write_folder(graph: Graph, out: str | Path) -> GraphFolder:
    """Write a graph in memory to a graph folder, with about 64 additional bytes of memory per node."""
    memory = LIBRARIES + 4 * LEAST_ROOM + NODE_BYTES * graph.node_count
    return build_folder(of_graph(graph), out, memory=memory)


def _room(source: GraphSource, memory: int) -> int:
    """Return the bytes for blocks and sorting; an InputError if the memory is too small."""
    per_node = SHUFFLE_BYTES + LABEL_BYTES + source.node_bytes
    if source.ids is not None:
        per_node += NUMBER_BYTES if isinstance(source.ids, np.ndarray) else TEXT_BYTES
    needed = LIBRARIES + LEAST_ROOM + per_node * source.node_count
    if memory < needed:
        raise InputError(
            f"{format_bytes(memory)} of memory is too little for the {source.node_count:,} nodes of {source.made_of}: "
            f"give --memory {format_bytes(needed)} or more."
        )
    return memory - needed + LEAST_ROOM


def _write_order(space: Workspace, source: GraphSource) -> np.ndarray:
    """Draw the order of rows, write its key, and return (n,) the row of each position in the source.

    The order of a file often follows its classes, so rows are shuffled. The key is a hash of the source's content, so
    only someone with the source or the folder can undo the shuffle.
    """
    key = hashlib.sha256(f"graphfcl order of rows {source.fingerprint()}".encode()).digest()
    space.write(names.ORDER_KEY, np.frombuffer(key, dtype=np.uint8), "|u1", SMALL_BLOCK)
    return Shuffle(source.node_count, int.from_bytes(key, "big")).table(row_type(source.node_count))


def _write_ids(space: Workspace, source: GraphSource, table: np.ndarray, room: int) -> tuple[str, int]:
    """Write the ids; return their kind and the seed of their hash keys. ``table`` has the row of each position."""
    if source.ids is None:
        return "range", 0
    if isinstance(source.ids, np.ndarray):
        moved = np.empty(source.node_count, dtype=np.int64)
        moved[table] = source.ids
        space.write(names.IDS, moved, "<i8", SMALL_BLOCK)
        _write_index(space, moved, "<i8")
        return "numbers", 0
    keys, seed = _different_keys(source.ids, source.nodes_where)
    moved = np.empty(source.node_count, dtype=np.uint64)
    moved[table] = keys
    del keys
    _write_index(space, moved, "<u8")
    _write_texts(space, source.ids, table, room)
    return "texts", seed


def _different_keys(texts: TextIds, where: str) -> tuple[np.ndarray, int]:
    """Return (n,) uint64 hash keys of texts, and the first seed without collisions."""
    for seed in range(SEEDS):
        parts = [text_keys(block.content, block.starts, seed) for block in texts()]
        keys = np.concatenate([np.zeros(0, np.uint64), *parts])
        if np.diff(np.sort(keys)).all():
            return keys, seed
    raise InputError(f"{where}: two nodes have the same id: give each node an id of its own.")


def _write_index(space: Workspace, keys: np.ndarray, dtype: str) -> None:
    order = np.argsort(keys, kind="stable")
    space.write(names.ID_ORDER, order, row_type(keys.size), SMALL_BLOCK)
    space.write(names.ID_KEYS, keys[order], dtype, SMALL_BLOCK)


def _write_texts(space: Workspace, texts: TextIds, table: np.ndarray, room: int) -> None:
    spool = RowSpool(space.spool / "ids", table.size, ("|u1",), memory=room)
    done = 0
    for block in texts():
        count = block.starts.size - 1
        spool.add(table[done : done + count].astype(np.int64), np.diff(block.starts), block.content)
        done += count
    content, starts = (space.file(*each, SMALL_BLOCK) for each in ((names.ID_TEXT, "|u1"), (names.ID_STARTS, "<i8")))
    _append_rows(spool, [content], starts)


def _write_features(space: Workspace, source: GraphSource, table: np.ndarray, room: int) -> None:
    width, sparse_features = source.feature_count, source.sparse_features
    if sparse_features:
        files = [space.file(names.FEATURE_INDICES, "<i4"), space.file(names.FEATURE_VALUES, "<f4")]
        starts, row_bytes = space.file(names.FEATURE_INDPTR, "<i8"), None
    else:
        files, starts, row_bytes = [space.file(names.ROWS, "<f4")], None, 4 * width
        if not width:
            return
    spool = RowSpool(
        space.spool / "rows",
        source.node_count,
        tuple(file.dtype.str for file in files),
        memory=room,
        row_bytes=row_bytes,
    )
    done = 0
    for block in source.features():
        rows = clean_features(block, block.shape[0], source.nodes_where, first=done)
        places = table[done : done + rows.shape[0]].astype(np.int64)
        if sparse_features:
            spool.add(places, np.diff(rows.indptr).astype(np.int64), rows.indices, rows.data)
        else:
            spool.add(places, np.full(places.size, width), rows.reshape(-1))
        done += rows.shape[0]
    if done != source.node_count:
        raise InputError(
            f"{source.nodes_where}: there are features of {done:,} nodes, but the graph has {source.node_count:,}; "
            "give one row per node."
        )
    _append_rows(spool, files, starts)


def _append_rows(spool: RowSpool, files: list[BlockWriter], starts: BlockWriter | None) -> None:
    """Append the rows of a spool to ``files``, one for each kind of numbers, and their positions to ``starts``."""
    total = 0
    if starts is not None:
        starts.append(np.zeros(1, dtype=np.int64))
    for lengths, values in spool.ranges():
        for file, part in zip(files, values, strict=True):
            file.append(part)
        if starts is not None:
            starts.append(total + np.cumsum(lengths))
        total += int(lengths.sum())


def _write_edges(space: Workspace, source: GraphSource, table: np.ndarray, own: Spool) -> tuple[EdgeFacts, int]:
    """Sort and write the edges; return their statistics and the number of dropped self loops."""
    sorter = EdgeSorter(
        space.spool / "edges",
        source.node_count,
        own.memory,
        weighted=source.weighted,
        repeated=source.repeated,
        mirrored=source.mirrored,
        where=source.edges_where,
    )
    loops = 0
    for block in source.edges(own):
        place = partial(_edge_place, source, block)
        weights = check_edges(block.source, block.target, block.weights, source.node_count, source.edges_where, place)
        kept, dropped = edges_to_keep(block.source, block.target, weights, source.repeated)
        loops += dropped
        first, second = (block.source, block.target) if kept.all() else (block.source[kept], block.target[kept])
        sorter.add(table[first], table[second], weights if weights is None else weights[kept])
    _write_rows(space, source, sorter)
    return sorter.facts, loops


def _write_rows(space: Workspace, source: GraphSource, sorter: EdgeSorter) -> None:
    indptr = space.file(names.INDPTR, "<i8")
    indices = space.file(names.INDICES, row_type(source.node_count))
    weights = space.file(names.WEIGHTS, "<f4") if source.weighted else None
    indptr.append(np.zeros(1, dtype=np.int64))
    row, total = 0, 0  # pointers of all rows before ``row`` are written
    for block in sorter.sorted_blocks():
        last = int(block.rows[-1])
        ends = total + np.cumsum(np.bincount(block.rows - row, minlength=last - row + 1))
        indptr.append(ends[:-1])  # the last row may continue in the next block
        indices.append(block.columns)
        if weights is not None and block.weights is not None:
            weights.append(block.weights)
        row, total = last, total + block.columns.size
    for start in range(row, source.node_count, 1 << 20):
        indptr.append(np.full(min(1 << 20, source.node_count - start), total, dtype=np.int64))
    if weights is not None and not sorter.facts.weighted:
        space.drop(names.WEIGHTS)


def _edge_place(source: GraphSource, block: EdgeBlock, number: int) -> str:
    return source.edge_place(block.first + number)


def _notes(source: GraphSource, of_edges: list[str]) -> tuple[str, ...]:
    """Collect all notes, each once: a graph in memory has some of them already."""
    shape = (source.node_count, source.feature_count)
    later = (*source.labels.notes, *no_features_note(shape), *cleaned_note(source.cleaned))
    return tuple(dict.fromkeys([*source.notes, *source.edge_notes(), *of_edges, *later]))
