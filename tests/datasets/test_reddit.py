"""Reddit in the two forms that circulate."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import InputError, load_dataset
from graphfcl.datasets import reddit

POSTS = ["t3_a", "t3_b", "t3_c", "t3_d"]
LINKS = [(0, 1), (1, 2), (3, 0), (2, 2)]
ROWS = {"t3_a": 2, "t3_b": 0, "t3_c": 4, "t3_d": 1, "t3_lost": 3}
CLASSES = {"t3_a": 7, "t3_b": 3, "t3_c": 7, "t3_d": 0, "t3_lost": 3}
FEATURES = np.arange(10, dtype=np.float32).reshape(5, 2)


def link(source: Any, target: Any) -> dict[str, Any]:
    return {"test_removed": False, "train_removed": True, "target": target, "source": source}


def node_link(**changes: Any) -> dict[str, Any]:
    content = {
        "directed": False,
        "graph": {"name": "disjoint_union( ,  )"},
        "nodes": [{"test": False, "id": post, "val": False} for post in POSTS],
        "links": [link(source, target) for source, target in LINKS],
        "multigraph": False,
    }
    return {key: value for key, value in {**content, **changes}.items() if value is not None}


def write_graphsage(folder: Path, *, indent: int | None = None, **changes: Any) -> Path:
    """GraphSAGE's four files; ``t3_lost`` has features and a class but is not in the graph."""
    content: dict[str, Any] = {"G": node_link(), "id_map": ROWS, "class_map": CLASSES, "feats": FEATURES, **changes}
    np.save(folder / "reddit-feats.npy", content.pop("feats"))
    for part, value in content.items():
        text = value if isinstance(value, str) else json.dumps(value, indent=indent)
        (folder / f"reddit-{part}.json").write_text(text)
    return folder


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("chunk", [1, 10, 70, 150, 2**20])
def test_graphsage_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None
) -> None:
    monkeypatch.setattr(reddit, "CHUNK", chunk)
    graph, protocol = load_dataset("reddit", data_dir=write_graphsage(tmp_path, indent=indent))
    expected = np.zeros((5, 5))
    for source, target in LINKS:
        a, b = ROWS[POSTS[source]], ROWS[POSTS[target]]
        if a != b:
            expected[a, b] = expected[b, a] = 1
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected)
    np.testing.assert_array_equal(graph.features, FEATURES)
    assert graph.node_ids.tolist() == sorted(ROWS, key=ROWS.__getitem__)
    for post, row in ROWS.items():
        assert graph.class_names[graph.labels[row]] == str(CLASSES[post])
    assert graph.class_names == ("0", "3", "7")
    assert graph.adjacency.toarray()[ROWS["t3_lost"]].sum() == 0
    assert protocol is not None


def test_rows_without_a_node_and_nodes_without_a_row(tmp_path: Path) -> None:
    rows = {post: row for post, row in ROWS.items() if post not in ("t3_lost", "t3_d")}
    graph, _ = load_dataset("reddit", data_dir=write_graphsage(tmp_path, id_map=rows))
    assert graph.node_ids.tolist() == ["t3_b", "row-1", "t3_a", "row-3", "t3_c"]
    assert graph.labels.tolist() == [0, -1, 1, -1, 1]
    assert graph.edge_count == 2


