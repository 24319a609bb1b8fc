"""Ids in tables of any size: read as numbers or as texts, and found among the nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.graph.folder.build_ids import different_keys
from graphfcl.graph.folder.manifest import row_type
from graphfcl.graph.folder.source import TextBlock
from graphfcl.graph.folder.stored_ids import numbers_of
from graphfcl.graph.folder.text_keys import pack_texts, text_keys
from graphfcl.graph.ids import NODE_ID, normal, whole_number
from graphfcl.graph.tables.node_table import unknown_end
from graphfcl.graph.tables.table import Table, id_stands_twice
from graphfcl.runtime.arrays import search_many

WHOLE = r"^(0|-?[1-9][0-9]{0,18})$"
LONGEST = NODE_ID.longest
DIRECT = 8  # numbers for each node, up to which their rows stand in a table


@dataclass(frozen=True, eq=False)
class TableIds:
    """The ids of the nodes of a table.

    numbers: (n,) int64, None if ids are texts. keys, seed: of texts, as :func:`different_keys` gives them.
    cleaned: how many ids cleaning changed. ordered, order: keys or numbers ascending, and their rows; None if the
    number of each node is its row. direct: the row of each number from the smallest to the largest, -1 where there is
    none, if these are not many more than there are nodes.
    """

    nodes: Table
    column: str
    count: int
    cleaned: int
    numbers: np.ndarray | None
    keys: np.ndarray | None
    seed: int
    ordered: np.ndarray | None
    order: np.ndarray | None
    direct: np.ndarray | None = None

    @classmethod
    def read(cls, nodes: Table, column: str) -> "TableIds":
        """All ids of a table of nodes, each once."""
        found = read_numbers(nodes, column)
        if found is None:
            counter = _Counter()
            keys, seed = different_keys(lambda: _texts(nodes, column, counter), str(nodes.path), nodes.line)
            order = np.argsort(keys)
            return cls(nodes, column, keys.size, counter.cleaned(keys.size), None, keys, seed, keys[order], order)
        numbers, cleaned = found
        if np.array_equal(numbers, np.arange(numbers.size)):
            return cls(nodes, column, numbers.size, cleaned, numbers, None, 0, None, None)
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        if twice.size:
            first, second = order[twice[0]], order[twice[0] + 1]
            raise id_stands_twice(nodes.path, str(numbers[first]), nodes.line(int(first)), nodes.line(int(second)))
        direct = None
        if int(ordered[-1]) - int(ordered[0]) < DIRECT * numbers.size:
            direct = np.full(int(ordered[-1]) - int(ordered[0]) + 1, -1, dtype=row_type(numbers.size))
            direct[numbers - ordered[0]] = np.arange(numbers.size)
        return cls(nodes, column, numbers.size, cleaned, numbers, None, 0, ordered, order, direct)

    @property
    def is_range(self) -> bool:
        return self.ordered is None

    def texts(self) -> Iterator[TextBlock]:
        """The cleaned ids as texts, in blocks."""
        return _texts(self.nodes, self.column, _Counter())

    def rows(self, edges: Table, column: str) -> np.ndarray:
        """(rows,) the nodes that one end of some edges leads to."""
        found = self._positions(edges, column)
        if (found < 0).any():
            row = int(np.flatnonzero(found < 0)[0])
            raise unknown_end(edges, row, edges.texts(column, "a node id")[row])
        return found

    def _positions(self, edges: Table, column: str) -> np.ndarray:
        """-1 where no node has the id."""
        if self.numbers is None:
            packed = _plain_texts(edges.text(column, "a node id"))
            if packed is None:
                packed = TextBlock(*pack_texts([normal(text) for text in edges.texts(column, "a node id").tolist()]))
            return self._find(text_keys(packed.content, packed.starts, self.seed))
        numbers = edges.whole_numbers(column)
        if numbers is None:
            numbers = _as_whole(edges.text(column, "a node id"))
        if numbers is not None:
            return self._find(numbers)
        numbers, given = numbers_of(edges.texts(column, "a node id"))
        return np.where(given, self._find(numbers), -1)

    def _find(self, wanted: np.ndarray) -> np.ndarray:
        if self.ordered is None or self.order is None:
            return np.where((wanted >= 0) & (wanted < self.count), wanted, -1)
        if not self.ordered.size:
            return np.full(wanted.size, -1, dtype=np.int64)
        if self.direct is not None:
            inside = (wanted >= self.ordered[0]) & (wanted <= self.ordered[-1])
            rows = self.direct[np.where(inside, wanted - self.ordered[0], 0)]
            return np.where(inside, rows, -1).astype(np.int64)
        places = search_many(self.ordered, wanted).clip(max=self.ordered.size - 1)
        return np.where(self.ordered[places] == wanted, self.order[places], -1)


def read_numbers(nodes: Table, column: str) -> tuple[np.ndarray, int] | None:
    """(n,) int64 and how many cleaning changed; None if an id is no whole number or the table says it is text."""
    parts, cleaned = [np.zeros(0, dtype=np.int64)], 0
    for block in nodes.blocks([column]):
        if block.says_text(column):
            return None
        numbers = block.whole_numbers(column)
        if numbers is None:
            numbers = _as_whole(block.text(column, "a node id"))
        if numbers is None:
            given = block.texts(column, "a node id").tolist()
            texts = NODE_ID.clean_all(given, _place(block))
            whole = [whole_number(text) for text in texts]
            if None in whole:
                return None
            cleaned += sum(before != after for before, after in zip(given, texts, strict=True))
            numbers = np.array(whole, dtype=np.int64)
        parts.append(numbers)
    return np.concatenate(parts), cleaned


class _Counter:
    """Counts the ids that cleaning changed; the texts may be read more than once."""

    def __init__(self) -> None:
        self._changed, self._read = 0, 0

    def add(self, changed: int, read: int) -> None:
        self._changed += changed
        self._read += read

    def cleaned(self, count: int) -> int:
        return self._changed * count // self._read if self._read else 0


def _texts(nodes: Table, column: str, counter: _Counter) -> Iterator[TextBlock]:
    for block in nodes.blocks([column]):
        packed = _plain_texts(block.text(column, "a node id"))
        changed = 0
        if packed is None:
            given = block.texts(column, "a node id").tolist()
            texts = NODE_ID.clean_all(given, _place(block))
            changed = sum(before != after for before, after in zip(given, texts, strict=True))
            packed = TextBlock(*pack_texts(texts))
        counter.add(changed, block.row_count)
        yield packed


def _place(block: Table) -> Any:
    return lambda row: f"{block.path}, {block.line(row)}"


def _as_whole(texts: Any) -> np.ndarray | None:
    """(m,) int64 if all texts are whole numbers, written as such."""
    import pyarrow as pa
    from pyarrow import compute

    if not compute.all(compute.match_substring_regex(texts, WHOLE)).as_py() and len(texts):
        return None
    try:
        return texts.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:  # more than 64 bits
        return None


def _plain_texts(texts: Any) -> TextBlock | None:
    """A column of texts as it lies in memory, if all are clean by the look of their bytes: ASCII without controls."""
    import pyarrow as pa

    joined = pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.array([], pa.string())
    _, offsets, content = joined.buffers()
    count = len(joined)
    starts = np.zeros(count + 1, dtype=np.int64)
    if count:
        starts[:] = np.frombuffer(offsets, np.int32, count + 1, 4 * joined.offset)
    low, high = int(starts[0]), int(starts[-1])
    letters = np.frombuffer(content, np.uint8, high - low, low) if high > low else np.zeros(0, np.uint8)
    starts -= low
    lengths = np.diff(starts)
    if count and (int(lengths.min()) < 1 or int(lengths.max()) > LONGEST):
        return None
    if letters.size and (letters.min() < 0x20 or letters.max() > 0x7E):
        return None
    if count and (letters[starts[:-1]] == 0x20).any() | (letters[starts[1:] - 1] == 0x20).any():
        return None
    return TextBlock(letters, starts)
