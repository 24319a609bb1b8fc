"""What the columns of tables of nodes and edges are called, and what stands there for a class that nobody knows."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from graphfcl.graph.ids import normal

ID_NAMES = ("id", "node", "node_id")
LABEL_NAMES = ("label", "class")
TEXT_NAMES = ("text",)
SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
WEIGHT_NAMES = ("weight",)
# Labels; a blank is unknown besides. Spreadsheets write #N/A, pandas <NA>.
MISSING = ("NA", "N/A", "n.a.", "#N/A", "<NA>", "nan", "None", "null", "unknown", "-1", "-", "?")
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
