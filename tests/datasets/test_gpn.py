"""Amazon-Clothing and DBLP in their original files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from graphfcl import InputError, load_dataset
from graphfcl.datasets.gpn import read_gpn

STEMS = {"amazon-clothing": "Amazon_clothing", "dblp": "dblp"}
NODES, WIDTH = 30, 11


class Files:
    """Small files of the original form: two thirds of the nodes in the ``.mat`` files, in random order."""

    def __init__(self, folder: Path, stem: str, *, number: type = np.int64) -> None:
        random = np.random.default_rng(7)
        pairs = random.integers(0, NODES, (40, 2))
        # The largest number stands only in the network, the next one only in a .mat file.
        pairs[0] = 3, NODES - 1
        self.pairs = [(int(a), int(b)) for a, b in pairs if a != b and NODES - 2 not in (a, b)]
        shuffled = random.permutation(NODES - 1)
        self.index = {"train": shuffled[:12], "test": np.append(shuffled[12:20], NODES - 2)}
        self.index["train"] = self.index["train"][self.index["train"] != NODES - 2]
        self.index["test"] = np.unique(self.index["test"])[::-1]
        self.labels = {part: random.integers(0, 5, index.size) * 2 for part, index in self.index.items()}
        self.attributes = {
            part: (random.random((index.size, WIDTH)) < 0.3).astype(float) for part, index in self.index.items()
        }
        self.network = folder / f"{stem}_network"
        self.network.write_text("".join(f"{a}\t{b}\n{b}\t{a}\n" for a, b in self.pairs))
        self.matrices = {part: folder / f"{stem}_{part}.mat" for part in self.index}
        for part, path in self.matrices.items():
            savemat(
                path,
                {
                    "Index": self.index[part][None, :].astype(number),
                    "Label": self.labels[part][:, None].astype(float),
                    "Attributes": sparse.csc_array(self.attributes[part]),
                },
            )

    def label_of(self) -> dict[int, int]:
        return {
            int(node): int(label)
            for part in self.index
            for node, label in zip(self.index[part], self.labels[part], strict=True)
        }

    def row_of(self) -> dict[int, np.ndarray]:
        return {
            int(node): row
            for part in self.index
            for node, row in zip(self.index[part], self.attributes[part], strict=True)
        }


@pytest.mark.parametrize("name", STEMS)
@pytest.mark.parametrize("number", [np.int64, np.float64])
def test_the_original_files_are_read(tmp_path: Path, name: str, number: type) -> None:
    files = Files(tmp_path, STEMS[name], number=number)
    graph, protocol = load_dataset(name, data_dir=tmp_path)
    expected = np.zeros((NODES, NODES))
    for a, b in files.pairs:
        expected[a, b] = expected[b, a] = 1
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected)
    labels, rows = files.label_of(), files.row_of()
    assert sparse.issparse(graph.features)
    for node in range(NODES):
        known = graph.class_names[graph.labels[node]] if graph.labels[node] >= 0 else None
        assert known == (str(labels[node]) if node in labels else None)
        np.testing.assert_array_equal(graph.features[[node]].toarray()[0], rows.get(node, np.zeros(WIDTH)))
    assert graph.node_ids.tolist() == list(range(NODES))
    assert graph.name == name
    assert protocol is not None


def test_the_test_file_alone_offers_its_classes(tmp_path: Path) -> None:
    files = Files(tmp_path, "Amazon_clothing")
    files.matrices["train"].unlink()
    graph, _ = load_dataset("amazon-clothing-20", data_dir=tmp_path)
    kept = sorted(files.index["test"].tolist())
    assert graph.node_ids.tolist() == kept
    edges = {frozenset(pair) for pair in files.pairs if set(pair) <= set(kept)}
    rows, columns = graph.adjacency.nonzero()
    assert {frozenset((kept[a], kept[b])) for a, b in zip(rows, columns, strict=True)} == edges
    labels, attributes = files.label_of(), files.row_of()
    for row, node in enumerate(kept):
        assert graph.class_names[graph.labels[row]] == str(labels[node])
        np.testing.assert_array_equal(graph.features[[row]].toarray()[0], attributes[node])


def test_a_missing_file_is_named_with_where_to_get_it(tmp_path: Path) -> None:
    files = Files(tmp_path, "Amazon_clothing")
    files.matrices["train"].unlink()
    with pytest.raises(InputError, match=r"lacks Amazon_clothing_train\.mat: get them from .*amazon-clothing-20"):
        load_dataset("amazon-clothing", data_dir=tmp_path)


def changed_matrix(files: Files, changes: dict[str, Any]) -> None:
    part = "test"
    content = {
        "Index": files.index[part][None, :],
        "Label": files.labels[part][:, None].astype(float),
        "Attributes": sparse.csc_array(files.attributes[part]),
    }
    savemat(files.matrices[part], {key: value for key, value in {**content, **changes}.items() if value is not None})


def damaged_columns(files: Files) -> sparse.csc_array:
    """Attributes whose rows lie outside the matrix, as a damaged file may say."""
    attributes = sparse.csc_array(files.attributes["test"])
    attributes.indices[0] = 10**6
    return attributes


@pytest.mark.parametrize(
    ("key", "change", "words"),
    [
        ("Label", lambda _: None, r"has no variable 'Label' \(it has Attributes, Index\)"),
        ("Index", lambda _: None, "has no variable 'Index'"),
        ("Attributes", lambda _: None, "has no variable 'Attributes'"),
        ("Label", lambda files: files.labels["test"][:-1].astype(float), "all three must agree"),
        ("Label", lambda files: files.labels["test"] + 0.5, "the labels are not whole numbers"),
        ("Label", lambda files: np.eye(files.index["test"].size), "all three must agree"),
        ("Attributes", lambda files: files.attributes["test"][1:], "all three must agree"),
        ("Attributes", lambda files: files.attributes["test"][:, 1:], "different numbers of attributes"),
        ("Attributes", lambda files: files.attributes["test"] * np.nan, "NaN"),
        ("Attributes", damaged_columns, "do not all hold numbers"),
        ("Attributes", lambda _: {"field": 1.0}, "do not all hold numbers"),
        ("Label", lambda files: np.array(["x"] * files.index["test"].size, dtype=object), "do not all hold numbers"),
        ("Index", lambda files: files.index["test"] + 0.5, "a node number in Index is not whole"),
        ("Index", lambda files: np.zeros(files.index["test"].size), "negative or occurs twice"),
        ("Index", lambda files: files.index["test"] - 100, "negative or occurs twice"),
        ("Index", lambda files: files.index["train"][: files.index["test"].size], "negative or occurs twice"),
    ],
)
def test_matrices_that_cannot_be_used_are_refused(tmp_path: Path, key: str, change: Any, words: str) -> None:
    files = Files(tmp_path, "dblp")
    changed_matrix(files, {key: change(files)})
    with pytest.raises(InputError, match=words) as caught:
        load_dataset("dblp", data_dir=tmp_path)
    assert "dblp_test.mat" in str(caught.value)


def test_a_matrix_cut_short_is_refused(tmp_path: Path) -> None:
    files = Files(tmp_path, "dblp")
    path = files.matrices["test"]
    savemat(tmp_path / "packed.mat", {"Index": files.index["test"]}, do_compression=True)
    for content in (path.read_bytes(), (tmp_path / "packed.mat").read_bytes()):
        for size in range(0, len(content), 37):
            path.write_bytes(content[:size])
            with pytest.raises(InputError, match=r"dblp_test\.mat"):
                load_dataset("dblp", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not a list of tab-separated node numbers"),
        ("0\t1\n2\n", "is not a list of tab-separated node numbers"),
        ("0 1\n1 2\n", "is not a list of tab-separated node numbers"),
        ("0\tone\n", "is not a list of tab-separated node numbers"),
        ("0\t1\t2\n", "is not a list of tab-separated node numbers"),
        ("0\t\n", "only one node number"),
        ("0\t1\n-1\t2\n", "edge 1 joins nodes -1 and 2"),
    ],
)
def test_networks_that_cannot_be_used_are_refused(tmp_path: Path, content: str, words: str) -> None:
    files = Files(tmp_path, "dblp")
    files.network.write_text(content)
    with pytest.raises(InputError, match=words) as caught:
        load_dataset("dblp", data_dir=tmp_path)
    assert "dblp_network" in str(caught.value)


def require(folder: Path, *names: str) -> list[Path]:
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        pytest.skip(f"the research files are not here: {folder} lacks {', '.join(missing)}")
    return [folder / name for name in names]


def test_the_genuine_files(data_folder: Path) -> None:
    require(data_folder, "Amazon_clothing_network", "Amazon_clothing_test.mat")
    graph, _ = load_dataset("amazon-clothing-20", data_dir=data_folder)
    assert (graph.node_count, graph.edge_count, graph.features.shape[1]) == (9_360, 29_077, 9_034)
    assert len(graph.class_names) == 20
    assert graph.class_sizes.sum() == 9_360
    assert (graph.class_sizes.min(), np.median(graph.class_sizes), graph.class_sizes.max()) == (104, 354, 1_039)
    assert graph.same_class_share == pytest.approx(0.926, abs=0.0005)
    assert sparse.issparse(graph.features)


def test_the_genuine_network_with_the_nodes_that_lack_labels(data_folder: Path) -> None:
    network, matrix = require(data_folder, "Amazon_clothing_network", "Amazon_clothing_test.mat")
    graph = read_gpn(network, [matrix], "amazon")
    assert (graph.node_count, graph.edge_count) == (24_919, 91_680)
    assert int((graph.labels < 0).sum()) == 24_919 - 9_360
    assert graph.features[np.flatnonzero(graph.labels < 0)].nnz == 0
