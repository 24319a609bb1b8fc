"""A graph folder that was grown reads like one made of all nodes and edges at once."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import InputError, Resources
from graphfcl.graph.folder.grown import GrownFolder, Growth, open_folder
from tests.methods.blocks.samples import folder_of, random_graph

NODES, ADDED = 60, 5


@pytest.fixture(scope="module", params=[(False, False), (True, True)], ids=["plain", "weights and words"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> object:
    weighted, words = request.param
    return folder_of(random_graph(NODES, weighted=weighted, words=words), tmp_path_factory.mktemp("base") / "graph")


def dense(folder: object) -> np.ndarray:
    """All of A, row by row."""
    count = folder.node_count  # type: ignore[attr-defined]
    found = np.zeros((count, count))
    for row in range(count):
        part = folder.neighbours(row, row + 1)  # type: ignore[attr-defined]
        found[row, part.indices] = 1 if part.weights is None else part.weights
    return found


def grown_by(base: object, edges: list[tuple[int, int, float]], path: Path) -> tuple[GrownFolder, np.ndarray]:
    """The grown folder, and its adjacency by a plain loop."""
    old = dense(base)
    wanted = np.zeros((NODES + ADDED, NODES + ADDED))
    wanted[:NODES, :NODES] = old
    growth = Growth.none(base)  # type: ignore[arg-type]
    features = base.features(0, ADDED)  # type: ignore[attr-defined]
    growth = growth.with_nodes(np.arange(1000, 1000 + ADDED), features)
    for first, second, weight in edges:
        low, high = min(first, second), max(first, second)
        if low == high or weight <= wanted[low, high]:
            continue
        before = np.float32(old[low, high] if high < NODES else 0)
        pair, weights = np.array([[low], [high]]), np.array([[weight], [before]], dtype=np.float32)
        growth = growth.with_weights(pair[0], pair[1], weights[0], weights[1], int(wanted[low, high] == 0))
        wanted[low, high] = wanted[high, low] = np.float32(weight)
    return GrownFolder(path, base, growth), wanted  # type: ignore[arg-type]


ENDS = st.integers(0, NODES + ADDED - 1)
EDGES = st.lists(st.tuples(ENDS, ENDS, st.sampled_from([1.0, 1.5, 0.25])), max_size=30)


@settings(max_examples=25, deadline=None)
@given(edges=EDGES, cut=st.integers(0, NODES + ADDED))
@example(edges=[(0, 61, 0.25), (61, 0, 1.5)], cut=3)  # a pair that is added twice
def test_edges_are_those_of_both(base: object, edges: list[tuple[int, int, float]], cut: int) -> None:
    grown, wanted = grown_by(base, edges, Path("nowhere"))
    np.testing.assert_array_equal(dense(grown), wanted)
    parts = [grown.neighbours(0, cut), grown.neighbours(cut, grown.node_count)]
    for (start, stop), part in zip([(0, cut), (cut, grown.node_count)], parts, strict=True):
        values = np.ones(part.indices.size) if part.weights is None else part.weights
        block = sparse.csr_array((values, part.indices, part.indptr), shape=(stop - start, grown.node_count))
        np.testing.assert_array_equal(block.toarray(), wanted[start:stop])
    np.testing.assert_allclose(grown.degrees(), wanted.sum(axis=1), rtol=1e-6)
    assert grown.edge_count == np.count_nonzero(np.triu(wanted))
    visible = grown.with_resources(Resources(Path(), 0)).visible(np.arange(grown.node_count))
    values = np.random.default_rng(0).standard_normal(grown.node_count)
    np.testing.assert_allclose(visible.product(values), wanted @ values, rtol=1e-5, atol=1e-5)
    rows = np.array([cut % grown.node_count, 3, 3, 0])
    np.testing.assert_array_equal(visible.neighbours_at(rows).toarray(), wanted[rows])


def removed_from(
    grown: GrownFolder, wanted: np.ndarray, path: Path, nodes: list[int]
) -> tuple[GrownFolder, np.ndarray]:
    """Some edges and nodes fewer, and the adjacency by a plain loop."""
    wanted, growth = wanted.copy(), grown.growth
    for low, high in np.argwhere(np.triu(wanted))[::3].tolist():
        before = grown.base.neighbours(low, low + 1) if high < NODES else None
        weight = 0.0
        if before is not None and high in before.indices:
            place = int(np.flatnonzero(before.indices == high)[0])
            weight = 1.0 if before.weights is None else float(before.weights[place])
        ends, none = np.array([[low], [high]]), np.zeros(1, dtype=np.float32)
        growth = growth.with_weights(ends[0], ends[1], none, np.array([weight], dtype=np.float32), -1)
        wanted[low, high] = wanted[high, low] = 0
    gone = np.unique(np.array(nodes, dtype=np.int64))
    inside = wanted[np.ix_(gone, gone)]
    edges = int(np.count_nonzero(wanted[gone]) - np.count_nonzero(inside) // 2)
    wanted[gone] = wanted[:, gone] = 0
    return GrownFolder(path, grown.base, growth.without_nodes(gone, NODES, edges)), wanted


@settings(max_examples=25, deadline=None)
@given(edges=EDGES, nodes=st.lists(ENDS, max_size=8), cut=st.integers(0, NODES + ADDED))
@example(edges=[(0, 61, 1.0), (61, 62, 1.0)], nodes=[0, 61, 63], cut=61)
@example(edges=[(0, 1, 1.0), (0, 2, 1.0)], nodes=[], cut=0)  # the edges of a node are removed one by one
def test_removed_nodes_and_edges_leave_nothing(
    base: object, edges: list[tuple[int, int, float]], nodes: list[int], cut: int
) -> None:
    before, wanted = grown_by(base, edges, Path("nowhere"))
    grown, wanted = removed_from(before, wanted, Path("nowhere"), nodes)
    np.testing.assert_array_equal(dense(grown), wanted)
    np.testing.assert_allclose(grown.degrees(), wanted.sum(axis=1), rtol=1e-6)
    assert grown.edge_count == np.count_nonzero(np.triu(wanted))
    gone = np.zeros(NODES + ADDED, dtype=bool)
    gone[nodes] = True
    features = [sparse.csr_array(grown.features(*each)).toarray() for each in ((0, cut), (cut, NODES + ADDED))]
    old = sparse.csr_array(before.features(0, NODES + ADDED)).toarray()
    np.testing.assert_array_equal(np.concatenate(features), np.where(gone[:, None], 0, old))
    there = np.flatnonzero(~gone)
    ids = before.ids(np.arange(NODES + ADDED))
    np.testing.assert_array_equal(grown.ids(there), ids[there])
    np.testing.assert_array_equal(grown.nodes_of(ids), np.where(gone, -1, np.arange(NODES + ADDED)))
    assert (grown.rows.mask is None) == (not nodes)
    assert grown.rows.mask is None or np.array_equal(grown.rows.mask, ~gone)


def test_rows_of_removed_nodes_are_not_used_again(base: object, tmp_path: Path) -> None:
    before, wanted = grown_by(base, [(0, NODES, 1.0)], tmp_path)
    grown, _ = removed_from(before, wanted, tmp_path / "grown", [NODES, NODES + ADDED - 1])
    growth = grown.growth.with_nodes(np.array([1000]), base.features(3, 4))  # type: ignore[attr-defined]
    again = GrownFolder(tmp_path / "grown", grown.base, growth)
    assert again.nodes_of([1000, 1001]).tolist() == [NODES + ADDED, NODES + 1]
    again.write()
    opened = open_folder(again.path)
    assert opened.nodes_of([1000]).tolist() == [NODES + ADDED]
    np.testing.assert_array_equal(dense(opened), dense(again))


def test_ranges_cover_every_row_once(base: object) -> None:
    grown, _ = grown_by(base, [(0, 61, 1.0)], Path("nowhere"))
    ranges = grown.neighbour_ranges(20)
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]
    assert ranges[-1][1] == grown.node_count


def test_nodes_features_and_ids_follow_those_of_the_folder(base: object) -> None:
    grown, _ = grown_by(base, [], Path("nowhere"))
    plain = sparse.csr_array(grown.features(NODES - 2, NODES + 3)).toarray()
    whole = sparse.csr_array(base.features(0, NODES)).toarray()  # type: ignore[attr-defined]
    np.testing.assert_array_equal(plain, np.concatenate([whole[-2:], whole[:3]]))
    assert grown.ids([NODES + 1]).tolist() == [1001]
    own = base.ids([4])  # type: ignore[attr-defined]
    assert grown.nodes_of([1004, "1000", int(own[0]), 77777]).tolist() == [NODES + 4, NODES, 4, -1]


def test_another_process_opens_it_by_its_path(base: object, tmp_path: Path) -> None:
    grown, wanted = grown_by(base, [(0, 61, 1.5), (2, 3, 1.0)], tmp_path / "grown")
    grown.write()
    again = pickle.loads(pickle.dumps(grown))
    assert again.sha256 == grown.sha256
    np.testing.assert_array_equal(dense(again), wanted)
    assert grown.sha256 != grown_by(base, [(0, 62, 1.5)], tmp_path)[0].sha256
    assert open_folder(base.path).sha256 == base.sha256  # type: ignore[attr-defined]


def test_arrays_of_another_growth_are_refused(base: object, tmp_path: Path) -> None:
    for name, weight in (("one", 1.0), ("other", 1.5)):
        grown_by(base, [(0, 61, weight)], tmp_path / name)[0].write()
    (tmp_path / "other" / "grown.npz").replace(tmp_path / "one" / "grown.npz")
    with pytest.raises(InputError, match="was changed"):
        open_folder(tmp_path / "one")


@pytest.mark.parametrize("damage", ["cut", "gone", "other bytes", "grown.json is a list"])
def test_a_damaged_file_is_one_sentence_and_is_written_again(base: object, tmp_path: Path, damage: str) -> None:
    grown, wanted = grown_by(base, [(0, 61, 1.5)], tmp_path / "grown")
    grown.write()
    path = tmp_path / "grown" / "grown.npz"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    elif damage == "gone":
        path.unlink()
    elif damage == "other bytes":
        path.write_bytes(path.read_bytes()[::-1])
    else:
        (tmp_path / "grown" / "grown.json").write_text("[]")
    with pytest.raises(InputError, match=str(tmp_path / "grown")):
        open_folder(tmp_path / "grown")
    grown.write()
    np.testing.assert_array_equal(dense(open_folder(tmp_path / "grown")), wanted)
