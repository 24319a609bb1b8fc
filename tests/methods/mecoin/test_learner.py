"""Mecoin as a learner: what is frozen, what grows, who answers."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import InputError, Stream, find_method
from graphfcl.methods.mecoin import learner as module
from graphfcl.methods.mecoin.learner import Mecoin
from graphfcl.methods.mecoin.memory import Batches
from graphfcl.nn import GcnEncoder
from tests.golden.samples import SHORT, golden_stream

FIXED: dict[str, Any] = {"fine_tuning_steps": 4, "fine_tuning_rate": 0.01, "adjustments": (0.0,)}


def made(**changes: Any) -> Mecoin:
    learner = find_method("mecoin").make({**SHORT["mecoin"], **FIXED, **changes})
    assert isinstance(learner, Mecoin)
    return learner


@cache
def fitted_state() -> Any:
    learner = made()
    learner.fit(golden_stream("transductive").base)
    return learner.state()


def ready() -> tuple[Mecoin, Stream]:
    learner = made()
    learner.load_state(fitted_state())
    return learner, golden_stream("transductive")


def weights(learner: Mecoin, part: str) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in getattr(learner.network, part).state_dict().items()}


def test_a_session_changes_values_and_student_alone() -> None:
    learner, stream = ready()
    before = {part: weights(learner, part) for part in ("encoder", "books", "table")}
    learner.learn(stream.session(1))
    for part in ("encoder", "books"):
        assert all(torch.equal(value, before[part][name]) for name, value in weights(learner, part).items())
    table = weights(learner, "table")
    many = len(stream.base.classes)
    assert table["values"].shape == (4 * 12, many + 1), "a column for every class seen, none for those to come"
    assert not torch.equal(table["values"][:, :many], before["table"]["values"])
    assert not torch.equal(table["inner.weight"], before["table"]["inner.weight"])


def test_session_0_teaches_all_of_its_train_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, real = [], Batches.draw.__func__  # type: ignore[attr-defined]

    def watched(*arguments: Any) -> Batches:
        sizes.append(len(arguments[2]))
        return real(*arguments)

    monkeypatch.setattr(Batches, "draw", classmethod(watched))
    stream, learner = golden_stream("transductive"), made()
    learner.fit(stream.base)
    assert sizes == [stream.base.train.size]
    assert set(learner.memory.nodes) < set(stream.base.train)
    assert np.bincount(learner.memory.labels).max() == 6


def test_keys_come_from_train_nodes_of_session_0() -> None:
    learner, stream = ready()
    base, books = stream.base, learner.network.books
    points = torch.from_numpy(learner.embeddings(base.visible_graph)[base.visible_graph.rows(base.train)])
    codes = books.codes(points)
    for b in range(4):
        assert float(torch.cdist(books.keys[b].double(), codes[:, b].double()).min(dim=1).values.max()) < 1e-3


def test_a_session_embeds_its_nodes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, stream = ready()
    calls, real = [], GcnEncoder.forward

    def counted(self: GcnEncoder, *arguments: Any) -> torch.Tensor:
        calls.append(1)
        return real(self, *arguments)

    monkeypatch.setattr(GcnEncoder, "forward", counted)
    learner.learn(stream.session(1))
    assert len(calls) == 2  # the supports, and all that are kept


def test_memory_and_student_both_can_answer() -> None:
    stream = golden_stream("transductive")
    visible, nodes = stream.base.visible_graph, stream.base.validation
    memory, student = made(), made(answer="student")
    for learner in (memory, student):
        learner.fit(stream.base)
    points = torch.from_numpy(memory.embeddings(visible))
    with torch.no_grad():
        wanted = memory.network.table.memory(memory.network.books.look_up(points)).numpy()
    np.testing.assert_allclose(memory.scores(visible, nodes), wanted[visible.rows(nodes)], atol=1e-5)
    points = torch.from_numpy(student.embeddings(visible))
    with torch.no_grad():
        wanted = student.network.table.student(points).numpy()
    np.testing.assert_allclose(student.scores(visible, nodes), wanted[visible.rows(nodes)], atol=1e-5)
    for learner in (memory, student):
        answers = learner.scores(visible, nodes).argmax(axis=1)
        labels = stream.base.validation_labels
        recalls = [(answers[labels == c] == c).mean() for c in np.unique(labels)]
        said = learner.chosen()[f"validation_{learner.settings.answer}"]
        np.testing.assert_allclose(said, np.mean(recalls), atol=1e-4)
        assert {"validation_memory", "validation_student"} <= learner.chosen().keys()


def test_the_student_is_part_of_the_state() -> None:
    learner, _ = ready()
    names = learner.state().tensors
    assert {"network.table.inner.weight", "network.table.outer.weight", "network.table.values"} <= names.keys()


def test_isolated_keeps_embeddings_and_elsewhere_nodes_are_embedded_again() -> None:
    stream = golden_stream("isolated")
    learner = made()
    learner.fit(stream.base)
    learner.learn(stream.session(1))
    kept, memory = learner.memory.vectors, learner.memory
    assert kept is not None
    of_base = memory.labels < len(stream.base.classes)
    wanted = learner.embeddings(stream.base.visible_graph)[stream.base.visible_graph.rows(memory.nodes[of_base])]
    np.testing.assert_allclose(kept.numpy()[of_base], wanted, atol=1e-5)
    assert kept.nbytes == memory.nodes.size * 16 * 4
    assert learner.stored()["embeddings"] == kept.nbytes + 8 * len(learner.classes_)  # and how many labels each has
    assert ready()[0].memory.vectors is None


def test_lookups_of_a_graph_are_kept_until_its_embeddings_change() -> None:
    learner, stream = ready()
    session = stream.session(1)
    visible = session.visible_graph
    learner.embeddings(visible)
    learner.scores(visible, visible.nodes)
    known = learner._looked_up
    learner.learn(session)
    learner.scores(visible, visible.nodes)
    assert known is not None
    assert learner._looked_up is known
    learner.use_embeddings(visible, np.zeros_like(learner.embeddings(visible)))
    learner.scores(visible, visible.nodes)
    assert learner._looked_up is not known


def test_steps_are_chosen_in_validation_sessions_of_base_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    added: list[set[int]] = []
    columns: list[int] = []
    choose, teach, add = module.choose_with_adjustment, module.trained_copy, module.SampledMemory.add

    def watched_choice(learner: Any, validation: Any, logits_after: Any, progress: Any) -> None:
        def perfect_with_two_steps(draw: Any, *steps: Any) -> Any:
            columns.clear()
            logits, learned = logits_after(draw, *steps)
            tried.append(steps[0])
            assert columns[0] == len(stream.base.base_classes), "a table that knows the base classes alone"
            return (100.0 * torch.eye(logits.shape[1])[validation.queries[1]] if steps[0] == 2 else logits), learned

        choose(learner, validation, perfect_with_two_steps, progress)

    def watched_teaching(table: Any, *arguments: Any) -> Any:
        columns.append(table.values.shape[1])
        return teach(table, *arguments)

    def watched_memory(self: Any, labelled: Any, *arguments: Any) -> None:
        added.append(set(labelled[0]))
        add(self, labelled, *arguments)

    monkeypatch.setattr(module, "choose_with_adjustment", watched_choice)
    monkeypatch.setattr(module, "trained_copy", watched_teaching)
    monkeypatch.setattr(module.SampledMemory, "add", watched_memory)
    stream = golden_stream("transductive")
    learner = made(fine_tuning_steps=None, fine_tuning=((1, 0.01), (2, 0.02)))
    learner.fit(stream.base)
    assert tried == [0, 0, 0, 1, 1, 1, 2, 2, 2], "three draws of each"
    base = stream.base
    assert added[0] == set(base.train[base.train_labels < len(base.base_classes)])
    assert learner.chosen()["fine_tuning_steps"] == 2
    assert learner.chosen()["fine_tuning_rate"] == 0.02


@pytest.mark.parametrize(
    "changes", [{"books": 0}, {"key_size": 5}, {"answer": "both"}, {"map_dropout": 1.0}, {"first_rate": 0.0}]
)
def test_bad_settings_are_refused_in_one_sentence(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        find_method("mecoin").make(changes)


def test_logits_are_adjusted_by_the_labels_of_each_class() -> None:
    stream = golden_stream("transductive")
    plain, adjusted = made(), made(adjustments=(-0.5,))
    for learner in (plain, adjusted):
        learner.fit(stream.base)
        learner.learn(stream.session(1))
    visible = stream.evaluation_graph(1)
    counts = np.bincount(np.concatenate([stream.base.train_labels, stream.session(1).support_labels]))
    wanted = plain.scores(visible, visible.nodes) - 0.5 * np.log(counts / counts.sum())
    np.testing.assert_allclose(adjusted.scores(visible, visible.nodes), wanted, atol=1e-4)
