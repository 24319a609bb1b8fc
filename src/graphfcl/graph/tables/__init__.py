"""Tables of nodes and edges: files and DataFrames, their columns, and the features made of them."""

from pathlib import Path

SUFFIXES = ("parquet", "csv", "tsv")
SQL = "sql:"  # before a query, where a file may be named too
DATABASE_VARIABLE = "GRAPHFCL_DATABASE"
NO_DATABASE = f"a database is for queries: put '{SQL}' before one, or leave the database out."


def name_of_tables(nodes: str, edges: str) -> str:
    """What the graph of two tables is called, files or queries, unless a user says so."""
    if nodes.startswith(SQL) or edges.startswith(SQL):
        return "nodes and edges of a query"
    return f"{Path(nodes).name} and {Path(edges).name}"


def is_table_folder(path: str | Path) -> bool:
    """Whether ``path`` is a folder with a table of nodes."""
    return any((Path(path) / f"nodes.{suffix}").exists() for suffix in SUFFIXES)
