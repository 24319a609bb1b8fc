"""TEM against plain loops, and what it promises."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize

from graphfcl import (
    BaseSession,
    GraphClassifier,
    InputError,
    Protocol,
    Session,
    Stream,
    VisibleGraph,
    find_method,
    load_dataset,
    make_stream,
)
from graphfcl.methods.shared.exemplar_selection import first_of_each_class
from graphfcl.methods.shared.memories import arrival_times
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions
from graphfcl.methods.tem import Tem, cover

GRAPH = "synthetic:nodes=400,edges=1600,classes=9,features=80,signal=0.7,skew=0.5"
QUICK: dict[str, Any] = {"rank": 8, "budget": 6, "penalties": (0.1,)}


def stream_of(**changes: Any) -> Stream:
    return make_stream(load_dataset(GRAPH)[0], Protocol(base=3, pseudo_novel=3, way=1, shot=4), seed=0, **changes)


def fitted(base: BaseSession, **changes: Any) -> Tem:
    learner = find_method("tem").make({**QUICK, **changes}, seed=0)
    assert isinstance(learner, Tem)
    learner.fit(base)
    return learner


def head_by_loop(rows: np.ndarray, labels: np.ndarray, classes: int, penalty: float) -> np.ndarray:
    """The minimum of L = Σ_v ce_v / (C n_c) + λ/2 ‖W‖², node by node, in 64 bits."""
    sizes = np.bincount(labels, minlength=classes)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(-1, classes)
        value, gradient = penalty / 2 * (flat**2).sum(), penalty * weights
        for row, label in zip(rows, labels, strict=True):
            chances = np.exp(row @ weights)
            chances /= chances.sum()
            share = 1 / (sizes[label] * classes)
            value -= share * np.log(chances[label])
            gradient += share * np.outer(row, chances - np.eye(classes)[label])
        return value, gradient.ravel()

    start = np.zeros(rows.shape[1] * classes)
    return optimize.minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-5}).x.reshape(-1, classes)


def vectors(learner: Tem, visible: VisibleGraph, nodes: np.ndarray, own: float = 1.0) -> np.ndarray:
    found = learner.embeddings_of_rows(visible, visible.rows(nodes)).astype(float)
    size = found.shape[1] // 2
    return np.concatenate([own * found[:, :size], 2 * found[:, size:]], axis=1)


@pytest.mark.parametrize("own", [True, False])
def test_a_session_trains_on_the_memory_as_a_loop_does(own: bool) -> None:
    stream = stream_of()
    learner = fitted(stream.base, own=own)
    session = stream.session(1)
    learner.learn(session)
    visible, memory = session.visible_graph, learner.memory
    assert np.bincount(memory.labels).tolist() == [6] * 6 + [4]
    assert set(session.supports) <= set(memory.nodes)
    weights = head_by_loop(vectors(learner, visible.loaded(), memory.nodes, own), memory.labels, 7, 0.1)
    found = learner.scores(visible, visible.nodes)
    wanted = vectors(learner, visible.loaded(), visible.nodes, own) @ weights
    np.testing.assert_allclose(found, wanted, atol=2e-3)


def test_session_0_trains_on_all_of_its_train_nodes() -> None:
    base = stream_of().base
    learner = fitted(base)
    visible = base.visible_graph
    weights = head_by_loop(vectors(learner, visible.loaded(), base.train), base.train_labels, 6, 0.1)
    found = learner.scores(visible, visible.nodes)
    np.testing.assert_allclose(found, vectors(learner, visible.loaded(), visible.nodes) @ weights, atol=2e-3)


def test_vectors_are_made_again_on_the_graph_of_each_session() -> None:
    """They would go stale as edges arrive."""
    stream = stream_of()
    learner = fitted(stream.base)
    for number in (1, 2):
        learner.learn(stream.session(number))
    assert learner.memory.vectors is None
    visible = stream.session(2).visible_graph
    now = vectors(learner, visible.loaded(), learner.memory.nodes)
    of_base = learner.memory.nodes[learner.memory.labels < 6]
    before = vectors(learner, stream.base.visible_graph.loaded(), of_base)
    assert np.abs(now[learner.memory.labels < 6] - before).max() > 0.1
    weights = head_by_loop(now, learner.memory.labels, 8, 0.1)
    found = learner.scores(visible, visible.nodes)
    np.testing.assert_allclose(found, vectors(learner, visible.loaded(), visible.nodes) @ weights, atol=2e-3)


def test_isolated_keeps_the_vectors_of_the_graph_they_were_seen_in() -> None:
    stream = stream_of(track="isolated")
    learner = fitted(stream.base)
    learner.learn(stream.session(1))
    memory = learner.memory
    assert memory.vectors is not None
    for part, visible in ((memory.labels < 6, stream.base.visible_graph), (memory.labels == 6, None)):
        visible = visible or stream.session(1).visible_graph
        wanted = learner.embeddings_of_rows(visible, visible.rows(memory.nodes[part]))
        np.testing.assert_allclose(memory.vectors.numpy()[part], wanted, atol=2e-3)
    stored = learner.stored()
    assert stored["embeddings"] == memory.nodes.size * 16 * 2
    assert stored["nodes"] == memory.nodes.size * 24
    assert not learner.restate(stream.base.visible_graph, (memory.nodes, memory.labels), (memory.nodes, memory.labels))


def test_no_matrix_of_all_pairs_of_nodes_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The released sampler has one."""
    stream, largest = stream_of(), [0]
    for name in ("zeros", "eye", "ones", "empty"):
        real = getattr(np, name)

        def watched(shape: Any, *rest: Any, real: Any = real, **options: Any) -> Any:
            found = real(shape, *rest, **options)
            largest[0] = max(largest[0], found.size)
            return found

        monkeypatch.setattr(np, name, watched)
    learner = fitted(stream.base)
    learner.learn(stream.session(1))
    assert 0 < largest[0] < stream.base.visible_graph.node_count**2 / 4


