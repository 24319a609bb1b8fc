"""The ids of a source → files by which they are read and found."""

from collections.abc import Callable, Iterator

import numpy as np

import graphfcl.graph.folder.manifest as names
from graphfcl.errors import InputError
from graphfcl.graph.folder.blocks import SMALL_BLOCK
from graphfcl.graph.folder.manifest import row_type
from graphfcl.graph.folder.row_spool import RowSpool
from graphfcl.graph.folder.source import GraphSource, TextBlock
from graphfcl.graph.folder.text_keys import text_keys
from graphfcl.graph.folder.workspace import Workspace
from graphfcl.graph.ids import Place
from graphfcl.graph.tables.table import id_stands_twice

SEEDS = 8  # tries to find keys that differ


def write_ids(space: Workspace, source: GraphSource, table: np.ndarray, room: int) -> tuple[str, int]:
    """The kind of the ids, and the seed of their keys. table: the row of each position."""
    if source.ids is None:
        return "range", 0
    if isinstance(source.ids, np.ndarray):
        moved = np.empty(source.node_count, dtype=np.int64)
        moved[table] = source.ids
        space.write(names.IDS, moved, "<i8", SMALL_BLOCK)
        _write_index(space, moved, "<i8")
        return "numbers", 0
    keys, seed = source.keys or different_keys(source.ids, source.nodes_where)
    moved = np.empty(source.node_count, dtype=np.uint64)
    moved[table] = keys
    del keys
    _write_index(space, moved, "<u8")
    _write_texts(space, source.ids, table, room)
    return "texts", seed


def different_keys(
    texts: Callable[[], Iterator[TextBlock]], where: str, place: Place = lambda row: f"row {row + 1}"
) -> tuple[np.ndarray, int]:
    """(n,) uint64 keys of texts, and the first seed with which all differ; an error if a text stands twice."""
    for seed in range(SEEDS):
        keys = np.concatenate(
            [np.zeros(0, np.uint64), *(text_keys(block.content, block.starts, seed) for block in texts())]
        )
        ordered = np.sort(keys)
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        if not twice.size:
            return keys, seed
        first, second = np.flatnonzero(keys == ordered[twice[0]])[:2].tolist()
        found = _text_at(texts, first)
        if found == _text_at(texts, second):
            raise id_stands_twice(where, found, place(first), place(second))
    raise InputError(f"{where}: no keys were found that tell the ids apart: report this with the ids.")


def _text_at(texts: Callable[[], Iterator[TextBlock]], row: int) -> str:
    for block in texts():
        if row < block.starts.size - 1:
            return block.content[block.starts[row] : block.starts[row + 1]].tobytes().decode("utf-8", "surrogatepass")
        row -= block.starts.size - 1
    raise IndexError(row)


def _write_index(space: Workspace, keys: np.ndarray, dtype: str) -> None:
    order = np.argsort(keys, kind="stable")
    space.write(names.ID_ORDER, order, row_type(keys.size), SMALL_BLOCK)
    space.write(names.ID_KEYS, keys[order], dtype, SMALL_BLOCK)


def _write_texts(space: Workspace, texts: Callable[[], Iterator[TextBlock]], table: np.ndarray, room: int) -> None:
    spool = RowSpool(space.spool / "ids", table.size, ("|u1",), memory=room)
    done = 0
    for block in texts():
        count = block.starts.size - 1
        spool.add(table[done : done + count].astype(np.int64), np.diff(block.starts), block.content)
        done += count
    content = space.file(names.ID_TEXT, "|u1", SMALL_BLOCK)
    starts = space.file(names.ID_STARTS, "<i8", SMALL_BLOCK)
    starts.append(np.zeros(1, dtype=np.int64))
    total = 0
    for lengths, (letters,) in spool.ranges():
        content.append(letters)
        starts.append(total + np.cumsum(lengths))
        total += int(lengths.sum())
    space.close(names.ID_TEXT)
    space.close(names.ID_STARTS)
