"""Ids and names: one form for all of them, and nodes found by what a user types."""

import tracemalloc
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphfcl import (
    Graph,
    InputError,
    build_graph,
    from_networkx,
    load_dataset,
    read_npz,
    read_tables,
    write_npz,
    write_tables,
)
from graphfcl.graph.ids import CLASS_NAME, NODE_ID, IdIndex, make_ids, pack_texts, unpack_texts

ANY_TEXT = st.text(st.characters(), max_size=8) | st.text("a \t\x1b\u202e\ud800e\u0301\u00e9\u2028\ufeff1", max_size=8)
EXPECTED = {  # of the graphs as docs/benchmark.md cites them
    "debian": "9dad8817c28116f0d003666f64acff67ea79223b8567b1727aa0780b715242f8",
    "wordnet": "25f1b3b02bb0901f5857c31f90b1f88e9353be75fce6bb2a90534523b496af89",
}


def graph_of(ids: Any, **options: Any) -> Graph:
    return build_graph(np.zeros((len(ids), len(ids))), None, np.zeros(len(ids)), node_ids=ids, **options)


def cleaned(text: str) -> str | None:
    try:
        return NODE_ID.clean(text, "here")
    except InputError:
        return None


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = cleaned(text)
    if once is not None:
        assert cleaned(once) == once
        assert once == once.strip()
        assert unicodedata.is_normalized("NFC", once)
        assert cleaned(f" {text}\n") == once


@given(ANY_TEXT)
def test_a_cleaned_text_has_nothing_that_a_terminal_obeys(text: str) -> None:
    once = cleaned(text)
    shown = once if once is not None else str(InputError(f"it is {text}"))
    assert not any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in shown)
    assert not any(unicodedata.bidirectional(letter) in BIDI for letter in shown)
    shown.encode()


BIDI = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


@given(st.lists(ANY_TEXT, max_size=6))
def test_a_column_is_cleaned_as_each_of_its_texts(texts: list[str]) -> None:
    single = [cleaned(text) for text in texts]
    if None in single or len(set(single)) < len(single):
        with pytest.raises(InputError, match=r"^row \d+: |^\d node ids occur several times: '"):
            make_ids(texts, lambda row: f"row {row}")
        return
    ids, changed = make_ids(texts, lambda row: f"row {row}")
    assert ids.tolist() == single
    assert changed == sum(text != clean for text, clean in zip(texts, single, strict=True))


@given(st.lists(st.text(st.characters(), max_size=5), max_size=6))
def test_packed_ids_come_back_whatever_they_hold(texts: list[str]) -> None:
    assert unpack_texts(*pack_texts(texts)).tolist() == texts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        (" \t ", "is empty"),
        ("a\x1b[31mb", r"U\+001B"),
        ("a\x85b", r"U\+0085"),
        ("a\u202eb", r"U\+202E"),
        ("a\u2066b", r"U\+2066"),
        ("a\ud800b", "surrogate"),
        ("x" * 1001, "longer than 1,000 characters"),
    ],
)
def test_what_is_no_id_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(InputError, match=rf"^the graph, node 1: .*{words}") as refused:
        graph_of(["fine", text])
    assert len(str(refused.value)) < 250


def test_the_longest_id_and_name_are_taken() -> None:
    graph = graph_of(["x" * 1000], class_names=["y" * 200])
    assert len(graph.node_ids[0]) == 1000
    with pytest.raises(InputError, match="longer than 200 characters"):
        graph_of(["x"], class_names=["y" * 201])


def test_two_ids_that_are_one_once_cleaned_are_both_named() -> None:
    with pytest.raises(InputError, match=r"'a ' and 'a' \(the graph, node 0\) are the same id 'a'"):
        graph_of(["a", "b", "a "])
    with pytest.raises(InputError, match=r"'cafe\u0301', 'café'"):
        graph_of(["a"], class_names=["cafe\u0301", "café"])
    with pytest.raises(InputError, match="'1' occurs twice"):
        graph_of([1, "1", "x"])


def test_ids_that_are_missing_or_no_utf_8_are_refused() -> None:
    for ids in (["a", None], ["a", float("nan")]):
        with pytest.raises(InputError, match="node 1: the node id is missing"):
            graph_of(ids)
    with pytest.raises(InputError, match=r"node 1: .*not UTF-8"):
        graph_of(np.array([b"a", b"\xff"]))


def test_spellings_of_a_label_are_one_class() -> None:
    graph = build_graph(np.zeros((4, 4)), None, ["café", " cafe\u0301 ", " ", "tea"])
    assert graph.class_names == ("café", "tea")
    assert graph.labels.tolist() == [0, 0, -1, 1]
    assert graph.cleaned == 1
    assert "1 ids or class names were cleaned" in graph.notes[-1]
    assert graph.class_number("tea ") == 1
    with pytest.raises(InputError, match=r"node 2: the class name 'b\\x07' holds"):
        build_graph(np.zeros((3, 3)), None, ["a", "a", "b\x07"])


# Tables and other sources


def written(folder: Path, nodes: bytes, edges: bytes = b"source,target\n") -> Path:
    (folder / "nodes.csv").write_bytes(nodes)
    (folder / "edges.csv").write_bytes(edges)
    return folder


