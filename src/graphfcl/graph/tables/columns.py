"""Which columns of tables are ids, labels, features and so on: the user's choice, and the choice that was read."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph.ids import normal

ID_NAMES = ("id", "node", "node_id")
LABEL_NAMES = ("label", "class")
TEXT_NAMES = ("text",)
SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
WEIGHT_NAMES = ("weight",)
# Labels that mean unknown, in addition to a blank. Spreadsheets write #N/A, pandas <NA>.
MISSING = ("NA", "N/A", "n.a.", "#N/A", "<NA>", "nan", "None", "null", "unknown", "-1", "-", "?")
Names = str | Iterable[str] | None  # "a+b", "a,b" or a list of names
SEVERAL = ("text", "dates", "categories", "vectors")
REPEATED = {
    "max": "the largest weight stays",
    "sum": "their weights are added up",
    "count": "the weight is their number",
    "last": "the last one stays",
}
UNKNOWN_ENDS = ("refuse", "skip")
DECIMAL = {"point": "point", ".": "point", "comma": "comma", ",": "comma"}
FOLD: dict[Any, bool | None] = {"no": False, "yes": True, False: False, True: True, None: None}


def label_key(name: str) -> str:
    """Normalise a label for the comparison with names that mean unknown."""
    return normal(name).casefold()


def unknown_keys(missing: Iterable[str] | None, known: Iterable[str] | None = None) -> frozenset[str]:
    """Return keys of labels that mean unknown: a blank, the usual names except ``known``, and ``missing``."""
    usual = {label_key(name) for name in MISSING} - {label_key(str(name)) for name in known or ()}
    return frozenset({"", *usual, *(label_key(str(name)) for name in missing or ())})


def gap_keys(missing: Iterable[str] | None, known: Iterable[str] | None = None) -> frozenset[str]:
    """Return keys of texts that mean a missing value: the usual words except ``known``, and ``missing``.

    The usual number -1 is left out: a label -1 is unknown, but a price or a category -1 is a value unless ``missing``
    names it.
    """
    words = {key for key in unknown_keys(None, known) if key and _number(key) is None}
    return frozenset({*words, *(label_key(str(name)) for name in missing or ())} - {""})


def _number(text: str) -> float | None:
    try:
        number = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


@dataclass(frozen=True)
class Notation:
    """How numbers and dates are written in texts.

    Args:
        missing: Keys of texts that mean a missing value.
        decimal: Decimal separator, ``point`` or ``comma``.
    """

    missing: frozenset[str] = gap_keys(None)
    decimal: str = "point"

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """Missing values that are numbers."""
        texts = [text.replace(",", ".") if self.decimal == "comma" else text for text in sorted(self.missing)]
        return tuple(number for number in map(_number, texts) if number is not None)


USUAL = Notation()


@dataclass(frozen=True)
class ReadColumns:
    """The columns that a graph was read from, by which later tables of the same form are read.

    Fields that are not listed here are those of :class:`TableColumns`, as the user set them.

    Args:
        id: Column of node ids.
        label: Column of labels.
        source: Column of the first ends of edges.
        target: Column of the second ends of edges.
        weight: Column of edge weights, or None.
        text: Columns whose words are features.
        dates: Columns of dates.
        categories: Columns with one feature for each value.
        vectors: Columns of lists of numbers, or names of ``.npy`` files. Columns of plain numbers are not listed: they
            have the names of the features.
        unused: Columns of nodes that are no features because they hold no information.
        medians: Median of each column of numbers or dates, which replaces missing values.
        marked: Columns with an additional feature that is 1 where a value is missing.
    """

    id: str
    label: str
    source: str
    target: str
    weight: str | None = None
    text: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    medians: Mapping[str, float] = field(default_factory=dict)
    marked: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    min_nodes: int = 2
    decimal: str = "point"
    fold: bool | None = None
    repeated: str = "max"
    unknown_ends: str = "refuse"

    def requested(self, nodes: Sequence[str], edges: Sequence[str]) -> "TableColumns":
        """Return settings that read new tables in the same way; ``nodes`` and ``edges`` are their column names."""

        def present(names: Iterable[str]) -> list[str] | None:
            return [name for name in names if name in nodes and name not in (self.features or ())] or None

        features = None if self.features is None else [name for name in self.features if name in nodes]
        files = [f"{name}.npy" for name in self.vectors if name not in nodes]
        return TableColumns(
            self.id if self.id in nodes else None,
            self.label if self.label in nodes else None,
            [name for name in self.text if name in nodes] or None,
            self.source if self.source in edges else None,
            self.target if self.target in edges else None,
            self.weight if self.weight in edges else None,
            self.min_nodes,
            features,
            present(self.drop),
            present(self.categories),
            present(self.dates),
            [*(present(self.vectors) or ()), *files] or None,
            self.missing,
            self.known,
            self.decimal,
            self.fold,
            self.repeated,
            self.unknown_ends,
        )

    @property
    def of_nodes(self) -> frozenset[str]:
        """Columns of the table of nodes other than ids, labels and plain numbers."""
        return frozenset((*self.text, *self.dates, *self.categories, *self.vectors, *self.unused))

    @property
    def unknown_keys(self) -> frozenset[str]:
        """Keys of labels that mean unknown."""
        return unknown_keys(self.missing, self.known)

    @property
    def gap_keys(self) -> frozenset[str]:
        """Keys of texts that mean a missing category."""
        return gap_keys(self.missing, self.known)

    @property
    def notation(self) -> Notation:
        return Notation(gap_keys(self.missing), self.decimal)

    def means_unknown(self, name: str) -> bool:
        """Tell whether a label of this name means that the class is not known."""
        return label_key(name) in self.unknown_keys

    def as_json(self) -> dict[str, Any]:
        """Return values for JSON, without optional fields that have their default."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in values.items() if name not in OPTIONAL or value != OPTIONAL[name]}

    @classmethod
    def from_json(cls, values: Any) -> "ReadColumns":
        """Read the values of :meth:`as_json`; a ValueError if they are damaged."""
        if not isinstance(values, Mapping) or set(values) | set(OPTIONAL) != set(cls.__dataclass_fields__):
            raise ValueError("these are no columns of tables")
        values = {**OPTIONAL, **values}
        several = [*SEVERAL, *(name for name, usual in OPTIONAL.items() if usual == [])]
        several += ["features"] * (values["features"] is not None)
        if not all(isinstance(values[key], list) for key in several):
            raise ValueError("these are no lists of columns")
        medians = values["medians"]
        if not isinstance(medians, dict) or not all(
            isinstance(value, float) and math.isfinite(value) for value in medians.values()
        ):
            raise ValueError("the median of a column is no number")
        names = [values[key] for key in ("id", "label", "source", "target")]
        names += [name for key in several for name in values[key]]
        if not all(isinstance(name, str) for name in [*names, values["weight"] or ""]):
            raise ValueError("a column of a table has no name")
        if not medians.keys() >= set(values["marked"]):
            raise ValueError("a column with missing values has no median")
        chosen = values["decimal"] in ("point", "comma") and values["repeated"] in REPEATED
        chosen &= values["unknown_ends"] in UNKNOWN_ENDS
        chosen &= type(values["min_nodes"]) is int and isinstance(values["fold"], bool | None)
        if not chosen:
            raise ValueError("these are no settings of tables")
        fields: dict[str, Any] = {key: tuple(value) if key in several else value for key, value in values.items()}
        return cls(**fields)


