"""Graphs of the benchmark from files of the publishers' form."""

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from graphfcl import read_npz
from scripts.convert_graphs import CORA, GRAPH_DATA, convert
from tests.docs.blocks import ROOT

TOPICS = {"AI": [30, 9], "AI/Agents": [30], "AI/Learning": [9, 12, 77], "DB": [4]}  # AI has subtopics: it is no class
TERMS = {"30": {"B": 0.5, "D": 0.25}, "9": {"A": 1.0}, "4": {"B": 2.0}, "12": {"E": 1.5}, "5": {"C": 1.0}}
REFERENCES = [[30, 9], [9, 30], [4, 12], [12, 12], [5, 4], [77, 9]]


@pytest.fixture
def cora(tmp_path: Path) -> Path:
    for name, value in (("classification_papers", TOPICS), ("paper_terms", TERMS), ("paper_references", REFERENCES)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    return tmp_path


def test_papers_with_terms_and_a_leaf_topic_are_nodes(cora: Path) -> None:
    lines = convert(cora, cora / "out")
    graph = read_npz(cora / "out" / "cora_topics.npz")
    assert list(graph.class_names) == ["DB", "AI/Learning", "AI/Agents"]  # papers 4, 9, 12, 30
    assert graph.labels.tolist() == [0, 1, 1, 2]
    assert graph.features.toarray().tolist() == [[0, 2, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1.5], [0, 0.5, 0.25, 0]]
    assert sorted(zip(*(ends.tolist() for ends in graph.adjacency.nonzero()), strict=True)) == [
        (0, 2),
        (1, 3),
        (2, 0),
        (3, 1),
    ]
    assert "check the streams afterwards" in lines[0]
    assert "4 nodes, 2 edges" in lines[-1]


def write_published(path: Path, adjacency: object, features: object) -> None:
    """As the publisher stores graphs: matrices as Python objects in arrays."""
    labels = np.array([1, 0, 1], np.int32)
    np.savez(path, adj_matrix=np.array(adjacency, object), node_attr=np.array(features, object), node_label=labels)


def test_matrices_in_objects_are_read(tmp_path: Path) -> None:
    adjacency = sparse.csr_matrix(np.array([[0, 3, 0], [0, 5, 1], [0, 0, 0]]))
    features = sparse.csr_matrix(np.array([[0.5, 0], [0, 2], [1, 1]]))
    write_published(tmp_path / "amazon_cs.npz", adjacency, features)
    convert(tmp_path, tmp_path / "out")
    graph = read_npz(tmp_path / "out" / "amazon_computers.npz")
    assert graph.adjacency.toarray().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.features.toarray().tolist() == [[0.5, 0], [0, 2], [1, 1]]
    assert graph.labels.tolist() == [1, 0, 1]


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("executed",)


def test_other_objects_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_published(tmp_path / "cora_ml.npz", Hostile(), Hostile())
    with pytest.raises(pickle.UnpicklingError, match="print is not part of a matrix"):
        convert(tmp_path, tmp_path / "out")
    assert "executed" not in capsys.readouterr().out


def test_an_empty_folder_is_said(tmp_path: Path) -> None:
    assert "has none of classification_papers.json" in convert(tmp_path, tmp_path / "out")[0]


def test_the_page_names_the_same_checksums() -> None:
    page = (ROOT / "docs" / "benchmark.md").read_text()
    for name, digest in {**CORA, "coauthor_cs.npz": GRAPH_DATA["coauthor_cs.npz"][0]}.items():
        assert re.search(rf"`{name}` \|[^\n]*\| `{digest}`", page), name