def test_tables_are_cleaned_and_edges_find_their_nodes(tmp_path: Path) -> None:
    nodes = "id,label\n a ,x\ncafe\u0301, x\nb,y\n".encode()
    graph = read_tables(written(tmp_path, nodes, "source,target\na,café \n a ,b\n".encode()))
    assert graph.node_ids.tolist() == ["a", "café", "b"]
    assert graph.class_names == ("x", "y")
    assert graph.edge_count == 2
    assert graph.cleaned == 3
    numbers = read_tables(written(tmp_path, b"id,label\n 7,x\n8 ,-1 \n", b"source,target\n7, 8\n"))
    assert numbers.node_ids.tolist() == [7, 8]
    assert numbers.labels.tolist() == [0, -1]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (b"id,label\na,x\nb\x1b[2J,x\n", r"nodes\.csv, line 3: the node id .*U\+001B"),
        (b"id,label\na,x\nb,x\xff\n", r"nodes\.csv cannot be read as a table \(line 3 is not UTF-8\)"),
        (b"id,label\na,x\n\xed\xa0\x80,x\n", r"nodes\.csv cannot be read as a table \(line 3 is not UTF-8\)"),
        (b"id,label\na,x\na ,x\n", r"nodes\.csv, line 3: .*'a ' and 'a' .*line 2"),
        (b"id,label\na,x\nb,y\x07z\n", r"nodes\.csv, line 3: the class name"),
        (b"id,label\n" + b"a" * 2000 + b",x\n", r"nodes\.csv, line 2: .*longer than 1,000"),
    ],
)
def test_a_table_names_the_line(tmp_path: Path, nodes: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_tables(written(tmp_path, nodes))


def test_a_parquet_table_that_is_not_utf_8_names_the_row(tmp_path: Path) -> None:
    offsets, content = pa.py_buffer(np.array([0, 1, 2], dtype=np.int32)), pa.py_buffer(b"a\xff")
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, content])
    pq.write_table(pa.table({"id": broken, "label": ["x", "y"]}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n")
    with pytest.raises(InputError, match=r"nodes\.parquet, row 2: column 'id' is not UTF-8"):
        read_tables(tmp_path)


def test_networkx_is_cleaned_too() -> None:
    networkx = pytest.importorskip("networkx")
    network = networkx.Graph([(" a", "b")])
    assert from_networkx(network, label=None).node_ids.tolist() == ["a", "b"]
    network.add_node("a")
    with pytest.raises(InputError, match="are the same id 'a'"):
        from_networkx(network, label=None)


def test_one_long_id_takes_its_own_room_only(tmp_path: Path) -> None:
    count = 100_000
    ids = ["x" * 1000, *(f"n{number}" for number in range(count - 1))]
    rows = "".join(f"{node},{'c' * 200 if number < 2 else 'd'}\n" for number, node in enumerate(ids))
    written(tmp_path, f"id,label\n{rows}".encode(), b"source,target\nn1,n2\n")
    tracemalloc.start()
    graph = read_tables(tmp_path)
    write_npz(graph, tmp_path / "graph.npz")
    again = read_npz(tmp_path / "graph.npz")
    write_tables(build_graph(graph.adjacency, None, graph.labels, node_ids=graph.node_ids), tmp_path / "again")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.8 * count * 1000
    assert again.sha256 == graph.sha256
    assert graph.byte_count < 10e6


@pytest.mark.parametrize("name", ["debian", "wordnet"])
def test_shipped_graphs_are_clean_and_the_same(name: str) -> None:
    graph, _ = load_dataset(name)
    assert graph.cleaned == 0
    assert graph.sha256 == EXPECTED[name]
    assert NODE_ID.clean_all(graph.node_ids.tolist(), str) == graph.node_ids.tolist()
    assert CLASS_NAME.clean_all(graph.class_names, str) == list(graph.class_names)


# Finding


def test_each_id_is_found_by_itself() -> None:
    numbers = IdIndex(np.array([7, 8, 12]))
    wanted = [7, "8", " 12 ", "007", "x", None, 2**70, 7.5, True, np.int64(8)]
    assert numbers.rows(wanted).tolist() == [0, 1, 2, -1, -1, -1, -1, -1, -1, 1]
    assert numbers.exact([7, "8", "x", 8]).tolist() == [0, -1, -1, 1]
    texts = IdIndex(make_ids(["7", "a", "café"], str)[0])
    assert texts.rows([7, "a", "a ", "cafe\u0301", "b", "a\ud800"]).tolist() == [0, 1, 1, 2, -1, -1]
    assert texts.exact([7, "a", "a ", "7"]).tolist() == [-1, 1, -1, 0]


def test_stored_ids_are_found_as_they_are_or_by_their_form() -> None:
    stored = np.array([" a", "a\t", "b ", "c\x1b[31m", "d"], dtype=object)
    index = IdIndex(stored)
    assert index.rows(stored).tolist() == [0, 1, 2, 3, 4]
    assert index.rows(["b", " b", "d "]).tolist() == [2, 2, 4]
    with pytest.raises(InputError, match=r"node 'a' may be ' a' or 'a\\t'"):
        index.rows(["d", "a"])
