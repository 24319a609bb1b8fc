"""Models on graph folders: what is removed, erased and fitted again is as in the same model in memory."""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphfcl import GraphClassifier, GraphFolder, InputError, ModelFolder, Resources
from graphfcl.graph.folder import write_folder
from tests.methods.blocks.samples import random_graph
from tests.production.graph.folder_models import HIDDEN, assert_same, fit, folder_graph, supports


def with_text_ids(path: Path, work: Path) -> GraphFolder:
    """The same graph with ids that are found among bytes."""
    ids = np.array([f"customer-{number:05d}" for number in range(400)], dtype=object)
    write_folder(replace(random_graph(400), node_ids=ids), path)
    return GraphFolder.open(path, Resources(work, 4 << 30))


@pytest.mark.parametrize("method", ["sgc-ridge", pytest.param("anchor", marks=pytest.mark.long)])
def test_fewer_nodes_and_edges_answer_as_in_memory(graph: GraphFolder, tmp_path: Path, method: str) -> None:
    memory, disk = fit(graph.loaded(), method), fit(graph, method)
    learned, ids = supports(graph), graph.node_ids
    part = graph.loaded().adjacency.tocoo()
    going = [learned[HIDDEN[0]][0], *learned[HIDDEN[1]], *ids[np.flatnonzero(graph.labels == 0)[:3]].tolist(), 5000]
    pairs = [(int(ids[a]), int(ids[b])) for a, b in zip(part.row[::20], part.col[::20], strict=True) if a < b]
    pairs = [pair for pair in pairs if not set(pair) & set(going)]
    for each in (memory, disk):
        each.learn(learned)
        each.grow(nodes=([5000, 5001], graph.features(0, 2), None), edges=([5000, 5000], [5001, pairs[0][0]]))
        each.remove_edges(*map(list, zip(*pairs, strict=True)))
        each.remove_nodes(going)
    assert disk.history[-1] | {"when": ""} == {
        key: value for key, value in memory.history[-1].items() if key not in ("accuracy", "warning", "within_reach")
    } | {"when": ""}
    assert disk.classes_ == memory.classes_
    assert sorted(disk.node_ids_.tolist()) == sorted(memory.node_ids_.tolist())
    assert (disk.graph_.node_count, disk.graph_.edge_count) == (memory.graph_.node_count, memory.graph_.edge_count)
    assert_same(memory, disk)
    assert disk.calibration_.threshold == pytest.approx(memory.calibration_.threshold, abs=1e-2)
    for each in (memory, disk):  # what left may come again
        each.add_nodes([5000], graph.features(3, 4)).add_edges([5000, pairs[1][0]], [5001, pairs[1][1]])
    assert_same(memory, disk)
    with pytest.raises(InputError, match="is not in the graph"):
        disk.remove_nodes([going[0]])
    with pytest.raises(InputError, match="there is no edge"):
        disk.remove_edges(*map(list, zip(*pairs[2:3], strict=True)))
    disk.save(tmp_path / "model")
    loaded = GraphClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(), disk.predict_proba())
    assert loaded.info(full=True).nodes == disk.graph_.node_count


@pytest.mark.parametrize("grown", [False, True])
def test_a_refit_is_as_in_memory(graph: GraphFolder, grown: bool) -> None:
    memory, disk = fit(graph.loaded()), fit(graph)
    results = []
    for each in (memory, disk):
        each.learn(supports(graph))
        if grown:
            each.grow(nodes=([5000], graph.features(0, 1), None), edges=([5000], [int(graph.node_ids[1])]))
            each.remove_nodes([int(graph.node_ids[7])])
        results.append(each.refit(anyway=True))
    one, other = (result.comparison for result in results)
    assert (one.nodes, other.nodes) == (one.nodes, one.nodes)
    assert other.before == pytest.approx(one.before, abs=0.02)
    assert other.after == pytest.approx(one.after, abs=0.02)
    assert disk.history[-1]["accuracy"]["validation"] == pytest.approx(memory.history[-1]["accuracy"]["validation"])
    assert_same(memory, disk)


