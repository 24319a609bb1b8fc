"""Tables of nodes and edges: files, queries and DataFrames, their columns, and the features made of them."""

from pathlib import Path

SUFFIXES = ("parquet", "csv", "tsv")
SQL = "sql:"  # prefix of a query, where a file name is also possible
DATABASE_VARIABLE = "GRAPHFCL_DATABASE"
NO_DATABASE = f"a database is used only by queries: put '{SQL}' before a query, or leave the database out."


def name_of_tables(nodes: str, edges: str) -> str:
    """Return the default name of a graph of two tables, which are files or queries."""
    if nodes.startswith(SQL) or edges.startswith(SQL):
        return "nodes and edges of a query"
    return f"{Path(nodes).name} and {Path(edges).name}"


def is_table_folder(path: str | Path) -> bool:
    """Tell whether a path is a folder with a table of nodes."""
    return any((Path(path) / f"nodes.{suffix}").exists() for suffix in SUFFIXES)
