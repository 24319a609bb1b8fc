"""Closed forms on a graph folder: as in memory, whichever rows are visible, and the same to the byte."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graphfcl import InputError, Resources, evaluate, find_method
from graphfcl.evaluation.evaluate import scores_in_blocks
from graphfcl.methods.blocks.column_phases import STREAMED
from tests.methods.blocks.samples import ROOMY, folder_of, random_graph
from tests.methods.blocks.streams import loaded_stream, scores_of_sessions, stream_of

METHODS: dict[str, dict[str, Any]] = {
    "sgc-ridge": {"rank": 24},
    "ranpac": {"rank": 16, "width": 40},
    "teen": {"rank": 24},
    "fecam": {"rank": 6},
}


def assert_near(found: Any, expected: Any) -> None:
    """Vectors are rounded to 16 bits: where the last digit before falls on the other side, a score moves a little."""
    assert (np.isneginf(found) == np.isneginf(expected)).all()
    shown = np.isfinite(expected)
    size = max(1.0, float(np.abs(expected[shown]).max()))
    apart = np.abs(found[shown] - expected[shown]) / size
    assert np.quantile(apart, 0.99) < 1e-5
    assert apart.max() < 2e-3


@pytest.mark.parametrize(
    ("name", "track", "words"),
    [
        *(("sgc-ridge", track, words) for track in ("open", "transductive", "isolated") for words in (False, True)),
        *((name, "open", words) for name, words in (("ranpac", False), ("teen", True), ("fecam", False))),
    ],
)
def test_scores_are_those_of_memory(tmp_path: Path, name: str, track: str, words: bool) -> None:
    folder = folder_of(random_graph(600, words=words), tmp_path / "graph")
    on_disk, in_memory = (find_method(name).make(METHODS[name], seed=1) for _ in range(2))
    actual = scores_of_sessions(on_disk, stream_of(folder, tmp_path / "work", track=track))
    expected = scores_of_sessions(in_memory, loaded_stream(folder, tmp_path, track))
    assert on_disk.chosen() == in_memory.chosen()
    for one, other in zip(actual, expected, strict=True):
        assert_near(one, other)


@pytest.mark.parametrize("name", METHODS)
def test_what_production_needs_is_that_of_memory(tmp_path: Path, name: str) -> None:
    """Restated labels, scores without a node, vectors of some nodes, and the learner of a calibration run."""
    folder = folder_of(random_graph(600), tmp_path / "graph")
    streams = (stream_of(folder, tmp_path / "work"), loaded_stream(folder, tmp_path))
    actual = []
    for stream in streams:
        learner = find_method(name).make(METHODS[name], seed=1)
        scores_of_sessions(learner, stream)
        base, visible, session = stream.base, stream.evaluation_graph(1), stream.session(1)
        train, supports = (base.train, base.train_labels), (session.supports, session.support_labels)
        nodes = np.sort(session.supports)[::2]
        results = [learner.vectors_to_draw(visible, nodes)]
        assert learner.restate(visible, train, supports)
        results.append(learner.scores(visible, nodes))
        left_out = (supports[0][:2], supports[1][:2])
        results.append(learner.scores_without(visible, left_out, train, supports))
        other = learner.calibration_learner()
        assert other is not None
        other.fit(base)
        assert other.chosen() == learner.chosen()
        results.append(other.scores(base.visible_graph, nodes))
        actual.append(results)
    for one, other_one in zip(*actual, strict=True):
        assert one.shape == other_one.shape
        assert_near(one, other_one)


def test_an_encoder_needs_the_graph_in_memory(tmp_path: Path) -> None:
    folder = folder_of(random_graph(600), tmp_path / "graph")
    learner = find_method("ranpac").make({**METHODS["ranpac"], "features": "encoder"})
    with pytest.raises(InputError, match="features=encoder needs the graph in memory"):
        learner.fit(stream_of(folder, tmp_path / "work").base)


@pytest.mark.long
def test_workers_and_memory_change_no_byte(tmp_path: Path) -> None:
    folder = folder_of(random_graph(600), tmp_path / "graph")
    memory = Resources(tmp_path, 0).needed_for(STREAMED + 600 * (8 * 4 * 2 + 8), 600)
    actual = []
    for name, workers, limit in (("a", 1, ROOMY), ("b", 1, memory), ("c", 2, ROOMY)):
        learner = find_method("sgc-ridge").make({"rank": 24}, seed=1)
        stream = stream_of(folder, tmp_path / name, workers=workers, memory=limit)
        learner.fit(stream.base)
        scores = learner.scores(stream.base.visible_graph, np.arange(600))
        tensors = {key: value.numpy().tobytes() for key, value in learner.state().tensors.items()}
        actual.append((scores.tobytes(), tensors))
    assert actual[0] == actual[1] == actual[2]


def test_an_evaluation_finds_the_same(tmp_path: Path) -> None:
    folder = folder_of(random_graph(600), tmp_path / "graph")
    method = find_method("sgc-ridge")
    one = evaluate(method.make({"rank": 24}, seed=1), stream_of(folder, tmp_path / "work"))
    other = evaluate(method.make({"rank": 24}, seed=1), loaded_stream(folder, tmp_path))
    assert [each.tolist() for each in one.confusions] == [each.tolist() for each in other.confusions]


def test_a_second_run_computes_nothing_again(tmp_path: Path) -> None:
    folder = folder_of(random_graph(600), tmp_path / "graph")
    runs = []
    for _ in range(2):
        learner = find_method("sgc-ridge").make({"rank": 24}, seed=1)
        learner.fit(stream_of(folder, tmp_path / "work").base)
        runs.append(
            {path: path.stat().st_mtime_ns for path in sorted((tmp_path / "work").rglob("*")) if path.is_file()}
        )
    assert runs[0] == runs[1]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1000), hops=st.integers(1, 3))
@example(seed=0, hops=2)  # no weights, no row hidden
@example(seed=3, hops=2)  # weights, no row hidden
def test_what_lies_around_a_few_nodes_is_cut_right(
    tmp_path_factory: pytest.TempPathFactory, seed: int, hops: int
) -> None:
    from tests.methods.blocks.samples import in_memory, visible_folder

    path = tmp_path_factory.mktemp("around")
    folder = folder_of(random_graph(120, weighted=bool(seed % 2), seed=seed), path / "graph")
    random = np.random.default_rng(seed)
    mask = random.random(120) < 0.8 if seed % 3 else None
    visible, whole = visible_folder(folder, path / "work", mask), in_memory(folder, mask)
    nodes = random.choice(whole.nodes, 5, replace=False)
    near = visible.around(nodes, hops)
    far, expected = near.normalised[near.rows(nodes)], whole.normalised[whole.rows(nodes)]
    for _ in range(hops - 1):
        far, expected = far @ near.normalised, expected @ whole.normalised
    np.testing.assert_allclose(far @ near.features, expected @ whole.features, atol=1e-5)


def test_nodes_are_asked_about_in_the_order_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(random_graph(600), tmp_path / "graph")
    stream = stream_of(folder, tmp_path / "work", track="transductive")
    learner = find_method("sgc-ridge").make({}, seed=1)
    learner.fit(stream.base)
    monkeypatch.setattr(import_module("graphfcl.evaluation.evaluate"), "LARGEST_BLOCK", 50)
    asked = [nodes for nodes, _ in scores_in_blocks(learner, stream, 0, stream.classes_seen(0))]
    assert max(nodes.size for nodes in asked) <= 50
    np.testing.assert_array_equal(np.sort(np.concatenate(asked)), stream.evaluation_numbers(0))
    assert (np.diff(stream.node_of_number[np.concatenate(asked)]) > 0).all()
