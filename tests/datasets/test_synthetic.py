"""Graphs made to measure."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import InputError, load_dataset
from graphfcl.datasets.synthetic import SyntheticSettings, make_synthetic


def same_class_share(homophily: float) -> float:
    graph = make_synthetic(SyntheticSettings(nodes=1_000, edges=5_000, classes=10, homophily=homophily))
    assert graph.same_class_share is not None
    return graph.same_class_share


def words_of_class(signal: float) -> float:
    """How much more alike the words of two nodes are if they share their class."""
    graph = make_synthetic(SyntheticSettings(nodes=300, edges=600, classes=4, signal=signal))
    alike = (graph.features @ graph.features.T).toarray()
    same = graph.labels[:, None] == graph.labels[None, :]
    apart = ~np.eye(300, dtype=bool)
    return float(alike[same & apart].mean() - alike[~same].mean())


@example(nodes=20, classes=20, features=5, share=0.1, skew=0.2, kind="words", seed=0)
@example(nodes=30, classes=20, features=5, share=0.1, skew=0.05, kind="words", seed=0)
@given(
    nodes=st.integers(20, 200),
    classes=st.integers(1, 20),
    features=st.integers(1, 60),
    share=st.floats(0, 1),
    skew=st.floats(0.05, 1),
    kind=st.sampled_from(["words", "dense"]),
    seed=st.integers(0, 1_000),
)
@settings(max_examples=40, deadline=None)
def test_sizes_are_as_asked(
    nodes: int, classes: int, features: int, share: float, skew: float, kind: str, seed: int
) -> None:
    edges = int(share * nodes * (nodes - 1) / 20)
    graph = make_synthetic(
        SyntheticSettings(
            nodes=nodes,
            edges=edges,
            features=features,
            classes=classes,
            skew=skew,
            kind=kind,
            seed=seed,
            homophily=0.2,
        )
    )
    assert (graph.node_count, graph.edge_count, graph.features.shape) == (nodes, edges, (nodes, features))
    assert len(graph.class_names) == classes
    assert graph.class_sizes.sum() == nodes
    assert graph.class_sizes.min() >= 1
    assert sparse.issparse(graph.features) == (kind == "words")
    assert not graph.weighted


def test_the_seed_decides() -> None:
    first, again, other = (
        make_synthetic(SyntheticSettings(nodes=300, edges=900, classes=6, seed=seed)) for seed in (1, 1, 2)
    )
    assert first.sha256 == again.sha256 != other.sha256


def test_options_stand_in_the_name() -> None:
    graph, protocol = load_dataset("synthetic:nodes=300,classes=6,edges=900")
    assert (graph.node_count, graph.edge_count, len(graph.class_names)) == (300, 900, 6)
    assert protocol is None
    assert graph.sha256 == make_synthetic(SyntheticSettings(nodes=300, classes=6, edges=900)).sha256
    spaced, _ = load_dataset("synthetic: nodes = 300, classes=6,edges=9_00")
    assert spaced.sha256 == graph.sha256


def test_reddits_size_takes_the_same_options() -> None:
    graph, protocol = load_dataset("synthetic-reddit:nodes=500,edges=2000,features=16")
    assert (graph.node_count, graph.edge_count, graph.features.shape) == (500, 2_000, (500, 16))
    assert len(graph.class_names) == 41
    assert isinstance(graph.features, np.ndarray)
    assert protocol is not None


def test_homophily_sets_the_share_of_edges_inside_a_class() -> None:
    low, middle, high = (same_class_share(homophily) for homophily in (0.0, 0.5, 0.95))
    assert low < 0.2
    assert low + 0.3 < middle < high - 0.3
    assert high > 0.9


def test_signal_makes_the_words_of_a_class_alike() -> None:
    none, half, much = (words_of_class(signal) for signal in (0.0, 0.5, 0.9))
    assert abs(none) < 0.05
    assert none + 0.1 < half < much - 0.2


def test_dense_signal_is_the_length_of_a_class_mean() -> None:
    graph = make_synthetic(
        SyntheticSettings(nodes=3_000, edges=3_000, features=30, classes=3, kind="dense", signal=2.0)
    )
    for number in range(3):
        members = graph.features[graph.labels == number]
        assert np.linalg.norm(members.mean(axis=0)) == pytest.approx(2, abs=0.1)
        assert np.linalg.norm(members - members.mean(axis=0), axis=1).mean() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("synthetic:node=3", "synthetic has no option 'node': did you mean 'nodes'"),
        ("synthetic:nodes=many", "nodes is 'many', it must be a whole number"),
        ("synthetic:homophily=high", "homophily is 'high', it must be a number"),
        ("synthetic:nodes=", "NAME:key=value"),
        ("synthetic:kind=colours", "kind is 'colours'; it must be words or dense"),
        ("synthetic:nodes=5,classes=6", "6 classes do not fit into 5 nodes"),
        ("synthetic:nodes=20,edges=100", "100 edges are too dense for 20 nodes"),
        ("synthetic:edges=-1", "must not be negative"),
        ("synthetic:homophily=2", r"homophily must be in \[0, 1\]"),
        ("synthetic:skew=nan", r"skew in \(0, 1\]"),
        ("synthetic:nodes=300,classes=20,edges=9000,homophily=1", r"only [0-9]+ of 9000 edges were found"),
    ],
)
def test_sizes_that_cannot_be_are_refused(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        load_dataset(name)
    assert "synthetic" in str(caught.value)
