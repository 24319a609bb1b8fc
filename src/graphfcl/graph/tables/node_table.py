"""Labels, features and notes of a table of nodes, for both readers (in memory and in blocks)."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.graph import UNKNOWN, Features, TextSettings
from graphfcl.graph.ids import bare_name, normal, text_array
from graphfcl.graph.labels import CleanLabels, LabelCoder
from graphfcl.graph.tables.columns import FOLD, ReadColumns, TableColumns
from graphfcl.graph.tables.edge_table import EdgeColumns
from graphfcl.graph.tables.gaps import Gaps, filled
from graphfcl.graph.tables.node_columns import NodeColumns, NodeFacts, joined_texts, scan_nodes
from graphfcl.graph.tables.table import Table
from graphfcl.graph.tables.values import days_of, numbers_of, vectors_of
from graphfcl.graph.tables.words import count_known_words

Blocks = Callable[[Sequence[str]], Iterator[Table]]  # yields the table in blocks, with some of its columns


@dataclass(frozen=True, eq=False)
class NodeFeatures:
    """Features of a table of nodes.

    The order of the features is: words; numbers and dates in the order of the table; marks of missing values;
    categories; vectors.

    Args:
        columns: Use of each column.
        words: (words,) Words in alphabetical order. None if there are no texts.
        categories: Values of each column of categories, in order.
        vectors: Columns of lists and their widths.
        files: Opened ``.npy`` files.
        gaps: Replacements of missing numbers and dates.
        order: Columns of numbers and dates, in the order of the table.
    """

    columns: NodeColumns
    words: np.ndarray | None
    categories: dict[str, list[str]]
    vectors: dict[str, int]
    files: dict[Path, np.ndarray]
    gaps: Gaps
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: NodeColumns, facts: NodeFacts, nodes: Table, blocks: Blocks, count: int) -> "NodeFeatures":
        """Make the features of a table with ``count`` nodes."""
        widths = dict.fromkeys(plan.vectors, 0)
        if plan.vectors:
            first = next(blocks(plan.vectors), None)
            widths = {column: 0 if first is None else vectors_of(first, column, None).shape[1] for column in widths}
        singles = tuple(column for column in nodes.columns if column in (*plan.numbers, *plan.dates))
        files = {path: open_vectors(path, count, nodes.path) for path in plan.files}
        gaps = Gaps.scan(nodes, blocks, singles, plan.dates, count)
        features = cls(plan, facts.words, facts.categories, widths, files, gaps, singles)
        word_count = 0 if facts.words is None else facts.words.size
        twice = [name for name, times in Counter(features.names[word_count:].tolist()).items() if times > 1]
        if twice:
            raise InputError(f"{nodes.path}: two columns give the feature {twice[0]!r}: rename one of them.")
        return features

    @property
    def names(self) -> np.ndarray:
        """(features,) Names of the features."""
        one_hot = [f"{column}={value}" for column, values in self.categories.items() for value in values]
        vectors = [*self.vectors.items(), *((path.stem, file.shape[1]) for path, file in self.files.items())]
        parts = [f"{column}_{place}" for column, width in vectors for place in range(width)]
        words = [] if self.words is None else self.words.tolist()
        return text_array([*words, *self.order, *self.gaps.marks, *one_hot, *parts])

    @property
    def beside(self) -> tuple[int, ...]:
        """Widths of the groups of numeric columns: one of single values and categories, one of each vector source."""
        singles = len(self.order) + len(self.gaps.counts) + sum(map(len, self.categories.values()))
        widths = (singles, *self.vectors.values(), *(file.shape[1] for file in self.files.values()))
        return tuple(width for width in widths if width)

    def text_settings(self, min_nodes: int) -> TextSettings | None:
        """Return text settings for the graph; None if there are no words."""
        return None if self.words is None else TextSettings(min_nodes, self.beside)

    def rows(self, block: Table) -> Features:
        """Return (rows, features) of a block of the table, sparse if there are words."""
        numbers = np.hstack(list(self._numbers(block)))
        if self.words is None:
            return numbers
        texts = joined_texts(block, self.columns.text)
        counts = count_known_words(texts, self.words)
        if not self.beside:
            return counts
        return sparse.csr_array(sparse.hstack([counts, sparse.csr_array(numbers)], format="csr"))

    def _numbers(self, block: Table) -> Iterator[np.ndarray]:
        yield np.zeros((block.row_count, 0), dtype=np.float32)
        marks = []
        for column in self.order:
            numbers = (days_of if column in self.columns.dates else numbers_of)(block, column)
            if column in self.gaps.counts:
                marks.append(np.isnan(numbers)[:, np.newaxis].astype(np.float32))
            yield filled(numbers, self.gaps.medians[column])[:, np.newaxis]
        yield from marks
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
    """Return (rows, values) float32, 1 where a text is that value. Other texts give a row of zeros."""
    place_of = {value: place for place, value in enumerate(values)}
    codes = {text: place_of.get(normal(text), -1) for text in set(texts)}
    places = np.array([codes[text] for text in texts], dtype=np.int64)
    result = np.zeros((len(texts), len(values)), dtype=np.float32)
    rows = np.flatnonzero(places >= 0)
    result[rows, places[rows]] = 1
    return result


def open_vectors(path: Path, count: int, nodes: Path) -> np.ndarray:
    """Open (nodes, d) numbers in an ``.npy`` file as a memory map. Pickled objects are never loaded."""
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} is not an array from numpy.save, or a pickled one: save plain numbers.") from error
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise InputError(f"{path} does not hold a matrix of numbers: save one row for each node.")
    if matrix.shape[0] != count:
        raise InputError(
            f"{path} has {matrix.shape[0]:,} rows for {count:,} nodes: save one for each node, in the order of "
            f"{nodes.name}."
        )
    return matrix


@dataclass(frozen=True, eq=False)
class NodeTable:
    """Labels and features of a table of nodes, notes and warnings about its columns, and the user's options."""

    labels: CleanLabels
    features: NodeFeatures
    notes: tuple[str, ...]
    options: TableColumns

    def read_columns(self, ends: EdgeColumns) -> ReadColumns:
        """Return the columns by which later tables of the same form are read."""
        plan, gaps, options = self.features.columns, self.features.gaps, self.options
        vectors = (*plan.vectors, *(path.stem for path in plan.files))
        return ReadColumns(
            plan.id,
            plan.label,
            ends.source,
            ends.target,
            ends.weight,
            text=plan.text,
            dates=plan.dates,
            categories=plan.categories,
            vectors=vectors,
            missing=options.names("missing") or (),
            known=options.names("known") or (),
            unused=tuple(name for name, _ in plan.left_out),
            medians=gaps.medians,
            marked=tuple(gaps.counts),
            features=plan.features,
            drop=plan.drop,
            min_nodes=options.min_nodes,
            decimal=options.decimal,
            fold=FOLD[options.fold],
            repeated=ends.repeated,
            unknown_ends=ends.unknown_ends,
        )


