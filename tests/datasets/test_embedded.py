"""The graphs that come with the package."""

from importlib.resources import files

import numpy as np
import pytest
from scipy import sparse

from graphfcl import load_dataset, make_stream

FILES = files("graphfcl.datasets") / "files"
LIMIT = 3_000_000


def file_size(name: str) -> int:
    return len((FILES / name).read_bytes())


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "classes", "share"),
    [("debian", 62_615, 288_839, 51, 0.470), ("wordnet", 117_425, 182_045, 41, 0.71)],
)
def test_the_shipped_graph(name: str, nodes: int, edges: int, classes: int, share: float) -> None:
    graph, protocol = load_dataset(name)
    assert (graph.node_count, graph.edge_count, len(graph.class_names)) == (nodes, edges, classes)
    assert graph.class_sizes.min() >= 100
    assert (graph.labels >= 0).all()
    assert graph.same_class_share == pytest.approx(share, abs=0.01)
    assert sparse.issparse(graph.features)
    assert graph.feature_names is not None
    assert np.bincount(graph.features.indices, minlength=graph.features.shape[1]).min() >= 5
    assert file_size(f"{name}.npz") < LIMIT
    assert protocol is not None
    stream = make_stream(graph, protocol)
    assert len(stream.classes) == classes


def test_nodes_of_debian_are_packages() -> None:
    graph, _ = load_dataset("debian")
    python, minimal, library, stranger = graph.nodes_of(["python3", "python3-minimal", "libc6", "no-such-package"])
    assert stranger == -1 < min(python, minimal, library)
    assert graph.class_names[graph.labels[python]] == "python"
    assert graph.class_names[graph.labels[library]] == "libs"
    assert graph.adjacency[[python]].toarray()[0, minimal] == 1


def test_nodes_of_wordnet_are_synsets_and_its_licence_is_shipped() -> None:
    graph, _ = load_dataset("wordnet")
    dog, entity = graph.nodes_of(["n02084071", "n00001740"])
    assert entity == -1 < dog  # the entity's class has too few synsets
    assert graph.class_names[graph.labels[dog]] == "noun.animal"
    assert "Princeton University" in (FILES / "LICENSE-wordnet").read_text()
