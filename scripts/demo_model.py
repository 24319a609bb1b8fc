"""A small model to look at the service with: ``python -m scripts.demo_model FOLDER``.

It knows six sections of Debian's packages. The packages of three more are there without a label, as are a third of all
others, so that there is something to teach.
"""

import argparse
from pathlib import Path

import numpy as np

from graphfcl import GraphClassifier, ModelFolder, load_dataset
from graphfcl.graph import Graph, build_graph

KNOWN = ("database", "editors", "graphics", "mail", "math", "sound")
TO_TEACH = ("electronics", "fonts", "games")
LARGEST = 200  # packages of a section
UNLABELLED = 1 / 3
COMMON = 0.1  # words in more than this share of the packages ("for", "and") say nothing


def demo_graph(seed: int = 0) -> Graph:
    """The packages of nine sections that are linked most to each other, with the words of their descriptions."""
    whole, _ = load_dataset("debian")
    numbers = [whole.class_names.index(name) for name in (*KNOWN, *TO_TEACH)]
    candidates = np.flatnonzero(np.isin(whole.labels, numbers))
    by_links = candidates[np.argsort(-_links(whole, candidates), kind="stable")]
    rows = np.sort(np.concatenate([by_links[whole.labels[by_links] == each][:LARGEST] for each in numbers]))
    rows = rows[_links(whole, rows) > 0]
    nodes_of_word = np.bincount(whole.features[rows].indices, minlength=whole.features.shape[1])
    columns = np.flatnonzero((nodes_of_word >= 2) & (nodes_of_word <= COMMON * rows.size))
    labels = np.array(whole.class_names, dtype=object)[whole.labels[rows]]
    labels[np.random.default_rng(seed).random(rows.size) < UNLABELLED] = None
    assert whole.feature_names is not None
    return build_graph(
        whole.adjacency[rows][:, rows],
        whole.features[rows][:, columns],
        labels,
        node_ids=whole.node_ids[rows],
        feature_names=whole.feature_names[columns],
        name="nine sections of debian",
    )


def _links(graph: Graph, rows: np.ndarray) -> np.ndarray:
    """(n,) how many links each of some nodes has to the others of them."""
    return np.diff(graph.adjacency[rows][:, rows].indptr)


def make_demo(folder: Path) -> None:
    """Fit the model and write it, unless the folder has one."""
    if not ModelFolder(folder).exists():
        GraphClassifier().fit(demo_graph(), hide_classes=TO_TEACH).save(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the model is written, unless it is there")
    folder = parser.parse_args().folder
    make_demo(folder)
    print(f"{ModelFolder(folder).load()} is in {folder}.")
