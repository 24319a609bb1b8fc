"""Small graphs, ways to compare them, and a trap for readers that unpickle."""

import os
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import Graph, build_graph
from graphfcl.graph import TextSettings

Edge = tuple[int, int, float]

# Ids and names hold no control characters; test_ids.py tries those.
CHARACTERS = st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"])
FLOATS = st.floats(-1000, 1000, width=32)
WEIGHTS = st.floats(0.125, 1000, width=32)


def edge_lists(count: int) -> st.SearchStrategy[list[Edge]]:
    """Directed edges, some of them loops, some listed several times with several weights."""
    if count == 0:
        return st.just([])
    nodes = st.integers(0, count - 1)
    weights = st.just(1.0) | WEIGHTS
    return st.lists(st.tuples(nodes, nodes, weights), max_size=20) | st.lists(
        st.tuples(nodes, nodes, st.just(1.0)), max_size=20
    )


def coo(edges: list[Edge], count: int) -> sparse.coo_array:
    """The edges as they are listed, duplicates and all."""
    source, target = ([edge[end] for edge in edges] for end in (0, 1))
    weights = np.array([edge[2] for edge in edges], dtype=np.float32)
    return sparse.coo_array((weights, (source, target)), shape=(count, count))


def dense_adjacency(edges: list[Edge], count: int) -> np.ndarray:
    """What the adjacency of these edges must be, by a plain loop."""
    matrix = np.zeros((count, count), dtype=np.float32)
    for source, target, weight in edges:
        if source != target:
            matrix[source, target] = max(matrix[source, target], weight)
            matrix[target, source] = max(matrix[target, source], weight)
    return matrix


def words(characters: st.SearchStrategy[str] = CHARACTERS) -> st.SearchStrategy[str]:
    """Texts that are as a graph keeps them: no spaces at the ends, NFC."""
    return (
        st.text(characters, min_size=1, max_size=6)
        .map(lambda text: unicodedata.normalize("NFC", text).strip())
        .filter(bool)
    )


def text_ids(count: int, characters: st.SearchStrategy[str] = CHARACTERS) -> st.SearchStrategy[list[str]]:
    return st.lists(words(characters), min_size=count, max_size=count, unique=True)


def number_ids(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-(2**63), 2**63 - 1), min_size=count, max_size=count, unique=True)


@st.composite
def small_graphs(
    draw: st.DrawFn, *, dense: bool | None = None, characters: st.SearchStrategy[str] = CHARACTERS
) -> Graph:
    """Up to eight nodes: sparse or dense features, with or without weights, numbers or texts as ids."""
    count = draw(st.integers(0, 8))
    width = draw(st.integers(0, 4))
    features = np.array(
        draw(st.lists(st.just(0.0) | st.just(1.0) | FLOATS, min_size=count * width, max_size=count * width)),
        dtype=np.float32,
    ).reshape(count, width)
    is_dense = draw(st.booleans()) if dense is None else dense
    # In a table "-1" means that the class is not known, so no class can be called that.
    word = words(characters).filter(lambda name: name != "-1")
    names = draw(st.lists(word, min_size=3, max_size=3, unique=True))
    return build_graph(
        coo(draw(edge_lists(count)), count),
        features if is_dense else sparse.csr_array(features),
        np.array(draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count)), dtype=np.int64),
        class_names=names,
        node_ids=draw(st.none() | number_ids(count) | text_ids(count, characters)),
        text=None if is_dense else draw(st.none() | st.builds(TextSettings, st.integers(1, 5))),
    )


def named_labels(graph: Graph) -> list[str | None]:
    return [graph.class_names[label] if label >= 0 else None for label in graph.labels]


def plain(features: Any) -> np.ndarray:
    return features.toarray() if sparse.issparse(features) else features


def assert_same_content(first: Graph, second: Graph) -> None:
    """All but the class numbers, which a form that names only the classes in use cannot keep."""
    np.testing.assert_array_equal(first.adjacency.toarray(), second.adjacency.toarray())
    assert sparse.issparse(first.features) == sparse.issparse(second.features)
    assert first.features.shape == second.features.shape
    np.testing.assert_array_equal(plain(first.features), plain(second.features))
    assert named_labels(first) == named_labels(second)
    assert first.node_ids.tolist() == second.node_ids.tolist()


class Trap:
    """Its pickle makes a folder when it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.folder),)
