"""What the columns of tables of nodes and edges are called, and what stands there for a class that nobody knows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

ID_NAMES = ("id", "node", "node_id")
LABEL_NAMES = ("label", "class")
TEXT_NAMES = ("text",)
SOURCE_NAMES = ("source", "src", "from")
TARGET_NAMES = ("target", "dst", "to")
WEIGHT_NAMES = ("weight",)
# Labels; a blank is unknown besides. Spreadsheets write #N/A, pandas <NA>.
MISSING = ("NA", "N/A", "n.a.", "#N/A", "<NA>", "nan", "None", "null", "unknown", "-1", "-", "?")


@dataclass(frozen=True)
class ReadColumns:
    """The columns that a graph was read from, so that later tables of the same form are read alike.

    text: columns whose words are features. dates, categories, vectors: columns of which several features or other
    numbers were made; those of plain numbers are called as the features.
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

    def as_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: Any) -> "ReadColumns":
        """The reverse; ValueError if it is not that."""
        if not isinstance(values, Mapping) or set(values) != set(cls.__dataclass_fields__):
            raise ValueError("these are no columns of tables")
        several = ("text", "dates", "categories", "vectors")
        if not all(isinstance(values[key], list) for key in several):
            raise ValueError("these are no lists of columns")
        names = [values[key] for key in ("id", "label", "source", "target")]
        names += [name for key in several for name in values[key]]
        if not all(isinstance(name, str) for name in [*names, values["weight"] or ""]):
            raise ValueError("a column of a table has no name")
        fields: dict[str, Any] = {key: tuple(value) if key in several else value for key, value in values.items()}
        return cls(**fields)
