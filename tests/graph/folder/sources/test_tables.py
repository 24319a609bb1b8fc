"""Tables read in blocks give the graph that the reader in memory gives, and the same complaints."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from graphfcl import Graph, GraphFolder, InputError, TableColumns, read_tables, write_tables
from graphfcl.graph.folder import build_folder
from graphfcl.graph.folder.source import Spool
from graphfcl.graph.folder.sources import tables_source
from graphfcl.graph.folder.sources.tables import TableIds, one_sentence
from graphfcl.graph.labels import means_unknown
from graphfcl.graph.tables import table as reader
from graphfcl.graph.tables.table import Table
from tests.graph.samples import small_graphs

MEMORY = 300 << 20


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    """So that every table of more than a few rows is read in several parts."""
    before = reader.BYTES, reader.NUMBERS
    reader.BYTES, reader.NUMBERS = 400, 6
    yield
    reader.BYTES, reader.NUMBERS = before


def imported(folder: Path, out: Path, columns: TableColumns | None = None) -> GraphFolder:
    return build_folder(tables_source(folder, columns), out, memory=MEMORY)


def assert_same(found: Graph, expected: Graph) -> None:
    assert found.sha256 == expected.sha256
    assert found.notes == expected.notes
    assert found.cleaned == expected.cleaned
    assert found.name == expected.name
    assert found.text == expected.text
    names = [None if graph.feature_names is None else graph.feature_names.tolist() for graph in (found, expected)]
    assert names[0] == names[1]


@given(graph=small_graphs(dense=True), suffix=st.sampled_from(["csv", "parquet"]))
@settings(max_examples=25)
def test_written_tables_are_imported_as_they_are_read(
    tmp_path_factory: pytest.TempPathFactory, graph: Graph, suffix: str
) -> None:
    # "-0" is 0 where the whole column is read before its type is decided.
    assume(not np.signbit(graph.features[graph.features == 0]).any())
    assume(not any(map(means_unknown, graph.class_names)))
    folder = tmp_path_factory.mktemp("tables")
    write_tables(graph, folder, suffix=suffix)
    assert_same(imported(folder, folder / "out").graph(), read_tables(folder))


IDS = st.sampled_from(["1", "2", "3", "-4", " 5", "007", "a", "b ", "é", "e\u0301", "x y", "70000000000000000000"])


@st.composite
def odd_tables(draw: st.DrawFn) -> tuple[str, str]:
    """CSV tables with ids of all kinds, loops, duplicates and weights."""
    ids = draw(st.lists(IDS, min_size=1, max_size=8, unique_by=lambda text: text.strip().replace("e\u0301", "é")))
    labels = st.sampled_from(["", "-1", "red", " red", "10", "9", "-1 "])
    nodes = "".join(f"{node},{draw(labels)},{draw(st.integers(-3, 3))},{draw(st.floats(-2, 2))}\n" for node in ids)
    end, weight = st.sampled_from(ids), st.sampled_from(["1", "0", "0.5", "2"])
    weighted = draw(st.booleans())
    edges = draw(st.lists(st.tuples(end, end, weight), max_size=30))
    lines = [",".join(edge if weighted else edge[:2]) + "\n" for edge in edges]
    return "id,label,f,g\n" + nodes, ("source,target,weight\n" if weighted else "source,target\n") + "".join(lines)


@pytest.mark.long
@given(tables=odd_tables())
@settings(max_examples=60)
def test_odd_tables_are_imported_as_they_are_read(
    tmp_path_factory: pytest.TempPathFactory, tables: tuple[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "nodes.csv").write_text(tables[0])
    (folder / "edges.csv").write_text(tables[1])
    assert_same(imported(folder, folder / "out").graph(), read_tables(folder))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_texts_become_counts_of_words(tmp_path: Path, suffix: str) -> None:
    random = np.random.default_rng(0)
    words = np.array(["apple", "Pear", "plum tree", "über", "x", ""])
    nodes = pa.table(
        {
            "key": [f"n{number}" for number in range(50)],
            "class": [["a", "b", None][number % 3] for number in range(50)],
            "body": [" ".join(random.choice(words, 3)) for _ in range(50)],
        }
    )
    edges = pa.table({"from": random.choice(nodes["key"], 90), "to": random.choice(nodes["key"], 90), "year": [1] * 90})
    for stem, table in (("nodes", nodes), ("edges", edges)):
        if suffix == "csv":
            pa.csv.write_csv(table, tmp_path / f"{stem}.csv")
        else:
            parquet.write_table(table, tmp_path / f"{stem}.parquet")
    columns = TableColumns(id="key", text="body", min_nodes=4)
    graph = imported(tmp_path, tmp_path / "out", columns).graph()
    assert_same(graph, read_tables(tmp_path, columns))
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["apple", "pear", "plum", "tree", "über"]
    assert graph.notes[1] == f"edges.{suffix}: 90 rows; not used: year."


@pytest.mark.parametrize(
    "kind", [pa.int32(), pa.uint64(), pa.float64(), pa.string(), pa.dictionary(pa.int32(), pa.string())]
)
def test_parquet_types_of_ids_and_labels(tmp_path: Path, kind: Any) -> None:
    """What a table says of its types holds: numbers stay numbers, texts stay texts."""
    numbers = np.array([5, 3, 8, 1, 0, 12, 7])
    values: Any = (
        numbers.tolist() if not pa.types.is_dictionary(kind) and kind != pa.string() else numbers.astype(str).tolist()
    )
    column = (
        pa.array(values, pa.string()).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array(values, kind)
    )
    label = pa.array([1.0, None, 3.0, 1.0, -1.0, 3.0, 2.0]) if kind == pa.float64() else column
    parquet.write_table(pa.table({"id": column, "label": label, "f": [0.5] * 7}), tmp_path / "nodes.parquet")
    parquet.write_table(
        pa.table({"source": column, "target": column.take(pa.array([1, 2, 3, 4, 5, 6, 0]))}), tmp_path / "edges.parquet"
    )
    assert_same(imported(tmp_path, tmp_path / "out").graph(), read_tables(tmp_path))


def test_many_rows_in_many_blocks(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    ids = random.permutation(np.arange(0, 4_000, 4))
    lines = [f"{node},{'abc'[node % 3]},{node % 7},{node / 8}" for node in ids.tolist()]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,f,g", *lines]) + "\n")
    ends = random.choice(ids, (3_000, 2))
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *(f"{a},{b}" for a, b in ends.tolist())]) + "\n")
    folder = imported(tmp_path, tmp_path / "out")
    assert_same(folder.graph(), read_tables(tmp_path))
    assert folder.nodes_of(ids[:5]).tolist() == [folder.nodes_of([str(each)])[0] for each in ids[:5]]


def test_numbers_that_are_far_apart(tmp_path: Path) -> None:
    ids = [2**63 - 1, -(2**63), 0, 10**15, -3, 17]
    (tmp_path / "nodes.csv").write_text("id,label\n" + "".join(f"{node},a\n" for node in ids))
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in pairwise(ids)))
    assert_same(imported(tmp_path, tmp_path / "out").graph(), read_tables(tmp_path))
    for wrong in ("-4", "18", "9223372036854775808"):
        (tmp_path / "edges.csv").write_text(f"source,target\n0,17\n17,{wrong}\n")
        with pytest.raises(InputError, match=rf"edges\.csv: 1 edge with .* \(line 3 '{wrong}'\)"):
            imported(tmp_path, tmp_path / "other")


def test_duckdb_is_bounded_and_loads_nothing(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label\n1,a\n")
    ids = TableIds(Table(tmp_path / "nodes.csv"), "id", Spool(tmp_path, 600 << 20))
    settings = {
        name: ids._value(f"SELECT current_setting('{name}')")
        for name in (
            "memory_limit",
            "temp_directory",
            "threads",
            "autoinstall_known_extensions",
            "autoload_known_extensions",
            "enable_external_access",
        )
    }
    assert settings.pop("threads") <= 4
    assert list(settings.values()) == ["520.0 MiB", str(tmp_path), False, False, False]


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [
        (duckdb.OutOfMemoryException("full"), InputError, "do not fit into --memory"),
        (duckdb.IOException("write failed: No space left on device"), OSError, "No space left"),
    ],
)
def test_errors_of_duckdb_are_those_of_an_import(error: Exception, raised: type[Exception], words: str) -> None:
    with pytest.raises(raised, match=words), one_sentence():
        raise error


NODES = "id,label,f\n1,a,1\n2,b,2\n3,a,3\n"
BAD = {
    "unknown": (
        NODES,
        "source,target\n1,2\n2,9\n",
        r"edges\.csv: 1 edge with an end that is not among the nodes \(line 3 '9'\)",
    ),
    "blank": (NODES, "source,target\n1,2\n2,\n", r"edges\.csv, line 3: a node id is missing in column 'target'"),
    "one column": (NODES, "source,target\n1,2\n2,3\n2\n", r"edges\.csv, line 4: the row has 1 columns in place of 2"),
    "no column": (NODES, "source\n1\n", r"edges\.csv has no column for the edge targets"),
    "weight": (NODES, "source,target,weight\n1,2,1\n2,3,-1\n", r"edges\.csv, line 3: the edge has weight -1\.0"),
    "no weight": (NODES, "source,target,weight\n1,2,1\n2,3,\n", r"edges\.csv, line 3: column 'weight' is empty"),
    "types": (NODES, "source,target,type\n1,2,x\n2,3,y\n", "several types of edges"),
    "twice": (
        "id,label\n1,a\n2,b\n1,b\n",
        "source,target\n",
        r"nodes\.csv, line 4: node id '1' occurs twice",
    ),
    "text twice": (
        "id,label\na,a\n2,b\na,b\n",
        "source,target\n",
        r"nodes\.csv, line 4: node id 'a' occurs twice",
    ),
    "no id": ("id,label\n1,a\n,b\n", "source,target\n", r"nodes\.csv, line 3: a node id is missing"),
    "control": ("id,label\na,a\n\x07b,b\n", "source,target\n", r"nodes\.csv, line 3: the node id .* control character"),
    "class": (
        "id,label\n1,a\n2,b\x07\n",
        "source,target\n",
        r"nodes\.csv, line 3: the class name .* control character",
    ),
    "infinite": ("id,label,f\n1,a,1\n2,b,-inf\n", "source,target\n", r"nodes\.csv, line 3: column 'f' is infinite"),
    "no label": ("id,f\n1,1\n", "source,target\n", r"nodes\.csv has no column for the labels"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_end_in_one_sentence_and_leave_nothing(tmp_path: Path, name: str) -> None:
    nodes, edges, words = BAD[name]
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "edges.csv").write_text(edges)
    with pytest.raises(InputError, match=words):
        imported(tmp_path, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"nodes.csv", "edges.csv"}


def test_a_bad_line_far_behind_is_named(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    for wrong, words in (("2,9", "'9'"), ("2", ": the row has 1 columns"), ("2,", ": a node id is missing")):
        (tmp_path / "edges.csv").write_text("source,target\n" + "1,2\n" * 3_000 + wrong + "\n")
        with pytest.raises(InputError, match=rf"edges\.csv.*line 3002:? ?{words}"):
            imported(tmp_path, tmp_path / "out")


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_bytes(b"id,label\n1,a\n2,\xff\n")
    (tmp_path / "edges.csv").write_text("source,target\n")
    with pytest.raises(InputError, match=r"nodes\.csv .*line 3 is not UTF-8"):
        imported(tmp_path, tmp_path / "out")


VALUES = {
    "flags": st.sampled_from(["true", "false", "1", "0"]),
    "dates": st.sampled_from(["2026-01-01", "2026-01-02 03:04", " 1999-12-31"]),
    "mixed": st.sampled_from(["1", "2.5", "big", ""]),
    "words": st.sampled_from(["red hat", "Red", "", "blue", "NA"]),
    "numbers": st.sampled_from(["1", " 2", "-0", "1e3", ".5"]),
}
LABELS = st.sampled_from(["", "NA", "nan", "red", "Red", "réd", " red", "unknown", "-1"])


def graph_or_sentence(read: Callable[[], Graph]) -> Graph | str:
    """What a reader gives, or why it does not."""
    try:
        return read()
    except InputError as error:
        return str(error)


@given(data=st.data(), kinds=st.lists(st.sampled_from(list(VALUES)), max_size=4), separator=st.sampled_from(",;\t"))
@settings(max_examples=25, deadline=None)
def test_columns_of_all_kinds_are_imported_as_they_are_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, kinds: list[str], separator: str
) -> None:
    """Whatever is asked for: both readers plan alike, or refuse with the same sentence."""
    folder = tmp_path_factory.mktemp("tables")
    columns = [f"{kind}{place}" for place, kind in enumerate(kinds)]
    rows = [
        [str(number), data.draw(LABELS), *(data.draw(VALUES[kind]) for kind in kinds)]
        for number in range(data.draw(st.integers(1, 60)))
    ]
    lines = [separator.join(row) for row in (["id", "label", *columns], *rows)]
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    (folder / "edges.csv").write_text(f"source{separator}target\n0{separator}0\n")
    options: dict[str, list[str]] = {}
    for column in columns:
        option = data.draw(st.sampled_from([None, None, "text", "categories", "dates", "drop", "features"]))
        if option is not None:
            options.setdefault(option, []).append(column)
    asked = TableColumns(**options, missing=data.draw(st.sampled_from([None, "red+NA"])))  # type: ignore[arg-type]
    expected = graph_or_sentence(lambda: read_tables(folder, asked))
    found = graph_or_sentence(lambda: imported(folder, folder / "out", asked).graph())
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    assert_same(found, expected)
    assert found.columns == expected.columns is not None


def test_vectors_are_imported_as_they_are_read(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    vectors = random.normal(size=(40, 5)).astype(np.float32)
    nodes = {
        "id": list(range(40)),
        "label": ["ab"[number % 2] for number in range(40)],
        "leak": [number % 2 for number in range(40)],
        "text": ["red hat" if number % 3 else "blue" for number in range(40)],
        "inner": vectors.tolist(),
    }
    parquet.write_table(pa.table(nodes), tmp_path / "nodes.parquet")
    parquet.write_table(pa.table({"source": [1, 2], "target": [3, 4]}), tmp_path / "edges.parquet")
    np.save(tmp_path / "outer.npy", np.asfortranarray(vectors * 2))
    for options in ({"features": "text+leak"}, {"drop": "text"}):
        columns = TableColumns(vectors="inner+outer.npy", **options)  # type: ignore[arg-type]
        out = tmp_path / str(len(options["drop"]) if "drop" in options else 0)
        graph = imported(tmp_path, out, columns).graph()
        assert_same(graph, read_tables(tmp_path, columns))
        assert any("Warning: column 'leak'" in note for note in graph.notes)
        assert graph.features.shape[1] == (11 if "drop" in options else 14)
