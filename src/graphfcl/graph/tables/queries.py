"""Tables from SQL queries. Each query runs once, read-only, and its rows go to a temporary Parquet file.

Both queries of a graph run in one transaction. A write between them therefore cannot add edges whose nodes were not
read. A query or a connection string may hold a password, so neither is stored or repeated in a message.
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

ROWS = 1 << 14  # rows of SQLite in a block
MEMORY, MOST_THREADS = "1GB", 4  # limits for DuckDB
TYPES: dict[type, Any] = {int: pa.int64(), float: pa.float64(), str: pa.string()}  # Arrow types of SQLite values
# DuckDB types that table readers take as they are; other types are cast to text.
READ_TYPES = re.compile(
    r"U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN|VARCHAR|DATE|TIMESTAMP.*|.*\]"
)
SQLITE_QUERY = re.compile(r"(\s|--[^\n]*\n|/\*.*?\*/)*(select|with|values)\b", re.IGNORECASE | re.DOTALL)
CONNECTION = re.compile(r"\w\w+:")  # start of a connection string; a path such as C:\ does not match
LITERAL = re.compile(r"'((?:[^']|'')*)(?:'|\Z)|\$(\w*)\$(.*?)(?:\$\2\$|\Z)", re.DOTALL)
NO_QUERY = "is no single query: give one SELECT; databases are only read, and nothing else is run."


def read_query(query: str, *, database: str | Path | None = None) -> Any:
    """Run a SQL query and return its rows as an Arrow table.

    :func:`from_frames` and the methods of :class:`GraphClassifier` take such a table in place of a DataFrame.

    Args:
        query: One SELECT statement. Databases are opened read-only.
        database: SQLite or DuckDB file, or a connection string that DuckDB can attach, such as
            ``postgres:dbname=shop``. Default: the environment variable GRAPHFCL_DATABASE. If that is not set, DuckDB
            runs without a database and can read files, as in ``SELECT * FROM 'nodes.parquet'``.

    Returns:
        A ``pyarrow.Table`` with at least one row.

    Raises:
        InputError: If the query is not a single SELECT, fails or returns no rows, if the database cannot be read, or
            if DuckDB is needed and not installed.

    Examples:
        >>> from pathlib import Path
        >>> from graphfcl import read_query
        >>> _ = Path("nodes.csv").write_text("id,label\\na,tea\\nb,cup\\n")
        >>> read_query("SELECT id, label FROM 'nodes.csv' ORDER BY id").to_pylist()
        [{'id': 'a', 'label': 'tea'}, {'id': 'b', 'label': 'cup'}]
    """
    return read_queries([query], database)[0]


def read_queries(queries: Sequence[str], database: str | Path | None = None) -> list[Any]:
    """Run several queries in one transaction, so that all see the same state of the database."""
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
    """Open a table of nodes and a table of edges, from files or SQL queries.

    Use it in a ``with`` statement: temporary files with the rows of queries are removed at its end.

    Args:
        nodes: A ``.csv``, ``.tsv`` or ``.parquet`` file, or a query after ``sql:``.
        edges: The same for edges.
        columns: Which columns are ids, labels, features and so on. By default they are found by their names.
        database: Database of the queries; see :func:`read_query`.
        name: Name of the graph.
        **options: Fields of :class:`TableColumns`, such as ``label="category"``, which replace fields of ``columns``.

    Returns:
        Context manager with tables for :func:`read_tables` and :func:`import_graph`.

    Raises:
        InputError: If a value is neither a file nor a query, or a query fails.

    Examples:
        >>> from pathlib import Path
        >>> from graphfcl import open_tables, read_tables
        >>> _ = Path("items.csv").write_text("sku,label,price\\na,tea,3\\nb,tea,4\\nc,cup,9\\n")
        >>> _ = Path("links.csv").write_text("source,target\\na,b\\nb,c\\n")
        >>> with open_tables("sql:SELECT * FROM 'items.csv'", "links.csv", id="sku", name="shop") as tables:
        ...     read_tables(tables)
        Graph('shop', 3 nodes, 2 edges, 1 features, 2 classes)
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
    """One read transaction, opened by the first query; all queries see the same state of the database."""

    def __init__(self, database: str | Path | None) -> None:
        self.source = str(os.environ.get(DATABASE_VARIABLE, "") if database is None else database)
        self.connection: Any = None

    def __enter__(self) -> "_Transaction":
        return self

    def __exit__(self, *_: object) -> None:
        if self.connection is not None:
            self.connection.close()

    def run(self, query: str, path: Path, called: object) -> Path:
        """Write the rows of a query to a Parquet file; ``called`` is the name of the query in messages."""
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
        if reason:  # raised outside the except block, so that __context__ does not hold the error with the query
            raise InputError(f"{called} cannot be run ({reason}): check it, and the database.")
        if not parquet.read_metadata(path).num_rows:
            raise InputError(f"{called} returns no rows: check its conditions.")
        return path


def _reason(error: Exception, query: str, database: str) -> str:
    """Return the first line of a database error, without literals of the query and parts of the connection string."""
    missing = re.search(r'Extension "(?:[^"]*/)?(\w+)\.duckdb_extension" not found', str(error))
    if missing:
        return f"DuckDB's extension {missing[1]} is not installed, and graphfcl installs none"
    literals = [text.replace("''", "'") for found in LITERAL.findall(query) for text in (found[0], found[2])]
    parts = re.split(r"""[\s=:@/;&?'",\\]+""", database.partition(":")[2] or database)
    message = str(error).splitlines()[0] if str(error) else type(error).__name__
    for secret in sorted({database, *literals, *parts, ""}, key=len, reverse=True)[:-1]:
        is_short = len(secret) < 4  # a short text may occur inside an ordinary word: replace it only as a whole word
        message = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)" if is_short else re.escape(secret), "…", message)
    return without_secrets(message).rstrip(".!")


def _is_sqlite(database: str) -> bool:
    """Tell whether the database is a SQLite file; an InputError if it is neither SQLite nor DuckDB."""
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
    """Raise an InputError if a column has no name (its name is a piece of the query), or a name occurs twice."""
    for place, name in enumerate(names, 1):
        if "'" in name or '"' in name:
            raise InputError(f"column {place} of {called} has no name: give it one with AS.")
        if name in names[: place - 1]:
            raise InputError(f"{called} has two columns {name!r}: give each a name of its own with AS.")


def _begin_duckdb(database: str, folder: Path) -> Any:
    """Open DuckDB inside a transaction; ``folder`` is for data that does not fit into memory."""
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
        "python_enable_replacements": False,  # a name after FROM must not be read as a Python variable
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
    """Write the rows twice: SQLite types each value, so the type of a column is known only after its last row."""
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
    """Return (rows,) the values of one type, with null in place of values of other types."""
    return pa.array([value if type(value) is kind else None for value in values], TYPES[kind])


def _type_of(kinds: set[type]) -> Any:
    """Return the Arrow type of a column whose values have these types."""
    kinds = kinds - {type(None)}
    return TYPES[max(kinds, key=list(TYPES).index, default=str)]
