"""``graphfcl data`` and the root command."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from scipy.io import savemat

import graphfcl as package
from graphfcl import build_graph, load_dataset, write_npz
from graphfcl.datasets import all_datasets
from tests.cli.command import Result, assert_one_sentence, graphfcl_inside, run_all, run_python
from tests.graph.samples import Trap

SYNTHETIC = "synthetic:nodes=300,classes=6,edges=900"
ODD_NAMES = ["[draft]", "[/x] :dog:", "a, b"]

BAD_FILES = {
    "missing.npz": "does not exist",
    "cut.npz": "truncated or damaged",
    "object.npz": "pickled object",
    "pickle.npz": "is a pickle",
    "outside.npz": "an edge leads to node 8",
    "short.npz": "2 labels for 3 nodes",
    "nan.npz": "the feature of node 1, column 0 is NaN",
    "multi.npz": "multi-label",
    "nowhere": "edges.csv: 1 edge with an end that is not among the nodes (line 3 'x')",
    "types": "heterogeneous",
    "lists": "multi-label",
}
BAD_NAMES = {
    "cora-m": ("'cora-m'", "did you mean 'cora-ml'?"),
    "synthetic:colour=red": ("synthetic has no option 'colour'", "nodes"),
    "dblp": ("dblp needs the files dblp_network, dblp_train.mat, dblp_test.mat",),
}


def write_archives(folder: Path) -> None:
    parts = {
        "adj_indices": np.array([1, 2]),
        "adj_indptr": np.array([0, 1, 2, 2]),
        "adj_shape": np.array([3, 3]),
        "attr_matrix": np.ones((3, 1)),
        "labels": np.array([0, 1, 1]),
    }
    trap = np.array([Trap(folder / "sprung")], dtype=object)
    changes: dict[str, dict[str, Any]] = {
        "whole": {},
        "object": {"labels": trap},
        "outside": {"adj_indices": np.array([1, 8])},
        "short": {"labels": np.array([0, 1])},
        "nan": {"attr_matrix": np.array([[1], [np.nan], [1]])},
        "multi": {"labels": np.eye(3)},
    }
    for name, change in changes.items():
        np.savez(folder / f"{name}.npz", **{**parts, **change})
    (folder / "cut.npz").write_bytes((folder / "whole.npz").read_bytes()[:-100])
    (folder / "pickle.npz").write_bytes(pickle.dumps(Trap(folder / "sprung")))


def write_folders(folder: Path) -> None:
    for name, edges in {
        "nowhere": "source,target\n1,2\n2,x\n",
        "types": "source,target,type\n1,2,likes\n2,1,hates\n",
        "lists": "source,target\n1,2\n",
    }.items():
        (folder / name).mkdir()
        (folder / name / "nodes.csv").write_text("id,label\n1,a\n2,b\n")
        (folder / name / "edges.csv").write_text(edges)
    (folder / "lists" / "nodes.csv").unlink()
    parquet.write_table(pa.table({"id": [1, 2], "label": [["a"], ["a", "b"]]}), folder / "lists" / "nodes.parquet")


def write_matrices(folder: Path) -> None:
    content = {"Index": np.arange(3), "Label": np.ones(3), "Attributes": sparse.csc_array(np.eye(3))}
    for name in ("keys", "cut"):
        (folder / name).mkdir()
        (folder / name / "Amazon_clothing_network").write_text("0\t1\n1\t0\n")
    savemat(folder / "keys" / "Amazon_clothing_test.mat", {key: content[key] for key in ("Index", "Label")})
    matrix = folder / "cut" / "Amazon_clothing_test.mat"
    savemat(matrix, content)
    matrix.write_bytes(matrix.read_bytes()[:300])


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    write_archives(folder)
    write_folders(folder)
    write_matrices(folder)
    return folder


@pytest.fixture(scope="module")
def refused(bad: Path) -> dict[str, Result]:
    commands: dict[str, list[object]] = {name: ["data", "show", "--graph", bad / name] for name in BAD_FILES}
    commands |= {name: ["data", "show", "--graph", name, "--json"] for name in BAD_NAMES}
    commands |= {
        name: ["data", "show", "--graph", "amazon-clothing-20", "--data-dir", bad / name, "--json"]
        for name in ("keys", "cut")
    }
    commands["folder"] = ["data", "list", "--data-dir", bad / "none"]
    commands["debug"] = ["data", "show", "--graph", bad / "missing.npz", "--debug"]
    return run_all(commands, {"missing.npz", "cut.npz", "pickle.npz", "nowhere", "cora-m", "keys", "debug"})


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_ends_in_one_sentence(bad: Path, refused: dict[str, Result], name: str) -> None:
    assert_one_sentence(refused[name], str(bad / name), BAD_FILES[name])
    assert refused[name].out == ""


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_ends_in_one_sentence(refused: dict[str, Result], name: str) -> None:
    assert_one_sentence(refused[name], *BAD_NAMES[name])


@pytest.mark.parametrize(("name", "words"), [("keys", "no variable 'Attributes'"), ("cut", "truncated")])
def test_a_bad_matrix_ends_in_one_sentence(bad: Path, refused: dict[str, Result], name: str, words: str) -> None:
    assert_one_sentence(refused[name], str(bad / name / "Amazon_clothing_test.mat"), words)


def test_a_missing_data_folder_ends_in_one_sentence(bad: Path, refused: dict[str, Result]) -> None:
    assert_one_sentence(refused["folder"], str(bad / "none"), "does not exist")


@pytest.mark.usefixtures("refused")
def test_no_pickle_was_run(bad: Path) -> None:
    assert not (bad / "sprung").exists()


def test_debug_shows_the_traceback(refused: dict[str, Result]) -> None:
    assert refused["debug"].code != 0
    assert refused["debug"].err.startswith("Traceback (most recent call last)")
    assert "InputError" in refused["debug"].err


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(0)
    graph = build_graph(random.random((9, 9)), np.eye(9), [ODD_NAMES[node % 3] for node in range(9)])
    write_npz(graph, folder / "odd.npz")
    (folder / "cora_ml.npz").touch()
    return run_all(
        {
            "list": ["data", "list", "--data-dir", folder],
            "show": ["data", "show", "--graph", SYNTHETIC],
            "json": ["data", "show", "--graph", SYNTHETIC, "--json"],
            "odd": ["data", "show", "--graph", folder / "odd.npz"],
            "version": ["--version"],
        },
        {"list", "json", "odd"},
    )


def test_list_names_every_dataset_and_the_state_of_its_files(shown: dict[str, Result]) -> None:
    result = shown["list"]
    assert (result.code, result.err) == (0, "")
    states = {words[0]: words[1] for words in map(str.split, result.out.splitlines()) if len(words) > 1}
    assert {dataset.name for dataset in all_datasets()} <= set(states)
    assert states["debian"] == states["wordnet"] == "shipped"
    assert states["synthetic"] == "made"
    assert states["cora-ml"] == "found"
    assert states["coauthor-cs"] == states["reddit"] == "missing"


def test_show_tells_counts(shown: dict[str, Result]) -> None:
    result = shown["show"]
    assert (result.code, result.err) == (0, "")
    graph, _ = load_dataset(SYNTHETIC)
    facts = {line[:16].strip(): line[17:] for line in result.out.splitlines()}
    assert facts["nodes"] == "300 (0 without a label)"
    assert facts["edges"] == "900"
    assert facts["classes"] == "6"
    assert facts["SHA-256"] == graph.sha256
    assert facts["same-class edges"] == f"{graph.same_class_share:.1%}"
    sizes = [line.split() for line in result.out.splitlines() if line.strip().startswith("class-")]
    assert {name: int(size) for name, size in sizes} == dict(
        zip(graph.class_names, graph.class_sizes.tolist(), strict=True)
    )


def test_show_as_json(shown: dict[str, Result]) -> None:
    facts = json.loads(shown["json"].out)
    graph, _ = load_dataset(SYNTHETIC)
    assert (facts["nodes"], facts["edges"], facts["classes"], facts["features"]) == (300, 900, 6, 1_000)
    assert facts["class_sizes"] == dict(zip(graph.class_names, graph.class_sizes.tolist(), strict=True))
    assert list(facts["class_sizes"].values()) == sorted(facts["class_sizes"].values(), reverse=True)
    assert facts["feature_storage"] == "sparse"
    assert facts["feature_nonzeros"] == graph.features.nnz
    assert facts["sha256"] == graph.sha256
    assert facts["bytes"] == graph.byte_count
    degrees = graph.adjacency.toarray().sum(axis=1)
    assert facts["isolated_nodes"] == int((degrees == 0).sum())
    assert facts["components"] > facts["isolated_nodes"]
    assert facts["unlabelled_nodes"] == 0
    assert facts["weighted"] is False
    assert facts["default_stream"] is None


def test_class_names_are_printed_as_they_are(shown: dict[str, Result]) -> None:
    assert shown["odd"].code == 0
    for name in ODD_NAMES:
        assert name in shown["odd"].out


def test_version(shown: dict[str, Result]) -> None:
    assert shown["version"] == Result(0, f"{package.__version__}\n", "")


HELP = """
import sys
from graphfcl.cli import main
for words in ([], ["data"], ["data", "show"], ["stream"]):
    try:
        main([*words, "--help"])
    except SystemExit as stop:
        assert not stop.code
heavy = {"torch", "torch_geometric", "sklearn", "pyarrow", "matplotlib", "scipy", "numpy", "networkx"}
print("imported:", sorted(heavy & set(sys.modules)))
"""


def test_help_imports_nothing_heavy() -> None:
    result = run_python("-c", HELP)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-1] == "imported: []"
    for word in ("data", "stream", "--json", "--novel"):
        assert word in result.out


def test_without_words_the_help_is_shown() -> None:
    result = graphfcl_inside()
    assert "Usage: graphfcl" in result.out + result.err
    assert "Traceback" not in result.err
