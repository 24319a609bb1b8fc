"""Names, paths and objects become graph folders; synthetic graphs are drawn in blocks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import GraphFolder, InputError, import_graph, load_dataset, to_pyg, write_npz, write_tables
from graphfcl.datasets import synthetic_blocks
from graphfcl.datasets.synthetic import SyntheticSettings, make_synthetic
from graphfcl.graph.folder import build_folder

NAME = "synthetic:nodes=400,edges=1600,classes=9,features=80"


def drawn(out: Path, **options: Any) -> GraphFolder:
    name = "synthetic:" + ",".join(f"{key}={value}" for key, value in options.items())
    return import_graph(name, out)


@given(
    nodes=st.integers(20, 300),
    classes=st.integers(1, 20),
    features=st.integers(1, 60),
    share=st.floats(0, 1),
    skew=st.floats(0.05, 1),
    kind=st.sampled_from(["words", "dense"]),
    seed=st.integers(0, 1_000),
)
@settings(max_examples=30)
def test_sizes_are_as_asked(
    tmp_path_factory: pytest.TempPathFactory,
    nodes: int,
    classes: int,
    features: int,
    share: float,
    skew: float,
    kind: str,
    seed: int,
) -> None:
    edges = int(share * nodes * (nodes - 1) / 20)
    sizes = {"nodes": nodes, "edges": edges, "features": features, "classes": classes, "skew": skew, "kind": kind}
    folder = drawn(tmp_path_factory.mktemp("drawn") / "out", **sizes, seed=seed, homophily=0.2)
    expected = make_synthetic(SyntheticSettings(**sizes, seed=seed, homophily=0.2))  # type: ignore[arg-type]
    assert (folder.node_count, folder.edge_count, folder.feature_count) == (nodes, edges, features)
    assert folder.class_names == expected.class_names
    assert folder.class_sizes.tolist() == expected.class_sizes.tolist()
    assert folder.sparse_features == sparse.issparse(expected.features)
    assert not folder.weighted
    assert folder.manifest.notes == ()


def test_the_same_model_is_drawn_as_in_memory(tmp_path: Path) -> None:
    """Same-class edges, degrees, words and means are alike, though the draws are others."""
    sizes: dict[str, Any] = {"nodes": 6_000, "edges": 30_000, "classes": 8, "features": 60}
    for kind, signal in (("words", 0.4), ("dense", 1.5)):
        folder = drawn(tmp_path / kind, **sizes, kind=kind, signal=signal)
        graph = make_synthetic(SyntheticSettings(**sizes, kind=kind, signal=signal))
        assert folder.same_class_share == pytest.approx(graph.same_class_share, abs=0.02)
        degrees = np.sort(folder.degrees())
        expected = np.sort(np.diff(graph.adjacency.indptr))
        np.testing.assert_allclose(degrees[[600, 3_000, 5_400]], expected[[600, 3_000, 5_400]], atol=1.1)
        found = [_class_signal(rows, labels) for rows, labels in (_rows(folder.graph()), _rows(graph))]
        assert found[0] == pytest.approx(found[1], rel=0.1)
        assert (folder.labels[:3_000] == 0).sum() == pytest.approx((folder.labels == 0).sum() / 2, rel=0.15)


def _rows(graph: Any) -> tuple[np.ndarray, np.ndarray]:
    rows = graph.features.toarray() if sparse.issparse(graph.features) else graph.features
    return rows, graph.labels


def _class_signal(rows: np.ndarray, labels: np.ndarray) -> float:
    """The spread of the means of classes, against that of nodes around them."""
    means = np.stack([rows[labels == number].mean(axis=0) for number in range(8)])
    return float(np.linalg.norm(means - means.mean(axis=0)) / np.linalg.norm(rows - means[labels]) * len(rows) ** 0.5)


def test_the_graph_depends_on_the_seed_and_not_on_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = drawn(tmp_path / "a", nodes=300, edges=900), drawn(tmp_path / "b", nodes=300, edges=900, seed=1)
    assert first.sha256 != other.sha256
    source = synthetic_blocks.synthetic_source(SyntheticSettings(nodes=300, edges=900), "synthetic", "x")
    monkeypatch.setattr("graphfcl.graph.folder.edge_sort.ITEM_BYTES", 1 << 20)  # so that little fits
    again = build_folder(source, tmp_path / "c", memory=300 << 20)
    assert again.sha256 == first.sha256


def test_many_blocks_of_edges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic_blocks, "EDGES", 100)
    monkeypatch.setattr(synthetic_blocks, "ROWS", 64)
    folder = drawn(tmp_path / "a", nodes=500, edges=2_000, classes=5, homophily=0.9)
    assert folder.edge_count == 2_000
    assert folder.same_class_share == pytest.approx(0.92, abs=0.04)
    assert folder.features(0, 500).sum(axis=1).min() >= 4


def test_pairs_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"synthetic: only [0-9]+ of 9000 edges were found"):
        drawn(tmp_path / "out", nodes=300, classes=20, edges=9_000, homophily=1)
    assert list(tmp_path.iterdir()) == []


def test_reddits_size_takes_the_same_options(tmp_path: Path) -> None:
    folder = import_graph("synthetic-reddit:nodes=500,edges=2000,features=16", tmp_path / "out")
    assert (folder.node_count, folder.edge_count, folder.feature_count) == (500, 2_000, 16)
    assert folder.name == "synthetic-reddit"
    assert not folder.sparse_features


def test_every_source_gives_the_same_graph(tmp_path: Path) -> None:
    graph, _ = load_dataset("synthetic:nodes=400,edges=1600,classes=9,features=20,kind=dense")
    write_npz(graph, tmp_path / "graph.npz")
    write_tables(graph, tmp_path / "tables")
    sources = {
        "graph": graph,
        "pyg": to_pyg(graph),
        "npz": tmp_path / "graph.npz",
        "tables": str(tmp_path / "tables"),
    }
    for name, source in sources.items():
        folder = import_graph(source, tmp_path / f"{name}.out", name="mine")
        assert folder.name == "mine"
        loaded, protocol = load_dataset(str(tmp_path / f"{name}.out"))
        assert loaded.sha256 == graph.sha256, name
        assert protocol is None
        assert import_graph(source, tmp_path / f"{name}.again").sha256 == folder.sha256


def test_a_named_dataset_goes_through_memory(tmp_path: Path) -> None:
    folder = import_graph("debian", tmp_path / "out")
    graph, _ = load_dataset("debian")
    assert folder.graph().sha256 == graph.sha256
    assert folder.text == graph.text
    some = [0, 17, 62_614]
    assert folder.nodes_of(graph.node_ids[some]).tolist() == folder.shuffle.rows(np.array(some)).tolist()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nothing", "there is no dataset or file 'nothing'"),
        ("data.pt", "data.pt is a pickle, which is never loaded: load it yourself and call graphfcl.import_graph"),
        ("synthetic:colour=3", "synthetic has no option 'colour'"),
        (3, "import_graph needs a graph, and got int: "),
    ],
)
def test_what_cannot_be_imported(tmp_path: Path, source: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        import_graph(source, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_graph_folder_is_not_imported_again(tmp_path: Path) -> None:
    import_graph(NAME, tmp_path / "out")
    with pytest.raises(InputError, match="is a graph folder already"):
        import_graph(tmp_path / "out", tmp_path / "again")


def test_too_little_memory_says_how_much_is_needed(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"100MB of memory is too little for the 400 nodes .* give --memory [0-9]+\.?[0-9]*MB"
    ):
        import_graph(NAME, tmp_path / "out", memory="100MB")
    with pytest.raises(InputError, match="--memory is 'much'"):
        import_graph(NAME, tmp_path / "out", memory="much")
    needed = "248.1MB"
    import_graph(NAME, tmp_path / "out", memory=needed)


@pytest.mark.parametrize("kind", ["tables", "npz", "ogb", "graph", "synthetic"])
def test_rows_are_in_an_order_that_follows_from_the_content(tmp_path: Path, kind: str) -> None:
    """One feature or one option that differs, and rows are in another order; nothing public is the key of either."""
    folders = []
    for number in range(2):
        graph, _ = load_dataset("synthetic:nodes=400,edges=1600,classes=9,features=20,kind=dense")
        features = graph.features.copy()
        features[7, 3] += number
        graph = replace(graph, features=features)
        source: Any = graph
        if kind == "tables":
            source = str(tmp_path / f"tables {number}")
            write_tables(graph, source)
        if kind == "npz":
            source = tmp_path / f"{number}.npz"
            write_npz(graph, source)
        if kind == "ogb":
            source = tmp_path / f"ogb {number}"
            (source / "raw").mkdir(parents=True)
            pairs = np.stack(graph.adjacency.nonzero())
            arrays = {"edge_index": pairs, "num_nodes_list": np.array([400]), "node_feat": features}
            np.savez(source / "raw" / "data.npz", **arrays)
            np.savez(source / "raw" / "node-label.npz", node_label=graph.labels[:, None])
        if kind == "synthetic":
            source = f"synthetic:nodes=400,edges=1600,classes=9,features={20 + number},kind=dense"
        folders.append(import_graph(source, tmp_path / f"out {number}"))
    first, other = (folder.ids(np.arange(400)) for folder in folders)
    assert sorted(first.tolist()) == sorted(other.tolist()) == list(range(400))
    assert (first == other).mean() < 0.05
    for folder in folders:
        assert folder.shuffle.key.bit_length() > 200
        assert str(folder.shuffle.key) not in (folder.path / "manifest.json").read_text()
