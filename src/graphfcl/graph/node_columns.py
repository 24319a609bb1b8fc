"""What becomes of each column of a table of nodes. Readers in memory and in blocks use the same plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph.column_names import ID_NAMES, LABEL_NAMES, TEXT_NAMES, TableColumns
from graphfcl.graph.column_values import DECIMAL_COMMA, Kind
from graphfcl.graph.table import Table

LISTED = 8  # columns of one kind that a note lists
ASKED = ("features", "text", "categories", "dates", "vectors")


@dataclass(frozen=True)
class ColumnFacts:
    """What was seen of a column. word: of a column with some numbers, place and value of the first that is none."""

    kind: Kind
    word: tuple[str, str] | None = None


@dataclass(frozen=True)
class NodeColumns:
    """The plan.

    text: columns whose words become features. numbers, dates, in the order of the table: a feature each. categories: a
    feature for each value. vectors: columns of lists; files: ``.npy`` files. left_out: name and reason of all others.
    """

    id: str
    label: str
    text: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def of_table(self) -> tuple[str, ...]:
        """All columns of the table that features come from."""
        return (*self.text, *self.numbers, *self.dates, *self.categories, *self.vectors)

    def note(self, nodes: Table) -> str:
        """One sentence on all columns."""
        used = {
            "the words of": self.text,
            "numbers": self.numbers,
            "dates": self.dates,
            "categories": self.categories,
            "vectors": (*self.vectors, *(file.name for file in self.files)),
        }
        listed = "; ".join(f"{what} {_some(names)}" for what, names in used.items() if names) or "none"
        out = f" Not used: {_some([f'{name} ({why})' for name, why in self.left_out])}." if self.left_out else ""
        return f"{nodes.path.name}: ids are {self.id}, labels {self.label}; features are {listed}.{out}"


@dataclass(frozen=True)
class RequestedColumns:
    """What a user asked for, after it was checked against the names of the columns.

    features: None if all columns of numbers are meant, or the text alone.
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

    @classmethod
    def check(cls, nodes: Table, columns: TableColumns) -> "RequestedColumns":
        """Every name must be that of a column, and no column may be asked for as two things."""
        id_column = nodes.choose(columns.id, ID_NAMES, "node ids")
        label = nodes.choose(columns.label, LABEL_NAMES, "labels")
        asked = {option: columns.names(option, nodes.columns) for option in (*ASKED, "drop")}
        vectors = asked["vectors"] or ()
        files = tuple(_vector_file(nodes, name) for name in vectors if name.endswith(".npy"))
        asked["vectors"] = tuple(name for name in vectors if not name.endswith(".npy"))
        for option, names in asked.items():
            for name in names or ():
                _need(nodes, name, option)
                if name in (id_column, label) and option != "drop":
                    what = "ids" if name == id_column else "labels"
                    raise InputError(f"{nodes.path}: column {name!r} holds the {what}: leave it out of {option}=.")
        drop, features, text = asked["drop"] or (), asked["features"], asked["text"]
        if text is None:
            found = nodes.find(None, TEXT_NAMES, "text")
            free = found is not None and found not in (id_column, label, *drop, *_all(asked, but="features"))
            text = (str(found),) if free and (features is None or found in features) else ()
        _refuse_twice(nodes, {**asked, "text": text, "features": tuple(n for n in features or () if n not in text)})
        return cls(
            id_column,
            label,
            text,
            features,
            drop,
            asked["categories"] or (),
            asked["dates"] or (),
            asked["vectors"] or (),
            files,
        )

    def plan(self, nodes: Table, facts: Mapping[str, ColumnFacts]) -> NodeColumns:
        """The plan for columns of these kinds."""
        numbers, dates, vectors, left_out = [], list(self.dates), list(self.vectors), []
        named = (self.id, self.label, *self.text, *self.categories, *self.dates, *self.vectors)
        for column in [name for name in nodes.columns if name not in named]:
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
        order = nodes.columns.index
        return NodeColumns(
            self.id,
            self.label,
            self.text,
            tuple(numbers),
            tuple(sorted(dates, key=order)),
            self.categories,
            tuple(vectors),
            self.files,
            tuple(left_out),
        )


def _reason(column: str, facts: ColumnFacts) -> str:
    """Why a column is not used."""
    if facts.kind is Kind.DATE:
        return f"dates: dates={column} makes numbers of them"
    if facts.kind is Kind.LIST:
        return f"lists of numbers: vectors={column} uses them"
    if facts.kind is Kind.EMPTY:
        return "empty"
    if facts.kind is Kind.OTHER:
        return "neither numbers nor words"
    if facts.word is not None and DECIMAL_COMMA.fullmatch(facts.word[1]):
        return f"{facts.word[1]!r} in {facts.word[0]} has a decimal comma: write {facts.word[1].replace(',', '.')}"
    if facts.word is not None:
        return f"numbers, but for {facts.word[1]!r} in {facts.word[0]}: fix it, or categories={column}"
    return f"words: text={column} or categories={column} uses them"


def _no_feature(nodes: Table, column: str, facts: ColumnFacts) -> InputError:
    if facts.kind is Kind.TEXT and facts.word is not None and DECIMAL_COMMA.fullmatch(facts.word[1]):
        return InputError(
            f"{nodes.path}, {facts.word[0]}: column {column!r} holds {facts.word[1]!r} with a decimal comma: write "
            f"{facts.word[1].replace(',', '.')}."
        )
    if facts.kind is Kind.TEXT and facts.word is not None:
        return InputError(
            f"{nodes.path}, {facts.word[0]}: column {column!r} holds {facts.word[1]!r}, which is no number: fix it, "
            f"or ask for categories={column}."
        )
    if facts.kind is Kind.TEXT:
        return InputError(
            f"{nodes.path}: column {column!r} holds words: ask for text={column} or categories={column} instead."
        )
    return InputError(f"{nodes.path}: column {column!r} holds {facts.kind.value}, which is no feature: leave it out.")


def _need(nodes: Table, name: str, option: str) -> None:
    if name not in nodes.columns:
        raise InputError(
            f"{nodes.path} has no column {name!r}, which {option}= names: {did_you_mean(name, nodes.columns)}"
        )


def _vector_file(nodes: Table, name: str) -> Path:
    file = nodes.path.parent / name
    if not file.is_file():
        fix = f"put it beside {nodes.path.name}" if nodes.path.suffix else "check the path"  # a DataFrame is nowhere
        raise InputError(f"{file} does not exist, which vectors= names: {fix}.")
    return file


def _all(asked: Mapping[str, tuple[str, ...] | None], *, but: str) -> list[str]:
    return [name for option, names in asked.items() if option != but for name in names or ()]


def _refuse_twice(nodes: Table, asked: Mapping[str, tuple[str, ...] | None]) -> None:
    first: dict[str, str] = {}
    for option, names in asked.items():
        for name in names or ():
            if first.setdefault(name, option) != option:
                raise InputError(
                    f"{nodes.path}: column {name!r} stands in {first[name]}= and in {option}=: choose one of them."
                )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
