"""The graph itself: immutable, with a fingerprint, found by the user's own ids."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import Graph, build_graph
from graphfcl.graph import TextSettings
from tests.graph.samples import number_ids, small_graphs, text_ids

PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32)
PARTS: dict[str, Any] = {
    "adjacency": PATH,
    "features": sparse.csr_array(np.eye(3)),
    "labels": [0, 1, 1],
    "class_names": ("a", "b"),
    "node_ids": ["x", "y", "z"],
}


def graph_with(**changes: Any) -> Graph:
    return build_graph(**{**PARTS, **changes})


@given(small_graphs())
def test_every_array_is_read_only(graph: Graph) -> None:
    arrays = [graph.labels, graph.node_ids, graph.adjacency.data, graph.adjacency.indices, graph.adjacency.indptr]
    if sparse.issparse(graph.features):
        arrays += [graph.features.data, graph.features.indices, graph.features.indptr]
    else:
        arrays.append(graph.features)
    assert not any(array.flags.writeable for array in arrays)
    texts = sum(len(node.encode()) for node in graph.node_ids.tolist() if isinstance(node, str))
    assert graph.byte_count == sum(array.nbytes for array in arrays) + texts


def test_writing_into_a_graph_fails() -> None:
    graph = graph_with(features=np.eye(3), feature_names=["p", "q", "r"])
    with pytest.raises(ValueError, match="read-only"):
        graph.labels[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        graph.features[0, 0] = 5
    with pytest.raises(ValueError, match="read-only"):
        graph.adjacency[0, 1] = 5
    with pytest.raises(FrozenInstanceError):
        graph.labels = np.zeros(3)  # type: ignore[misc]


@pytest.mark.parametrize(
    "changes",
    [
        {"adjacency": PATH * 2},
        {"adjacency": PATH * np.array([[1, 2, 1], [2, 1, 1], [1, 1, 1]])},
        {"adjacency": np.ones((3, 3))},
        {"adjacency": np.zeros((3, 3))},
        {"features": sparse.csr_array(np.eye(3) * 2)},
        {"features": sparse.csr_array(np.eye(3)[::-1])},
        {"features": sparse.csr_array(np.eye(3, 4))},
        {"features": np.zeros((3, 2))},
        {"features": None},
        {"labels": [0, 1, 0]},
        {"labels": [0, 1, -1]},
        {"class_names": ("a", "c")},
        {"class_names": ("a", "b", "c")},
        {"node_ids": ["x", "y", "w"]},
        {"node_ids": ["y", "x", "z"]},
        {"node_ids": [0, 1, 2]},
        {"text": TextSettings()},
        {"text": TextSettings(3)},
    ],
)
def test_the_fingerprint_changes_with_the_content(changes: dict[str, Any]) -> None:
    assert graph_with(**changes).sha256 != graph_with().sha256


def test_the_fingerprint_keeps_ids_and_class_names_apart() -> None:
    first = build_graph(np.zeros((2, 2)), None, ["cd", "cd"], node_ids=["a", "b"])
    second = build_graph(np.zeros((2, 2)), None, ["d", "d"], node_ids=["a", "bc"])
    assert first.sha256 != second.sha256
    longer = np.array(["x", "y", "za"], dtype=object)
    assert replace(graph_with(), node_ids=longer, class_names=("", "b")).sha256 != graph_with().sha256


def test_the_fingerprint_ignores_the_name_and_how_the_content_came() -> None:
    plain = graph_with()
    assert graph_with(name="other").sha256 == plain.sha256
    assert graph_with(notes=["A note."]).sha256 == plain.sha256
    assert graph_with(adjacency=np.triu(PATH)).sha256 == plain.sha256
    assert graph_with(adjacency=sparse.coo_array(PATH)).sha256 == plain.sha256
    assert graph_with(features=sparse.coo_array(np.eye(3, dtype=np.float64))).sha256 == plain.sha256
    assert graph_with(labels=["a", "b", "b"]).sha256 == plain.sha256


@given(st.data(), st.integers(0, 9), st.booleans())
def test_nodes_are_found_by_their_ids(data: st.DataObject, count: int, texts: bool) -> None:
    ids: list[Any] = data.draw(text_ids(count) if texts else number_ids(count))
    strangers: list[Any] = data.draw(text_ids(3) if texts else number_ids(3))
    graph = build_graph(np.zeros((count, count)), None, np.zeros(count), node_ids=ids or None)
    wanted = data.draw(st.lists(st.sampled_from([*ids, *strangers]), min_size=1, max_size=12))
    number = {node: position for position, node in enumerate(ids)}
    assert graph.nodes_of(wanted).tolist() == [number.get(node, -1) for node in wanted]


def test_an_id_of_the_other_kind_is_no_id() -> None:
    assert graph_with(node_ids=[0, 1, 2]).nodes_of(["0", "1"]).tolist() == [-1, -1]
    assert graph_with(node_ids=["0", "1", "2"]).nodes_of([0, 1]).tolist() == [-1, -1]
    assert graph_with().nodes_of([]).tolist() == []


@given(small_graphs())
def test_counts_and_shares_match_plain_loops(graph: Graph) -> None:
    dense = graph.adjacency.toarray()
    labels = graph.labels.tolist()
    pairs = [(a, b) for a in range(len(labels)) for b in range(a) if dense[a, b] > 0]
    known = [labels[a] == labels[b] for a, b in pairs if labels[a] >= 0 and labels[b] >= 0]
    assert graph.node_count == len(labels)
    assert graph.edge_count == len(pairs)
    assert graph.weighted == any(dense[a, b] != 1 for a, b in pairs)
    assert graph.class_sizes.tolist() == [labels.count(number) for number in range(len(graph.class_names))]
    if known:
        assert graph.same_class_share == pytest.approx(sum(known) / len(known))
    else:
        assert graph.same_class_share is None


def test_class_numbers_and_the_short_form() -> None:
    graph = graph_with(name="path")
    assert graph.class_number("b") == 1
    assert graph.class_number("c") is None
    assert repr(graph) == "Graph('path', 3 nodes, 2 edges, 3 features, 2 classes)"
