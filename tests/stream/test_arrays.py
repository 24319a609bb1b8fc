"""Streams as arrays: what other code reads is what our learners see."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from graphfcl import load_dataset
from graphfcl.graph.folder import write_folder
from graphfcl.runtime.resources import Resources
from graphfcl.stream import Stream, make_stream
from graphfcl.stream.arrays import KINDS, save_arrays
from tests.cli.command import graphfcl_inside

GRAPH = "synthetic:classes=9,nodes=300,edges=600,features=60"


@pytest.fixture(scope="module")
def stream() -> Stream:
    graph, protocol = load_dataset(GRAPH)
    return make_stream(graph, protocol, seed=3, base=3, pseudo_novel=2, way=2, shot=5)


def read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def csr(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    parts = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_array(tuple(parts), shape=tuple(arrays[f"{name}_shape"])).toarray()


def test_the_arrays_are_what_learners_see(stream: Stream, tmp_path: Path) -> None:
    save_arrays(stream, tmp_path / "stream.npz")
    arrays = read(tmp_path / "stream.npz")
    visible = stream.evaluation_graph(len(stream)).loaded()
    np.testing.assert_array_equal(csr(arrays, "adj"), visible.adjacency.toarray())
    seen = visible.features.toarray() if sparse.issparse(visible.features) else visible.features
    features = csr(arrays, "attr") if "attr_data" in arrays else arrays["attr_matrix"]
    np.testing.assert_array_equal(features, seen)
    names = np.array(stream.classes)
    graph_class = np.array(stream.graph.class_names)[stream.graph.labels][stream.node_of_number[visible.nodes]]
    np.testing.assert_array_equal(names[arrays["labels"]], graph_class)
    numbers = visible.nodes
    for session in range(1, len(stream) + 1):
        rows = arrays["supports"][arrays["class_session"][arrays["labels"][arrays["supports"]]] == session]
        assert sorted(numbers[rows]) == sorted(stream.session(session).supports)
    assert sorted(numbers[arrays["train"]]) == sorted(stream.base.train)
    assert sorted(numbers[arrays["validation"]]) == sorted(stream.base.validation)
    assert sorted(numbers[arrays["test"]]) == sorted(stream.queries(len(stream)).nodes)
    kinds = [KINDS[kind] for kind in arrays["class_kind"]]
    assert [name for name, kind in zip(names, kinds, strict=True) if kind == "base"] == list(stream.base.base_classes)
    assert kinds.count("pseudo-novel") == 2
    assert (arrays["class_session"] > 0).tolist() == [kind == "novel" for kind in kinds]
    taken = np.concatenate([arrays[part] for part in ("train", "validation", "test", "supports", "pool")])
    assert sorted(taken) == list(range(visible.node_count)), "every node has one part"
    about = json.loads(str(arrays["stream"]))
    assert about["graph_sha256"] == stream.graph.sha256
    assert (about["seed"], about["protocol"]["shot"]) == (3, 5)


def test_the_order_of_rows_gives_no_class_away(stream: Stream, tmp_path: Path) -> None:
    save_arrays(stream, tmp_path / "stream.npz")
    labels = read(tmp_path / "stream.npz")["labels"]
    changes = np.mean(labels[1:] != labels[:-1])
    assert changes > 0.7, "nine classes in random order change at eight of nine places"


def test_the_command_writes_them_by_the_ending(tmp_path: Path) -> None:
    words = ("--graph", GRAPH, "--seed", 3, "--way", 2, "--shot", 5)
    for name in ("a.npz", "b.npz"):
        done = graphfcl_inside("stream", *words, "--out", tmp_path / name)
        assert done.code == 0, done.err
    first, second = (read(tmp_path / name) for name in ("a.npz", "b.npz"))
    assert all(np.array_equal(first[name], second[name]) for name in first), "the same seed gives the same file"


def test_a_graph_on_disk_gives_the_same_arrays(tmp_path: Path) -> None:
    graph, protocol = load_dataset(GRAPH)
    on_disk = write_folder(graph, tmp_path / "graph").with_resources(Resources(tmp_path / "work", 4 << 30))
    for name, each in (("disk", on_disk), ("memory", on_disk.loaded())):
        save_arrays(make_stream(each, protocol), tmp_path / f"{name}.npz")
    first, second = (read(tmp_path / f"{name}.npz") for name in ("disk", "memory"))
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
