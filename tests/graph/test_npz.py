"""The sparse graph layout: written, read back, and refused when damaged."""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy import sparse

from graphfcl import Graph, InputError, build_graph, read_npz, write_npz
from graphfcl.graph import TextSettings
from tests.graph.samples import Trap, assert_same_content, coo, small_graphs


def parts() -> dict[str, np.ndarray]:
    """The arrays of a small graph in the layout, as another program might write them."""
    return {
        "adj_data": np.array([1.0, 1.0]),
        "adj_indices": np.array([1, 2]),
        "adj_indptr": np.array([0, 1, 2, 2]),
        "adj_shape": np.array([3, 3]),
        "attr_data": np.array([2.0, 1.0]),
        "attr_indices": np.array([0, 3]),
        "attr_indptr": np.array([0, 1, 1, 2]),
        "attr_shape": np.array([3, 4]),
        "labels": np.array([0, 1, 1]),
    }


def write_parts(path: Path, changes: dict[str, Any]) -> Path:
    """The small graph with some arrays changed, or left out where the change is None."""
    arrays = {key: array for key, array in {**parts(), **changes}.items() if array is not None}
    np.savez(path, **arrays)
    return path


@given(small_graphs())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_written_graph_is_read_back_bit_for_bit(tmp_path: Path, graph: Graph) -> None:
    write_npz(graph, tmp_path / "graph.npz")
    back = read_npz(tmp_path / "graph.npz")
    assert_same_content(back, graph)
    assert back.sha256 == graph.sha256
    assert back.class_names == graph.class_names
    assert back.text == graph.text


def test_names_are_read_back(tmp_path: Path) -> None:
    graph = build_graph(
        coo([(0, 1, 1)], 2),
        sparse.csr_array(np.eye(2)),
        ["ä", ""],
        feature_names=["fox", "hen"],
        text=TextSettings(4),
        name="birds",
    )
    write_npz(graph, tmp_path / "other.npz")
    back = read_npz(tmp_path / "other.npz")
    assert back.feature_names is not None
    assert back.feature_names.tolist() == ["fox", "hen"]
    assert (back.class_names, back.text, back.name) == (("ä",), TextSettings(4), "other")
    assert read_npz(tmp_path / "other.npz", name="birds").name == "birds"


def test_numbers_far_apart_stay_whole(tmp_path: Path) -> None:
    graph = build_graph(np.zeros((2, 2)), None, [0, 1], node_ids=[-5, 2**40])
    write_npz(graph, tmp_path / "graph.npz")
    assert read_npz(tmp_path / "graph.npz").node_ids.tolist() == [-5, 2**40]


