"""A model is read while it learns: every answer is that of one whole state, and no reader waits for a writer."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphClassifier, Learner, Session
from graphfcl.methods import registry
from tests.production.models import copy_of, fitted, members, same_answers, small_graph

READERS = 8
LONG = 30.0  # seconds after which a test gives up


def answers(model: GraphClassifier) -> str:
    """All that the answers about every node say, in one call of the model."""
    columns = model.prediction_columns()
    return json.dumps({name: values.tolist() for name, values in columns.items()})


def calls(model: GraphClassifier, name: str) -> str:
    node = members("class-00")[0]
    asked: dict[str, Callable[[], Any]] = {
        "predictions": lambda: answers(model),
        "predict": lambda: json.dumps(model.predict().tolist()),
        "predict_proba": lambda: json.dumps(model.predict_proba().tolist()),
        "unknown_scores": lambda: json.dumps(model.unknown_scores().tolist()),
        "one": lambda: json.dumps(model.predict_proba([node]).tolist()),
        "explain": lambda: json.dumps(model.explain(node)),
        "classes": lambda: json.dumps(model.classes_),
        "nodes": lambda: json.dumps(model.node_ids_.tolist()),
    }
    return str(asked[name]())


def changes(model: GraphClassifier, turns: int) -> Iterator[GraphClassifier]:
    """Learning, unlearning, growing, shrinking and renaming, again and again; each is done when it is asked for."""
    eight, nine, first = members("class-08"), members("class-09"), members("class-00")[0]
    for fresh in range(9000, 9000 + turns):
        yield model.learn({"eight": eight[:4]})
        yield model.add_nodes([fresh], np.ones((1, 200)))
        yield model.add_edges([fresh, first], [first, eight[fresh - 9000]])
        yield model.learn({"nine": nine[:3], "eight": eight[4:6]})
        yield model.unlearn(eight[:2])
        yield model.rename("nine", "neun")
        yield model.retire("neun")
        yield model.unlearn(eight[2:6])
        yield model.remove_nodes([fresh])


@pytest.mark.parametrize("name", ["predict", "predict_proba", "score"])
def test_a_change_while_a_query_runs_is_not_half_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class whose nodes are asked about is retired after the query has begun."""
    model, nodes = fitted("sgc-ridge"), members("class-00")[:30]
    asked: Callable[[], Any] = {
        "predict": lambda: model.predict(nodes).tolist(),
        "predict_proba": lambda: model.predict_proba(nodes).tolist(),
        "score": lambda: model.score(nodes, ["class-00"] * 30),
    }[name]
    expected, current = asked(), model._current
    began: list[str] = []

    def first_then_retired() -> Any:
        state = current()
        if not began:
            began.append(name)
            model.retire("class-00")
        return state

    monkeypatch.setattr(model, "_current", first_then_retired)
    assert asked() == expected
    assert began


@pytest.mark.parametrize(("method", "turns"), [pytest.param("anchor", 2, marks=pytest.mark.long), ("finetune", 1)])
def test_eight_readers_beside_a_writer_see_whole_states_only(method: str, turns: int) -> None:
    """Fine-tuning writes into weights, growth into embeddings."""
    steps = {"fine_tuning_steps": 2, "fine_tuning_rate": 0.05} if method == "finetune" else {}
    model = fitted(method, **steps)
    names = ["predictions", "predict", "predict_proba", "unknown_scores", "one", "classes", "nodes"]
    names += ["explain"] if method == "anchor" else []
    states = {name: {calls(model, name)} for name in names}
    found: list[dict[str, set[str]]] = [{name: set() for name in names} for _ in range(READERS)]
    errors: list[BaseException] = []
    over = threading.Event()

    def read(place: int) -> None:
        random = np.random.default_rng(place)
        try:
            while not over.is_set():
                name = names[int(random.integers(len(names)))]
                found[place][name].add(calls(model, name))
                time.sleep(0.005)  # let the writer have its share of one core
        except BaseException as error:
            errors.append(error)

    readers = [threading.Thread(target=read, args=(place,)) for place in range(READERS)]
    for reader in readers:
        reader.start()
    try:
        for _ in changes(model, turns):
            for name in names:
                states[name].add(calls(model, name))
    finally:
        over.set()
        for reader in readers:
            reader.join(LONG)
    assert not errors
    for name in names:
        seen = set().union(*(each[name] for each in found))
        assert seen <= states[name], f"{name} answered what no state answers"
    assert len(set().union(*(each["predictions"] for each in found))) > 5, "readers saw the model change"


