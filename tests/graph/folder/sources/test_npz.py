"""An .npz file read in blocks gives the graph that the reader in memory gives."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from graphfcl import Graph, GraphFolder, InputError, read_npz, write_npz
from graphfcl.graph.folder import build_folder
from graphfcl.graph.folder.sources import npz, npz_source
from tests.graph.samples import Trap, small_graphs


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    before, npz.STEP = npz.STEP, 5
    yield
    npz.STEP = before


def imported(path: Path, out: Path) -> GraphFolder:
    return build_folder(npz_source(path), out, memory=300 << 20)


def assert_same(found: Graph, expected: Graph) -> None:
    assert found.sha256 == expected.sha256
    assert (found.notes, found.cleaned, found.name) == (expected.notes, expected.cleaned, expected.name)
    names = [None if graph.feature_names is None else graph.feature_names.tolist() for graph in (found, expected)]
    assert names[0] == names[1]


@given(graph=small_graphs())
@settings(max_examples=60)
def test_written_files_are_imported_as_they_are_read(tmp_path_factory: pytest.TempPathFactory, graph: Graph) -> None:
    folder = tmp_path_factory.mktemp("npz")
    write_npz(graph, folder / "g.npz")
    assert_same(imported(folder / "g.npz", folder / "out").graph(), read_npz(folder / "g.npz"))


def parts(**changes: Any) -> dict[str, Any]:
    """Directed edges, one of them a loop, one listed twice, with weights; sparse features."""
    whole = {
        "adj_indices": np.array([1, 1, 0, 2, 3, 0]),
        "adj_indptr": np.array([0, 2, 4, 5, 6]),
        "adj_data": np.array([0.5, 2.0, 1.0, 1.0, 0.0, 3.0]),
        "adj_shape": np.array([4, 4]),
        "attr_indices": np.array([2, 0, 1, 1]),
        "attr_indptr": np.array([0, 2, 2, 4, 4]),
        "attr_data": np.array([1.0, 2.0, 3.0, 4.0]),
        "attr_shape": np.array([4, 3]),
        "labels": np.array([0, 1, 1, -1]),
        "node_names": np.array(["a", "b ", "c", "d"]),
    }
    merged = {**whole, **changes}
    return {name: array for name, array in merged.items() if array is not None}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"adj_data": None},
        {"attr_data": None},
        {"attr_matrix": np.arange(12).reshape(4, 3), "attr_indices": None},
        {"node_names": np.array([7, 3, 5, 1])},
        {"class_names": np.array(["x", "y"]), "attr_names": np.array(["p", "q", "r"]), "text_min_nodes": np.array(3)},
    ],
)
def test_files_of_others_are_imported_as_they_are_read(tmp_path: Path, changes: dict[str, Any]) -> None:
    np.savez(tmp_path / "g.npz", **parts(**changes))
    assert_same(imported(tmp_path / "g.npz", tmp_path / "out").graph(), read_npz(tmp_path / "g.npz"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": None}, "has no array 'labels'"),
        ({"adj_indices": np.array([1, 1, 0, 2, 9, 0])}, "edge 4 joins nodes 2 and 9, but nodes are numbered 0 to 3"),
        ({"attr_indices": np.array([2, 0, 1, 7])}, "a feature has column 7, but 'attr_shape' says there are 3"),
        ({"adj_indptr": np.array([0, 2, 4, 5, 7])}, "the parts 'adj_\\*' do not fit together"),
        ({"adj_indptr": None}, "has no array 'adj_indptr'"),
        ({"adj_data": np.array([1, 1, -1, 1, 1, 1])}, "edge 2 has weight -1.0"),
        ({"attr_data": np.array([1, np.nan, 1, 1])}, "the feature of node 0, column 0 is NaN"),
        ({"adj_undirected": np.array(True)}, "'adj_undirected' says .* edge 2 leads from 1 to 0"),
        ({"attr_matrix": np.asfortranarray(np.ones((4, 3)))}, r"stores 'attr_matrix' by columns"),
        ({"attr_matrix": np.ones((3, 3))}, r"the features have shape \(3, 3\), but the graph has 4 nodes"),
        ({"labels": np.array([0, 1])}, "2 labels for 4 nodes"),
    ],
)
def test_bad_files_end_in_one_sentence(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    np.savez(tmp_path / "g.npz", **parts(**changes))
    with pytest.raises(InputError, match=words) as caught:
        imported(tmp_path / "g.npz", tmp_path / "out")
    assert "g.npz" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["g.npz"]


def test_no_pickle_is_loaded_and_damage_is_named(tmp_path: Path) -> None:
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    np.savez(tmp_path / "trap.npz", allow_pickle=True, **parts(adj_indices=trap))
    with pytest.raises(InputError, match="pickled object"):
        imported(tmp_path / "trap.npz", tmp_path / "out")
    assert not (tmp_path / "sprung").exists()
    big = sparse.random_array((200, 200), density=0.2, format="csr", random_state=np.random.default_rng(0))
    np.savez(
        tmp_path / "whole.npz",
        adj_indices=big.indices,
        adj_indptr=big.indptr,
        adj_shape=big.shape,
        attr_matrix=np.ones((200, 1)),
        labels=np.zeros(200),
    )
    content = bytearray((tmp_path / "whole.npz").read_bytes())
    content[content.index(big.indices.tobytes()) + 400] ^= 1  # another edge, which may well be
    (tmp_path / "changed.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"changed\.npz is truncated or damaged at 'adj_indices'"):
        imported(tmp_path / "changed.npz", tmp_path / "out")
    (tmp_path / "cut.npz").write_bytes(content[:-100])
    with pytest.raises(InputError, match=r"cut\.npz is not an \.npz archive, or is truncated"):
        imported(tmp_path / "cut.npz", tmp_path / "out")
