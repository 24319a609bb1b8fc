"""Convert the benchmark graphs that graphfcl may not ship from the files of their publishers.

``python -m scripts.convert_graphs FOLDER --out DATA`` converts what FOLDER holds:

- ``cora_topics.npz`` from ``classification_papers.json``, ``paper_references.json`` and ``paper_terms.json`` of
  APEX-WSU/CoRA;
- ``coauthor_cs.npz``, ``amazon_computers.npz`` and ``cora_ml.npz`` from ``datasets/coauthor_cs.npz``,
  ``datasets/amazon_cs.npz`` and ``datasets/cora_ml.npz`` of EdisonLeeeee/GraphData.

Afterwards ``graphfcl stream --verify --data-dir DATA`` checks the streams of the benchmark on them.
"""

import argparse
import hashlib
import io
import json
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

# SHA-256 of the publishers' files.
CORA = {
    "classification_papers.json": "a1739fc47a9b6551b5f1e3a26e889e6d26063f92cb4e69c28871c7005ba12693",
    "paper_references.json": "0c101060e6f2b22febef30a8344a2493dd2ac799b78f35d301ab2440db4fc391",
    "paper_terms.json": "97b448a34d1dde2c413e44e1621d85b3be1a568f5bd7c7a84f9cc78031d3a5dd",
}
GRAPH_DATA = {  # also the file that each becomes
    "coauthor_cs.npz": ("7b7b51bf270d341f1c4231834c58a526bb04db003fd76a6d2f51ad7d252005ed", "coauthor_cs.npz"),
    "amazon_cs.npz": ("a6942db609f196b53503d91b99a02ad8d052d5d9be8ef41db976fb65f66ed1f3", "amazon_computers.npz"),
    "cora_ml.npz": ("590d93689ec70aa0da17b3f1c6915dfd3c1b6306ad4f3286a2075599f7a85630", "cora_ml.npz"),
}


def cora_topics(
    topics: Mapping[str, list[int]], references: list[list[int]], terms: Mapping[str, Any]
) -> dict[str, Any]:
    """Papers that have terms and a topic without subtopics, in the order of their numbers.

    Classes are in the order in which papers have them, columns are the terms of these papers in the order of their ids.
    """
    leaves = [name for name in topics if not any(other.startswith(f"{name}/") for other in topics)]
    topic_of = {paper: name for name in leaves for paper in topics[name]}
    papers = sorted(int(paper) for paper in terms if int(paper) in topic_of)
    names = list(dict.fromkeys(topic_of[paper] for paper in papers))
    row_of = {paper: row for row, paper in enumerate(papers)}
    columns = {term: column for column, term in enumerate(sorted({t for p in papers for t in terms[str(p)]}))}
    entries = [
        (row, columns[term], weight) for paper, row in row_of.items() for term, weight in terms[str(paper)].items()
    ]
    rows, places, weights = zip(*entries, strict=True)
    features = sparse.csr_array((weights, (rows, places)), shape=(len(papers), len(columns)), dtype=np.float32)
    ends = np.array([(row_of[a], row_of[b]) for a, b in references if a in row_of and b in row_of])
    return {
        **_parts("adj", _undirected(ends, len(papers))),
        **_parts("attr", features),
        "labels": np.array([names.index(topic_of[paper]) for paper in papers]),
        "class_names": np.array(names),
    }


def _undirected(ends: np.ndarray, count: int) -> sparse.csr_array:
    """An adjacency matrix without weights and loops."""
    ends = ends[ends[:, 0] != ends[:, 1]]
    both = np.concatenate([ends, ends[:, ::-1]])
    made = sparse.csr_array((np.ones(len(both), np.float32), (both[:, 0], both[:, 1])), shape=(count, count))
    made.sum_duplicates()
    made.data[:] = 1
    return made


class _Matrices(pickle.Unpickler):
    """Reads matrices of scipy and nothing else: their publisher's files hold them as Python objects."""

    ALLOWED = ("csr_matrix", "_reconstruct", "ndarray", "dtype", "scalar")

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] not in ("scipy", "numpy") or name not in self.ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of a matrix: the file is not the publisher's.")
        return sparse.csr_matrix if name == "csr_matrix" else super().find_class(module, name)


def _matrix(archive: zipfile.ZipFile, name: str) -> sparse.csr_array:
    stored = io.BytesIO(archive.read(f"{name}.npy"))
    np.lib.format.read_magic(stored)
    np.lib.format.read_array_header_1_0(stored)
    return sparse.csr_array(_Matrices(stored).load().item())


def graph_data(path: Path) -> dict[str, Any]:
    """A graph of GraphData: without directions, weights and loops; features as they are."""
    with zipfile.ZipFile(path) as archive:
        adjacency, features = _matrix(archive, "adj_matrix"), _matrix(archive, "node_attr")
        labels = np.load(io.BytesIO(archive.read("node_label.npy")), allow_pickle=False)
    ends = np.stack(adjacency.nonzero(), axis=1)
    return {
        **_parts("adj", _undirected(ends, adjacency.shape[0])),
        **_parts("attr", features.astype(np.float32)),
        "labels": labels.astype(np.int64),
    }


def _parts(name: str, matrix: sparse.csr_array) -> dict[str, np.ndarray]:
    matrix.sort_indices()
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": np.array(matrix.shape)}
    return {f"{name}_{part}": array for part, array in parts.items()}


def convert(folder: Path, out: Path) -> list[str]:
    """Convert all graphs whose files are in a folder. Returns a line for each."""
    out.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    if all((folder / name).exists() for name in CORA):
        topics, references, terms = (json.loads(_checked(folder / name, CORA[name], lines)) for name in CORA)
        _write(out / "cora_topics.npz", cora_topics(topics, references, terms), lines)
    for name, (digest, target) in GRAPH_DATA.items():
        if (folder / name).exists():
            _checked(folder / name, digest, lines)
            _write(out / target, graph_data(folder / name), lines)
    return lines or [f"{folder} has none of {', '.join([*CORA, *GRAPH_DATA])}."]


def _checked(path: Path, digest: str, lines: list[str]) -> bytes:
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != digest:
        lines.append(f"{path.name} is not the file that the benchmark was made from: check the streams afterwards.")
    return data


def _write(path: Path, arrays: dict[str, Any], lines: list[str]) -> None:
    np.savez_compressed(path, **arrays)
    lines.append(f"Wrote {path}: {len(arrays['labels']):,} nodes, {len(arrays['adj_data']) // 2:,} edges.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the publishers' files are")
    parser.add_argument("--out", type=Path, required=True, help="where the converted graphs are written")
    given = parser.parse_args()
    print("\n".join(convert(given.folder, given.out)))
