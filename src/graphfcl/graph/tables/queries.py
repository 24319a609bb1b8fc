"""Tables from queries. A query runs once, on a database that is opened to be read, into a temporary Parquet file.

The queries of one graph run in one transaction, so that a write between them cannot make edges to nodes that were not
read.
A query or a connection string may hold a password: neither is stored, and no message repeats it.
"""

import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pyarrow import compute, parquet

from graphfcl.errors import InputError, without_secrets
from graphfcl.graph.tables import DATABASE_VARIABLE, NO_DATABASE, SQL, SUFFIXES, name_of_tables
from graphfcl.graph.tables.columns import TableColumns
from graphfcl.graph.tables.table import TableFiles
from graphfcl.runtime.cores import usable_cores

ROWS = 1 << 14  # of SQLite at a time
MEMORY, MOST_THREADS = "1GB", 4  # of DuckDB
TYPES: dict[type, Any] = {int: pa.int64(), float: pa.float64(), str: pa.string()}  # of values of SQLite
# Types of DuckDB that the readers of tables take; others are read as text.
READ_TYPES = re.compile(
    r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN|VARCHAR|DATE|TIMESTAMP.*|.*\]"
)
SQLITE_QUERY = re.compile(r"(\s|--[^\n]*\n|/\*.*?\*/)*(select|with|values)\b", re.IGNORECASE | re.DOTALL)
CONNECTION = re.compile(r"\w\w+:")  # a connection string, and no path, not even C:\
LITERAL = re.compile(r"'((?:[^']|'')*)(?:'|\Z)|\$(\w*)\$(.*?)(?:\$\2\$|\Z)", re.DOTALL)
NO_QUERY = "is no single query: give one SELECT; databases are only read, and nothing else is run."


def read_query(query: str, *, database: str | Path | None = None) -> Any:
    """The rows of a query as an Arrow table, which :func:`from_frames`, ``learn``, ``grow`` and others take.

    database: a file of SQLite or DuckDB, or what DuckDB can attach, such as ``postgres:dbname=shop``. By default it is
    that of the environment variable GRAPHFCL_DATABASE, or else none: DuckDB then reads files, as in
    ``SELECT * FROM 'nodes.parquet'``.
    """
    return read_queries([query], database)[0]


def read_queries(queries: Sequence[str], database: str | Path | None = None) -> list[Any]:
    """The rows of several queries, all of the database as it was at the first one."""
    with TemporaryDirectory(prefix="graphfcl-") as folder, _Transaction(database) as transaction:
        path = Path(folder) / "rows.parquet"
        return [parquet.read_table(transaction.run(query, path, "the query")) for query in queries]


@contextmanager
def open_tables(
    nodes: str | Path,
    edges: str | Path,
    columns: TableColumns | None = None,
    *,
    database: str | Path | None = None,
    name: str | None = None,
    **options: Any,
) -> Iterator[TableFiles]:
    """Two tables, for :func:`read_tables` and :func:`import_graph`; temporary files of queries last as long.

    nodes, edges: each a ``.csv``, ``.tsv`` or ``.parquet`` file, or a query after ``sql:``. columns, options: as for
    :func:`read_tables`. database: as for :func:`read_query`. name: of the graph.
    """
    columns = (columns or TableColumns()).with_options(options)
    with TemporaryDirectory(prefix="graphfcl-") as folder:
        paths, queried = [], []
        for what, table in (("nodes", str(nodes)), ("edges", str(edges))):
            if table.startswith(SQL):
                paths.append(Path(f"the query of {what}"))
                queried.append((table.removeprefix(SQL), Path(folder) / f"{what}.parquet", paths[-1]))
            elif Path(table).suffix.removeprefix(".") in SUFFIXES:
                paths.append(Path(table))
            else:
                listed = ", ".join(f".{suffix}" for suffix in SUFFIXES)
                raise InputError(
                    f"{without_secrets(table)} is neither a file ({listed}) nor a query: put '{SQL}' before a query, "
                    "which may read other files."
                )
        if database is not None and not queried:
            raise InputError(NO_DATABASE)
        with _Transaction(database) as transaction:
            contents = {called: transaction.run(query, path, called) for query, path, called in queried}
        usual = name_of_tables(str(nodes), str(edges))
        yield TableFiles(paths[0], paths[1], name or usual, usual, contents, columns)


class _Transaction:
    """A database that is opened for the first query; all queries see it as it was then."""

    def __init__(self, database: str | Path | None) -> None:
        self.source = str(os.environ.get(DATABASE_VARIABLE, "") if database is None else database)
        self.connection: Any = None

    def __enter__(self) -> "_Transaction":
        return self

    def __exit__(self, *_: object) -> None:
        if self.connection is not None:
            self.connection.close()

    def run(self, query: str, path: Path, called: object) -> Path:
        """Write the rows of a query to a Parquet file. called: what messages call the query."""
        begin, write = (_begin_sqlite, _from_sqlite) if _is_sqlite(self.source) else (_begin_duckdb, _from_duckdb)
        reason = ""
        try:
            self.connection = self.connection or begin(self.source, path.parent)
            write(self.connection, query, path, called)
        except InputError:
            raise
        except OSError as error:
            reason = f"the temporary folder cannot be written: {error.strerror or 'an error of the disk'}"
        except Exception as error:
            reason = _reason(error, query, self.source)
        if reason:  # raised here, so that nothing leads to the error with the query in it
            raise InputError(f"{called} cannot be run ({reason}): check it, and the database.")
        if not parquet.read_metadata(path).num_rows:
            raise InputError(f"{called} returns no rows: check its conditions.")
        return path


