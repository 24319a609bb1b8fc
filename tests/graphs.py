"""Small graphs for tests."""

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import Graph, build_graph


def random_graph(
    seed: int, class_sizes: list[int], *, unlabelled: int = 0, density: float = 0.05, dense: bool = False
) -> Graph:
    """Nodes of all classes in random order, edges at random, 0/1 features; ids are text."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(-1, len(class_sizes)), [unlabelled, *class_sizes]))
    count = labels.size
    adjacency = random.random((count, count)) < density
    features = (random.random((count, 7)) < 0.3).astype(np.float32)
    return build_graph(
        sparse.csr_array(adjacency.astype(np.float32)),
        features if dense else sparse.csr_array(features),
        labels,
        class_names=[f"c{number}" for number in range(len(class_sizes))],
        node_ids=[f"n{number}" for number in range(count)],
    )


@st.composite
def graphs(draw: st.DrawFn, min_classes: int = 4, max_classes: int = 9) -> Graph:
    """Random graphs with classes of 12 to 30 nodes and some nodes without a label."""
    sizes = draw(st.lists(st.integers(12, 30), min_size=min_classes, max_size=max_classes))
    return random_graph(draw(st.integers(0, 2**16)), sizes, unlabelled=draw(st.integers(0, 10)))
