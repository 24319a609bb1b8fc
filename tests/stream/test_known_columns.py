"""Which feature columns learners see, by a plain loop over the nodes of session 0."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphfcl import (
    Graph,
    GraphFolder,
    InputError,
    Protocol,
    Resources,
    Stream,
    TableColumns,
    build_graph,
    load_dataset,
    load_stream,
    make_stream,
    read_npz,
    read_tables,
    save_stream,
    write_npz,
)
from graphfcl.graph.folder import build_folder
from graphfcl.graph.folder.source import of_graph
from graphfcl.graph.folder.sources import npz_source

RULES = Protocol(base=("0", "1"), pseudo_novel=0, way=1)
ROOM = 1 << 31


def seen_often(stream: Stream, least: int) -> list[int]:
    """The columns that at least so many nodes of session 0 have."""
    graph, split = stream.graph.loaded(), stream.split
    counts: dict[int, int] = {}
    for node, session in enumerate(split.sessions_of_nodes(graph).tolist()):
        if session == 0 or stream.protocol.shows_all:
            start, stop = graph.features.indptr[node : node + 2]
            for column in graph.features.indices[start:stop].tolist():
                counts[column] = counts.get(column, 0) + 1
    return sorted(column for column, count in counts.items() if count >= least)


def word_graph(least: int = 5) -> Graph:
    """Column 0: five nodes of session 0. Column 1: four of them and one of the novel class. Column 2: all nodes."""
    values = np.zeros((36, 4), dtype=np.float32)
    values[:5, 0] = 1
    values[[0, 6, 12, 18, 30], 1] = 1
    values[:, 2] = 1
    values[[1, 24], 3] = 1
    features = sparse.csr_array(values)
    labels = np.repeat([0, 1, 2], 12)
    return replace(build_graph(np.zeros((36, 36)), features, labels, name="words"), column_min_nodes=least)


def as_folder(graph: Graph, at: Path) -> GraphFolder:
    build_folder(of_graph(graph), at / "folder", memory=ROOM)
    return GraphFolder.open(at / "folder", Resources(at / "work", ROOM))


@pytest.mark.parametrize("track", ["transductive", "isolated"])
def test_a_word_in_five_nodes_of_which_four_are_of_session_0_is_not_visible(track: Any) -> None:
    stream = make_stream(word_graph(), RULES, track=track)
    assert stream.view.columns.tolist() == [0, 2] == seen_often(stream, 5)  # type: ignore[union-attr]
    for number in range(2):
        assert stream.evaluation_graph(number).loaded().features.shape[1] == 2


def test_where_all_nodes_are_visible_all_nodes_count() -> None:
    stream = make_stream(word_graph(), RULES, track="open")
    assert stream.view.columns.tolist() == [0, 1, 2] == seen_often(stream, 5)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["debian", "wordnet"])
def test_the_vocabulary_of_the_shipped_graphs_is_that_of_session_0(name: str) -> None:
    graph, protocol = load_dataset(name)
    assert graph.column_min_nodes == 5
    stream = make_stream(graph, protocol, seed=0)
    expected = seen_often(stream, 5)
    assert stream.view.columns.tolist() == expected  # type: ignore[union-attr]
    assert len(expected) < len(seen_often(stream, 1)) < graph.features.shape[1]
    shown = make_stream(graph, protocol, seed=0, track="open")
    assert shown.evaluation_graph(0).loaded().features.shape == graph.features.shape


def test_the_words_of_a_table_are_those_of_session_0(tmp_path: Path) -> None:
    texts = [f"all {'few' if row in (0, 6, 12, 18, 30) else ''} {'five' if row < 5 else ''}" for row in range(36)]
    lines = [f"n{row},{row // 12},{text}" for row, text in enumerate(texts)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,text", *lines]))
    (tmp_path / "edges.csv").write_text("source,target\nn0,n1\nn12,n13\n")
    graph = read_tables(tmp_path, TableColumns(min_nodes=5))
    stream = make_stream(graph, RULES)
    assert graph.feature_names is not None
    assert graph.feature_names[stream.view.columns].tolist() == ["all", "five"]  # type: ignore[union-attr]
    assert stream.view.columns.tolist() == seen_often(stream, 5)  # type: ignore[union-attr]
    on_disk = make_stream(as_folder(graph, tmp_path), RULES)
    np.testing.assert_array_equal(on_disk.view.columns, stream.view.columns)  # type: ignore[union-attr]


@pytest.mark.parametrize("source", [lambda graph, _: of_graph(graph), lambda _, file: npz_source(file)])
def test_files_and_folders_keep_the_minimum(source: Callable[[Graph, Path], Any], tmp_path: Path) -> None:
    graph, file = word_graph(), tmp_path / "words.npz"
    write_npz(graph, file)
    assert read_npz(file).column_min_nodes == 5
    build_folder(source(graph, file), tmp_path / "folder", memory=ROOM)
    folder = GraphFolder.open(tmp_path / "folder", Resources(tmp_path / "work", ROOM))
    assert folder.column_min_nodes == folder.loaded().column_min_nodes == folder.graph().column_min_nodes == 5
    in_memory, on_disk = make_stream(graph, RULES), make_stream(folder, RULES)
    assert on_disk.view.columns.tolist() == in_memory.view.columns.tolist() == [0, 2]  # type: ignore[union-attr]
    save_stream(in_memory, tmp_path / "stream.json")
    assert load_stream(tmp_path / "stream.json", graph).view.columns.tolist() == [0, 2]  # type: ignore[union-attr]


def test_a_graph_without_a_minimum_shows_what_a_node_of_session_0_has() -> None:
    stream = make_stream(replace(word_graph(), column_min_nodes=1), RULES)
    assert stream.view.columns.tolist() == [0, 1, 2, 3] == seen_often(stream, 1)  # type: ignore[union-attr]


@pytest.mark.parametrize("wrong", [np.array([5]), np.array("five"), np.array(0)])
def test_a_minimum_that_is_none_is_refused(wrong: np.ndarray, tmp_path: Path) -> None:
    write_npz(word_graph(), tmp_path / "words.npz")
    arrays = dict(np.load(tmp_path / "words.npz"))
    np.savez(tmp_path / "wrong.npz", **{**arrays, "attr_min_nodes": wrong})
    with pytest.raises(InputError, match="attr_min_nodes"):
        read_npz(tmp_path / "wrong.npz")
