"""Graphs that have numbers beside words: every way that keeps a graph or a stream keeps how they are seen."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from graphfcl import (
    Graph,
    GraphFolder,
    InputError,
    Resources,
    Stream,
    build_graph,
    load_stream,
    make_stream,
    read_npz,
    save_stream,
    write_npz,
)
from graphfcl.graph import TextSettings, TextWeights
from graphfcl.graph.folder import build_folder
from graphfcl.graph.folder.source import of_graph
from graphfcl.graph.folder.sources import npz_source

BESIDE = (3, 2)


def mixed_graph() -> Graph:
    random = np.random.default_rng(0)
    counts = random.poisson(0.4, (240, 30)) * (random.random((240, 30)) < 0.5)
    numbers = random.normal(5, 3, (240, 5))
    numbers[:, 1] = 7  # a constant
    features = sparse.csr_array(np.hstack([counts, numbers]))
    names = [f"w{place}" for place in range(30)] + [f"n{place}" for place in range(5)]
    adjacency = sparse.random_array((240, 240), density=0.02, random_state=random)
    labels = [f"c{node % 12}" for node in range(240)]
    return build_graph(adjacency > 0, features, labels, feature_names=names, text=TextSettings(3, BESIDE), name="mixed")


def view_of(stream: Stream) -> TextWeights:
    assert isinstance(stream.view, TextWeights)
    assert stream.view.beside is not None
    return stream.view


def test_the_hash_knows_which_columns_are_numbers() -> None:
    graph = mixed_graph()
    plain = build_graph(graph.adjacency, graph.features, graph.labels, text=TextSettings(3))
    other = build_graph(graph.adjacency, graph.features, graph.labels, text=TextSettings(3, (5,)))
    same = build_graph(graph.adjacency, graph.features, graph.labels, text=TextSettings(3, BESIDE))
    assert len({each.sha256 for each in (plain, other, same)}) == 3
    assert repr(TextSettings(2)) == "TextSettings(min_nodes=2)", "hashes of graphs of words alone rest on it"


def test_files_keep_them(tmp_path: Path) -> None:
    graph = mixed_graph()
    write_npz(graph, tmp_path / "g.npz")
    again = read_npz(tmp_path / "g.npz")
    assert (again.sha256, again.text) == (graph.sha256, graph.text)
    for name, source in (("memory", of_graph(graph)), ("npz", npz_source(tmp_path / "g.npz"))):
        folder = build_folder(source, tmp_path / name, memory=300 << 20)
        assert folder.graph().sha256 == graph.sha256
        assert GraphFolder.open(tmp_path / name).text == TextSettings(3, BESIDE)


@pytest.mark.parametrize("beside", [np.array([3, 40]), np.array([0, 2]), np.array([1.5]), np.array(2)])
def test_widths_that_do_not_fit_are_refused(tmp_path: Path, beside: np.ndarray) -> None:
    write_npz(mixed_graph(), tmp_path / "g.npz")
    with np.load(tmp_path / "g.npz") as arrays:
        np.savez(tmp_path / "h.npz", **{**arrays, "text_beside": beside})
    for read in (read_npz, npz_source):
        with pytest.raises(InputError, match="'text_beside'"):
            read(tmp_path / "h.npz")


def test_a_stream_shows_them_scaled_and_is_saved_with_that(tmp_path: Path) -> None:
    graph = mixed_graph()
    stream = make_stream(graph, seed=2)
    view = view_of(stream)
    known = graph.features[np.flatnonzero(stream.split.sessions_of_nodes(graph) == 0)]
    seen = view.apply(known).toarray()
    words, groups = seen[:, :-5], (seen[:, -5:-2], seen[:, -2:])
    assert np.isin(np.round(np.linalg.norm(words, axis=1), 5), (0, 1)).all()
    assert [np.mean((group**2).sum(axis=1)) for group in groups] == pytest.approx([2 / 3, 1], rel=1e-5)
    assert not seen[:, -4].any(), "a constant says nothing"
    assert view.raw_columns[-5:].tolist() == [30, 31, 32, 33, 34]
    assert view.columns.max() < 30
    save_stream(stream, tmp_path / "s.json")
    again = view_of(load_stream(tmp_path / "s.json", graph))
    np.testing.assert_array_equal(again.apply(graph.features).toarray(), view.apply(graph.features).toarray())


def test_a_graph_on_the_disk_is_seen_as_one_in_memory(tmp_path: Path) -> None:
    built = build_folder(of_graph(mixed_graph()), tmp_path / "f", memory=300 << 20)
    folder = built.with_resources(Resources(tmp_path / "work", 300 << 20))
    loaded = folder.loaded()
    on_disk, in_memory = (view_of(make_stream(graph, seed=2)) for graph in (folder, loaded))
    features = loaded.features
    np.testing.assert_allclose(on_disk.apply(features).toarray(), in_memory.apply(features).toarray(), atol=1e-6)
