"""DataFrames become the graphs that the same tables on the disk become."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse

from graphfcl import Graph, InputError, TableColumns, from_frames, read_tables
from tests.frames import LIBRARIES, frame_of

NODES = {
    "sku": ["p1", "p2", "p3", "p4"],
    "category": ["shoes ", "NA", "jackets", "shoes"],
    "title": ["red shoe", "blue thing", "warm jacket", "black shoe"],
    "price": [10.0, 12.5, 80.0, 9.0],
    "colour": ["red", "blue", "green", "black"],
    "added": [datetime.date(2026, 1, day) for day in (1, 2, 3, 4)],
    "vector": [[0.5, 1.0], [1.5, 0.0], [2.0, 2.0], [0.0, 0.0]],
    "internal": [1, 2, 3, 4],
}
EDGES = {"a": ["p1", "p2", "p3"], "b": ["p2", "p3", "p1"], "strength": [1.0, 2.0, 0.5]}
NAMES: dict[str, Any] = {"id": "sku", "label": "category", "source": "a", "target": "b", "weight": "strength"}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"features": ["price", "added", "vector"]},
    {"drop": "internal", "categories": ["colour"], "dates": "added", "vectors": "vector"},
    {"text": "title", "features": "price", "min_nodes": 1},
    {"missing": ["jackets"]},
]


def same(first: Graph, second: Graph) -> None:
    assert first.sha256 == second.sha256
    assert first.columns == second.columns
    assert (first.feature_names is None) == (second.feature_names is None)
    if first.feature_names is not None and second.feature_names is not None:
        assert first.feature_names.tolist() == second.feature_names.tolist()


def on_disk(folder: Path) -> Path:
    for stem, columns in (("nodes", NODES), ("edges", EDGES)):
        parquet.write_table(pa.table(columns), folder / f"{stem}.parquet")
    return folder


@pytest.mark.parametrize("options", OPTIONS, ids=[",".join(each) or "none" for each in OPTIONS])
@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_are_read_as_tables_on_the_disk(tmp_path: Path, library: str, options: dict[str, Any]) -> None:
    expected = read_tables(on_disk(tmp_path), **NAMES, **options)
    found = from_frames(frame_of(library, NODES), frame_of(library, EDGES), **NAMES, **options)
    same(found, expected)
    assert list(found.notes) == [note.replace(".parquet", "") for note in expected.notes]
    same(from_frames(frame_of(library, NODES), frame_of(library, EDGES), TableColumns(**NAMES, **options)), expected)


def test_a_matrix_has_the_rows_of_the_nodes() -> None:
    table = from_frames(pa.table(NODES), pa.table(EDGES), **NAMES)
    ends = np.array([[0, 1, 2], [1, 2, 0]])
    for form in (sparse.csr_array, sparse.coo_matrix):
        matrix = form((EDGES["strength"], (ends[0], ends[1])), shape=(4, 4))
        assert from_frames(pa.table(NODES), matrix, **NAMES).sha256 == table.sha256


def test_an_index_of_pandas_with_a_name_is_a_column() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and nothing here needs it")
    nodes, edges = pandas.DataFrame(NODES), pandas.DataFrame(EDGES)
    expected = from_frames(nodes, edges, **NAMES)
    same(from_frames(nodes.set_index("sku"), edges, **NAMES), expected)
    shuffled = nodes.sample(frac=1, random_state=0)  # an index without a name is no feature
    assert from_frames(shuffled, edges, **NAMES).feature_names.tolist() == expected.feature_names.tolist()  # type: ignore[union-attr]
    for column in ("category", "colour", "price"):  # categories of numbers are numbers
        nodes[column] = nodes[column].astype("category")
    same(from_frames(nodes, edges, **NAMES), expected)


def test_categories_of_polars_are_texts() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed, and nothing here needs it")
    nodes, edges = polars.DataFrame(NODES), polars.DataFrame(EDGES)
    kinds = nodes.with_columns(polars.col("category", "colour").cast(polars.Categorical))
    options = {**NAMES, "categories": "colour"}
    same(from_frames(kinds, edges, **options), from_frames(nodes, edges, **options))
    with pytest.raises(InputError, match=r"nodes is a LazyFrame, which holds no rows yet: give nodes\.collect\(\)"):
        from_frames(nodes.lazy(), edges, **NAMES)


class Stream:
    """A table of a library that nobody knows, which offers Arrow's stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table, self.columns = table, table.column_names

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class Interchange:
    """One that offers the dataframe interchange protocol alone."""

    def __init__(self, table: pa.Table) -> None:
        self._table, self.columns = table, table.column_names

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> object:
        return self._table.__dataframe__(nan_as_null, allow_copy)


