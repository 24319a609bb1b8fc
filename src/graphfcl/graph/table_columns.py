"""What a user says of the columns of tables."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphfcl.errors import InputError, did_you_mean

Names = str | Iterable[str] | None  # "a+b" or "a,b", or a list of names


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
        given = getattr(self, option)
        if given is None:
            return None
        listed = _separate(given, columns) if isinstance(given, str) else given
        return tuple(dict.fromkeys(name for name in (str(each).strip() for each in listed) if name))


def _separate(text: str, columns: Sequence[str]) -> list[str]:
    """The names in a text, cut at each plus and comma; of these parts the longest run that names a column is one."""
    parts = re.split("([+,])", text)  # names at even places, what stands between them at odd ones
    found, start = [], 0
    while start < len(parts):
        ends = range(len(parts), start + 1, -2)
        end = next((end for end in ends if "".join(parts[start:end]).strip() in columns), start + 1)
        found.append("".join(parts[start:end]))
        start = end + 1
    return found
