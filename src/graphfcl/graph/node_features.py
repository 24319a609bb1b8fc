"""Features of the rows of a table of nodes, as a plan of its columns says."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.column_values import days_of, numbers_of, vectors_of
from graphfcl.graph.graph import Features, TextSettings
from graphfcl.graph.ids import normal, text_array
from graphfcl.graph.node_columns import NodeColumns
from graphfcl.graph.node_scan import NodeFacts, joined_texts
from graphfcl.graph.table import Table
from graphfcl.graph.text import count_known_words

Blocks = Callable[[Sequence[str]], Iterator[Table]]  # the table in parts, with some of its columns


@dataclass(frozen=True, eq=False)
class NodeFeatures:
    """Columns in this order: words; numbers and dates as in the table; categories; vectors.

    words: (words,) in order, None if there are no texts. categories: the values of each such column, in order.
    vectors: columns of lists and their widths. files: ``.npy`` files, opened.
    """

    columns: NodeColumns
    words: np.ndarray | None
    categories: dict[str, list[str]]
    vectors: dict[str, int]
    files: dict[Path, np.ndarray]
    order: tuple[str, ...] = field(default=())

    @classmethod
    def of(cls, plan: NodeColumns, facts: NodeFacts, nodes: Table, blocks: Blocks, count: int) -> "NodeFeatures":
        """count: how many nodes the table has."""
        widths = dict.fromkeys(plan.vectors, 0)
        if plan.vectors:
            first = next(blocks(plan.vectors), None)
            widths = {column: 0 if first is None else vectors_of(first, column, None).shape[1] for column in widths}
        singles = tuple(column for column in nodes.columns if column in (*plan.numbers, *plan.dates))
        files = {path: open_vectors(path, count, nodes.path) for path in plan.files}
        return cls(plan, facts.words, facts.categories, widths, files, singles)

    @property
    def names(self) -> np.ndarray:
        """(features,) what they are called."""
        one_hot = [f"{column}={value}" for column, values in self.categories.items() for value in values]
        vectors = [*self.vectors.items(), *((path.stem, file.shape[1]) for path, file in self.files.items())]
        parts = [f"{column}_{place}" for column, width in vectors for place in range(width)]
        return text_array([*([] if self.words is None else self.words.tolist()), *self.order, *one_hot, *parts])

    @property
    def beside(self) -> tuple[int, ...]:
        """How many columns stand beside words, in groups: single values and categories; the vectors of each source."""
        singles = len(self.order) + sum(map(len, self.categories.values()))
        widths = (singles, *self.vectors.values(), *(file.shape[1] for file in self.files.values()))
        return tuple(width for width in widths if width)

    def text_settings(self, min_nodes: int) -> TextSettings | None:
        """How the features of the graph are to be read; None if there are no words."""
        return None if self.words is None else TextSettings(min_nodes, self.beside)

    def rows(self, block: Table) -> Features:
        """(rows, features) of some rows of the table; sparse if there are words."""
        numbers = np.hstack(list(self._numbers(block)))
        if self.words is None:
            return numbers
        texts = joined_texts(block, self.columns.text)
        counts = (
            count_known_words(texts, self.words)
            if self.words.size
            else sparse.csr_array((len(texts), 0), dtype=np.float32)
        )
        return (
            sparse.csr_array(sparse.hstack([counts, sparse.csr_array(numbers)], format="csr"))
            if self.beside
            else counts
        )

    def _numbers(self, block: Table) -> Iterator[np.ndarray]:
        yield np.zeros((block.row_count, 0), dtype=np.float32)
        for column in self.order:
            yield (
                numbers_of(block, [column]) if column in self.columns.numbers else days_of(block, column)[:, np.newaxis]
            )
        for column, values in self.categories.items():
            yield one_hot(block.texts(column, None).tolist(), values)
        for column, width in self.vectors.items():
            yield vectors_of(block, column, width)
        for path, file in self.files.items():
            part = np.asarray(file[block.first : block.first + block.row_count], dtype=np.float32)
            if not np.isfinite(part).all():
                row = block.first + int(np.argwhere(~np.isfinite(part))[0][0])
                raise InputError(f"{path}, row {row + 1}: a number is NaN or infinite; fill it in.")
            yield part


def one_hot(texts: Sequence[str], values: Sequence[str]) -> np.ndarray:
    """(rows, values) float32, 1 where a text is that value; a text that is none of them has no 1."""
    place_of = {value: place for place, value in enumerate(values)}
    codes = {text: place_of.get(normal(text), -1) for text in set(texts)}
    places = np.array([codes[text] for text in texts], dtype=np.int64)
    result = np.zeros((len(texts), len(values)), dtype=np.float32)
    rows = np.flatnonzero(places >= 0)
    result[rows, places[rows]] = 1
    return result


def open_vectors(path: Path, count: int, nodes: Path) -> np.ndarray:
    """(nodes, d) numbers of an ``.npy`` file, read when they are asked for. Nothing is unpickled."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} is no array that numpy.save wrote, or a pickled one: save plain numbers.") from error
    if not isinstance(found, np.ndarray) or found.ndim != 2 or found.dtype.kind not in "biuf":
        raise InputError(f"{path} does not hold a matrix of numbers: save one row for each node.")
    if found.shape[0] != count:
        raise InputError(
            f"{path} has {found.shape[0]:,} rows for {count:,} nodes: save one for each node, in the order of "
            f"{nodes.name}."
        )
    return found
