"""ANCHOR answers the same in memory and on disk: probabilities, explanations, drawn vectors, calibration runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from graphfcl import Anchor, Graph, Stream, find_method, load_dataset
from tests.marks import some_first
from tests.methods.blocks.samples import folder_of
from tests.methods.blocks.streams import loaded_stream, scores_of_sessions, stream_of

WORDS = "synthetic:nodes=900,edges=3600,classes=9,features=300,signal=0.5"
NUMBERS = "synthetic:nodes=900,edges=3600,classes=9,features=60,kind=dense,signal=1.0"
QUICK: dict[str, Any] = {"rank": 256, "trial_rank": 48, "pretraining.epochs": 5, "head_steps": 40}
HOW: dict[str, dict[str, Any]] = {
    "chosen": {},
    "smoothing": {"hop_weight": 2.0, "hops": 2, "smoothing": 0.7, "smoothing_steps": 3, "links": 0.0},
    "links": {"hop_weight": 2.0, "hops": 3, "smoothing": 0.3, "smoothing_steps": 2, "links": 0.5},
}


def sample(name: str, *, weighted: bool) -> Graph:
    graph, _ = load_dataset(name)
    if not weighted:
        return graph
    half = sparse.csr_array(sparse.triu(graph.adjacency, 1))
    half.data = (np.random.default_rng(0).random(half.nnz) + 0.5).astype(np.float32)
    adjacency = sparse.csr_array(half + half.T)
    adjacency.sort_indices()
    return replace(graph, adjacency=adjacency)


def pair(path: Path, graph: Graph, changes: dict[str, Any]) -> list[tuple[Anchor, Stream]]:
    """The same graph on disk and in memory, and a learner for each."""
    folder = folder_of(graph, path / "graph")
    learners = [find_method("anchor").make({**QUICK, **changes}, seed=1) for _ in range(2)]
    streams = (stream_of(folder, path / "work"), loaded_stream(folder, path))
    return [(each, stream) for each, stream in zip(learners, streams, strict=True) if isinstance(each, Anchor)]


def assert_agree(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    """99.9 % of all probabilities to 2e-4, all to 5e-3, and every answer that leads by more than 0.02.

    The whitening is kept in 16 bits: entries that round the other way on disk move all vectors a little.
    """
    apart = []
    for one, other in zip(map(_probabilities, found), map(_probabilities, expected), strict=True):
        apart.append(np.abs(one - other).ravel())
        first, second = np.sort(other, axis=1)[:, :-3:-1].T
        changed = one.argmax(axis=1) != other.argmax(axis=1)
        assert not (changed & (first - second > 0.02)).any()
    every = np.concatenate(apart)
    assert (every <= 2e-4).mean() >= 0.999
    assert every.max() <= 5e-3


def _probabilities(scores: np.ndarray) -> np.ndarray:
    return softmax(scores.astype(np.float64), axis=1)


@pytest.mark.parametrize("how", some_first(sorted(HOW), ["chosen"]))
@pytest.mark.parametrize(
    ("name", "weighted"),
    [(NUMBERS, True), *(pytest.param(WORDS, each, marks=pytest.mark.long) for each in (False, True))],
)
@pytest.mark.parametrize("encoder", ["none", "hops"])
def test_probabilities_agree(tmp_path: Path, encoder: str, name: str, weighted: bool, how: str) -> None:
    changes = {**HOW[how], "encoder_input": encoder}
    (on_disk, there), (in_memory, here) = pair(tmp_path, sample(name, weighted=weighted), changes)
    actual, expected = scores_of_sessions(on_disk, there), scores_of_sessions(in_memory, here)
    assert on_disk.chosen() == in_memory.chosen()
    assert_agree(actual, expected)


@pytest.mark.parametrize("how", ["smoothing", "links"])
def test_explanations_and_drawn_vectors_agree(tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {**HOW[how], "encoder_input": "none"}
    (on_disk, there), (in_memory, here) = pair(tmp_path, sample(WORDS, weighted=True), changes)
    for learner, stream in ((on_disk, there), (in_memory, here)):
        learner.fit(stream.base)
        learner.learn(stream.session(1))
        learner.scores(stream.evaluation_graph(1), stream.base.validation[:1])

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a pass over the graph")

    for module in ("row_tasks", "column_phases"):
        monkeypatch.setattr(f"graphfcl.methods.blocks.{module}.run_tasks", fail)
    visible, same = there.evaluation_graph(1), here.evaluation_graph(1)
    nodes = here.base.validation[:8]
    one, other = on_disk.vectors_to_draw(visible, nodes), in_memory.vectors_to_draw(same, nodes)
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(one, other, atol=2e-3)
    for node in nodes.tolist():
        actual, expected = on_disk.explain(visible, node, top=6), in_memory.explain(same, node, top=6)
        assert actual is not None
        assert expected is not None
        assert [column for column, _ in actual.classes][:2] == [column for column, _ in expected.classes][:2]
        np.testing.assert_allclose(list(actual.blocks.values()), list(expected.blocks.values()), atol=0.05)
        for each, as_before in ((actual.features, expected.features), (actual.around, expected.around)):
            np.testing.assert_allclose(sorted(v for _, v in each), sorted(v for _, v in as_before), atol=0.01)
        assert {number for number, *_ in actual.neighbours} == {number for number, *_ in expected.neighbours}
        shares, again = (sorted(share for _, share, *_ in each.neighbours) for each in (actual, expected))
        np.testing.assert_allclose(shares, again, rtol=1e-5)
        adds, again = (sorted(add for *_, add in each.neighbours) for each in (actual, expected))
        np.testing.assert_allclose(adds, again, atol=0.01)


def test_rows_scores_without_and_calibration_run_agree(tmp_path: Path) -> None:
    changes = {**HOW["smoothing"], "encoder_input": "hops"}
    (on_disk, there), (in_memory, here) = pair(tmp_path, sample(NUMBERS, weighted=True), changes)
    rows, without, calibrated = [], [], []
    for learner, stream in ((on_disk, there), (in_memory, here)):
        learner.fit(stream.base)
        base, visible = stream.base, stream.base.visible_graph
        train = (base.train, base.train_labels)
        some = (base.train[:9], base.train_labels[:9])
        rows.append(learner.embeddings_of_rows(visible, visible.rows(base.train[:9])).astype(np.float32))
        none = (base.train[:0], base.train_labels[:0])
        left_out = learner.scores_without(visible, some, train, none)
        assert left_out is not None
        without.append(left_out)
        other = learner.calibration_learner()
        assert other is not None
        other.fit(base)
        calibrated.append(other.scores(visible, base.validation))
    np.testing.assert_allclose(rows[0], rows[1], atol=2e-3)
    np.testing.assert_allclose(without[0], without[1], atol=0.05)
    assert_agree([calibrated[0]], [calibrated[1]])