def test_a_refit_takes_another_graph_folder(graph: GraphFolder, tmp_path: Path) -> None:
    model = fit(graph).learn(supports(graph), by="ann")
    gone = int(graph.node_ids[9])
    model.remove_nodes([gone])
    whole = graph.graph()
    kept = np.flatnonzero(whole.node_ids != gone)
    smaller = replace(
        whole,
        adjacency=whole.adjacency[kept][:, kept],
        features=whole.features[kept],
        labels=whole.labels[kept],
        node_ids=whole.node_ids[kept],
    )
    write_folder(smaller, tmp_path / "smaller")
    other = GraphFolder.open(tmp_path / "smaller", Resources(tmp_path / "other", 4 << 30))
    labels = {str(node): name for node, name in zip(*map(np.ndarray.tolist, labels_of(model)), strict=True)}
    model.refit(other, anyway=True)
    shutil.rmtree(tmp_path / "graph")
    assert sorted(model.node_ids_.tolist()) == sorted(smaller.node_ids.tolist())
    after = {str(node): name for node, name in zip(*map(np.ndarray.tolist, labels_of(model)), strict=True)}
    assert labels.items() <= after.items()
    assert "ann" in model.label_columns()["by"]
    assert model.predict().size == 399
    with pytest.raises(InputError, match="lacks node"):
        fit(folder_graph(tmp_path / "graph", tmp_path / "work")).refit(other)
    with pytest.raises(InputError, match="is on disk: give a graph folder"):
        model.refit(smaller)


def labels_of(model: GraphClassifier) -> tuple[np.ndarray, np.ndarray]:
    columns = model.label_columns()
    return columns["node"], columns["class"]


def test_scores_of_all_nodes_come_in_the_order_of_ids(graph: GraphFolder) -> None:
    memory, disk = fit(graph.loaded()), fit(graph)
    order = np.argsort(memory.node_ids_)
    other = np.argsort(disk.node_ids_)
    np.testing.assert_allclose(memory.all_scores()[order], disk.all_scores()[other], atol=1e-2)


def test_erased_nodes_leave_no_byte_in_the_model(tmp_path: Path) -> None:
    graph = with_text_ids(tmp_path / "graph", tmp_path / "model" / "work")
    folder = ModelFolder(tmp_path / "model")
    features = np.full((2, 40), 0.0, dtype=np.float32)
    features[:, 0] = (1.2345678e-3, 8.7654321e-3)
    fit(graph).save(folder.path)
    learned = supports(graph)
    with folder.editing() as model:
        model.learn(learned, by="ann")
    with folder.editing() as model:
        model.grow(nodes=(["walk-in-1", "walk-in-2"], features, None), edges=(["walk-in-1"], [learned[HIDDEN[0]][0]]))
    folder.load().calibrate()
    memory = fit(graph.loaded()).learn(learned, by="ann")
    memory.grow(nodes=(["walk-in-1", "walk-in-2"], features, None), edges=(["walk-in-1"], [learned[HIDDEN[0]][0]]))
    going = [learned[HIDDEN[0]][1], "walk-in-1"]
    done = folder.erase(going)
    assert (done.nodes, done.labels, done.in_graph_folder, done.remembering) == (2, 1, 1, ())
    secrets = [str(each).encode() for each in going] + [features[0, :1].tobytes()]
    for path in sorted(folder.path.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        assert not [secret for secret in secrets if secret in content], path
    memory.remove_nodes(going)
    assert_same(memory, folder.load())
    for version in range(1, done.version + 1):
        assert not set(going) & set(folder.load(version).node_ids_.tolist())
    assert folder.load(3).predict(["walk-in-2"]).size == 1


def test_a_model_travels_to_another_process(graph: GraphFolder) -> None:
    model = fit(graph).learn(supports(graph))
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict_proba(), model.predict_proba())
    assert [entry["what"] for entry in other.history] == ["fit", "learn"]