@pytest.mark.parametrize("kind", [Stream, Interchange])
def test_any_library_that_offers_its_tables_will_do(kind: Any) -> None:
    plain = pa.table({name: NODES[name] for name in ("sku", "category", "price")})
    found = from_frames(kind(plain), kind(pa.table(EDGES)), **NAMES)
    same(found, from_frames(plain, pa.table(EDGES), **NAMES))


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "sentence"),
    [
        (NODES, [("p1", "p2")], {}, "edges is of type list: give a DataFrame of pandas or polars"),
        ([1], EDGES, {}, "nodes is of type list: give a DataFrame"),
        (NODES, EDGES, {"labl": "x"}, "there is no option 'labl' for columns of tables: did you mean 'label'"),
        (
            NODES,
            EDGES,
            {"features": "prize"},
            "nodes has no column 'prize', which features= names: did you mean 'price'",
        ),
        (NODES, EDGES, {"id": "asin"}, "nodes has no column 'asin' for the node ids"),
        ({**NODES, "sku": ["p1", "p1", "p3", "p4"]}, EDGES, {}, "nodes, row 2: node id 'p1' occurs twice"),
        ({**NODES, "price": [1.0, np.inf, 2.0, 3.0]}, EDGES, {}, "nodes, row 2: column 'price' is infinite"),
        (NODES, sparse.eye_array(4), {"repeated": "sum"}, "edges is a matrix, which has no rows for repeated=: leave"),
        (
            NODES,
            {**EDGES, "b": ["p2", "p9", "p1"]},
            {},
            r"edges: 1 edge with an end .* \(row 2 'p9'\)",
        ),
        (NODES, sparse.eye_array(3), {}, r"edges has shape \(3, 3\), but nodes has 4 rows: give a matrix of 4 × 4"),
        (NODES, EDGES, {"vectors": "no.npy"}, "no.npy does not exist, which vectors= names: check the path"),
    ],
)
def test_frames_that_cannot_be_used_are_refused(nodes: Any, edges: Any, options: dict[str, Any], sentence: str) -> None:
    both = [pa.table(each) if isinstance(each, dict) else each for each in (nodes, edges)]
    with pytest.raises(InputError, match=sentence):
        from_frames(*both, **{**NAMES, **options})


def test_a_column_of_several_kinds_is_named() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and nothing here needs it")
    nodes = pandas.DataFrame({**NODES, "colour": ["red", 1, ["blue"], 2.5]})
    with pytest.raises(InputError, match=r"nodes: column 'colour' cannot be read as a table .*values of one kind"):
        from_frames(nodes, pandas.DataFrame(EDGES), **NAMES)


@pytest.mark.parametrize("indexed", [False, True])
def test_numbers_and_texts_in_a_column_of_pandas_are_read_as_in_a_csv_file(tmp_path: Path, indexed: bool) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and nothing here needs it")
    columns: dict[str, list[Any]] = {
        "id": [1, "2", "x", 4],
        "label": ["a", 7, None, "a"],
        "price": [1.5, "2", "tbd", np.nan],
        "size": [1, "2.5", 3, "4"],
        "colour": ["red", 5, 5.0, "5"],
    }
    nodes = pandas.DataFrame({name: pandas.Series(values, dtype=object) for name, values in columns.items()})
    edges = pandas.DataFrame({"source": pandas.Series([1, "x"], dtype=object), "target": ["2", "4"]})
    (tmp_path / "nodes.csv").write_text(
        "id,label,price,size,colour\n1,a,1.5,1,red\n2,7,2,2.5,5\nx,,tbd,3,5\n4,a,,4,5\n"
    )
    (tmp_path / "edges.csv").write_text("source,target\n1,2\nx,4\n")
    frame = nodes.set_index("id") if indexed else nodes
    given: list[dict[str, Any]] = [{}, {"categories": "colour"}, {"missing": "tbd"}]
    for options in [*given, {"features": "size+price", "missing": "tbd"}]:
        expected = read_tables(tmp_path, **options)
        found = from_frames(frame, edges, **options)
        same(found, expected)
        lines = expected.notes[0].replace(".csv", "").replace("line 2", "row 1").replace("line 4", "row 3")
        assert found.notes[0] == lines
    for read in (lambda: read_tables(tmp_path, features="price"), lambda: from_frames(frame, edges, features="price")):
        with pytest.raises(InputError, match=r"(line 4|row 3): column 'price' holds 'tbd', which is no number: fix it"):
            read()
    numbers = nodes.assign(id=pandas.Series([1, "2", 3, 4], dtype=object))
    assert from_frames(numbers, edges.assign(source=[1, 3])).node_ids.tolist() == [1, 2, 3, 4]


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["a", "b", None]), st.floats(-9, 9, width=32)), min_size=1)
)
def test_ids_labels_and_numbers_come_through(rows: list[tuple[int, str | None, float]]) -> None:
    unique = {row[0]: row for row in rows}
    nodes = pa.table(
        {"id": list(unique), "label": [row[1] for row in unique.values()], "x": [r[2] for r in unique.values()]}
    )
    graph = from_frames(nodes, pa.table({"source": pa.array([], pa.int64()), "target": pa.array([], pa.int64())}))
    assert graph.node_ids.tolist() == list(unique)
    assert [None if n < 0 else graph.class_names[n] for n in graph.labels] == [row[1] for row in unique.values()]
    np.testing.assert_allclose(graph.features[:, 0], [row[2] for row in unique.values()], rtol=1e-6)
