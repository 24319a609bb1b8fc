"""Raw node sets of the Open Graph Benchmark, in both layouts, against a graph built of the same numbers."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphfcl import Graph, GraphFolder, InputError, build_graph
from graphfcl.graph.folder import build_folder
from graphfcl.graph.folder.sources import ogb, ogb_source

COUNT, WIDTH = 40, 3
RANDOM = np.random.default_rng(0)
EDGES = RANDOM.integers(0, COUNT, (150, 2))
FEATURES = RANDOM.standard_normal((COUNT, WIDTH)).astype(np.float32)
LABELS = np.where(RANDOM.random(COUNT) < 0.3, np.nan, RANDOM.integers(0, 5, COUNT) * 2)


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    before = ogb.BYTES, ogb.STEP
    ogb.BYTES, ogb.STEP = 200, 7
    yield
    ogb.BYTES, ogb.STEP = before


def write_csv(path: Path, rows: Any) -> None:
    lines = [",".join("" if value != value else repr(value) for value in row) for row in rows]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


def write_tables(folder: Path, **changes: Any) -> Path:
    raw = folder / "arxiv" / "raw"
    raw.mkdir(parents=True)
    (raw.parent / "split" / "time").mkdir(parents=True)
    whole: dict[str, Any] = {
        "edge": EDGES.tolist(),
        "node-feat": FEATURES.astype(float).tolist(),
        "node-label": [[int(label)] if label == label else [label] for label in LABELS],
        "num-node-list": [[COUNT]],
        "num-edge-list": [[len(EDGES)]],
        "node_year": [[2000]] * COUNT,
    }
    for name, rows in {**whole, **changes}.items():
        if rows is not None:
            write_csv(raw / f"{name}.csv.gz", rows)
    return raw.parent


def write_arrays(folder: Path, **changes: Any) -> Path:
    raw = folder / "papers" / "raw"
    raw.mkdir(parents=True)
    whole: dict[str, Any] = {
        "edge_index": EDGES.T.copy(),
        "node_feat": FEATURES,
        "num_nodes_list": np.array([COUNT]),
        "num_edges_list": np.array([len(EDGES)]),
        "node_year": np.full((COUNT, 1), 2000),
    }
    label = changes.pop("node_label", LABELS[:, None].astype(np.float32))
    np.savez(raw / "data.npz", **{name: part for name, part in {**whole, **changes}.items() if part is not None})
    np.savez(raw / "node-label.npz", node_label=label)
    return raw.parent


def expected() -> Graph:
    weights = np.ones(len(EDGES), dtype=np.float32)
    return build_graph(sparse.coo_array((weights, (EDGES[:, 0], EDGES[:, 1])), shape=(COUNT, COUNT)), FEATURES, LABELS)


def imported(path: Path, out: Path) -> GraphFolder:
    return build_folder(ogb_source(path), out, memory=300 << 20)


def test_tables(tmp_path: Path) -> None:
    folder = imported(write_tables(tmp_path), tmp_path / "out")
    assert folder.graph().sha256 == expected().sha256
    assert folder.name == "arxiv"
    assert folder.manifest.notes[:2] == (
        "The splits in the folder were not used.",
        "raw: node_year.csv.gz were not used.",
    )
    assert folder.manifest.notes[2:] == expected().notes
    assert folder.class_names == ("0", "2", "4", "6", "8")
    inner = imported(tmp_path / "arxiv" / "raw", tmp_path / "inner")
    assert inner.sha256 == folder.sha256


@pytest.mark.parametrize("by_columns", [False, True])
def test_arrays(tmp_path: Path, by_columns: bool) -> None:
    index = np.asfortranarray(EDGES.T) if by_columns else np.ascontiguousarray(EDGES.T)
    folder = imported(write_arrays(tmp_path, edge_index=index), tmp_path / "out")
    assert folder.graph().sha256 == expected().sha256
    assert folder.manifest.notes == ("data.npz: node_year were not used.", *expected().notes)


def test_without_features(tmp_path: Path) -> None:
    for number, path in enumerate(
        (write_tables(tmp_path, **{"node-feat": None}), write_arrays(tmp_path, node_feat=None))
    ):
        folder = imported(path, tmp_path / f"out{number}")
        assert folder.feature_count == 0
        assert folder.features(2, 7).shape == (5, 0)
        assert folder.graph().adjacency.nnz == expected().adjacency.nnz


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edge": [[0, 1], [1, 40]]}, r"edge\.csv\.gz: line 2 joins nodes 1 and 40, but nodes are numbered 0 to 39"),
        ({"edge": [[0, 1], [np.nan, 4]]}, r"edge\.csv\.gz, line 2: a number is missing"),
        ({"edge": [[0, 1], [4]]}, r"edge\.csv\.gz, line 2: the row has 1 columns in place of 2"),
        ({"edge": [[0, 1, 2]]}, r"edge\.csv\.gz has 3 columns in place of 2"),
        ({"node-label": [[1]] * 39}, r"node-label\.csv\.gz: 39 labels for 40 nodes"),
        ({"node-label": [[1, 0]] * 40}, r"node-label\.csv\.gz has 2 labels per node"),
        ({"node-label": [[1.5]] * 40}, r"node-label\.csv\.gz: the labels are not whole numbers"),
        ({"node-label": None}, r"node-label\.csv\.gz cannot be read"),
        ({"node-feat": [[1.0]] * 39}, r"node-feat\.csv\.gz: there are features of 39 nodes, but the graph has 40"),
        ({"num-node-list": [[20], [20]]}, r"num-node-list\.csv\.gz lists 2 graphs"),
        ({"triplet-type-list": [[0]]}, "several types of nodes or edges"),
    ],
)
def test_bad_tables_end_in_one_sentence(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = write_tables(tmp_path, **changes)
    with pytest.raises(InputError, match=words):
        imported(path, tmp_path / "out")
    assert [each.name for each in tmp_path.iterdir()] == ["arxiv"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edge_index": EDGES}, r"'edge_index' has shape \(150, 2\), it must be 2 × edges"),
        ({"edge_index": np.array([[0, 1], [1, 77]])}, r"data\.npz: edge 1 joins nodes 1 and 77"),
        ({"node_label": np.ones((40, 3))}, r"node-label\.npz has 3 labels per node"),
        ({"num_nodes_list": None}, r"data\.npz has no array 'num_nodes_list'"),
    ],
)
def test_bad_arrays_end_in_one_sentence(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = write_arrays(tmp_path, **changes)
    with pytest.raises(InputError, match=words):
        imported(path, tmp_path / "out")


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not in the raw layout of OGB"):
        ogb_source(tmp_path)