# Fields that may be absent from JSON, and their defaults.
OPTIONAL: dict[str, Any] = {
    "missing": [],
    "known": [],
    "unused": [],
    "medians": {},
    "marked": [],
    "features": None,
    "drop": [],
    "min_nodes": 2,
    "decimal": "point",
    "fold": None,
    "repeated": "max",
    "unknown_ends": "refuse",
}


@dataclass(frozen=True)
class TableColumns:
    """Which columns of tables are ids, labels, features and so on, and how values are read.

    Fields that take several names accept a list, or a text such as ``a+b`` or ``a,b``.

    Args:
        id: Column of node ids. Default: the first of ``id``, ``node``, ``node_id``.
        label: Column of labels. Default: the first of ``label``, ``class``.
        text: Columns whose words become features. Default: ``text``, if there is such a column.
        source: Column of the first ends of edges. Default: the first of ``source``, ``src``, ``from``.
        target: Column of the second ends of edges. Default: the first of ``target``, ``dst``, ``to``.
        weight: Column of edge weights. Default: ``weight``, if there is such a column.
        min_nodes: Minimum number of session-0 nodes in which a word must occur to be used.
        features: Columns that become features, each by its type. Default: all columns of numbers, or the text alone if
            there is one.
        drop: Columns that never become features.
        categories: Columns of which each value becomes a feature of 0 and 1.
        dates: Columns that become days since 1970.
        vectors: Parquet columns of lists of numbers, or ``.npy`` files beside the tables with one row per node.
        missing: Labels that mean that the class is not known, in addition to a blank and the usual ones (``NA``,
            ``unknown``, ``-1``, …). In columns of numbers, dates and categories they mean that a value is missing.
        known: Usual ones that are classes in these tables.
        decimal: Decimal separator of numbers in texts, ``point`` or ``comma``.
        fold: Whether labels that differ only by case, white space or accents are one class. None means no, except
            that a refit does what the model does.
        repeated: Weight of an edge with several rows: ``max``, ``sum``, ``count`` or ``last``.
        unknown_ends: What to do with edges whose ends are not among the nodes: ``refuse`` or ``skip``.

    Raises:
        InputError: If an option has a value that it does not take.

    Examples:
        >>> from pathlib import Path
        >>> from graphfcl import TableColumns, read_tables
        >>> _ = Path("nodes.csv").write_text("sku,kind,title\\na,tea,green tea\\nb,tea,black tea\\nc,,tea cup\\n")
        >>> _ = Path("edges.csv").write_text("source,target\\na,b\\nb,c\\n")
        >>> columns = TableColumns(id="sku", label="kind", text="title")
        >>> read_tables(".", columns, name="shop")
        Graph('shop', 3 nodes, 2 edges, 4 features, 1 classes)
    """

    id: str | None = None
    label: str | None = None
    text: Names = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    min_nodes: int = 2
    features: Names = None
    drop: Names = None
    categories: Names = None
    dates: Names = None
    vectors: Names = None
    missing: Names = None
    known: Names = None
    decimal: str = "point"
    fold: bool | str | None = None
    repeated: str = "max"
    unknown_ends: str = "refuse"

    def __post_init__(self) -> None:
        for option, values in (("decimal", DECIMAL), ("fold", FOLD), ("repeated", REPEATED)):
            self._check(option, [value for value in values if isinstance(value, str)], values)
        self._check("unknown_ends", UNKNOWN_ENDS, UNKNOWN_ENDS)
        object.__setattr__(self, "decimal", DECIMAL[self.decimal])
        object.__setattr__(self, "fold", FOLD[self.fold])
        names = {
            option: {label_key(name): name for name in self.names(option) or ()} for option in ("missing", "known")
        }
        both = next((name for key, name in names["known"].items() if key in names["missing"]), None)
        if both is not None:
            raise InputError(f"{both!r} is in both missing= and known=: choose one of them.")

    def _check(self, option: str, listed: Iterable[str], values: Iterable[Any]) -> None:
        value = getattr(self, option)
        if value not in list(values):
            raise InputError(f"{option}={value} is no value of this option: {did_you_mean(str(value), list(listed))}")

    @property
    def notation(self) -> Notation:
        """How numbers and dates are written in texts."""
        return Notation(gap_keys(self.names("missing")), self.decimal)

    @property
    def gap_keys(self) -> frozenset[str]:
        """Keys of texts that mean a missing category."""
        return gap_keys(self.names("missing"), self.names("known"))

    @property
    def unknown_keys(self) -> frozenset[str]:
        """Keys of labels that mean unknown."""
        return unknown_keys(self.names("missing"), self.names("known"))

    def with_options(self, options: Mapping[str, Any]) -> "TableColumns":
        """Return a copy with other values of some fields.

        Args:
            options: New values, by the names of the fields.

        Returns:
            The copy.

        Raises:
            InputError: If a name is not a field.
        """
        for name in options:
            if name not in self.__dataclass_fields__:
                hint = did_you_mean(name, tuple(self.__dataclass_fields__))
                raise InputError(f"there is no option {name!r} for columns of tables: {hint}")
        return replace(self, **options)

    def names(self, option: str, columns: Sequence[str] = ()) -> tuple[str, ...] | None:
        """Return the column names in an option.

        Args:
            option: Name of a field that takes several names.
            columns: Names of existing columns, of which some may contain a plus or a comma.

        Returns:
            The names, each once, or None if the option is not set.
        """
        value = getattr(self, option)
        if value is None:
            return None
        listed = _separate(value, columns) if isinstance(value, str) else value
        return tuple(dict.fromkeys(name for name in (str(each).strip() for each in listed) if name))


def _separate(text: str, columns: Sequence[str]) -> list[str]:
    """Split a text at plus and comma, but keep the longest run of parts that is the name of a column together."""
    parts = re.split("([+,])", text)  # names at even positions, separators at odd ones
    names, start = [], 0
    while start < len(parts):
        ends = range(len(parts), start + 1, -2)
        end = next((end for end in ends if "".join(parts[start:end]).strip() in columns), start + 1)
        names.append("".join(parts[start:end]))
        start = end + 1
    return names
