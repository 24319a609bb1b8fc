"""What the columns of tables of nodes and edges are called: what a user says, and what was read."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph.ids import normal

ID_NAMES = ("id", "node", "node_id")
LABEL_NAMES = ("label", "class")
TEXT_NAMES = ("text",)
SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
WEIGHT_NAMES = ("weight",)
# Labels; a blank is unknown besides. Spreadsheets write #N/A, pandas <NA>.
MISSING = ("NA", "N/A", "n.a.", "#N/A", "<NA>", "nan", "None", "null", "unknown", "-1", "-", "?")
Names = str | Iterable[str] | None  # "a+b" or "a,b", or a list of names
SEVERAL = ("text", "dates", "categories", "vectors")


def label_key(name: str) -> str:
    """The form in which labels are compared with names that mean unknown."""
    return normal(name).casefold()


def unknown_keys(missing: Iterable[str] | None) -> frozenset[str]:
    """The labels that mean unknown, as keys; a blank always does. None: the usual ones."""
    return frozenset(label_key(str(name)) for name in (MISSING if missing is None else missing)) | {""}


@dataclass(frozen=True)
class ReadColumns:
    """The columns that a graph was read from, so that later tables of the same form are read alike.

    text: columns whose words are features. dates, categories, vectors: columns of which several features or other
    numbers were made; those of plain numbers are called as the features. missing: labels that mean unknown; None: the
    usual ones. unused: columns of nodes that say nothing.
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
    missing: tuple[str, ...] | None = None
    unused: tuple[str, ...] = ()

    @property
    def of_nodes(self) -> frozenset[str]:
        """The columns of the table of nodes that are neither ids nor labels, but for those of plain numbers."""
        return frozenset((*self.text, *self.dates, *self.categories, *self.vectors, *self.unused))

    def means_unknown(self, name: str) -> bool:
        """Whether a label of this name means that the class is not known."""
        return label_key(name) in unknown_keys(self.missing)

    def as_json(self) -> dict[str, Any]:
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        optional: dict[str, Any] = {"missing": None, "unused": []}
        return {name: value for name, value in values.items() if name not in optional or value != optional[name]}

    @classmethod
    def from_json(cls, values: Any) -> "ReadColumns":
        """The reverse; ValueError if it is not that."""
        optional = {"missing", "unused"}
        if not isinstance(values, Mapping) or set(values) | optional != set(cls.__dataclass_fields__):
            raise ValueError("these are no columns of tables")
        several = [*SEVERAL, *(key for key in optional if key in values)]
        if not all(isinstance(values[key], list) for key in several):
            raise ValueError("these are no lists of columns")
        names = [values[key] for key in ("id", "label", "source", "target")]
        names += [name for key in several for name in values[key]]
        if not all(isinstance(name, str) for name in [*names, values["weight"] or ""]):
            raise ValueError("a column of a table has no name")
        fields: dict[str, Any] = {key: tuple(value) if key in several else value for key, value in values.items()}
        return cls(**fields)


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
    missing: labels that mean that the class is not known, besides a blank; None: the usual ones.
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
