"""A graph folder gives back what was put in, whole and in parts, and says what is damaged."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from graphfcl import Graph, GraphFolder, InputError, build_graph, load_dataset
from graphfcl.graph.folder import is_graph_folder, write_folder
from graphfcl.graph.folder.rows import FolderRows
from tests.graph.samples import plain, small_graphs


def written(graph: Graph, folder: Path) -> GraphFolder:
    write_folder(graph, folder)
    return GraphFolder.open(folder)


def sample(count: int = 60, *, ids: str = "texts", weighted: bool = True) -> Graph:
    random = np.random.default_rng(3)
    dense = np.triu(random.random((count, count)) < 0.1, 1) * (random.integers(1, 9, (count, count)) / 4)
    node_ids = {"texts": [f"näm {n * 7 % 101}" for n in range(count)], "numbers": (np.arange(count) * 37 - 500)}
    return build_graph(
        (dense + dense.T) if weighted else (dense + dense.T) > 0,
        random.standard_normal((count, 5)),
        random.integers(-1, 4, count),
        class_names=["a", "b", "c", "d"],
        node_ids=node_ids.get(ids),
        name="sample",
    )


@given(graph=small_graphs())
@settings(max_examples=60)
def test_the_graph_comes_back(tmp_path_factory: pytest.TempPathFactory, graph: Graph) -> None:
    folder = written(graph, tmp_path_factory.mktemp("f") / "g")
    back = folder.graph()
    assert back.sha256 == graph.sha256
    assert back.name == graph.name
    assert back.notes == graph.notes
    assert back.text == graph.text
    folder.verify()


@pytest.mark.parametrize("ids", ["texts", "numbers", "range"])
@pytest.mark.parametrize("weighted", [True, False])
def test_rows_are_those_of_the_nodes_with_these_ids(tmp_path: Path, ids: str, weighted: bool) -> None:
    graph = sample(ids=ids, weighted=weighted)
    folder = written(graph, tmp_path / "g")
    position = {node: number for number, node in enumerate(graph.node_ids.tolist())}
    dense, features = graph.adjacency.toarray(), plain(graph.features)
    moved = 0
    for start, stop in ((0, 60), (7, 8), (20, 41), (60, 60)):
        part = folder.neighbours(start, stop)
        rows = [position[node] for node in folder.ids(np.arange(start, stop)).tolist()]
        every = [position[node] for node in folder.ids(np.arange(60)).tolist()]
        moved += sum(row != number for number, row in enumerate(rows, start))
        assert part.indptr[0] == 0
        assert part.indptr.size == stop - start + 1
        assert (part.weights is None) == (not weighted)
        for place, row in enumerate(rows):
            columns = part.indices[part.indptr[place] : part.indptr[place + 1]]
            assert (np.diff(columns) > 0).all()
            found = np.zeros(60, dtype=np.float32)
            found[[every[column] for column in columns]] = (
                1 if part.weights is None else part.weights[part.indptr[place] : part.indptr[place + 1]]
            )
            np.testing.assert_array_equal(found, dense[row])
        np.testing.assert_array_equal(folder.features(start, stop), features[rows])
        np.testing.assert_array_equal(folder.labels[start:stop], graph.labels[rows])
        np.testing.assert_allclose(folder.degrees()[start:stop], dense[rows].sum(axis=1), rtol=1e-6)
    assert moved > 60  # they are shuffled
    assert folder.same_class_share == pytest.approx(graph.same_class_share)
    assert folder.class_sizes.tolist() == graph.class_sizes.tolist()


@pytest.mark.parametrize("ids", ["texts", "numbers", "range"])
def test_rows_are_found_by_ids(tmp_path: Path, ids: str) -> None:
    graph = sample(ids=ids)
    folder = written(graph, tmp_path / "g")
    wanted = graph.node_ids[np.random.default_rng(0).permutation(60)]
    assert folder.ids(folder.nodes_of(wanted)).tolist() == wanted.tolist()
    assert folder.nodes_of([str(each) for each in wanted]).tolist() == folder.nodes_of(wanted).tolist()
    assert folder.nodes_of([]).tolist() == []
    assert folder.nodes_of(["nobody", "-7", "999999", "007"]).tolist() == [-1] * 4
    spaced = [f" {wanted[0]} ", "näm 7"]
    assert folder.nodes_of(spaced).tolist()[0] == folder.nodes_of(wanted[:1])[0]
    if ids == "texts":
        assert folder.nodes_of(spaced)[1] == folder.nodes_of(["näm 7"])[0] >= 0


def test_ranges_cover_all_rows_within_the_wanted_size(tmp_path: Path) -> None:
    folder = written(sample(), tmp_path / "g")
    ranges = folder.neighbour_ranges(12)
    assert [start for start, _ in ranges] == [0, *(stop for _, stop in ranges[:-1])]
    assert ranges[-1][1] == 60
    assert len(ranges) > 5
    for start, stop in ranges:
        assert stop == start + 1 or folder.neighbours(start, stop).indices.size <= 12


def test_a_folder_travels_as_its_path(tmp_path: Path) -> None:
    folder = written(sample(), tmp_path / "g")
    content = pickle.dumps(folder)
    assert len(content) < 1_000
    assert pickle.loads(content).sha256 == folder.sha256


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    first, again, other = (
        written(graph, tmp_path / name)
        for name, graph in (("a", sample()), ("b", sample()), ("c", sample(ids="range")))
    )
    assert first.sha256 == again.sha256 != other.sha256


def test_the_order_of_rows_comes_from_the_content(tmp_path: Path) -> None:
    """The same source gives the same bytes; one number that differs, and rows are in another order."""
    graph = sample(ids="range")
    features = graph.features.copy()
    features[0, 0] += 1
    first, _, other = (
        written(each, tmp_path / name)
        for name, each in (("a", graph), ("b", sample(ids="range")), ("c", replace(graph, features=features)))
    )
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name
    assert (first.ids(np.arange(60)) == other.ids(np.arange(60))).mean() < 0.2
    key = first.shuffle.key
    assert key.bit_length() > 200
    said = (tmp_path / "a" / "manifest.json").read_text()
    assert str(key) not in said
    assert f"{key:064x}" not in said
    assert pickle.loads(pickle.dumps(first.rows)).key == first.rows.key


def test_hidden_rows_have_neither_edges_nor_features(tmp_path: Path) -> None:
    for words in (False, True):
        graph = sample()
        if words:
            graph = replace(graph, features=sparse.csr_array(np.maximum(graph.features, 0)))
        folder = written(graph, tmp_path / f"words {words}")
        mask = np.random.default_rng(0).random(60) < 0.5
        shown = folder.rows.hiding(mask)
        for rows in (
            shown,
            pickle.loads(pickle.dumps(shown)),
            shown.hiding(None),
            shown.hiding(np.ones(60, dtype=bool)),
        ):
            whole, part = dense_rows(folder.rows), dense_rows(rows)
            np.testing.assert_array_equal(part, whole * mask[:, None] * mask)
            np.testing.assert_allclose(rows.degrees(), part.sum(axis=1), rtol=1e-6)
            found = plain(rows.features(0, 60))
            np.testing.assert_array_equal(found, plain(folder.features(0, 60)) * mask[:, None])
        for name in ("labels", "ids", "rows_of", "class_names", "manifest", "shuffle"):
            assert not hasattr(shown, name)


def dense_rows(rows: FolderRows) -> np.ndarray:
    part = rows.neighbours(0, rows.node_count)
    return sparse.csr_array((part.weights, part.indices, part.indptr), shape=(rows.node_count,) * 2).toarray()


@pytest.mark.parametrize(
    "name", ["edges.indptr", "edges.indices", "edges.weights", "features.rows", "labels", "ids.text"]
)
def test_a_changed_byte_is_found_when_it_is_read(tmp_path: Path, name: str) -> None:
    folder = written(sample(), tmp_path / "g")
    content = bytearray((tmp_path / "g" / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "g" / name).write_bytes(content)
    for read in (folder.verify, folder.graph):
        with pytest.raises(InputError, match=f"{name} was changed"):
            read()


@pytest.mark.parametrize("name", ["edges.indices", "labels", "ids.order"])
def test_a_cut_or_missing_file_is_named_when_the_folder_is_opened(tmp_path: Path, name: str) -> None:
    written(sample(), tmp_path / "g")
    path = tmp_path / "g" / name
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match=rf"{name} has [0-9,]+ bytes in place of [0-9,]+: it was cut"):
        GraphFolder.open(tmp_path / "g")
    path.unlink()
    with pytest.raises(InputError, match=f"{name} cannot be read"):
        GraphFolder.open(tmp_path / "g")


def test_a_changed_manifest_is_refused(tmp_path: Path) -> None:
    written(sample(), tmp_path / "g")
    path = tmp_path / "g" / "manifest.json"
    values = json.loads(path.read_text())
    for change, words in (
        ({"nodes": 61}, "was changed"),
        ({"version": 1}, "version 1 of the format"),
        ({"format": "x"}, "not the manifest of a graph folder"),
    ):
        path.write_text(json.dumps({**values, **change}))
        with pytest.raises(InputError, match=words):
            GraphFolder.open(tmp_path / "g")
    path.write_text("{")
    with pytest.raises(InputError, match=r"manifest\.json is damaged"):
        GraphFolder.open(tmp_path / "g")
    with pytest.raises(InputError, match="is not a graph folder"):
        GraphFolder.open(tmp_path)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    written(sample(), tmp_path / "g")
    before = (tmp_path / "g" / "manifest.json").read_bytes()
    with pytest.raises(InputError, match="exists already"):
        write_folder(sample(ids="range"), tmp_path / "g")
    assert (tmp_path / "g" / "manifest.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


@pytest.mark.parametrize("damage", ["empty", "gone", "of another program"])
def test_a_folder_whose_manifest_was_lost_is_a_damaged_graph_folder(tmp_path: Path, damage: str) -> None:
    write_folder(sample(), tmp_path / "g")
    path = tmp_path / "g" / "manifest.json"
    path.unlink()
    if damage != "gone":
        path.write_text("" if damage == "empty" else "{}")
    assert is_graph_folder(tmp_path / "g")
    for read in (GraphFolder.open, lambda folder: load_dataset(str(folder))):
        with pytest.raises(InputError, match=r"(damaged|not the manifest).*(graph folder|import the graph again)"):
            read(tmp_path / "g")
    (tmp_path / "g" / "labels").unlink()
    assert not is_graph_folder(tmp_path / "g")
