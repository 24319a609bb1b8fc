"""Models on graph folders that stay on the disk: the same answers as in memory, and changes without a pass."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import graphfcl.production.graph.folder_model_graph as folder_model_graph
import graphfcl.production.model.state as model_state
from graphfcl import GraphClassifier, GraphFolder, InputError, ModelFolder
from graphfcl.production import FolderUse
from tests.production.graph.folder_models import HIDDEN, assert_same, fit, folder_graph, supports


@pytest.mark.long
@pytest.mark.parametrize(("method", "words"), [("sgc-ridge", True), ("anchor", False)])
def test_answers_are_those_of_the_same_model_in_memory(tmp_path: Path, method: str, words: bool) -> None:
    graph = folder_graph(tmp_path / "graph", tmp_path / "work", words=words)
    memory, disk = fit(graph.loaded(), method), fit(graph, method)
    assert_same(memory, disk)
    assert disk.history[-1]["accuracy"]["validation"] == pytest.approx(memory.history[-1]["accuracy"]["validation"])
    for each in (memory, disk):
        each.learn(supports(graph))
    assert_same(memory, disk)
    ends = graph.node_ids[:4].tolist()
    for each in (memory, disk):
        each.grow(
            nodes=([5000, 5001], graph.features(0, 2), None),
            edges=([5000, 5001, *ends], [*ends, 5000, 5001], None),
        )
    assert_same(memory, disk)
    for each in (memory, disk):
        each.unlearn(supports(graph)[HIDDEN[0]][:2]).merge(*HIDDEN)
    assert_same(memory, disk)
    assert disk.history[-1]["exact"]


def test_edges_alone_change_what_is_known_of_labelled_nodes(graph: GraphFolder) -> None:
    memory, disk = fit(graph.loaded()), fit(graph)
    learned = supports(graph)
    others = graph.node_ids[np.flatnonzero(graph.labels == 0)[:10]].tolist()
    source = [node for nodes in learned.values() for node in nodes for _ in others]
    for each in (memory, disk):
        each.learn(learned).add_edges(source, others * (len(source) // len(others)))
    assert_same(memory, disk)


def test_changes_make_no_pass_and_the_next_question_does(
    model: GraphClassifier, graph: GraphFolder, no_passes: Callable[[], None]
) -> None:
    before = model.predict()
    no_passes()
    model.learn(supports(graph))
    assert set(HIDDEN) < set(model.classes_)
    model.add_edges(graph.node_ids[:2].tolist(), graph.node_ids[2:4].tolist())
    assert "accuracy" not in model.history[-1]
    assert len(before) == 400
    with pytest.raises(AssertionError, match="a pass"):
        model.predict()


def test_a_saved_model_answers_from_the_disk_alone(
    model: GraphClassifier, graph: GraphFolder, tmp_path: Path, no_passes: Callable[[], None]
) -> None:
    model.learn(supports(graph))
    found = model.calibrate()
    assert found is not None
    assert found.accuracy["leave_one_out"] is not None
    model.save(tmp_path / "model")
    no_passes()
    loaded = GraphClassifier.load(tmp_path / "model")
    assert loaded.has_answers
    assert loaded.calibrate() is None
    asked = graph.node_ids[[5, 3, 300]].tolist()
    every = model.prediction_columns()
    some = loaded.prediction_columns(asked)
    places = [every["node"].tolist().index(node) for node in asked]
    for name in ("class", "probability", "unknown_score"):
        np.testing.assert_array_equal(some[name], every[name][places])


def test_a_loss_is_said_by_the_pass_that_measures_it(model: GraphClassifier, graph: GraphFolder) -> None:
    model.max_loss = -1.0
    assert model.calibrate() is None
    model.learn(supports(graph))
    found = model.calibrate()
    assert found is not None
    assert "points of balanced accuracy" in found.warning


def test_versions_and_growth_go_through_the_folder(model: GraphClassifier, graph: GraphFolder, tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path / "model")
    model.save(folder.path)
    first = model.predict()
    with folder.editing() as changed:
        changed.learn(supports(graph))
    with folder.editing() as changed:
        changed.grow(nodes=([7000], graph.features(9, 10), None), edges=([7000], graph.node_ids[9:10].tolist(), None))
    with folder.editing() as changed:
        changed.add_edges([7000], graph.node_ids[10:11].tolist())
    loaded = folder.load()
    assert (loaded.graph_.node_count, loaded.graph_.edge_count) == (401, graph.edge_count + 2)
    assert loaded.predict([7000])[0] in loaded.classes_
    np.testing.assert_array_equal(loaded.predict(), changed.predict())
    assert folder.info().nodes == 401
    folder.rollback(1)
    np.testing.assert_array_equal(folder.load().predict(), first)
    assert [entry["what"] for entry in folder.history()] == ["fit", "learn", "grow", "grow", "rollback"]


def test_new_nodes_and_edges_are_checked(model: GraphClassifier, graph: GraphFolder) -> None:
    known = int(graph.node_ids[0])
    features = graph.features(0, 1)
    for change, said in [
        (lambda: model.add_nodes([known], graph.features(1, 2)), "in the graph already"),
        (lambda: model.add_nodes(["x"], features), "not a whole number"),
        (lambda: model.add_nodes([9999], features[:, :3]), "features of shape"),
        (lambda: model.add_edges([known], [123456]), "not in the graph"),
        (lambda: model.learn({"new": [123456]}), "not in the graph"),
    ]:
        with pytest.raises(InputError, match=said):
            change()
    assert len(model.history) == 1


def test_a_method_that_needs_memory_is_refused(graph: GraphFolder) -> None:
    with pytest.raises(InputError, match="needs the whole graph in memory"):
        GraphClassifier("proto-gcn").fit(graph)


def test_answers_about_all_nodes_come_in_the_order_of_the_source(
    model: GraphClassifier, graph: GraphFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [*graph.graph().node_ids.tolist(), 5000]
    assert wanted[:-1] != graph.node_ids.tolist()
    model.add_nodes([5000], graph.features(0, 1))
    found = model.prediction_columns()
    assert found["node"].tolist() == wanted == model.node_ids_.tolist()
    monkeypatch.setattr(model_state, "AT_A_TIME", 64)  # several passes, of several blocks
    monkeypatch.setattr(folder_model_graph, "BLOCK", 64)
    monkeypatch.setattr(folder_model_graph, "SHARE", (4 << 30) // (100 * (4 * 7 + 16)))
    parts = list(model.predictions_in_blocks())
    assert len(parts) == 7
    for name, values in found.items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), values)
    some = model.prediction_columns(wanted[::-7])
    for name, values in found.items():
        np.testing.assert_array_equal(some[name], values[::-7])


def test_answers_are_those_of_a_full_pass_at_every_age(
    model: GraphClassifier, graph: GraphFolder, tmp_path: Path
) -> None:
    folder = ModelFolder(tmp_path / "model")
    model.save(folder.path)
    one, two = HIDDEN
    ends = graph.node_ids[:6].tolist()
    for change in (
        lambda changed: changed.learn({one: supports(graph)[one]}),
        lambda changed: changed.add_edges(ends[:3], ends[3:]),
        lambda changed: changed.learn({two: supports(graph)[two]}),
    ):
        with folder.editing() as changed:
            change(changed)
        folder.load().calibrate()
    folder.rollback(2)
    with folder.editing() as changed:
        changed.learn({two: supports(graph)[two]})
    for version in (2, 3, 4, 5, 6):
        used = GraphClassifier.load(folder.path, version=version, use=FolderUse(work=tmp_path / "work"))
        fresh = GraphClassifier.load(folder.path, version=version, use=FolderUse(work=tmp_path / f"fresh {version}"))
        assert fresh.predict_proba().tobytes() == used.predict_proba().tobytes()
        assert fresh.unknown_scores().tobytes() == used.unknown_scores().tobytes()


def test_explanations_are_those_in_memory(model: GraphClassifier, graph: GraphFolder) -> None:
    memory = fit(graph.loaded())
    for node in graph.node_ids[::79].tolist():
        found, expected = model.explain(node, top=4), memory.explain(node, top=4)
        assert [each["class"] for each in found["classes"]] == [each["class"] for each in expected["classes"]]
        assert found["blocks"] == pytest.approx(expected["blocks"], abs=1e-3)
        assert found["around"] == pytest.approx(expected["around"], abs=1e-3)
        assert [each["node"] for each in found["neighbours"]] == [each["node"] for each in expected["neighbours"]]
