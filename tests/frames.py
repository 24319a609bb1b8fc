"""The libraries of DataFrames that tests try: those that are installed, and pyarrow, which always is."""

import importlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

LIBRARIES = ("pyarrow", "pandas", "polars")


def frame_of(library: str, columns: Mapping[str, Any]) -> Any:
    """A DataFrame of this library; the test is skipped where it is not installed."""
    if library == "pyarrow":
        return pa.table(dict(columns))
    found = pytest.importorskip(library, reason=f"{library} is not installed, and nothing here needs it")
    return found.DataFrame(dict(columns))


def columns_of(table: Any) -> dict[str, list[Any]]:
    """Its columns as lists."""
    if isinstance(table, pa.Table):
        return table.to_pydict()
    lists = {str(name): table[name].to_list() for name in table.columns}
    return {name: [list(each) if hasattr(each, "tolist") else each for each in v] for name, v in lists.items()}


def kind_of(library: str) -> type[Any]:
    """The class of its tables."""
    return pa.Table if library == "pyarrow" else importlib.import_module(library).DataFrame
