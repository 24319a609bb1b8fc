"""The genuine research graphs against what is known of them."""

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from graphfcl import find_dataset, load_dataset


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "features", "classes", "sizes", "share"),
    [
        ("cora-topics", 11_694, 30_583, 9_472, 70, (9, 144, 543), 0.565),
        ("coauthor-cs", 18_333, 81_894, 6_805, 15, (118, 876, 4_136), 0.808),
        ("amazon-computers", 13_752, 245_861, 767, 10, (291, 680, 5_158), 0.777),
        ("cora-ml", 2_995, 8_158, 2_879, 7, (193, 402, 857), 0.789),
    ],
)
def test_the_genuine_graph_has_its_known_size(
    data_folder: Path,
    name: str,
    nodes: int,
    edges: int,
    features: int,
    classes: int,
    sizes: tuple[int, int, int],
    share: float,
) -> None:
    missing = find_dataset(name)[0].missing_files(data_folder)
    if missing:
        pytest.skip(f"the research files are not here: {data_folder} lacks {', '.join(missing)}")
    graph, _ = load_dataset(name, data_dir=data_folder)
    assert (graph.node_count, graph.edge_count, graph.features.shape[1]) == (nodes, edges, features)
    assert len(graph.class_names) == classes
    least, median, most = graph.class_sizes.min(), np.median(graph.class_sizes), graph.class_sizes.max()
    assert (least, int(median), most) == sizes
    assert graph.same_class_share == pytest.approx(share, abs=0.0006)
    assert sparse.issparse(graph.features)
    assert graph.name == name