class Waiting(Learner):
    """A nearest mean that waits in the middle of learning until it is let go."""

    entered, let_go = threading.Event(), threading.Event()
    patient = False

    def fit(self, base: Any, progress: Any = None, encoders: Any = None) -> None:  # noqa: ARG002
        self.classes_ = base.classes
        self.sums_ = np.zeros((0, base.visible_graph.features.shape[1]))
        self._add(base.visible_graph, base.train, base.train_labels)

    def learn(self, session: Session) -> None:
        self.classes_ += session.new_classes
        self._add(session.visible_graph, session.supports, session.support_labels)
        if type(self).patient:
            type(self).entered.set()
            assert type(self).let_go.wait(LONG)

    def scores(self, visible: Any, nodes: np.ndarray) -> np.ndarray:
        return np.asarray(visible.features[visible.rows(nodes)] @ self.sums_.T)

    def _add(self, visible: Any, nodes: np.ndarray, columns: np.ndarray) -> None:
        # In place, as a user's method may well do it.
        more = np.zeros((len(self.classes_) - len(self.sums_), self.sums_.shape[1]))
        self.sums_ = np.concatenate([self.sums_, more]) if len(more) else self.sums_
        np.add.at(self.sums_, columns, visible.features[visible.rows(nodes)].toarray())


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[GraphClassifier]:
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    monkeypatch.setattr(Waiting, "entered", threading.Event())
    monkeypatch.setattr(Waiting, "let_go", threading.Event())
    model = GraphClassifier(Waiting).fit(small_graph(), hide_classes=["class-08", "class-09"])
    monkeypatch.setattr(Waiting, "patient", True)
    yield model
    Waiting.let_go.set()


def in_thread(change: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    return thread


def test_nobody_waits_for_a_learn_that_is_held_up(waiting: GraphClassifier, tmp_path: Path) -> None:
    model, eight = waiting, members("class-08")
    before, classes, history = answers(model), model.classes_, model.history
    learning = in_thread(lambda: model.learn({"eight": eight[:5]}))
    assert Waiting.entered.wait(LONG)
    assert answers(model) == before
    assert model.classes_ == classes
    assert model.history == history
    assert model.learner_.classes_ == model.parts().learner.classes_ == classes
    for ask in (model.predict, model.predict_proba, model.unknown_scores):
        ask(eight)
    assert "8 classes, 500 nodes" in repr(model)
    assert model.node_ids_.size == 500
    assert model.save(tmp_path / "model") == 1
    assert learning.is_alive(), "all of this was answered while it learned"
    Waiting.let_go.set()
    learning.join(LONG)
    assert model.classes_ == (*classes, "eight")
    assert [entry["version"] for entry in model.history] == [1, None]
    assert (model.version, model.save(tmp_path / "model")) == (1, 2)
    assert [entry["version"] for entry in model.history] == [1, 2]
    assert answers(GraphClassifier.load(tmp_path / "model", version=1)) == before
    same_answers(GraphClassifier.load(tmp_path / "model"), model)


def test_changes_wait_for_each_other(waiting: GraphClassifier) -> None:
    model, eight, nine = waiting, members("class-08"), members("class-09")
    threads = [in_thread(lambda: model.learn({"eight": eight[:5]}))]
    assert Waiting.entered.wait(LONG)
    threads.append(in_thread(lambda: model.learn({"nine": nine[:5]})))
    threads.append(in_thread(lambda: model.rename("class-00", "zero")))
    time.sleep(0.1)
    assert "zero" not in model.classes_
    Waiting.let_go.set()
    for thread in threads:
        thread.join(LONG)
    assert set(model.classes_) >= {"eight", "nine", "zero"}
    assert sorted(entry["what"] for entry in model.history) == ["fit", "learn", "learn", "rename"]


def test_a_change_that_fails_lets_the_next_one_go_on(model: GraphClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    state = model._state
    with monkeypatch.context() as patch:
        patch.setattr("graphfcl.production.changes.draft.Draft.finalise", fail)
        with pytest.raises(MemoryError):
            model.learn({"eight": members("class-08")[:5]})
    assert model._state is state
    assert model.learn({"eight": members("class-08")[:5]}).classes_[-1] == "eight"


def test_readers_that_come_first_compute_the_scores_once(
    model: GraphClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh, times = copy_of(model), []
    scores = type(fresh.learner_).scores

    def counted(*arguments: Any) -> Any:
        times.append(1)
        time.sleep(0.05)
        return scores(*arguments)

    monkeypatch.setattr(type(fresh.learner_), "scores", counted)
    threads = [in_thread(lambda: fresh.predict()) for _ in range(READERS)]
    for thread in threads:
        thread.join(LONG)
    assert len(times) == 1