def _reason(error: Exception, query: str, database: str) -> str:
    """The first line of an error of a database, without texts of the query and parts of the connection string."""
    missing = re.search(r'Extension "(?:[^"]*/)?(\w+)\.duckdb_extension" not found', str(error))
    if missing:
        return f"DuckDB's extension {missing[1]} is not installed, and graphfcl installs none"
    literals = [text.replace("''", "'") for found in LITERAL.findall(query) for text in (found[0], found[2])]
    parts = re.split(r"""[\s=:@/;&?'",\\]+""", database.partition(":")[2] or database)
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    for secret in sorted({database, *literals, *parts, ""}, key=len, reverse=True)[:-1]:
        is_short = len(secret) < 4  # such a text may be a part of any word
        message = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)" if is_short else re.escape(secret), "…", message)
    return without_secrets(message).rstrip(".!")


def _is_sqlite(database: str) -> bool:
    """Whether it is a file of SQLite; an error if it is a file of another kind, or none."""
    if not database:
        return False
    if not os.path.isfile(database):
        if CONNECTION.match(database):
            return False
        raise InputError(f"the database file does not exist: check the path of --database or ${DATABASE_VARIABLE}.")
    try:
        with open(database, "rb") as file:
            header = file.read(16)
    except OSError as error:
        raise InputError(f"the database file cannot be read ({error.strerror}): check its permissions.") from None
    if header != b"SQLite format 3\0" and header[8:12] != b"DUCK":
        raise InputError("the database file is neither SQLite's nor DuckDB's: a query can name other files after FROM.")
    return header[8:12] != b"DUCK"


def _check_columns(names: list[str], called: object) -> None:
    """Refuse names that are pieces of the query, and those that stand twice."""
    for place, name in enumerate(names, 1):
        if "'" in name or '"' in name:
            raise InputError(f"column {place} of {called} has no name: give it one with AS.")
        if name in names[: place - 1]:
            raise InputError(f"{called} has two columns {name!r}: give each a name of its own with AS.")


def _begin_duckdb(database: str, folder: Path) -> Any:
    """A connection inside a transaction. folder: for what does not fit into memory."""
    try:
        import duckdb
    except ImportError:
        raise InputError(
            "a query needs DuckDB unless its database is a SQLite file: install it with `pip install "
            "'graphfcl[duckdb]'`."
        ) from None
    settings: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,  # a name after FROM is no variable of Python
        "temp_directory": str(folder),
        "memory_limit": MEMORY,
        "threads": min(MOST_THREADS, usable_cores()),
    }
    connection = duckdb.connect(config=settings)
    connection.execute("SET enable_progress_bar = false")
    if database:
        quoted = database.replace("'", "''")
        connection.execute(f"ATTACH '{quoted}' AS source (READ_ONLY); USE source")
    return connection.begin()


def _from_duckdb(connection: Any, query: str, path: Path, called: object) -> None:
    from duckdb import StatementType

    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != StatementType.SELECT:
        raise InputError(f"{called} {NO_QUERY}")
    rows = connection.sql(query)
    _check_columns(rows.columns, called)
    columns = [
        f'"{name}"' if READ_TYPES.fullmatch(str(kind)) else f'"{name}"::VARCHAR AS "{name}"'
        for name, kind in zip(rows.columns, rows.types, strict=True)
    ]
    rows.project(", ".join(columns)).write_parquet(str(path))


def _begin_sqlite(database: str, _: Path) -> Any:
    connection = sqlite3.connect(f"{Path(database).absolute().as_uri()}?mode=ro", uri=True)
    connection.execute("BEGIN")
    return connection


def _from_sqlite(connection: Any, query: str, path: Path, called: object) -> None:
    """Values of SQLite have types of their own: those of a column are known at its end, so it is written twice."""
    if not SQLITE_QUERY.match(query):
        raise InputError(f"{called} {NO_QUERY}")
    typed = path.with_suffix(".typed")
    with closing(connection.execute(query)) as cursor:
        names = [column[0] for column in cursor.description]
        _check_columns(names, called)
        kinds: list[set[type]] = [set() for _ in names]
        schema = pa.schema([(f"{place}.{kind.__name__}", TYPES[kind]) for place in range(len(names)) for kind in TYPES])
        with parquet.ParquetWriter(typed, schema) as writer:
            while rows := cursor.fetchmany(ROWS):
                columns = list(zip(*rows, strict=True))
                for seen, name, values in zip(kinds, names, columns, strict=True):
                    seen.update(map(type, values))
                    if bytes in seen:
                        raise InputError(f"{called}: column {name!r} holds BLOBs: leave it out, or CAST it to TEXT.")
                parts = [_values_of(kind, values) for values in columns for kind in TYPES]
                writer.write_batch(pa.record_batch(parts, schema=schema))
    finals = [_type_of(seen) for seen in kinds]
    schema = pa.schema(list(zip(names, finals, strict=True)))
    with parquet.ParquetFile(typed) as file, parquet.ParquetWriter(path, schema) as writer:
        for batch in file.iter_batches(ROWS):
            parts = [batch.columns[at : at + len(TYPES)] for at in range(0, batch.num_columns, len(TYPES))]
            joined = [
                compute.coalesce(*(part.cast(final, safe=False) for part in of_kinds))
                for of_kinds, final in zip(parts, finals, strict=True)
            ]
            writer.write_batch(pa.record_batch(joined, schema=schema))
    typed.unlink()


def _values_of(kind: type, values: tuple[Any, ...]) -> Any:
    """(rows,) the values of one type, null in place of others."""
    return pa.array([value if type(value) is kind else None for value in values], TYPES[kind])


def _type_of(kinds: set[type]) -> Any:
    """The type of a column whose values have these types."""
    kinds = kinds - {type(None)}
    return TYPES[max(kinds, key=list(TYPES).index, default=str)]
