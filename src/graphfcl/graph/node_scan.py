"""One look through a table of nodes: what its columns hold, their values and words, and what gives labels away."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.column_values import DECIMAL_COMMA, Kind, KindOfTexts, declared_kind, says_text, trimmed
from graphfcl.graph.ids import normal, text_array
from graphfcl.graph.labels import natural_order
from graphfcl.graph.node_columns import ColumnFacts, RequestedColumns
from graphfcl.graph.table import Table
from graphfcl.graph.text import count_words

MOST_VALUES = 1_000  # different values of a column of categories
ROWS = 1 << 14  # at a time, where only what differs is counted
# A column gives labels away if it answers nearly all that the largest class does not, with far fewer values than nodes.
FEWEST_LABELLED, NODES_A_VALUE, ANSWERED, MOST_COUNTED = 20, 5, 0.95, 20_000


@dataclass(frozen=True, eq=False)
class NodeFacts:
    """columns: what each holds. words: (words,) of the text columns, in alphabetical order, None without any.

    categories: the values of each such column, in order. given_away: columns that nearly determine the label, with the
    share of labelled nodes that have the usual class of their value.
    """

    columns: dict[str, ColumnFacts]
    words: np.ndarray | None
    categories: dict[str, list[str]]
    given_away: dict[str, float]

    def warnings(self, used: Sequence[str]) -> list[str]:
        """A sentence for each used column that nearly determines the label."""
        return [
            f"Warning: column {column!r} nearly determines the label ({share:.1%} of the labelled nodes have the usual "
            f"class of their value): if it is not known of nodes without a label, leave it out (drop={column})."
            for column, share in self.given_away.items()
            if column in used
        ]


def scan_nodes(blocks: Iterator[Table], nodes: Table, asked: RequestedColumns, labels: np.ndarray) -> NodeFacts:
    """blocks: of the whole table, with all columns but ids and labels. labels: (n,) class numbers, -1 where unknown."""
    others = [column for column in nodes.columns if column not in (asked.id, asked.label)]
    declared = _declared(nodes, others)
    texts = {column: KindOfTexts() for column in others if column not in declared}
    counters = {column: _Association(labels) for column in others if column not in (*asked.drop, *asked.vectors)}
    values: dict[str, set[str]] = {column: set() for column in asked.categories}
    words: set[str] = set()
    for block in blocks:
        for column, seen_texts in texts.items():
            seen_texts.add(block.column(column), block.first)
        for column, seen in values.items():
            seen.update(category_texts(block, column))
            if len(seen) > MOST_VALUES:
                raise InputError(
                    f"{nodes.path}: column {column!r} has more than {MOST_VALUES:,} different values, too many for "
                    f"categories: ask for text={column}, or leave it out."
                )
        if asked.text:
            words.update(count_words(joined_texts(block, asked.text))[1].tolist())
        for piece in block.pieces(ROWS):
            for column, counter in counters.items():
                counter.add(piece.column(column), piece.first)
    return NodeFacts(
        columns={
            c: ColumnFacts(declared[c]) if c in declared else _facts(nodes, texts[c], labels.size) for c in others
        },
        words=text_array(sorted(words)) if asked.text else None,
        categories={column: sorted(seen - {""}, key=natural_order) for column, seen in values.items()},
        given_away={c: share for c, counter in counters.items() if (share := counter.share()) is not None},
    )


def joined_texts(block: Table, columns: Sequence[str]) -> list[str]:
    """The texts of some columns, one behind the other; "" where there is none."""
    texts = [block.texts(column, None).tolist() for column in columns]
    return texts[0] if len(texts) == 1 else [" ".join(row) for row in zip(*texts, strict=True)]


def category_texts(block: Table, column: str) -> list[str]:
    """The different values of a column of categories; "" among them if a place is empty."""
    return sorted({normal(text) for text in block.text(column, None).unique().to_pylist()})


def _declared(nodes: Table, columns: Sequence[str]) -> dict[str, Kind]:
    """What Parquet says of its columns; CSV says nothing."""
    if nodes.is_csv:
        return {}
    return {column: declared_kind(nodes.schema.field(column).type) or Kind.TEXT for column in columns}


def _facts(nodes: Table, texts: KindOfTexts, rows: int) -> ColumnFacts:
    if not rows:
        return ColumnFacts(Kind.NUMBER)  # so that a table without rows keeps its features
    if texts.kind is Kind.TEXT and texts.word is not None and (texts.some_numbers or _has_comma(texts.word[1])):
        return ColumnFacts(Kind.TEXT, (nodes.line(texts.word[0]), texts.word[1]))
    return ColumnFacts(texts.kind)


def _has_comma(word: str) -> bool:
    return DECIMAL_COMMA.fullmatch(word) is not None


class _Association:
    """How well the values of a column tell the label: Goodman and Kruskal's λ, given up when values are too many."""

    def __init__(self, labels: np.ndarray) -> None:
        self._labels, self._labelled = labels, int((labels >= 0).sum())
        self._limit = min(self._labelled // NODES_A_VALUE, MOST_COUNTED) if self._labelled >= FEWEST_LABELLED else 0
        self._codes: dict[Any, int] = {}
        self._counts: dict[tuple[int, int], int] = {}

    def add(self, values: Any, first: int) -> None:
        """The values of the next nodes. first: nodes before them."""
        import pyarrow as pa

        if not self._limit or pa.types.is_nested(values.type):
            return
        try:
            values = trimmed(values) if says_text(values.type) else values
            encoded = values.combine_chunks().dictionary_encode()
            different = encoded.dictionary.to_pylist()
        except (pa.ArrowException, UnicodeDecodeError):  # not UTF-8: whoever uses the column says so
            self._give_up()
            return
        labels = self._labels[first : first + len(values)]
        places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        known = (labels >= 0) & (places >= 0)
        classes = int(self._labels.max()) + 1
        pairs, counts = np.unique(places[known] * np.int64(classes) + labels[known], return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            code = self._codes.setdefault(different[pair // classes], len(self._codes))
            key = (code, pair % classes)
            self._counts[key] = self._counts.get(key, 0) + count
        if len(self._codes) > self._limit:
            self._give_up()

    def _give_up(self) -> None:
        self._limit, self._codes, self._counts = 0, {}, {}

    def share(self) -> float | None:
        """The share of nodes that have the usual class of their value, if that is nearly all; None otherwise."""
        if not self._limit or not self._counts:
            return None
        best = np.zeros(len(self._codes), dtype=np.int64)
        sizes = np.zeros(int(self._labels.max()) + 1, dtype=np.int64)
        for (code, label), count in self._counts.items():
            best[code] = max(best[code], count)
            sizes[label] += count
        counted, largest = int(sizes.sum()), int(sizes.max())
        if counted * 2 < self._labelled or largest == counted:
            return None
        answered = (int(best.sum()) - largest) / (counted - largest)
        return int(best.sum()) / counted if answered >= ANSWERED else None
