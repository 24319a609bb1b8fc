"""What the columns of tables of nodes and edges are called: what a user says, and what was read."""

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
# Labels that mean unknown; a blank does besides. Spreadsheets write #N/A, pandas <NA>.
MISSING = ("NA", "N/A", "n.a.", "#N/A", "<NA>", "nan", "None", "null", "unknown", "-1", "-", "?")
Names = str | Iterable[str] | None  # "a+b" or "a,b", or a list of names
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
    """The form in which labels are compared with names that mean unknown."""
    return normal(name).casefold()


def unknown_keys(missing: Iterable[str] | None, known: Iterable[str] | None = None) -> frozenset[str]:
    """The labels that mean unknown, as keys: a blank, the usual ones but for ``known``, and ``missing``."""
    usual = {label_key(name) for name in MISSING} - {label_key(str(name)) for name in known or ()}
    return frozenset({"", *usual, *(label_key(str(name)) for name in missing or ())})


def gap_keys(missing: Iterable[str] | None, known: Iterable[str] | None = None) -> frozenset[str]:
    """The texts in place of which there is no value, as keys: the usual words but for ``known``, and ``missing``.

    A label -1 is unknown, but a price or a category -1 is a value unless ``missing`` names it.
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

    missing: texts in place of which there is no value, as keys. decimal: comma or point.
    """

    missing: frozenset[str] = gap_keys(None)
    decimal: str = "point"

    @cached_property
    def missing_numbers(self) -> tuple[float, ...]:
        """The numbers among them."""
        texts = [text.replace(",", ".") if self.decimal == "comma" else text for text in sorted(self.missing)]
        return tuple(number for number in map(_number, texts) if number is not None)


USUAL = Notation()


@dataclass(frozen=True)
class ReadColumns:
    """The columns that a graph was read from, so that later tables of the same form are read alike.

    text: columns whose words are features. dates, categories, vectors: columns of which several features or other
    numbers were made; those of plain numbers are called as the features. missing: further labels that mean unknown;
    known: usual ones that are classes. unused: columns of nodes that say nothing. medians: of each column of numbers or
    dates, in place of a missing value. marked: those of which a feature says where a value is missing.
    features and drop: what a user asked for; with the fields behind them as in :class:`TableColumns`.
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
        """What reads tables as those of the fit were read. nodes, edges: the columns that they have."""

        def there(names: Iterable[str]) -> list[str] | None:
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
            there(self.drop),
            there(self.categories),
            there(self.dates),
            [*(there(self.vectors) or ()), *files] or None,
            self.missing,
            self.known,
            self.decimal,
            self.fold,
            self.repeated,
            self.unknown_ends,
        )

    @property
    def of_nodes(self) -> frozenset[str]:
        """The columns of the table of nodes that are neither ids nor labels, but for those of plain numbers."""
        return frozenset((*self.text, *self.dates, *self.categories, *self.vectors, *self.unused))

    @property
    def unknown_keys(self) -> frozenset[str]:
        """The labels that mean unknown, as keys."""
        return unknown_keys(self.missing, self.known)

    @property
    def gap_keys(self) -> frozenset[str]:
        """The texts that are no category, as keys."""
        return gap_keys(self.missing, self.known)

    @property
    def notation(self) -> Notation:
        return Notation(gap_keys(self.missing), self.decimal)

    def means_unknown(self, name: str) -> bool:
        """Whether a label of this name means that the class is not known."""
        return label_key(name) in self.unknown_keys

    def as_json(self) -> dict[str, Any]:
        """Plain values; what most tables do not have is left out."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {name: value for name, value in values.items() if name not in OPTIONAL or value != OPTIONAL[name]}

    @classmethod
    def from_json(cls, values: Any) -> "ReadColumns":
        """The reverse; ValueError if it is not that."""
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


# The fields that JSON may lack, with what they are then.
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
    """Which columns of the tables are what. Several names are written ``a+b`` or ``a,b``, in Python also as a list.

    id, label, source, target, weight: None means the first of the usual names that is there.
    text: columns whose words become features; None: the column ``text`` if there is one.
    min_nodes: that of :class:`graphfcl.graph.TextSettings`.
    features: the columns that are features, each as what it is; None: all columns of numbers, or the text alone.
    drop: columns that are never features. categories: columns of which each value becomes a feature of 0 and 1.
    dates: columns that become days since 1970. vectors: columns of lists of numbers (Parquet), or ``.npy`` files
    beside the tables with a row for each node.
    missing: labels that mean that the class is not known, besides a blank and the usual ones. In columns of numbers,
    dates and categories they mean that there is no value. known: usual ones that are classes.
    decimal: ``comma`` if numbers in texts are written so. fold: spellings of a label that differ only by case, white
    space or accents are one class; None: they are not, but a refit keeps to what its model does.
    repeated: the weight of an edge that has several rows: ``max``, ``sum``, ``count`` or ``last``.
    unknown_ends: ``refuse`` edges that lead to no node, or ``skip`` them.
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
            raise InputError(f"{both!r} stands in missing= and in known=: choose one of them.")

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
        """The texts that are no category, as keys."""
        return gap_keys(self.names("missing"), self.names("known"))

    @property
    def unknown_keys(self) -> frozenset[str]:
        """The labels that mean unknown, as keys."""
        return unknown_keys(self.names("missing"), self.names("known"))

    def with_options(self, options: Mapping[str, Any]) -> "TableColumns":
        """The same with some fields of other values; a name that is no field is an error."""
        for name in options:
            if name not in self.__dataclass_fields__:
                hint = did_you_mean(name, tuple(self.__dataclass_fields__))
                raise InputError(f"there is no option {name!r} for columns of tables: {hint}")
        return replace(self, **options)

    def names(self, option: str, columns: Sequence[str] = ()) -> tuple[str, ...] | None:
        """The names that an option lists; None if it was not given.

        columns: names in which a plus or a comma may stand.
        """
        value = getattr(self, option)
        if value is None:
            return None
        listed = _separate(value, columns) if isinstance(value, str) else value
        return tuple(dict.fromkeys(name for name in (str(each).strip() for each in listed) if name))


def _separate(text: str, columns: Sequence[str]) -> list[str]:
    """The names in a text, cut at each plus and comma; of these parts the longest run that names a column is one."""
    parts = re.split("([+,])", text)  # names at even places, what stands between them at odd ones
    names, start = [], 0
    while start < len(parts):
        ends = range(len(parts), start + 1, -2)
        end = next((end for end in ends if "".join(parts[start:end]).strip() in columns), start + 1)
        names.append("".join(parts[start:end]))
        start = end + 1
    return names