def test_a_label_taken_back_right_after_session_0_leaves_no_trace() -> None:
    stream = stream_of(track="open")
    base, visible = stream.base, stream.base.visible_graph
    learner = fitted(base)
    nobody = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    expected = learner.scores(visible, visible.nodes)
    assert learner.restate(visible, (base.train, base.train_labels), nobody)
    np.testing.assert_allclose(learner.scores(visible, visible.nodes), expected, atol=1e-5)
    learner.restate(visible, (base.train[1:], base.train_labels[1:]), nobody)
    rows = vectors(learner, visible.loaded(), base.train[1:])
    weights = head_by_loop(rows, base.train_labels[1:], 6, 0.1)
    found = learner.scores(visible, visible.nodes)
    np.testing.assert_allclose(found, vectors(learner, visible.loaded(), visible.nodes) @ weights, atol=2e-3)


def test_a_hidden_layer_learns_too() -> None:
    stream = stream_of()
    learner = fitted(stream.base, hidden=16, penalties=(0.001,))
    before = learner.memory.head
    learner.learn(stream.session(1))
    assert learner.memory.head is not before
    answers = learner.scores(stream.evaluation_graph(0), stream.base.train)[:, :6].argmax(axis=1)
    assert (answers == stream.base.train_labels).mean() > 0.6


def test_more_supports_of_a_known_class_can_enter_a_full_memory() -> None:
    stream = stream_of()
    learner = fitted(stream.base, budget=2)
    visible, validation = stream.base.visible_graph, stream.base.validation
    learner.learn(Session(1, (), validation, stream.base.validation_labels, visible, "transductive"))
    assert np.bincount(learner.memory.labels).tolist() == [2] * 6
    assert np.isin(learner.memory.nodes, validation).any()


def test_bad_settings_are_refused_in_one_sentence() -> None:
    for wrong in ({"budget": 0}, {"penalties": ()}, {"penalties": (0.0,)}, {"hidden": -1}, {"iterations": 0}):
        with pytest.raises(InputError, match=r"(must|is empty)"):
            find_method("tem").make(wrong)


def test_penalties_are_those_that_validation_likes_best() -> None:
    base = stream_of().base
    candidates = (30.0, 1e-3, 0.3)
    learner = fitted(base, penalties=candidates)
    visible, size = base.visible_graph, len(base.classes)
    rows, asked = vectors(learner, visible.loaded(), base.train), vectors(learner, visible.loaded(), base.validation)
    recalls = []
    for penalty in candidates:
        found = (asked @ head_by_loop(rows, base.train_labels, size, penalty)).argmax(axis=1)
        right = found == base.validation_labels
        recalls.append(np.mean([right[base.validation_labels == c].mean() for c in range(size)]))
    assert learner.chosen()["first_penalty"] == candidates[int(np.argmax(recalls))]
    validation, scores = ValidationSessions.draw(base, base.pseudo_novel_columns, 0), []
    train, labels = validation.train
    arrivals = arrival_times(train, cover(visible, train), learner.seed)
    kept = first_of_each_class(-arrivals, labels, learner.settings.budget)
    for penalty in candidates:

        def predict(few: Any, penalty: float = penalty) -> np.ndarray:
            known = np.concatenate([train[kept], few[0]])
            points, columns = vectors(learner, visible.loaded(), known), np.concatenate([labels[kept], few[1]])
            head = head_by_loop(points, columns, validation.class_count, penalty)
            return (vectors(learner, visible.loaded(), validation.queries[0]) @ head).argmax(axis=1)

        scores.append(np.mean([validation.only(draw).score(predict) for draw in range(STEP_DRAWS)]))
    assert learner.chosen()["session_penalty"] == candidates[int(np.argmax(scores))]


def test_a_model_in_production_learns_and_takes_back() -> None:
    graph = load_dataset(GRAPH)[0]
    model = GraphClassifier("tem", QUICK).fit(graph, hide_classes=("class-08",))
    before = model.predict_proba()
    ids = graph.node_ids[graph.labels == graph.class_number("class-08")].tolist()
    model.learn({"eight": ids[:5]})
    assert model.history[-1]["accuracy"]["leave_one_out"] is not None
    model.unlearn(ids[:5])
    assert model.history[-1]["exact"]
    np.testing.assert_allclose(model.predict_proba(), before, atol=1e-5)