def test_a_graph_without_links(tmp_path: Path) -> None:
    graph, _ = load_dataset("reddit", data_dir=write_graphsage(tmp_path, G=node_link(links=[])))
    assert graph.edge_count == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"G": node_link(links=[link(0, 9)])}, r"reddit-G\.json: a link leads to node 9, but there are 4 nodes"),
        ({"G": node_link(links=[link(0, -1)])}, r"reddit-G\.json: a link leads to a node that is not a position"),
        ({"G": node_link(links=[link(0, 1.5)])}, r"reddit-G\.json: a link leads to a node that is not a position"),
        ({"G": node_link(links=[{"source": 1}])}, r"reddit-G\.json: a link has no source or no target"),
        ({"G": node_link(links=[link("t3_a", "t3_b")])}, r"reddit-G\.json: a link has 't3_a'"),
        ({"G": node_link(links=None)}, r"reddit-G\.json has no list 'links'"),
        ({"G": node_link(nodes=None)}, r"reddit-G\.json has no list 'nodes'"),
        ({"G": node_link(nodes=[{}] * 4)}, r"reddit-G\.json has no list 'nodes' with an 'id'"),
        ({"G": json.dumps(node_link())[:-60]}, r"reddit-G\.json"),
        ({"G": ""}, r"reddit-G\.json has no list 'links' or is cut short"),
        ({"id_map": '{"t3_a": 1,'}, r"reddit-id_map\.json is not JSON or is cut short"),
        ({"id_map": [1, 2]}, r"reddit-id_map\.json is not a JSON object"),
        ({"id_map": {"t3_a": "two"}}, r"reddit-id_map\.json: the value 'two' is not a whole number"),
        ({"id_map": {"t3_a": 5}}, r"reddit-id_map\.json: a node has row 5, but reddit-feats\.npy has 5 rows"),
        ({"id_map": {"t3_a": 1, "t3_b": 1}}, r"reddit-id_map\.json: two nodes have the same row"),
        ({"class_map": {**CLASSES, "t3_a": [0, 1]}}, r"reddit-class_map\.json has lists of classes \(multi-label\)"),
        ({"class_map": {**CLASSES, "t3_a": "pics"}}, r"reddit-class_map\.json: the value 'pics'"),
        ({"feats": np.array(1.0)}, r"reddit-feats\.npy has shape \(\)"),
        ({"feats": FEATURES * np.nan}, r"reddit-feats\.npy: the feature of node 0, column 0 is NaN"),
        ({"feats": np.array([[{}]], dtype=object)}, r"reddit-feats\.npy is truncated, pickled or not"),
    ],
)
def test_graphsage_files_that_cannot_be_used_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    write_graphsage(tmp_path, **changes)
    with pytest.raises(InputError, match=words):
        load_dataset("reddit", data_dir=tmp_path)


def test_features_cut_short_are_refused(tmp_path: Path) -> None:
    path = write_graphsage(tmp_path) / "reddit-feats.npy"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InputError, match=r"reddit-feats\.npy is truncated"):
        load_dataset("reddit", data_dir=tmp_path)


def write_dgl(folder: Path, **changes: Any) -> Path:
    """The two archives that DGL publishes: the second is a scipy matrix in coordinate form."""
    data = {"feature": FEATURES, "label": np.array([4, 0, 4, 1, 0]), "node_types": np.ones(5), "node_ids": np.arange(5)}
    links = {
        "row": np.array([0, 1, 1, 2, 3], dtype=np.int32),
        "col": np.array([1, 0, 2, 1, 4], dtype=np.int32),
        "data": np.ones(5),
        "format": np.array(b"coo"),
        "shape": np.array([5, 5]),
    }
    for name, arrays in (("reddit_data", data), ("reddit_graph", links)):
        kept = {key: changes.get(key, array) for key, array in arrays.items()}
        np.savez(folder / f"{name}.npz", **{key: array for key, array in kept.items() if array is not None})
    return folder


def test_dgl_files_are_read(tmp_path: Path) -> None:
    graph, _ = load_dataset("reddit-dgl", data_dir=write_dgl(tmp_path))
    expected = np.zeros((5, 5))
    for a, b in ((0, 1), (1, 2), (3, 4)):
        expected[a, b] = expected[b, a] = 1
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected)
    np.testing.assert_array_equal(graph.features, FEATURES)
    assert graph.labels.tolist() == [2, 0, 2, 1, 0]
    assert graph.class_names == ("0", "1", "4")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"label": None}, r"reddit_data\.npz has no array 'label'"),
        ({"col": None}, r"reddit_graph\.npz has no array 'col'"),
        ({"label": np.arange(4)}, r"reddit_data\.npz: 4 labels for 5 nodes"),
        ({"label": np.array([{}] * 5, dtype=object)}, r"reddit_data\.npz holds 'label' as a pickled object"),
        ({"row": np.array([0, 1, 1, 2, 7])}, r"reddit_graph\.npz: edge 4 joins nodes 7 and 4"),
        ({"row": np.array([0, 1])}, r"reddit_graph\.npz: 'row', 'col' and 'shape' do not fit together"),
        ({"row": np.array(list("abcde"))}, r"reddit_graph\.npz: 'row', 'col' and 'shape' do not fit together"),
        ({"shape": np.array(5)}, r"reddit_graph\.npz: 'row', 'col' and 'shape' do not fit together"),
    ],
)
def test_dgl_files_that_cannot_be_used_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_dataset("reddit-dgl", data_dir=write_dgl(tmp_path, **changes))
