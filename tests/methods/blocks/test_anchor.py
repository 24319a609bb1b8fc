"""ANCHOR on a graph folder: as in memory with every way to listen to neighbours, and the same to the byte."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

from graphfcl import Resources, find_method
from graphfcl.methods.blocks.column_phases import STREAMED
from tests.marks import some_first
from tests.methods.blocks.samples import ROOMY, folder_of, random_graph, separate_rings
from tests.methods.blocks.streams import loaded_stream, scores_of_sessions, stream_of

QUICK: dict[str, Any] = {
    "rank": 24,
    "trial_rank": 16,
    "hidden": 16,
    "size": 8,
    "pretraining.epochs": 2,
    "head_steps": 10,
}
PLAIN: dict[str, Any] = {"hop_weight": 2.0, "hops": 2, "smoothing": 0.0, "smoothing_steps": 2, "links": 0.0}


@pytest.mark.parametrize("how", some_first(["plain", "smoothing", "links", "chosen"], ["smoothing"]))
@pytest.mark.parametrize(("track", "words"), [("open", True), ("transductive", False), ("isolated", False)])
def test_scores_are_those_of_memory(tmp_path: Path, track: str, words: bool, how: str) -> None:
    folder = folder_of(random_graph(600, words=words, weighted=not words), tmp_path / "graph")
    fixed = {"plain": (0.0, 0.0), "smoothing": (0.7, 0.0), "links": (0.3, 0.5)}
    changes: dict[str, Any] = {**QUICK, "encoder_input": "none" if how == "chosen" else "hops"}
    if how != "chosen":
        changes |= PLAIN | dict(zip(("smoothing", "links"), fixed[how], strict=True))
    method = find_method("anchor")
    on_disk, in_memory = (method.make(changes, seed=1) for _ in range(2))
    actual = scores_of_sessions(on_disk, stream_of(folder, tmp_path / "work", track=track))
    expected = scores_of_sessions(in_memory, loaded_stream(folder, tmp_path, track))
    assert on_disk.chosen() == in_memory.chosen()
    for one, other in zip(actual, expected, strict=True):
        apart = np.abs(np.exp(log_softmax(one, 1)) - np.exp(log_softmax(other, 1)))
        # x is rounded to 16 bits: where the last digit before falls on the other side, an answer moves a little.
        assert apart.mean() < 3e-5
        assert np.median(apart.max(axis=1)) < 1e-5
        assert apart.max() < 2e-2


def test_classes_that_nothing_confuses_are_no_error(tmp_path: Path) -> None:
    folder = folder_of(separate_rings(), tmp_path / "graph")
    changes = {**QUICK, **PLAIN, "smoothing": 0.7, "encoder_input": "none"}
    on_disk, in_memory = (find_method("anchor").make(changes, seed=1) for _ in range(2))
    actual = scores_of_sessions(on_disk, stream_of(folder, tmp_path / "work"))
    for one, other in zip(actual, scores_of_sessions(in_memory, loaded_stream(folder, tmp_path)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


@pytest.mark.long
def test_workers_and_memory_change_no_byte(tmp_path: Path) -> None:
    folder = folder_of(random_graph(600), tmp_path / "graph")
    memory = Resources(tmp_path, 0).needed_for(STREAMED + 600 * (8 * 4 * 3 + 8), 600)
    actual = []
    for name, workers, limit in (("a", 1, ROOMY), ("b", 1, memory), ("c", 2, ROOMY)):
        learner = find_method("anchor").make({**QUICK, **PLAIN}, seed=1)
        stream = stream_of(folder, tmp_path / name, workers=workers, memory=limit)
        learner.fit(stream.base)
        scores = learner.scores(stream.base.visible_graph, np.arange(600))
        tensors = {key: value.numpy().tobytes() for key, value in learner.state().tensors.items()}
        actual.append((scores.tobytes(), tensors))
    assert actual[0] == actual[1] == actual[2]


def test_a_large_graph_hears_neighbours_as_it_is_told_to(tmp_path: Path) -> None:
    folder = folder_of(random_graph(600), tmp_path / "graph")
    stream = stream_of(folder, tmp_path / "work")
    fixed = {"smoothing": 0.7, "links": 0.3}
    learner = find_method("anchor").make({**QUICK, "whole_up_to": 100, **fixed}, seed=1)
    learner.fit(stream.base)
    chosen = learner.chosen()
    assert {name: chosen[name] for name in fixed} == fixed
    quiet = find_method("anchor").make({**QUICK, "whole_up_to": 100, "smoothing": 0.0, "links": 0.0}, seed=1)
    quiet.fit(stream.base)
    assert quiet.chosen()["encoder_input"] == "hops"
    nodes = np.arange(600)
    loud, silent = (each.scores(stream.base.visible_graph, nodes) for each in (learner, quiet))
    assert not np.array_equal(loud, silent)


@pytest.mark.long
def test_a_saved_learner_answers_the_same(tmp_path: Path) -> None:
    folder = folder_of(random_graph(600), tmp_path / "graph")
    stream = stream_of(folder, tmp_path / "work")
    for kind in ("hops", "none"):
        method = find_method("anchor")
        learner, other = (method.make({**QUICK, "encoder_input": kind}, seed=1) for _ in range(2))
        learner.fit(stream.base)
        other.load_state(learner.state())
        other.learn(stream.session(1))
        learner.learn(stream.session(1))
        visible, nodes = stream.evaluation_graph(1), np.arange(600)
        assert learner.scores(visible, nodes).tobytes() == other.scores(visible, nodes).tobytes()
        assert other.chosen() == learner.chosen()


def test_a_session_reads_neighbourhoods_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(random_graph(600), tmp_path / "graph")
    stream = stream_of(folder, tmp_path / "work")
    learner = find_method("anchor").make(QUICK, seed=1)
    learner.fit(stream.base)

    def fail(*_: object) -> None:
        raise AssertionError("a phase")

    with monkeypatch.context() as patched:
        for phase in ("row_tasks", "column_phases"):
            patched.setattr(f"graphfcl.methods.blocks.{phase}.run_tasks", fail)
        learner.learn(stream.session(1))
    assert learner.scores(stream.evaluation_graph(1), np.arange(600)).shape == (600, len(learner.classes_))


@pytest.mark.parametrize("method", ["anchor", "sgc-ridge"])
@pytest.mark.parametrize("track", ["open", "transductive"])
def test_one_session_stays_on_the_disk(tmp_path: Path, method: str, track: str) -> None:
    folder = folder_of(random_graph(600), tmp_path / "graph")
    stream, work = stream_of(folder, tmp_path / "work", track=track), tmp_path / "work"
    learner = find_method(method).make({**QUICK, **PLAIN} if method == "anchor" else {}, seed=1)

    def asked(session: int) -> list[str]:
        visible = stream.evaluation_graph(session)
        first = learner.scores(visible, visible.nodes)
        assert learner.scores(visible, visible.nodes).tobytes() == first.tobytes()
        return sorted(
            path.name.rsplit("-", 1)[0] for path in work.iterdir() if path.is_dir() and "label" not in path.name
        )

    learner.fit(stream.base)
    actual = [asked(0)]
    for number in (1, 2):
        learner.learn(stream.session(number))
        actual.append(asked(number))
    for names in actual:
        assert len(set(names)) == len(names)  # nothing is there of two sessions
