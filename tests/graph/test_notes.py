"""Notes that whoever makes a graph in Python is told."""

import warnings
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pytest
import torch

from graphfcl import (
    GraphClassifier,
    GraphfclWarning,
    InputError,
    build_graph,
    from_frames,
    from_networkx,
    from_pyg,
    load_dataset,
    read_tables,
)
from graphfcl.graph.folder import write_folder

NODES = {
    "id": list(range(60)),
    "label": [f"c{node % 3}" for node in range(60)],
    "kind_id": [node % 3 for node in range(60)],
}
EDGES = {"source": [0, 1], "target": [1, 2]}
NO_FEATURES = "The graph has no features: only its edges tell its nodes apart."


def pyg_data(**values: Any) -> Any:
    from torch_geometric.data import Data

    return Data(**values)


def told(make: Any) -> list[str]:
    """What making something warns of; each warning names a line of this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GraphfclWarning)
        make()
    ours = [each for each in caught if issubclass(each.category, GraphfclWarning)]
    assert all(each.filename == __file__ for each in ours)
    return [str(each.message) for each in ours]


def tables(folder: Path) -> Path:
    rows = "".join(f"{node},{label},{kind}\n" for node, label, kind in zip(*NODES.values(), strict=True))
    (folder / "nodes.csv").write_text("id,label,kind_id\n" + rows)
    (folder / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    return folder


def test_a_column_that_gives_the_label_away_is_a_warning(tmp_path: Path) -> None:
    folder = tables(tmp_path)
    for make in (
        lambda: from_frames(pa.table(NODES), pa.table(EDGES)),
        lambda: read_tables(folder),
        lambda: load_dataset(folder),
    ):
        (said,) = told(make)
        assert said.startswith("Warning: column 'kind_id' nearly determines the label")
    assert told(lambda: read_tables(folder, drop="kind_id")) == [NO_FEATURES]
    write_folder(read_tables(folder, drop="kind_id"), tmp_path / "kept")
    assert told(lambda: load_dataset(tmp_path / "kept")) == [NO_FEATURES]


def test_a_graph_without_features_is_a_warning() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    for make in (
        lambda: build_graph(np.ones((2, 2)) - np.eye(2), None, ["a", "b"]),
        lambda: from_pyg(pyg_data(edge_index=edges, y=torch.tensor([0, 1]), num_nodes=2)),
        lambda: from_networkx(networkx.path_graph(2), label=None),
    ):
        assert told(make) == [NO_FEATURES]


def test_other_notes_are_no_warnings() -> None:
    graph = build_graph(np.ones((2, 2)), np.eye(2), ["a", "NA"])
    assert len(graph.notes) == 2
    assert told(lambda: build_graph(np.ones((2, 2)), np.eye(2), ["a", "NA"])) == []


def test_all_notes_of_a_graph_that_fit_makes_are_warnings() -> None:
    data = pyg_data(edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, -1]), num_nodes=2, train_mask=torch.ones(2))

    def fit() -> None:
        with pytest.raises(InputError):  # such a graph has too few classes
            GraphClassifier().fit(data)

    said = told(fit)
    assert sorted(said) == sorted(set(said)) == sorted(from_pyg(data).notes)
    assert len(said) == 3
