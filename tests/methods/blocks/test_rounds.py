"""Each phase of ANCHOR on a graph folder against the function that computes it in memory."""

from pathlib import Path

import numpy as np
import pytest
import torch

from graphfcl.methods.anchor import AnchorSettings
from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.frame import Blocks
from graphfcl.methods.anchor.rounds import run_rounds
from graphfcl.methods.anchor.settings import Neighbourhood
from graphfcl.methods.blocks import NodeTables, RowBlock, Table, open_tables
from tests.methods.blocks.samples import folder_of, in_memory, random_graph, separate_rings, visible_folder

CPU = torch.device("cpu")
HOW = {
    "plain": Neighbourhood(2.0, 2, 0.0, 3, 0.0),
    "smoothing": Neighbourhood(2.0, 2, 0.7, 3, 0.0),
    "links": Neighbourhood(2.0, 2, 0.3, 2, 0.5),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks and parts of a small graph."""
    for module in ("tile_files", "stored_table", "row_tasks", "resident"):
        monkeypatch.setattr(f"graphfcl.methods.blocks.{module}.BLOCK", 64)
    monkeypatch.setattr("graphfcl.methods.blocks.column_phases.ROWS", 48)


def whole(tables: NodeTables, table: Table) -> torch.Tensor:
    """Of the visible nodes."""
    return table.rows_at(tables.visible.rows(tables.visible.nodes))


def both(path: Path, *, masked: bool, words: bool = False) -> tuple[NodeTables, NodeTables]:
    folder = folder_of(random_graph(500, weighted=masked, words=words), path / "graph")
    mask = np.random.default_rng(3).random(500) < 0.8 if masked else None
    there = open_tables(visible_folder(folder, path / "work", mask), CPU, 0, unit=True)
    return there, open_tables(in_memory(folder, mask), CPU, 0, unit=True)


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_leading_vectors_span_the_same(tmp_path: Path, masked: bool, words: bool) -> None:
    actual, expected = (
        steps * scales
        for tables in both(tmp_path, masked=masked, words=words)
        for steps, scales in [tables.leading_vectors(8, 5)]
    )
    np.testing.assert_allclose(actual, expected, atol=0.01)  # one step of 8 bits


@pytest.mark.parametrize("masked", [False, True])
def test_the_frame_is_that_of_memory(tmp_path: Path, masked: bool) -> None:
    basis, actual = torch.eye(40)[:, :12], []
    for tables in both(tmp_path, masked=masked):
        own = tables.own(basis)
        blocks = Blocks.of(tables, [own, *tables.hops(own, (2,))], (1.0, 2.0))
        nodes = tables.visible.nodes[::2].copy()
        labels = np.random.default_rng(1).integers(0, 4, nodes.size)
        frame = blocks.frame(blocks.centres(), (nodes, labels), 5, 0.3)
        actual.append((frame, whole(tables, blocks.vectors(frame)).float()))
    (there, x), (here, expected) = actual
    for name, value in here.items():
        np.testing.assert_allclose(there[name], value, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(x, expected, atol=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("how", sorted(HOW))
def test_rounds_are_those_of_memory(tmp_path: Path, how: str, masked: bool) -> None:
    settings, actual = AnchorSettings(), []
    for tables in both(tmp_path, masked=masked):
        x = tables.table("x", _unit_features, 40, kind="<f2")
        nodes = tables.visible.nodes[::5].copy()
        labels = np.random.default_rng(1).integers(0, 6, nodes.size)
        anchors = Anchors.of(tables, x, (nodes, labels), 7)
        points = x.rows_at(tables.visible.rows(nodes))
        expected = Anchors.empty().plus(points, torch.from_numpy(labels), 7)
        np.testing.assert_allclose(anchors.sums, expected.sums, atol=1e-9)
        np.testing.assert_array_equal(anchors.counts, expected.counts)
        rounds = run_rounds(tables, x, anchors, HOW[how], settings)
        posterior = rounds.posteriors_at(tables.visible.rows(tables.visible.nodes))
        actual.append((rounds.directions, posterior))
    for there, here in zip(*actual, strict=True):
        np.testing.assert_allclose(there, here, atol=1e-5)


@pytest.mark.parametrize("features", [True, False])
@pytest.mark.parametrize("how", ["smoothing", "links"])
def test_rounds_that_change_nothing_keep_their_table(tmp_path: Path, how: str, features: bool) -> None:
    folder = folder_of(separate_rings(features=features), tmp_path / "graph")
    there = open_tables(visible_folder(folder, tmp_path / "work"), CPU, 0, unit=True)
    x = there.table("x", _unit_features, there.feature_count, kind="<f2")
    nodes = np.arange(100)
    anchors = Anchors.of(there, x, (nodes, nodes % 3), 3)
    rounds = run_rounds(there, x, anchors, HOW[how], AnchorSettings())
    np.testing.assert_allclose(rounds.posteriors_at(np.arange(270)).sum(dim=1), np.ones(270), atol=1e-5)
    left = {path.name.rsplit("-", 1)[0] for path in (tmp_path / "work").iterdir() if path.is_dir()}
    assert not left & {"near", "logits", "posterior", "linked"}


def _unit_features(block: RowBlock) -> torch.Tensor:
    features = block.features()
    assert isinstance(features, np.ndarray)
    return torch.from_numpy(features)
