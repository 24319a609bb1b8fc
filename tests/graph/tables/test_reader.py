"""Folders of tables, CSV and Parquet."""

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse

from graphfcl import Graph, InputError, TableColumns, build_graph, import_graph, read_tables, write_tables
from graphfcl.graph import TextSettings
from graphfcl.graph.labels import means_unknown
from tests.graph.samples import assert_same_content, coo, named_labels, small_graphs

NODES = "id,label,size\n1,a,0.5\n2,b,2\n3,,4\n"
EDGES = "source,target\n1,2\n2,3\n"
PRINTABLE = st.characters(exclude_categories=["C", "Zl", "Zp"])


def tables(folder: Path, nodes: str | bytes | dict[str, Any] = NODES, edges: str | dict[str, Any] = EDGES) -> Path:
    """A folder of tables: a text becomes CSV, columns become Parquet."""
    for stem, content in (("nodes", nodes), ("edges", edges)):
        if isinstance(content, dict):
            parquet.write_table(pa.table(content), folder / f"{stem}.parquet")
        else:
            (folder / f"{stem}.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@given(small_graphs(dense=True, characters=PRINTABLE))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_parquet_is_read_back(tmp_path: Path, graph: Graph) -> None:
    assume(not any(map(means_unknown, graph.class_names)))
    write_tables(graph, tmp_path)
    back = read_tables(tmp_path)
    assert_same_content(back, graph)
    assert back.node_ids.dtype.kind == graph.node_ids.dtype.kind


@given(small_graphs(dense=True, characters=PRINTABLE))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_csv_is_read_back(tmp_path: Path, graph: Graph) -> None:
    assume(not any(map(means_unknown, graph.class_names)))
    write_tables(graph, tmp_path, suffix="csv")
    back = read_tables(tmp_path)
    # CSV does not say whether 7 is a number or a text.
    assert_same_content(*(replace(each, node_ids=each.node_ids.astype(str)) for each in (back, graph)))


def test_a_plain_folder_is_read(tmp_path: Path) -> None:
    graph = read_tables(tables(tmp_path))
    assert graph.node_ids.tolist() == [1, 2, 3]
    assert named_labels(graph) == ["a", "b", None]
    assert graph.features.tolist() == [[0.5], [2], [4]]
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["size"]
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.name == tmp_path.name
    assert read_tables(tmp_path, name="friends").name == "friends"


@pytest.mark.parametrize(
    ("ids", "read"),
    [
        (["007", "7", "8"], ["007", "7", "8"]),
        (["7", "-8", "9"], [7, -8, 9]),
        (["1.0", "2", "3"], ["1.0", "2", "3"]),
        (["NA", "null", "nan"], ["NA", "null", "nan"]),
        (["9" * 20, "1", "2"], ["9" * 20, "1", "2"]),
        (['"a,b"', "c d", "é"], ["a,b", "c d", "é"]),
    ],
)
def test_ids_stay_what_they_are(tmp_path: Path, ids: list[str], read: list[Any]) -> None:
    nodes = "id,label\n" + "".join(f"{node},x\n" for node in ids)
    graph = read_tables(tables(tmp_path, nodes, f"source,target\n{ids[0]},{ids[2]}\n"))
    assert graph.node_ids.tolist() == read
    assert graph.adjacency.toarray()[0, 2] == 1


@pytest.mark.parametrize(
    ("ids", "read"),
    [
        (["7", "8", "9"], ["7", "8", "9"]),
        (pa.array(["7", "8", "9"]).dictionary_encode(), ["7", "8", "9"]),
        ([7, 8, 9], [7, 8, 9]),
        ([7.0, 8.0, 9.0], [7, 8, 9]),
    ],
)
def test_a_parquet_column_says_whether_ids_are_numbers(tmp_path: Path, ids: Any, read: list[Any]) -> None:
    nodes = {"id": ids, "label": ["a", "b", "c"]}
    graph = read_tables(tables(tmp_path, nodes, {"source": [7], "target": ["9"]}))
    assert graph.node_ids.tolist() == read
    assert graph.adjacency.toarray()[0, 2] == 1


def test_labels_stay_texts_and_an_empty_place_is_unknown(tmp_path: Path) -> None:
    nodes = 'id,label\n1,007\n2,NAN O\n3,\n4,""\n5,7\n6,"  "\n'
    graph = read_tables(tables(tmp_path, nodes, "source,target\n"))
    assert named_labels(graph) == ["007", "NAN O", None, None, "7", None]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([1.0, None, 0.0], ["1", None, "0"]),
        ([1.0, float("nan"), 0.0], ["1", None, "0"]),
        ([10, None, 9], ["10", None, "9"]),
        (pa.array(["b", None, "a"]).dictionary_encode(), ["b", None, "a"]),
        ([True, False, True], ["1", "0", "1"]),  # as in an array
    ],
)
def test_labels_of_other_column_types(tmp_path: Path, labels: Any, names: list[str | None]) -> None:
    graph = read_tables(tables(tmp_path, {"id": [1, 2, 3], "label": labels}, EDGES))
    assert named_labels(graph) == names