def read_node_table(nodes: Table, requested: NodeColumns, columns: TableColumns, blocks: Blocks) -> NodeTable:
    """Read the labels, scan all other columns once, and decide how to use them."""
    labels = _labels(nodes, requested.label, blocks, columns)
    others = requested.others(nodes)
    rows = blocks(others) if others else iter(())
    facts = scan_nodes(rows, nodes, requested, _bare_numbers(labels), columns.gap_keys)
    plan = requested.plan(nodes, facts.columns)
    features = NodeFeatures.of(plan, facts, nodes, blocks, labels.numbers.size)
    note = plan.note(nodes, labels.numbers.size, features.gaps)
    return NodeTable(labels, features, (note, *facts.warnings(plan.of_table)), columns)


def _bare_numbers(labels: CleanLabels) -> np.ndarray:
    """Return (n,) class numbers that do not distinguish names by case, accents or spaces.

    They are used to find columns that determine the label, whatever its spelling.
    """
    place_of: dict[str, int] = {}
    places = [place_of.setdefault(bare_name(name), len(place_of)) for name in labels.names]
    return np.array([*places, UNKNOWN], dtype=np.int64)[labels.numbers]


def _labels(nodes: Table, column: str, blocks: Blocks, columns: TableColumns) -> CleanLabels:
    coder, read_numbers = LabelCoder(), False
    for block in blocks([column]):
        read_numbers = not block.says_text(column)
        labels = block.different_labels(column)
        if isinstance(labels, tuple):
            coder.add(*labels)
        else:
            coder.add_numbers(labels)
    return coder.finish(
        str(nodes.path),
        nodes.place,
        columns.names("missing"),
        columns.names("known"),
        fold=bool(columns.fold),
        read_numbers=read_numbers,
    )
