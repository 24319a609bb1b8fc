"""Each phase of ANCHOR on a graph folder against the function that computes it in memory."""

from pathlib import Path

import numpy as np
import pytest
import torch

from graphfcl.methods.anchor.class_sums import Anchors, whitening
from graphfcl.methods.anchor.frame_on_disk import Blocks, frame_of, sums_of, vectors_of
from graphfcl.methods.anchor.neighbours import Surroundings
from graphfcl.methods.anchor.rounds_on_disk import posterior_rows, transduced
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.vectors import column_means, joined_rows, points_of_table
from graphfcl.methods.blocks.folder_inputs import FolderInputs
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.shared.untrained_features import leading_vectors, prepare
from graphfcl.nn import GraphInputs
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
    for module in ("tile_files", "stored_table", "row_phases"):
        monkeypatch.setattr(f"graphfcl.methods.blocks.{module}.BLOCK", 64)
    monkeypatch.setattr("graphfcl.methods.blocks.column_phases.ROWS", 48)


def whole(table: StoredTable) -> torch.Tensor:
    return torch.from_numpy(np.concatenate([table.block(start) for start, _ in table.blocks]))


def both(path: Path, *, masked: bool, words: bool = False) -> tuple[FolderInputs, GraphInputs]:
    folder = folder_of(random_graph(500, weighted=masked, words=words), path / "graph")
    mask = np.random.default_rng(3).random(500) < 0.8 if masked else None
    there = FolderInputs(visible_folder(folder, path / "work", mask), 0, unit=True)
    here = in_memory(folder, mask)
    return there, GraphInputs(here.with_features(prepare(here.features, 0)), CPU)


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_leading_vectors_span_the_same(tmp_path: Path, masked: bool, words: bool) -> None:
    there, here = both(tmp_path, masked=masked, words=words)
    found, expected = (steps * scales for steps, scales in (there.leading_vectors(8, 5), leading_vectors(here, 8, 5)))
    np.testing.assert_allclose(found, expected, atol=0.01)  # one step of 8 bits


@pytest.mark.parametrize("masked", [False, True])
def test_the_frame_is_that_of_memory(tmp_path: Path, masked: bool) -> None:
    there, here = both(tmp_path, masked=masked)
    own = there.own(torch.eye(40)[:, :12])
    (around,) = there.hops(own, (2,))
    nodes = here.visible.nodes[::2].copy()
    labels = np.random.default_rng(1).integers(0, 4, nodes.size)
    weights, frame = (1.0, 2.0), frame_of(there, Blocks((own, around), (1.0, 2.0), "<f4"), (nodes, labels), 5, 0.3)

    shown = torch.from_numpy(here.visible.nodes)
    table = torch.cat([whole(own), whole(around)], dim=1)[shown]
    centres = column_means(table).split([12, 12])
    expected = {f"centre.{place}": centre for place, centre in enumerate(centres)}
    vectors = joined_rows(table, torch.from_numpy(here.visible.rows(nodes)), expected, weights)
    expected["middle"], expected["whitening"] = whitening(vectors, torch.from_numpy(labels), 5, 0.3)
    for name, value in expected.items():
        np.testing.assert_allclose(frame[name], value, rtol=2e-4, atol=1e-5)
    found = whole(vectors_of(there, Blocks((own, around), weights, "<f4"), expected))[shown]
    assert torch.equal(found, points_of_table(table, expected, weights))


@pytest.mark.long
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("how", sorted(HOW))
def test_rounds_are_those_of_memory(tmp_path: Path, how: str, masked: bool) -> None:
    there, here = both(tmp_path, masked=masked)
    vectors = there.rows.table("x", _unit_features, 40, kind="<f2")
    shown = torch.from_numpy(here.visible.nodes)
    nodes = here.visible.nodes[::5].copy()
    labels = np.random.default_rng(1).integers(0, 6, nodes.size)
    anchors, embeddings = sums_of(there, vectors, (nodes, labels), 7), whole(vectors)[shown]
    expected = Anchors.empty().plus(whole(vectors)[torch.from_numpy(nodes)], torch.from_numpy(labels), 7)
    np.testing.assert_allclose(anchors.sums, expected.sums, atol=1e-9)
    np.testing.assert_array_equal(anchors.counts, expected.counts)

    settings = AnchorSettings()
    rounds = transduced(there, vectors, anchors, HOW[how], settings)
    posterior, directions = expected.transduced(embeddings, Surroundings(here, HOW[how]), settings)
    np.testing.assert_allclose(rounds.directions, directions, atol=1e-5)
    found = posterior_rows(vectors, rounds, anchors, here.visible.nodes, settings.temperature)
    np.testing.assert_allclose(found, posterior, atol=1e-5)


@pytest.mark.parametrize("features", [True, False])
@pytest.mark.parametrize("how", ["smoothing", "links"])
def test_rounds_that_change_nothing_keep_their_table(tmp_path: Path, how: str, features: bool) -> None:
    folder = folder_of(separate_rings(features=features), tmp_path / "graph")
    there = FolderInputs(visible_folder(folder, tmp_path / "work"), 0, unit=True)
    vectors = there.rows.table("x", _unit_features, there.feature_count, kind="<f2")
    nodes = np.arange(100)
    anchors = sums_of(there, vectors, (nodes, nodes % 3), 3)
    rounds = transduced(there, vectors, anchors, HOW[how], AnchorSettings())
    found = posterior_rows(vectors, rounds, anchors, np.arange(270), 1.0)
    np.testing.assert_allclose(found.sum(dim=1), np.ones(270), atol=1e-5)


def _unit_features(block) -> torch.Tensor:  # type: ignore[no-untyped-def]
    return torch.from_numpy(block.features())