def test_a_column_of_text_becomes_word_counts(tmp_path: Path) -> None:
    nodes = 'id,label,text\n1,a,"red fox,\nred hen"\n2,b,NULL\n3,a,\n'
    graph = read_tables(tables(tmp_path, nodes), TableColumns(min_nodes=1))
    assert graph.text == TextSettings(1)
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["fox", "hen", "null", "red"]
    assert sparse.issparse(graph.features)
    assert graph.features.toarray().tolist() == [[1, 1, 0, 2], [0, 0, 1, 0], [0, 0, 0, 0]]


def test_texts_with_many_line_breaks_are_read(tmp_path: Path) -> None:
    rows = "".join(f'{number},a,"first line\nsecond, {"x" * 90}\nthird"\n' for number in range(15_000))
    graph = read_tables(tables(tmp_path, f"id,label,text\n{rows}", "source,target\n0,14999\n"))
    assert graph.node_count == 15_000
    assert graph.features.nnz == 15_000 * 5


def test_one_long_text_does_not_blow_up_the_others(tmp_path: Path) -> None:
    rows = "".join(f"{number},a,{'word ' * (20_000 if number == 0 else 1)}\n" for number in range(2_000))
    tables(tmp_path, f"id,label,text\n{rows}", "source,target\n")
    tracemalloc.start()
    graph = read_tables(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert graph.features.sum() == 20_000 + 1_999
    assert peak < 100 * 2**20


def test_columns_can_be_named(tmp_path: Path) -> None:
    nodes = "name,topic,size,abstract\nx,a,1,red fox\ny,b,2,red hen\n"
    tables(tmp_path, nodes, "one,other,strength\nx,y,0.25\n")
    columns = TableColumns(
        id="name", label="topic", text="abstract", source="one", target="other", weight="strength", min_nodes=2
    )
    graph = read_tables(tmp_path, columns)
    assert graph.node_ids.tolist() == ["x", "y"]
    assert graph.class_names == ("a", "b")
    assert graph.adjacency.toarray().tolist() == [[0, 0.25], [0.25, 0]]
    assert graph.text == TextSettings(2)


def test_other_columns_of_edges_leave_a_note(tmp_path: Path) -> None:
    graph = read_tables(tables(tmp_path, NODES, "source,target,type,since\n1,2,x,1999\n2,3,x,2001\n"))
    assert any("edges.csv" in note and "type, since" in note for note in graph.notes)


def test_a_table_without_rows_is_an_empty_graph(tmp_path: Path) -> None:
    graph = read_tables(tables(tmp_path, "id,label,size\n", "source,target\n"))
    assert (graph.node_count, graph.edge_count, graph.features.shape) == (0, 0, (0, 1))


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ("source,target\n1,2\n1,7\n", r"edges\.csv: 1 edge with an end that is not among the nodes \(line 3 '7'\)"),
        ("source,target\nx,2\n", r"edges\.csv: 1 edge with an end that is not among the nodes \(line 2 'x'\)"),
        ("source,target\n1,2\n2,\n", r"edges\.csv, line 3: a node id is missing in column 'target'"),
        ("source,target\n1,02\n", r"edges\.csv: 1 edge with an end that is not among the nodes \(line 2 '02'\)"),
        ("source,target,weight\n1,2,-1\n", r"edges\.csv, line 2: the edge has weight -1\.0"),
        ("source,target,weight\n1,2,1\n2,3,\n", r"edges\.csv, line 3: column 'weight' is empty"),
        ("source,target,weight\n1,2,much\n", r"edges\.csv, line 2: column 'weight' does not hold a number but 'much'"),
        ("source,target,type\n1,2,likes\n2,3,hates\n", r"edges\.csv: column 'type'.*heterogeneous"),
        ("source,target,Relation\n1,2,likes\n2,3,hates\n", r"edges\.csv: column 'Relation'.*heterogeneous"),
        ("source,end\n1,2\n", r"edges\.csv has no column for the edge targets: call it 'target'"),
        ("source,target\n1,2,3\n", r"edges\.csv, line 2: the row has 3 columns in place of 2"),
        ("", r"edges\.csv cannot be read as a table"),
        (
            {"source": [1, 1], "target": [2, 9]},
            r"edges\.parquet: 1 edge with an end .* \(row 2 '9'\)",
        ),
    ],
)
def test_edges_that_cannot_be_used_are_refused(tmp_path: Path, edges: str | dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_tables(tables(tmp_path, NODES, edges))


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("separator", [",", ";"])
def test_the_line_of_a_wrong_row_is_said_by_any_number_of_threads(tmp_path: Path, separator: str, threads: int) -> None:
    edges = "source,target\n" + "1,2\n" * 399_999 + "\n1,2,3\n"  # more than one block of Arrow
    before = pa.cpu_count()
    pa.set_cpu_count(threads)
    try:
        with pytest.raises(InputError, match=r"edges\.csv, line 400002: the row has 3 columns in place of 2: fix"):
            read_tables(tables(tmp_path, NODES, edges.replace(",", separator)))
    finally:
        pa.set_cpu_count(before)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("id,label\n1,a\n,b\n3,c\n", r"nodes\.csv, line 3: a node id is missing in column 'id'"),
        ("id,label\n1,a\n2,b\n3,c\n1,d\n", r"nodes\.csv, line 5: node id '1' occurs twice, first in line 2"),
        ("name,label\n1,a\n", r"nodes\.csv has no column for the node ids.*it has name, label"),
        ("id,topic\n1,a\n", r"nodes\.csv has no column for the labels: call it 'label' or 'class'"),
        ("id,label,size\n1,a,1\n2,b,inf\n3,c,3\n", r"nodes\.csv, line 3: column 'size' is infinite"),
        ("id,label,size\n1,a,1\n\n2,b,1e39\n3,c,3\n", r"nodes\.csv, line 4: column 'size' is infinite or beyond"),
        ('id,label,text\n1,a,"x\ny"\n1,b,z\n', r"nodes\.csv, line 4: node id '1' occurs twice, first in line 2"),
        ("id,label,size,size\n1,a,1,1\n", r"nodes\.csv has two columns 'size': give"),
        ("id,label,size, size\n1,a,1,1\n", r"nodes\.csv has two columns 'size' \(spaces around it do not count\)"),
        ("id,label\n1\n2,b\n", r"nodes\.csv, line 2: the row has 1 columns in place of 2"),
        ("id,label\n1,café\n".encode("latin-1"), r"nodes\.csv cannot be read as a table"),
        ({"id": [1, 2, 3], "label": [["a"], ["a", "b"], ["b"]]}, r"nodes\.parquet: column 'label'.*multi-label"),
        ({"id": [b"\xff", b"b", b"c"], "label": [1, 2, 3]}, r"nodes\.parquet: column 'id' cannot be read as text"),
        ({"id": [[1], [2], [3]], "label": [1, 2, 3]}, r"nodes\.parquet: column 'id' holds lists"),
    ],
)
def test_nodes_that_cannot_be_used_are_refused(tmp_path: Path, nodes: str | dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_tables(tables(tmp_path, nodes))


def test_a_column_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nodes\.csv has no column 'topic' for the labels: it has id, label, size"):
        read_tables(tables(tmp_path), TableColumns(label="topic"))
    with pytest.raises(InputError, match=r"nodes\.csv has no column 'lable' for the labels: did you mean 'label'\?"):
        read_tables(tmp_path, TableColumns(label="lable"))
    with pytest.raises(InputError, match=r"nodes\.csv has no column 'ID' for the node ids: did you mean 'id'\?"):
        read_tables(tmp_path, TableColumns(id="ID"))


@pytest.mark.parametrize("as_parquet", [False, True])
def test_spaces_around_names_of_columns_do_not_count(tmp_path: Path, as_parquet: bool) -> None:
    nodes = {"id ": [1, 2, 3], " label": ["a", "b", None], " size": [0.5, 2.0, 4.0]}
    tables(tmp_path, nodes if as_parquet else NODES.replace(",label,", " , label, "), EDGES.replace(",t", ", t"))
    graph = read_tables(tmp_path, features="size")
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["size"]
    assert named_labels(graph) == ["a", "b", None]
    assert import_graph(tmp_path, tmp_path / "out").class_names == ("a", "b")


def test_missing_and_damaged_tables_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no nodes\.parquet, nodes\.csv or nodes\.tsv"):
        read_tables(tmp_path)
    tables(tmp_path)
    (tmp_path / "edges.csv").unlink()
    with pytest.raises(InputError, match=r"has no edges\.parquet, edges\.csv or edges\.tsv"):
        read_tables(tmp_path)
    (tmp_path / "edges.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"edges\.parquet cannot be read as a table"):
        read_tables(tmp_path)


def test_graphs_that_a_table_would_spoil_are_not_written(tmp_path: Path) -> None:
    thin = build_graph(coo([], 2), sparse.csr_array(np.eye(2)), [0, 1], name="thin")
    with pytest.raises(InputError, match=r"thin has sparse features.*\.npz"):
        write_tables(thin, tmp_path)
    with pytest.raises(InputError, match="csv or parquet, not 'xlsx'"):
        write_tables(build_graph(coo([], 2), np.eye(2), [0, 1]), tmp_path, suffix="xlsx")
    assert list(tmp_path.iterdir()) == []


def test_minus_one_is_an_unknown_class_and_no_name_for_one(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label,x\na,-1,1\nb,red,2\nc,,3\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    graph = read_tables(tmp_path)
    assert graph.labels.tolist() == [-1, 0, -1]
    assert graph.class_names == ("red",)
    named = build_graph(np.zeros((1, 1)), np.zeros((1, 1)), ["-1x"], class_names=["-1x"])
    write_tables(named, tmp_path / "fine")
    with pytest.raises(InputError, match="rename it"):
        write_tables(build_graph(np.zeros((1, 1)), np.zeros((1, 1)), [0], class_names=["-1"]), tmp_path / "refused")
