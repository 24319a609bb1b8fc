"""Tables of nodes and edges: files and DataFrames, their columns, and the features made of them."""

from pathlib import Path

SUFFIXES = ("parquet", "csv", "tsv")


def is_table_folder(path: str | Path) -> bool:
    """Whether ``path`` is a folder with a table of nodes."""
    return any((Path(path) / f"nodes.{suffix}").exists() for suffix in SUFFIXES)
