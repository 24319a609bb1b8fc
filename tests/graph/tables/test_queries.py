"""Tables from queries of SQLite, DuckDB and files, in Python and on the command line."""

import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from graphfcl import GraphClassifier, InputError, from_frames, import_graph, open_tables, read_query, read_tables
from graphfcl.cli import how_to_go_on
from graphfcl.errors import without_secrets
from graphfcl.graph.tables import DATABASE_VARIABLE, queries
from tests.cli.command import Result, assert_one_sentence, graphfcl, graphfcl_inside, succeeded

SECRET = "hunter2-xyzzy"
NODES = f"SELECT id, category, title, price FROM customers WHERE '{SECRET}' <> title ORDER BY id"
EDGES = "SELECT a AS source, b AS target FROM transfers"
COLUMNS = "label=category,text=title"
COUNT = 60


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty temporary folder, which is empty again in the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.delenv(DATABASE_VARIABLE, raising=False)
    yield folder
    assert not list(folder.iterdir())


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same graph in SQLite, in DuckDB, as Parquet files and as a folder of CSV files."""
    folder, random = tmp_path_factory.mktemp("places"), np.random.default_rng(0)
    words = (("boot", "sole", "heel"), ("brim", "felt", "wool"), ("lens", "frame", "glass"))
    names = ("shoes", "hats", "optics")
    rows = [
        (i, None if i % 5 == 0 else names[i % 3], " ".join(random.choice(words[i % 3], 2)), float(random.random()))
        for i in range(COUNT)
    ]
    edges = [(int(first), int(second)) for first, second in random.integers(COUNT, size=(150, 2))]
    with closing(sqlite3.connect(folder / "shop.db")) as shop:
        shop.execute("CREATE TABLE customers (id, category, title, price)")
        shop.execute("CREATE TABLE transfers (a, b)")
        shop.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", rows)
        shop.executemany("INSERT INTO transfers VALUES (?, ?)", edges)
        shop.commit()
    nodes = pa.table(dict(zip(("id", "category", "title", "price"), map(list, zip(*rows, strict=True)), strict=True)))
    ends = pa.table({"a": [first for first, _ in edges], "b": [second for _, second in edges]})
    with duckdb.connect(str(folder / "shop.duckdb")) as shop:
        for name, table in (("customers", nodes), ("transfers", ends)):
            shop.register("rows", table)
            shop.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
    (folder / "tables").mkdir()
    for stem, table in (("nodes", nodes), ("edges", ends.rename_columns(["source", "target"]))):
        parquet.write_table(table, folder / f"{stem}.parquet")
        parquet.write_table(table, folder / "tables" / f"{stem}.parquet")
    return folder


def queried(
    database: Path | None = None, nodes: object = f"sql:{NODES}", edges: object = f"sql:{EDGES}"
) -> list[object]:
    return ["--nodes", nodes, "--edges", edges, *(["--database", database] if database else [])]


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("database", ["shop.db", "shop.duckdb"])
def test_a_query_of_a_database_is_the_graph_of_its_tables(places: Path, tmp_path: Path, database: str) -> None:
    whole = read_tables(places / "tables", label="category", text="title")
    shop = places / database
    by_frames = from_frames(
        read_query(NODES, database=shop), read_query(EDGES, database=str(shop)), label="category", text="title"
    )
    assert by_frames.sha256 == whole.sha256
    with open_tables(f"sql:{NODES}", f"sql:{EDGES}", database=shop, label="category", text="title") as tables:
        assert read_tables(tables).sha256 == whole.sha256
        assert read_tables(tables).name == "nodes and edges of a query"
        folder = import_graph(tables, tmp_path / "big")
    assert folder.graph().sha256 == whole.sha256
    again = import_graph_of(shop, tmp_path / "again")
    assert all_bytes(tmp_path / "again") == all_bytes(tmp_path / "big")
    assert again.sha256 == folder.sha256


def import_graph_of(shop: Path, out: Path) -> Any:
    with open_tables(f"sql:{NODES}", f"sql:{EDGES}", database=shop, label="category", text="title") as tables:
        return import_graph(tables, out)


@contextmanager
def written_between(monkeypatch: pytest.MonkeyPatch, write: Callable[[], None]) -> Iterator[list[str]]:
    """Let somebody write after each query; yields what happened to the writers."""
    outcomes: list[str] = []
    run = queries._Transaction.run

    def run_then_write(*arguments: Any) -> Path:
        path = run(*arguments)
        try:
            write()
            outcomes.append("written")
        except (duckdb.Error, sqlite3.Error):
            outcomes.append("refused")
        return path

    with monkeypatch.context() as patch:
        patch.setattr(queries._Transaction, "run", run_then_write)
        yield outcomes


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_no_edge_leads_to_a_node_that_was_written_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / "shop"

    def write(*rows: int) -> None:
        with closing(sqlite3.connect(path) if kind == "sqlite" else duckdb.connect(str(path))) as shop:
            for row in rows or (int(shop.execute("SELECT max(id) + 1 FROM nodes").fetchall()[0][0]),):
                shop.execute("INSERT INTO nodes VALUES (?, ?)", (row, f"{row % 2}"))
                shop.execute("INSERT INTO edges VALUES (?, ?)", (row, max(0, row - 1)))
            shop.commit()

    with closing(sqlite3.connect(path) if kind == "sqlite" else duckdb.connect(str(path))) as shop:
        shop.execute("CREATE TABLE nodes (id INTEGER, label TEXT)")
        shop.execute("CREATE TABLE edges (source INTEGER, target INTEGER)")
        shop.execute("PRAGMA journal_mode = wal" if kind == "sqlite" else "SELECT 1").fetchall()
    write(*range(20))
    with written_between(monkeypatch, write) as outcomes:
        with open_tables("sql:SELECT * FROM nodes", "sql:SELECT * FROM edges", database=path) as tables:
            graph = read_tables(tables)
        assert outcomes == ["written" if kind == "sqlite" else "refused"] * 2
        assert (graph.node_count, graph.edge_count) == (20, 19)
        read = queries.read_queries(["SELECT max(id) AS m FROM nodes", "SELECT max(source) AS m FROM edges"], path)
        assert read[0].to_pydict() == read[1].to_pydict()
    write()  # nothing holds the file


def test_files_and_queries_of_files_go_together(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(places)
    whole = read_tables("tables", label="category", text="title")
    for nodes in ("nodes.parquet", "sql:FROM 'nodes.parquet'"):
        with open_tables(nodes, "edges.parquet", label="category", text="title") as tables:
            assert read_tables(tables).sha256 == whole.sha256


@pytest.mark.parametrize("database", ["shop.db", "shop.duckdb"])
def test_the_command_line_takes_queries_everywhere(places: Path, tmp_path: Path, database: str) -> None:
    model, shop = tmp_path / "model", ["--database", places / database]
    columns = ["--columns", COLUMNS]
    shown = succeeded("data", "show", *queried(places / database), *columns)
    assert shown.startswith("nodes and edges of a query: tables of nodes and edges\n")
    checked = succeeded("data", "check", *queried(places / database), *columns, "--name", "shop")
    assert checked.startswith("shop: 60 nodes, ")
    assert "there are 48.\n1 finding, 0 serious." in checked
    succeeded("data", "import", *queried(places / database), *columns, "--out", tmp_path / "big", "--name", "shop")
    succeeded("fit", *queried(places / database), *columns, "--model", model, "--method", "sgc-ridge")
    assert "fit on nodes and edges of a query: " in succeeded("history", "--model", model)
    assert GraphClassifier.load(model).graph_.node_count == COUNT
    changes: dict[str, list[object]] = {
        "learn": ["sql:SELECT id AS node, 'new' AS class FROM customers WHERE id % 5 = 0"],
        "unlearn": ["sql:SELECT id FROM customers WHERE id = 5"],
        "grow": [
            *("--nodes", "sql:SELECT id + 1000 AS id, title, category FROM customers WHERE id < 2"),
            *("--edges", "sql:SELECT id + 1000 AS source, id AS target FROM customers WHERE id < 2"),
        ],
        "shrink": ["--nodes", "sql:SELECT 1001 AS node", "--edges", "sql:SELECT 1000 AS source, 0 AS target"],
        "erase": ["sql:SELECT 1000 AS node"],
    }
    for verb, arguments in changes.items():
        succeeded(verb, *arguments, "--model", model, *shop)
    only = ["--nodes", "sql:SELECT id FROM customers WHERE id IN (0, 5)", "--model", model, *shop, "--out", "-"]
    assert [line.split(",")[0] for line in succeeded("predict", *only).splitlines()] == ['"node"', "0", "5"]
    assert '"new"' in succeeded("labels", *only)
    assert GraphClassifier.load(model).graph_.node_count == COUNT


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text("ab7.", max_size=3),
)


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=9), step=st.integers(1, 4))
def test_columns_of_sqlite_have_sound_types(rows: list[tuple[Any, Any]], step: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(queries, "ROWS", step)
        path = Path(folder) / "odd ?#.db"
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE t (a, b)")
            database.executemany("INSERT INTO t VALUES (?, ?)", rows)
            database.commit()
        table = read_query("SELECT * FROM t -- all", database=path)
    for name, values in zip("ab", zip(*rows, strict=True), strict=True):
        kinds = {type(value) for value in values} - {type(None)}
        column = table[name]
        if kinds == {int}:
            assert column.type == pa.int64()
        elif kinds and kinds <= {int, float}:
            assert column.type == pa.float64()
        else:
            assert column.type == pa.string()
        expected = [None if value is None else like(column.type, value) for value in values]
        assert column.to_pylist() == expected


def like(kind: Any, value: Any) -> Any:
    """A value as one of a column: floats as text by Arrow, whose digits read back."""
    if kind == pa.string() and isinstance(value, float):
        return pa.scalar(value).cast(pa.string()).as_py()
    return {pa.int64(): int, pa.float64(): float, pa.string(): str}[kind](value)


def test_types_of_duckdb_become_those_that_tables_have() -> None:
    uuid = "6d3d2541-6d1a-4a3e-9d0f-6a7a0f3f7f11"
    table = read_query(
        f"SELECT '{uuid}'::UUID AS u, 'a'::ENUM('a', 'b') AS e, TIME '12:00' AS t, "
        "1::UTINYINT AS i, [1.5::FLOAT] AS v, DATE '2026-01-31' AS d, 7::HUGEINT AS h"
    )
    assert table.to_pylist()[0]["u"] == uuid
    assert [table.schema.field(name).type for name in "uet"] == [pa.string()] * 3
    assert table["v"].to_pylist() == [[1.5]]
    assert table["h"].to_pylist() == [7]


def test_sqlite_needs_no_duckdb(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert read_query("SELECT count(*) AS n FROM customers", database=places / "shop.db").to_pylist() == [{"n": COUNT}]
    with pytest.raises(InputError, match=r"a query needs DuckDB .*`pip install 'graphfcl\[duckdb\]'"):
        read_query("SELECT 1 AS n")


def test_the_environment_names_the_database(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE_VARIABLE, str(places / "shop.db"))
    assert read_query("SELECT 7 AS n, count(*) AS c FROM customers").to_pylist() == [{"n": 7, "c": COUNT}]
    assert "1 finding, 0 serious." in succeeded("data", "check", *queried(), "--columns", COLUMNS)


def test_temporary_files_are_the_owners_and_go(places: Path, temporary: Path) -> None:
    with open_tables(f"sql:{NODES}", f"sql:{EDGES}", database=places / "shop.db"):
        (folder,) = temporary.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        assert {path.name for path in folder.iterdir()} == {"nodes.parquet", "edges.parquet"}
    assert not list(temporary.iterdir())


def test_a_database_that_changes_does_not_tear_a_graph(places: Path, tmp_path: Path) -> None:
    """What was read once stays: the tables are read again and again, the query is not."""
    shop = tmp_path / "shop.db"
    shop.write_bytes((places / "shop.db").read_bytes())
    with open_tables(f"sql:{NODES}", f"sql:{EDGES}", database=shop, label="category") as tables:
        before = read_tables(tables).sha256
        with closing(sqlite3.connect(shop)) as database:
            database.execute("DELETE FROM customers WHERE id > 3")
            database.commit()
        assert read_tables(tables).sha256 == before


CHANGES = (
    "INSERT INTO customers VALUES (1, 'a', 'b', 2)",
    "UPDATE customers SET title = 'x'",
    "DELETE FROM customers",
    "DROP TABLE customers",
    "CREATE TABLE other AS SELECT 1 AS a",
    "ATTACH 'other.db' AS other",
    "SELECT 1 AS id; DELETE FROM customers",
    "WITH x AS (SELECT 1 AS a) INSERT INTO customers SELECT a, a, a, a FROM x",
    "WITH x AS (DELETE FROM customers RETURNING id) SELECT * FROM x",
    "COPY customers TO 'other.csv'",
    "VACUUM INTO 'other.db'",
    "PRAGMA user_version = 7",
    "-- nothing",
)


@pytest.mark.parametrize("database", ["shop.db", "shop.duckdb"])
@pytest.mark.parametrize("query", CHANGES)
def test_nothing_but_a_query_is_run(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, database: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = all_bytes(places)
    with pytest.raises(InputError) as refused:
        read_query(query, database=places / database)
    assert "read" in str(refused.value) or "syntax" in str(refused.value) or "one statement" in str(refused.value)
    assert all_bytes(places) == before
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


def refusals(places: Path) -> dict[str, tuple[list[object], tuple[str, ...]]]:
    """Wrong uses, and words of the sentence about each."""
    shop, duck = places / "shop.db", places / "shop.duckdb"
    url = f"postgres:postgresql://shop:{SECRET}@localhost/x"
    return {
        "nodes alone": (["--nodes", f"sql:{NODES}"], ("give --nodes and --edges",)),
        "edges alone": (["--edges", f"sql:{EDGES}"], ("give --nodes and --edges",)),
        "both": (["--graph", "debian", *queried(shop)], ("--graph and --nodes exclude each other",)),
        "database of a name": (["--graph", "debian", "--database", url], ("--graph and --database",)),
        "database of files": (
            ["--nodes", "a.csv", "--edges", "b.csv", "--database", url],
            ("a database is used only by queries",),
        ),
        "one query": (["--graph", f"sql:{NODES}"], ("a graph is not one query",)),
        "data folder": ([*queried(shop), "--data-dir", places], ("--data-dir applies only to --graph",)),
        "table": (
            queried(shop, f"sql:SELECT '{SECRET}' AS id FROM nope"),
            ("the query of nodes", "no such table: nope"),
        ),
        "table of duckdb": (
            queried(duck, f"sql:SELECT '{SECRET}' AS id FROM nope"),
            ("Table with name nope does not",),
        ),
        "column": (queried(shop, "sql:SELECT nope FROM customers"), ("no such column: nope",)),
        "column of duckdb": (queried(duck, "sql:SELECT nope FROM customers"), ('column "nope" not found',)),
        "unknown column": ([*queried(shop), "--columns", "label=kind"], ("the query of nodes has no column 'kind'",)),
        "unknown option": ([*queried(shop), "--columns", "colour=red"], ("--columns has no option 'colour'",)),
        "no rows": (queried(shop, f"sql:{NODES} LIMIT 0"), ("the query of nodes returns no rows",)),
        "no rows of edges": (queried(duck, edges=f"sql:{EDGES} LIMIT 0"), ("the query of edges returns no rows",)),
        "no columns": (queried(duck, "sql:SELECT FROM customers"), ("the query of nodes cannot be run",)),
        "empty": (queried(shop, "sql:"), ("is no single query",)),
        "two names": (queried(shop, "sql:SELECT id, id FROM customers"), ("has two columns 'id'",)),
        "no name": (queried(shop, f"sql:SELECT id, '{SECRET}' FROM customers"), ("column 2", "has no name")),
        "no name of duckdb": (queried(duck, f"sql:SELECT id, '{SECRET}' FROM customers"), ("column 2", "has no name")),
        "change": (queried(duck, f"sql:DELETE FROM customers WHERE title = '{SECRET}'"), ("databases are only read",)),
        "blob": (queried(shop, "sql:SELECT x'00' AS id"), ("column 'id' holds BLOBs",)),
        "open text": (queried(shop, f"sql:SELECT '{SECRET}"), ("the query of nodes cannot be run",)),
        "open text of duckdb": (queried(duck, f"sql:SELECT '{SECRET}"), ("the query of nodes cannot be run",)),
        "cast": (queried(duck, f"sql:SELECT '{SECRET}'::INT AS id"), ("Could not convert string", "…")),
        "own words": (
            queried(duck, f"sql:SELECT error($$so {SECRET}$$) AS id"),
            ("the query of nodes cannot be run (",),
        ),
        "url in a query": (queried(duck, f"sql:FROM 'https://a:{SECRET}@b.example/c.parquet'"), ("cannot be run",)),
        "no database": (queried(places / SECRET), ("the database file does not exist",)),
        "long database": (queried(Path(SECRET * 999)), ("the database file does not exist",)),
        "no database file": (queried(places / "nodes.parquet"), ("neither SQLite's nor DuckDB's",)),
        "extension": ([*queried(), "--database", url], ("extension postgres_scanner is not installed",)),
        "bare url": ([*queried(), "--database", url.partition(":")[2]], ("the query of nodes cannot be run",)),
        "keys": ([*queried(), "--database", f"mysql:host=x password={SECRET}"], ("extension mysql_scanner",)),
        "json file": (queried(None, "a.json", "b.csv"), ("a.json is neither a file", "put 'sql:' before a query")),
        "missing file": (queried(None, "a.csv", "b.csv"), ("a.csv does not exist",)),
    }


KINDS = list(refusals(Path()))


@pytest.mark.parametrize("kind", KINDS)
def test_each_wrong_use_gets_one_sentence_without_secrets(places: Path, tmp_path: Path, kind: str) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    arguments, words = refusals(places)[kind]
    for verb in (["data", "check"], ["data", "import", "--out", tmp_path / "big"], ["fit", "--model", tmp_path / "m"]):
        result = graphfcl_inside(*verb, *arguments)
        assert_one_sentence(result, *words)
        assert SECRET not in result.err + result.out
    if kind in ("cast", "extension"):
        debug = graphfcl("data", "check", *arguments, "--debug")
        assert "Traceback" in debug.err
        assert SECRET not in debug.err
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("database", ["shop.db", "shop.duckdb"])
def test_no_file_and_no_line_has_a_secret(places: Path, tmp_path: Path, database: str) -> None:
    """The query, and the place of the database, which has a name that nothing else has."""
    private = tmp_path / "private"
    private.mkdir()
    shop = private / f"{SECRET}.db"
    shop.write_bytes((places / database).read_bytes())
    public = tmp_path / "public"
    options = [*queried(shop), "--columns", COLUMNS]
    results: list[Result] = [
        graphfcl_inside("data", "show", *options, "--json"),
        graphfcl_inside("data", "check", *options, "--json"),
        graphfcl_inside("data", "import", *options, "--out", public / "big", "--json"),
        graphfcl_inside("fit", *options, "--model", public / "model", "--method", "sgc-ridge", "--json"),
        graphfcl_inside(
            *(
                "learn",
                f"sql:SELECT id AS node, 'new' AS class FROM customers WHERE id % 5 = 0 AND title <> '{SECRET}'",
            ),
            *("--model", public / "model", "--database", shop, "--json"),
        ),
        graphfcl_inside("info", "--model", public / "model", "--markdown"),
        graphfcl_inside("history", "--model", public / "model", "--json"),
    ]
    for result in results:
        assert result.code == 0, result.err
        assert SECRET not in result.out + result.err
    written = [path for path in public.rglob("*") if path.is_file()]
    assert len(written) > 10
    for path in written:
        content = path.read_bytes()
        assert SECRET.encode() not in content, path
        assert b"FROM customers" not in content, path


def test_interrupts_and_wrong_words_repeat_no_query() -> None:
    words = ["fit", "--nodes", f"sql:{NODES}", f"--edges=sql:{SECRET}", "--database", SECRET, "--model", "m"]
    assert SECRET not in how_to_go_on(words)
    assert how_to_go_on(words).endswith("--model m --resume`.")
    assert SECRET not in how_to_go_on(["data", "check", f"--database=x{SECRET}"])
    for wrong in (f"sql:SELECT '{SECRET}'", f"postgres://user:{SECRET}@host/x", f"host=x password={SECRET}"):
        result = graphfcl_inside("predict", wrong, "--model", "m")
        assert result.code == 2
        assert SECRET not in result.err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"at postgres://u:{SECRET}@host:5/x", "at postgres://…@host:5/x"),
        (f"host=a password={SECRET} user=b", "host=a password=… user=b"),
        (f"PWD='{SECRET} with spaces';x", "PWD=…;x"),
        (f"api_key: {SECRET}", "api_key: …"),
        ("nodes.csv, line 3: a node id is missing", "nodes.csv, line 3: a node id is missing"),
    ],
)
def test_secrets_are_hidden_where_they_look_like_it(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Two million rows of SQLite take no more than some blocks."""
    with closing(sqlite3.connect(tmp_path / "large.db")) as database:
        database.execute("CREATE TABLE t (a, b)")
        database.execute(
            "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 400000) "
            "SELECT i, hex(randomblob(100)) FROM n"
        )
        database.commit()
    code = """
import resource, sys
from pathlib import Path
from graphfcl.graph.tables import queries
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
database = queries._Transaction(sys.argv[1])
database.run("SELECT a FROM t LIMIT 1", Path(sys.argv[2]) / "first.parquet", "q")
before = peak()
database.run("SELECT * FROM t", Path(sys.argv[2]) / "rows.parquet", "q")
print(peak() - before)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "large.db"), str(tmp_path)]
    grown = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert grown < 60  # MB; the rows are 80


def test_streams_runs_and_suggestions_take_queries(places: Path, tmp_path: Path) -> None:
    shop = [*queried(places / "shop.db"), "--columns", COLUMNS, "--name", "shop"]
    whole = ["--graph", f"{places / 'tables'}:{COLUMNS}"]
    rules = ["--base", "1", "--pseudo-novel", "1", "--shot", "3", "--way", "1"]
    shown = [json.loads(succeeded("stream", *source, *rules, "--json")) for source in (shop, whole)]
    assert [each.pop("graph") for each in shown] == ["shop", "tables"]
    assert shown[0] == shown[1]
    out = ["--method", "sgc-ridge", "--device", "cpu", "--out"]
    succeeded("run", *shop, *rules, *out, tmp_path / "one")
    succeeded("run", *whole, *rules, *out, tmp_path / "two")
    results = [json.loads((tmp_path / each / "result.json").read_text()) for each in ("one", "two")]
    assert results[0]["dataset"] == "shop"
    assert results[0]["matrix"] == results[1]["matrix"]
    suggested = [succeeded("suggest", *source, "--budget", 3, "--json") for source in (shop, whole)]
    assert suggested[0] == suggested[1]
    succeeded("fit", *whole, "--method", "sgc-ridge", "--model", tmp_path / "model")
    succeeded("refit", *shop, "--anyway", "--model", tmp_path / "model")
    assert "refit" in succeeded("history", "--model", tmp_path / "model")
    for words, said in (
        (["stream", "--nodes", "n.csv"], "give --nodes and --edges"),
        (["run", "--graph", "debian", *shop], "--graph and --nodes exclude each other"),
        (["stream", "--verify", *shop], "--verify checks graphs of the benchmark by name: leave --nodes out"),
        (["suggest", "--model", "m", *shop], "--model does not use --nodes"),
    ):
        assert_one_sentence(graphfcl_inside(*words), said)