def test_the_layout_of_other_programs_is_read(tmp_path: Path) -> None:
    graph = read_npz(write_parts(tmp_path / "graph.npz", {}))
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.features.toarray().tolist() == [[2, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert graph.labels.tolist() == [0, 1, 1]
    assert graph.class_names == ("0", "1")


def test_names_as_bytes_are_read_as_text(tmp_path: Path) -> None:
    changes = {"class_names": np.array([b"x", b"y"]), "node_names": np.array([b"p", b"q", b"r"])}
    graph = read_npz(write_parts(tmp_path / "graph.npz", changes))
    assert graph.class_names == ("x", "y")
    assert graph.node_ids.tolist() == ["p", "q", "r"]


def test_without_values_the_entries_are_ones(tmp_path: Path) -> None:
    graph = read_npz(write_parts(tmp_path / "graph.npz", {"adj_data": None, "attr_data": None}))
    assert not graph.weighted
    assert graph.features.data.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"adj_indices": np.array([1, 3])}, "an edge leads to node 3, but 'adj_shape' says there are 3"),
        ({"adj_indices": np.array([1, -1])}, "an edge leads to node -1"),
        ({"attr_indices": np.array([0, 4])}, "a feature has column 4"),
        ({"adj_indptr": np.array([0, 1, 2])}, "'adj_\\*' do not fit together"),
        ({"adj_indptr": np.array([0, 2, 1, 2])}, "'adj_\\*' do not fit together"),
        ({"adj_indptr": np.array([0.0, 1, 2, 2])}, "'adj_\\*' do not fit together"),
        ({"adj_indices": np.array([[1], [2]])}, "'adj_\\*' do not fit together"),
        ({"adj_data": np.ones(3)}, "'adj_\\*' do not fit together"),
        ({"adj_data": np.ones((2, 1))}, "'adj_\\*' do not fit together"),
        ({"adj_data": np.array(["a", "b"])}, "'adj_\\*' do not fit together"),
        ({"attr_data": np.array(["a", "b"])}, "'attr_\\*' do not fit together"),
        ({"adj_shape": np.array(["a", "b"])}, "'adj_\\*' do not fit together"),
        ({"adj_shape": np.array([3])}, "'adj_\\*' do not fit together"),
        (
            {"adj_shape": np.array([-1, -1]), "adj_indptr": np.array([], dtype=int)},
            "'adj_\\*' do not fit together",
        ),
        ({"adj_indptr": np.array([0, 1, 2, 2, 2]), "adj_shape": np.array([4, 3])}, "must be square"),
        ({"adj_indices": None}, "no array 'adj_indices'"),
        ({"attr_shape": None}, "no array 'attr_shape'"),
        ({"labels": None}, "no array 'labels'"),
        ({"labels": None, "labels_data": np.ones(2)}, "multi-label"),
        ({"labels": np.eye(3)}, "multi-label"),
        ({"labels": np.array([0, 1])}, "2 labels for 3 nodes"),
        ({"labels": np.array([0, 1, 2]), "class_names": np.array(["a", "b"])}, "label 2 has no name"),
        ({"class_names": np.array("a")}, "label 1 has no name"),
        ({"attr_data": np.array([np.nan, 1])}, "the feature of node 0, column 0 is NaN"),
        ({"attr_matrix": np.array([[1], [np.nan], [1]])}, "the feature of node 1, column 0 is NaN"),
        ({"attr_matrix": np.zeros((2, 2))}, "the graph has 3 nodes"),
        ({"adj_data": np.array([1, -2.0])}, "weight -2.0"),
        ({"node_names": np.array(["a", "b"])}, "2 node ids for 3 nodes"),
        ({"attr_names": np.array(["a", "b"])}, "2 feature names for 4 features"),
        ({"text_min_nodes": np.array([1, 2])}, "text_min_nodes"),
        ({"text_min_nodes": np.array("x")}, "text_min_nodes"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = write_parts(tmp_path / "friends.npz", changes)
    with pytest.raises(InputError, match=words) as caught:
        read_npz(path)
    assert str(path) in str(caught.value)


def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    write_npz(build_graph(coo([(0, 1, 1), (1, 2, 1)], 3), np.eye(3), [0, 1, 1]), tmp_path / "whole.npz")
    content = (tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "cut.npz"
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        with pytest.raises(InputError, match=r"cut\.npz"):
            read_npz(path)


def test_a_file_with_a_changed_byte_is_read_or_refused(tmp_path: Path) -> None:
    write_npz(build_graph(coo([(0, 1, 1), (1, 2, 1)], 3), np.eye(3), [0, 1, 1]), tmp_path / "whole.npz")
    content = (tmp_path / "whole.npz").read_bytes()
    path = tmp_path / "changed.npz"
    random = np.random.default_rng(0)
    messages = []
    places = range(0, len(content), 3)
    for place in places:
        changed = bytearray(content)
        changed[place] ^= int(random.integers(1, 256))
        path.write_bytes(changed)
        try:
            read_npz(path)
        except InputError as error:
            messages.append(str(error))
    assert all("changed.npz" in message for message in messages)
    assert len(messages) > len(places) / 2


def test_the_trap_works(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Trap(tmp_path / "sprung")))
    assert (tmp_path / "sprung").exists()


def test_a_pickled_array_is_refused_and_not_run(tmp_path: Path) -> None:
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    path = write_parts(tmp_path / "friends.npz", {"labels": trap})
    with pytest.raises(InputError, match=r"friends\.npz holds 'labels' as a pickled object"):
        read_npz(path)
    assert not (tmp_path / "sprung").exists()


def test_a_pickle_under_the_name_of_an_archive_is_refused_and_not_run(tmp_path: Path) -> None:
    path = tmp_path / "friends.npz"
    path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(InputError, match=r"friends\.npz is not an \.npz archive or is a pickle"):
        read_npz(path)
    assert not (tmp_path / "sprung").exists()


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "friends.npz"
    with pytest.raises(InputError, match=r"friends\.npz does not exist"):
        read_npz(path)
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(InputError, match=r"friends\.npz is a single array"):
        read_npz(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("labels", b"0 1 1")
    with pytest.raises(InputError, match=r"friends\.npz holds 'labels', which is not an array"):
        read_npz(path)
    path.write_text("id,label\n")
    with pytest.raises(InputError, match=r"friends\.npz"):
        read_npz(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_npz(tmp_path)


def test_a_file_that_cannot_be_written_is_named_and_the_old_one_stays(tmp_path: Path) -> None:
    graph = build_graph(np.zeros((1, 1)), None, [0])
    write_npz(graph, tmp_path / "new" / "graph.npz")
    old = (tmp_path / "new" / "graph.npz").read_bytes()
    with pytest.raises(InputError, match=r"graph\.npz/inside\.npz cannot be written"):
        write_npz(graph, tmp_path / "new" / "graph.npz" / "inside.npz")
    with pytest.raises(InputError, match="cannot be written"):
        write_npz(graph, tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["graph.npz"]
    assert (tmp_path / "new" / "graph.npz").read_bytes() == old
