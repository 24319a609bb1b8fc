"""From raw parts to a clean graph."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import Graph, InputError, build_graph
from tests.graph.samples import Edge, coo, dense_adjacency, edge_lists

NO_EDGES = np.zeros((3, 3))


def graph_of(edges: list[Edge], count: int) -> Graph:
    return build_graph(coo(edges, count), np.ones((count, 1)), np.zeros(count, dtype=int))


@given(st.data(), st.integers(0, 7))
def test_adjacency_is_symmetric_without_loops_and_keeps_the_largest_weight(data: st.DataObject, count: int) -> None:
    edges = data.draw(edge_lists(count))
    adjacency = graph_of(edges, count).adjacency
    np.testing.assert_array_equal(adjacency.toarray(), dense_adjacency(edges, count))
    assert adjacency.dtype == np.float32
    assert adjacency.nnz == np.count_nonzero(adjacency.toarray())
    for start, end in zip(adjacency.indptr[:-1], adjacency.indptr[1:], strict=True):
        assert list(adjacency.indices[start:end]) == sorted(adjacency.indices[start:end])


@given(st.data(), st.integers(1, 7))
def test_a_dense_adjacency_gives_the_same_graph(data: st.DataObject, count: int) -> None:
    edges = {(a, b): weight for a, b, weight in data.draw(edge_lists(count))}
    listed = [(a, b, weight) for (a, b), weight in edges.items()]
    graph = build_graph(coo(listed, count).toarray(), np.ones((count, 1)), np.zeros(count))
    assert graph.sha256 == graph_of(listed, count).sha256


def test_weights_are_kept() -> None:
    graph = graph_of([(0, 1, 0.5), (1, 0, 0.5), (1, 2, 3), (2, 1, 3)], 3)
    assert graph.weighted
    assert graph.adjacency.toarray().tolist() == [[0, 0.5, 0], [0.5, 0, 3], [0, 3, 0]]
    assert graph.notes == ()


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([(0, 1, 1), (1, 0, 1)], []),
        ([(0, 1, 1)], ["one direction"]),
        ([(0, 1, 1), (1, 0, 2)], ["one direction"]),
        ([(0, 1, 1), (1, 0, 1), (0, 0, 1), (2, 2, 1)], ["2 self loops"]),
        ([(0, 1, 1), (1, 0, 1), (0, 1, 1)], ["1 duplicate"]),
        ([(0, 1, 4), (0, 1, 1), (1, 1, 1)], ["1 self loops", "one direction", "1 duplicate"]),
    ],
)
def test_every_change_leaves_a_note(edges: list[Edge], words: list[str]) -> None:
    notes = graph_of(edges, 3).notes
    assert len(notes) == len(words)
    for note, word in zip(notes, words, strict=True):
        assert word in note


def test_given_notes_come_first() -> None:
    graph = build_graph(coo([(0, 1, 1)], 2), None, [0, 0], notes=["Made by hand."])
    assert graph.notes[0] == "Made by hand."
    assert len(graph.notes) == 3


def test_a_graph_without_features_says_so() -> None:
    said = "The graph has no features: only its edges tell its nodes apart."
    assert build_graph(NO_EDGES, None, [0, 0, 0]).notes == (said,)
    assert build_graph(NO_EDGES, np.zeros((3, 0)), [0, 0, 0]).notes == (said,)
    assert build_graph(NO_EDGES, np.zeros((3, 1)), [0, 0, 0]).notes == ()
    assert build_graph(np.zeros((0, 0)), None, []).notes == ()


@pytest.mark.parametrize(
    ("adjacency", "words"),
    [
        (np.zeros((2, 3)), "square"),
        (np.zeros(3), "square"),
        (np.array([[0, -1.0], [0, 0]]), "weight -1.0"),
        (np.array([[0, np.nan], [0, 0]]), "weight nan"),
        (np.array([["a", "b"], ["c", "d"]]), "not numbers"),
        (np.zeros((2, 2), dtype=complex), "not numbers"),
    ],
)
def test_an_adjacency_that_cannot_be_used_is_refused(adjacency: np.ndarray, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        build_graph(adjacency, None, [0, 0], where="friends.npz")
    assert str(caught.value).startswith("friends.npz: ")


@pytest.mark.parametrize(
    ("labels", "class_names", "numbers", "names"),
    [
        ([5, 2, -1], None, [1, 0, -1], ("2", "5")),
        ([5, 2, -7], None, [1, 0, -1], ("2", "5")),
        (np.array([3, 0, 3], dtype=np.uint8), None, [1, 0, 1], ("0", "3")),
        ([1.0, float("nan"), 0.0], None, [1, -1, 0], ("0", "1")),
        ([-1, -1, -1], None, [-1, -1, -1], ()),
        ([[1], [0], [1]], None, [1, 0, 1], ("0", "1")),
        ([1, -1, 1], ("a", "b", "c"), [1, -1, 1], ("a", "b", "c")),
        (["dog", "ant", "dog"], None, [1, 0, 1], ("ant", "dog")),
        (["dog", "", None], None, [0, -1, -1], ("dog",)),
        (["dog", float("nan"), "ant"], None, [1, -1, 0], ("ant", "dog")),
        (np.array(["dog", np.nan, None], dtype=object), None, [0, -1, -1], ("dog",)),
        (["10", "9", "x"], None, [1, 0, 2], ("9", "10", "x")),
        (["b", "", "c"], ("c", "b", "a"), [1, -1, 0], ("c", "b", "a")),
        (np.array([b"caf\xc3\xa9", b"", b"ant"]), None, [1, -1, 0], ("ant", "café")),
        ([7, None, -1], None, [0, -1, -1], ("7",)),
        (np.array([1, -1, np.nan], dtype=object), ("a", "b"), [1, -1, -1], ("a", "b")),
        ([None, None, None], None, [-1, -1, -1], ()),
    ],
)
def test_labels_become_class_numbers(
    labels: Any, class_names: tuple[str, ...] | None, numbers: list[int], names: tuple[str, ...]
) -> None:
    graph = build_graph(NO_EDGES, None, labels, class_names=class_names)
    assert graph.labels.tolist() == numbers
    assert graph.labels.dtype == np.int64
    assert graph.class_names == names


@given(st.lists(st.none() | st.just("") | st.text("abc019", min_size=1, max_size=3), max_size=12))
def test_every_node_keeps_the_name_of_its_class(labels: list[str | None]) -> None:
    graph = build_graph(np.zeros((len(labels), len(labels))), None, labels)
    kept = [graph.class_names[number] if number >= 0 else None for number in graph.labels]
    assert kept == [label or None for label in labels]
    assert len(set(graph.class_names)) == len(graph.class_names) == len({label for label in labels if label})


@pytest.mark.parametrize(
    ("labels", "class_names", "words"),
    [
        (np.eye(3), None, "multi-label"),
        (sparse.csr_array(np.eye(3)), None, "one class per node"),
        ([["a"], ["a", "b"], ["b"]], None, "one class per node"),
        (["a", ["a", "b"], "b"], None, "multi-label"),
        ([0.5, 1, 2], None, "whole numbers"),
        ([0, 1, float("inf")], None, "whole numbers"),
        (np.array([1j, 0, 0]), None, "cannot be read"),
        ([0, 1], None, "2 labels for 3 nodes"),
        (None, None, "one label per node"),
        ([0, 1, 2], ("a", "b"), "label 2 has no name"),
        (["a", "b", "z"], ("a", "b"), "'z' is not among the class names"),
        ([0, 1, 0], ("a", "a"), "twice"),
        (["a", "b", "a"], ("a", "b", "b"), "twice"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(labels: Any, class_names: tuple[str, ...] | None, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        build_graph(NO_EDGES, None, labels, class_names=class_names, where="friends.npz")
    assert str(caught.value).startswith("friends.npz: ")


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_sparse_features_stay_sparse(form: Any) -> None:
    values = np.array([[0, 2.5], [0, 0], [1, 0]])
    features = build_graph(NO_EDGES, form(values), [0, 0, 0]).features
    assert isinstance(features, sparse.csr_array)
    assert features.dtype == np.float32
    assert features.nnz == 2
    np.testing.assert_array_equal(features.toarray(), values)


def test_dense_features_stay_dense() -> None:
    features = build_graph(NO_EDGES, [[0, 1], [2, 3], [0, 0]], [0, 0, 0]).features
    assert isinstance(features, np.ndarray)
    assert features.dtype == np.float32
    assert features.tolist() == [[0, 1], [2, 3], [0, 0]]


def test_zeros_that_a_sparse_matrix_lists_are_dropped_and_duplicates_added_up() -> None:
    listed = sparse.coo_array(([0.0, 1.0, 2.0], ([0, 1, 1], [0, 1, 1])), shape=(3, 2))
    features = build_graph(NO_EDGES, listed, [0, 0, 0]).features
    assert features.nnz == 1
    assert features.toarray().tolist() == [[0, 0], [0, 3], [0, 0]]


def test_without_features_there_are_no_columns() -> None:
    assert build_graph(NO_EDGES, None, [0, 0, 0]).features.shape == (3, 0)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_feature_that_is_not_finite_is_named(form: Any, value: float) -> None:
    values = np.array([[1.0, 1], [0, 0], [0, value]])
    with pytest.raises(InputError, match=r"friends\.npz: the feature of node 2, column 1 is NaN"):
        build_graph(NO_EDGES, form(values), [0, 0, 0], where="friends.npz")


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (np.zeros((2, 2)), r"shape \(2, 2\), but the graph has 3 nodes"),
        (np.zeros(3), r"shape \(3,\)"),
        ([["a"], ["b"], ["c"]], "not numbers"),
        (sparse.csr_array((4, 1)), r"shape \(4, 1\)"),
    ],
)
def test_features_that_cannot_be_used_are_refused(features: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        build_graph(NO_EDGES, features, [0, 0, 0])


def test_ids_are_numbers_or_texts() -> None:
    assert build_graph(NO_EDGES, None, [0, 0, 0]).node_ids.tolist() == [0, 1, 2]
    assert build_graph(NO_EDGES, None, [0, 0, 0], node_ids=[7, -5, 2**40]).node_ids.tolist() == [7, -5, 2**40]
    assert build_graph(NO_EDGES, None, [0, 0, 0], node_ids=["7", "007", "x"]).node_ids.tolist() == ["7", "007", "x"]
    assert build_graph(NO_EDGES, None, [0, 0, 0], node_ids=np.array([b"a", b"b", b"c"])).node_ids.tolist() == [
        "a",
        "b",
        "c",
    ]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([1, 2], "2 node ids for 3 nodes"),
        ([4, 2, 4], "node id 4 occurs twice"),
        (["x", "y", "x"], "node id 'x' occurs twice"),
    ],
)
def test_ids_that_cannot_be_used_are_refused(ids: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        build_graph(NO_EDGES, None, [0, 0, 0], node_ids=ids)


def test_feature_names_must_fit() -> None:
    graph = build_graph(NO_EDGES, np.zeros((3, 2)), [0, 0, 0], feature_names=["a", "b"])
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["a", "b"]
    with pytest.raises(InputError, match="1 feature names for 2 features"):
        build_graph(NO_EDGES, np.zeros((3, 2)), [0, 0, 0], feature_names=["a"])


def unsorted_matrix() -> sparse.csr_array:
    """Unsorted, with a zero that is listed: whatever a builder might be tempted to tidy in place."""
    parts = (np.array([1, 0, 2], dtype=np.float32), np.array([2, 1, 0], dtype=np.int32), np.array([0, 2, 3, 3]))
    return sparse.csr_array(parts, shape=(3, 3))


def test_what_the_user_gave_is_neither_changed_nor_frozen_nor_shared() -> None:
    adjacency, features, dense = unsorted_matrix(), unsorted_matrix(), np.ones((3, 2), dtype=np.float32)
    labels, ids = np.array([0, 1, 0]), np.array([5, 6, 7])
    graph = build_graph(adjacency, features, labels, node_ids=ids)
    other = build_graph(adjacency, dense, labels)
    for matrix in (adjacency, features):
        assert matrix.data.tolist() == [1, 0, 2]
        assert matrix.indices.tolist() == [2, 1, 0]
        matrix.data[:] = 9
    for array in (dense, labels, ids):
        array[:] = 1
    assert graph.sha256 == build_graph(unsorted_matrix(), unsorted_matrix(), [0, 1, 0], node_ids=[5, 6, 7]).sha256
    assert other.sha256 == build_graph(unsorted_matrix(), np.ones((3, 2)), [0, 1, 0]).sha256
