"""Decide what becomes of each column of a table of nodes, for both readers (in memory and in blocks)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphfcl.errors import InputError, counted, did_you_mean
from graphfcl.graph.ids import normal, text_array
from graphfcl.graph.labels import natural_order
from graphfcl.graph.tables.columns import ID_NAMES, LABEL_NAMES, TEXT_NAMES, TableColumns, label_key
from graphfcl.graph.tables.gaps import Gaps
from graphfcl.graph.tables.table import Table
from graphfcl.graph.tables.values import (
    DECIMAL_COMMA,
    THOUSANDS,
    THOUSANDS_FIX,
    Kind,
    KindOfTexts,
    declared_kind,
    has_values,
    says_text,
    trimmed,
)
from graphfcl.graph.tables.words import count_words

LISTED = 8  # columns of each kind that a note lists
OPTIONS = ("features", "text", "categories", "dates", "vectors", "drop")
MOST_VALUES = 1_000  # maximum number of different values in a column of categories
ROWS = 1 << 14  # rows in a block while values are counted
# A column leaks labels if its few values predict the class of nearly all nodes outside the largest class.
FEWEST_LABELLED, NODES_A_VALUE, ANSWERED, MOST_COUNTED = 20, 5, 0.95, 20_000


@dataclass(frozen=True)
class ColumnFacts:
    """Kind of a column; ``word`` is place and value of the first text that is no number, if others are numbers."""

    kind: Kind
    word: tuple[str, str] | None = None


@dataclass(frozen=True)
class NodeColumns:
    """The user's choice of columns, checked against the table. :meth:`plan` adds ``numbers`` and ``left_out``.

    Args:
        id: Column of node ids.
        label: Column of labels.
        text: Columns whose words become features.
        features: Columns that the user chose as features. None takes all columns of numbers, or the text alone.
        drop: Columns that never become features.
        categories: Columns with one feature for each value.
        dates: Columns of dates, in the order of the table.
        vectors: Columns of lists of numbers.
        files: ``.npy`` files with vectors.
        numbers: Columns of numbers, in the order of the table.
        left_out: Name and reason of each column that is not used.
    """

    id: str
    label: str
    text: tuple[str, ...]
    features: tuple[str, ...] | None
    drop: tuple[str, ...]
    categories: tuple[str, ...]
    dates: tuple[str, ...]
    vectors: tuple[str, ...]
    files: tuple[Path, ...]
    numbers: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def of_table(self) -> tuple[str, ...]:
        """All columns of the table that become features."""
        return (*self.text, *self.numbers, *self.dates, *self.categories, *self.vectors)

    def others(self, nodes: Table) -> list[str]:
        """Return all columns except ids and labels."""
        return [column for column in nodes.columns if column not in (self.id, self.label)]

    def note(self, nodes: Table, count: int, gaps: Gaps) -> str:
        """Return a note on all columns; ``count`` is the number of nodes."""
        used = {
            "the words of": self.text,
            "numbers": self.numbers,
            "dates": self.dates,
            "categories": self.categories,
            "vectors": (*self.vectors, *(file.name for file in self.files)),
        }
        listed = "; ".join(f"{what} {_some(names)}" for what, names in used.items() if names) or "none"
        out = f" Not used: {_some([f'{name} ({why})' for name, why in self.left_out])}." if self.left_out else ""
        return (
            f"{nodes.path.name}: {counted(count, 'row')}; ids are {self.id}, labels {self.label}; features are "
            f"{listed}.{gaps.note(self.dates)}{out}"
        )

    @classmethod
    def check(cls, nodes: Table, columns: TableColumns) -> "NodeColumns":
        """Check that each name is a column and no column is chosen for two uses."""
        id_column = nodes.choose(columns.id, ID_NAMES, "node ids")
        label = nodes.choose(columns.label, LABEL_NAMES, "labels")
        names = {option: columns.names(option, nodes.columns) for option in OPTIONS}
        vectors = names["vectors"] or ()
        files = tuple(_vector_file(nodes, name) for name in vectors if name.endswith(".npy"))
        names["vectors"] = tuple(name for name in vectors if not name.endswith(".npy"))
        for option, name in [(option, name) for option, listed in names.items() for name in listed or ()]:
            if name not in nodes.columns:
                hint = did_you_mean(name, nodes.columns)
                raise InputError(f"{nodes.path} has no column {name!r}, which {option}= names: {hint}")
            if name in (id_column, label) and option != "drop":
                what = "ids" if name == id_column else "labels"
                raise InputError(f"{nodes.path}: column {name!r} holds the {what}: leave it out of {option}=.")
        features, text = names["features"], names["text"]
        if text is None:
            usual = nodes.find(None, TEXT_NAMES, "text")
            taken = [name for option, listed in names.items() if option != "features" for name in listed or ()]
            free = usual is not None and usual not in (id_column, label, *taken)
            text = (str(usual),) if free and (features is None or usual in features) else ()
        others = tuple(name for name in features or () if name not in text)
        _refuse_twice(nodes, {**names, "text": text, "features": others})
        drop, categories, dates, vectors = (
            names[option] or () for option in ("drop", "categories", "dates", "vectors")
        )
        return cls(id_column, label, text, features, drop, categories, dates, vectors, files)

    def plan(self, nodes: Table, facts: Mapping[str, ColumnFacts]) -> "NodeColumns":
        """Decide the use of each column by its kind."""
        numbers, dates, vectors, left_out = [], list(self.dates), list(self.vectors), []
        for column in [name for name in self.others(nodes) if name not in self.of_table]:
            kind = facts[column].kind
            if column in self.drop:
                left_out.append((column, "dropped"))
            elif self.features is not None and column not in self.features:
                left_out.append((column, "not among features="))
            elif self.features is None and kind is Kind.NUMBER and self.text:
                left_out.append((column, f"numbers: features={'+'.join([*self.text, column])} uses them"))
            elif kind is Kind.NUMBER:
                numbers.append(column)
            elif self.features is None:
                left_out.append((column, _reason(column, facts[column])))
            elif kind is Kind.DATE:
                dates.append(column)
            elif kind is Kind.LIST:
                vectors.append(column)
            else:
                raise _no_feature(nodes, column, facts[column])
        return replace(
            self,
            numbers=tuple(numbers),
            dates=tuple(sorted(dates, key=nodes.columns.index)),
            vectors=tuple(vectors),
            left_out=tuple(left_out),
        )


def _reason(column: str, facts: ColumnFacts) -> str:
    """Say why a column is not used."""
    if facts.kind is Kind.DATE:
        return f"dates: dates={column} makes numbers of them"
    if facts.kind is Kind.LIST:
        return f"lists of numbers: vectors={column} uses them"
    if facts.kind is Kind.EMPTY:
        return "empty"
    if facts.kind is Kind.OTHER:
        return "neither numbers nor words"
    if facts.word is None:
        return f"words: text={column} or categories={column} uses them"
    line, word = facts.word
    if THOUSANDS.fullmatch(word):
        return f"numbers, except {word!r} in {line}: {THOUSANDS_FIX}"
    if DECIMAL_COMMA.fullmatch(word):
        return f"{word!r} in {line} has a decimal comma: decimal=comma reads such numbers"
    return f"numbers, except {word!r} in {line}: fix it, use missing={word} if it means missing, or categories={column}"


def _no_feature(nodes: Table, column: str, facts: ColumnFacts) -> InputError:
    place, reason = str(nodes.path), f"holds {facts.kind.value}, which is no feature: leave it out."
    if facts.word is not None:
        line, word = facts.word
        place, reason = (
            f"{place}, {line}",
            f"holds {word!r}, which is no number: fix it, or use missing={word} or categories={column}.",
        )
        if DECIMAL_COMMA.fullmatch(word):
            reason = f"holds {word!r} with a decimal comma: use decimal=comma."
        if THOUSANDS.fullmatch(word):
            reason = f"holds {word!r}, which is no number: {THOUSANDS_FIX}."
    elif facts.kind is Kind.TEXT:
        reason = f"holds words: use text={column} or categories={column} instead."
    return InputError(f"{place}: column {column!r} {reason}")


def _vector_file(nodes: Table, name: str) -> Path:
    file = nodes.path.parent / name
    if not file.is_file():
        fix = f"put it beside {nodes.path.name}" if nodes.path.suffix else "check the path"  # a DataFrame has no folder
        raise InputError(f"{file} does not exist, which vectors= names: {fix}.")
    return file


def _refuse_twice(nodes: Table, requested: Mapping[str, tuple[str, ...] | None]) -> None:
    first: dict[str, str] = {}
    for option, names in requested.items():
        for name in names or ():
            if first.setdefault(name, option) != option:
                raise InputError(
                    f"{nodes.path}: column {name!r} is in both {first[name]}= and {option}=: choose one of them."
                )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


@dataclass(frozen=True, eq=False)
class NodeFacts:
    """Facts about the columns of a table, from one pass over its rows.

    Args:
        columns: Kind of each column.
        words: (words,) Words of the text columns in alphabetical order. None without text columns.
        categories: Values of each column of categories, in order.
        leaks: Columns that nearly determine the label, with the share of labelled nodes that have the most frequent
            class of their value.
    """

    columns: dict[str, ColumnFacts]
    words: np.ndarray | None
    categories: dict[str, list[str]]
    leaks: dict[str, float]

    def warnings(self, used: Sequence[str]) -> list[str]:
        """Return a warning for each used column that nearly determines the label."""
        return [
            f"Warning: column {column!r} nearly determines the label ({share:.1%} of the labelled nodes have the usual "
            f"class of their value): if it is not known of nodes without a label, leave it out (drop={column})."
            for column, share in self.leaks.items()
            if column in used
        ]


def scan_nodes(
    blocks: Iterator[Table], nodes: Table, requested: NodeColumns, labels: np.ndarray, gap_keys: frozenset[str]
) -> NodeFacts:
    """Collect facts about the columns in one pass.

    Args:
        blocks: Blocks of the whole table with all columns except ids and labels.
        nodes: The table.
        requested: The user's choice of columns.
        labels: (n,) Class numbers, -1 where unknown.
        gap_keys: Keys of texts that mean a missing category.
    """
    others = requested.others(nodes)
    declared = _declared_kinds(nodes, requested)
    texts = {column: KindOfTexts(nodes.notation) for column in others if column not in declared}
    empty = {column for column, kind in declared.items() if kind in (Kind.NUMBER, Kind.DATE) and labels.size}
    unused = (*requested.drop, *requested.vectors)
    associations = {column: Association(labels) for column in others if column not in unused}
    values: dict[str, set[str]] = {column: set() for column in requested.categories}
    words: set[str] = set()
    for block in blocks:
        for column, kind in texts.items():
            kind.add(block.column(column), block.first)
        empty = {column for column in empty if not has_values(block.column(column), nodes.notation)}
        for column, seen in values.items():
            different = {normal(text) for text in block.text(column, None).unique().to_pylist()}
            seen.update(text for text in different if text and label_key(text) not in gap_keys)
            if len(seen) > MOST_VALUES:
                raise InputError(
                    f"{nodes.path}: column {column!r} has more than {MOST_VALUES:,} different values, too many for "
                    f"categories: use text={column}, or leave it out."
                )
        if requested.text:
            words.update(count_words(joined_texts(block, requested.text))[1].tolist())
        for piece in block.pieces(ROWS):
            for column, association in associations.items():
                association.add(piece.column(column), piece.first)
    declared |= dict.fromkeys(empty, Kind.EMPTY)
    return NodeFacts(
        columns={
            c: ColumnFacts(declared[c]) if c in declared else _facts(nodes, texts[c], labels.size) for c in others
        },
        words=text_array(sorted(words)) if requested.text else None,
        categories={column: sorted(seen, key=natural_order) for column, seen in values.items()},
        leaks={c: share for c, each in associations.items() if (share := each.share()) is not None},
    )


def _declared_kinds(nodes: Table, requested: NodeColumns) -> dict[str, Kind]:
    """Return the kinds of columns with a known type. A text column in ``features`` is left out: it may hold numbers."""
    typed = [column for column in requested.others(nodes) if nodes.has_type(column)]
    kinds = {column: declared_kind(nodes.schema.field(column).type) for column in typed}
    numbers = {*(requested.features or ())} - {*requested.text}
    return {column: kind or Kind.TEXT for column, kind in kinds.items() if kind or column not in numbers}


def joined_texts(block: Table, columns: Sequence[str]) -> list[str]:
    """Join the texts of some columns in each row with spaces; "" where there is none."""
    texts = [block.texts(column, None).tolist() for column in columns]
    return texts[0] if len(texts) == 1 else [" ".join(row) for row in zip(*texts, strict=True)]


def _facts(nodes: Table, texts: KindOfTexts, rows: int) -> ColumnFacts:
    if not rows:
        return ColumnFacts(Kind.NUMBER)  # a table without rows keeps its features
    if texts.kind is Kind.TEXT and texts.word is not None:
        row, word = texts.word
        if texts.some_numbers or DECIMAL_COMMA.fullmatch(word) or THOUSANDS.fullmatch(word):
            return ColumnFacts(Kind.TEXT, (nodes.line(row), word))
    return ColumnFacts(texts.kind)


class Association:
    """Measures how well the values of a column predict the label, by Goodman and Kruskal's λ.

    It stops when the column has too many different values.
    """

    def __init__(self, labels: np.ndarray) -> None:
        self._labels, self._labelled = labels, int((labels >= 0).sum())
        self._limit = min(self._labelled // NODES_A_VALUE, MOST_COUNTED) if self._labelled >= FEWEST_LABELLED else 0
        self._codes: dict[Any, int] = {}
        self._counts: dict[tuple[int, int], int] = {}

    def add(self, values: Any, first: int) -> None:
        """Add the values of the next nodes; ``first`` is the number of nodes before them."""
        if not self._limit or pa.types.is_nested(values.type):
            return
        try:
            values = trimmed(values) if says_text(values.type) else values
            encoded = values.combine_chunks().dictionary_encode()
            different = encoded.dictionary.to_pylist()
        except (pa.ArrowException, UnicodeDecodeError):  # not UTF-8, which is reported when the column is used
            self._give_up()
            return
        labels = self._labels[first : first + len(values)]
        places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        both = (labels >= 0) & (places >= 0)
        used = [different[place] for place in np.unique(places[both]).tolist()]
        if len(self._codes.keys() | used) > self._limit:
            self._give_up()
            return
        classes = int(self._labels.max()) + 1
        pairs, counts = np.unique(places[both] * np.int64(classes) + labels[both], return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            code = self._codes.setdefault(different[pair // classes], len(self._codes))
            key = (code, pair % classes)
            self._counts[key] = self._counts.get(key, 0) + count

    def _give_up(self) -> None:
        self._limit, self._codes, self._counts = 0, {}, {}

    def share(self) -> float | None:
        """Return the share of nodes with the most frequent class of their value if λ is nearly 1, else None."""
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
