"""Copies of learners: what they share is never written to, and what is written to they do not share."""

from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import Learner, Progress, Session, VisibleNodes, find_method
from graphfcl.graph import join_without_edges
from graphfcl.methods import METHODS
from graphfcl.methods.testing import Subject
from graphfcl.methods.testing.rules import a_copy_goes_on_by_itself
from tests.golden.samples import SHORT, golden_stream
from tests.marks import some_first

STEPS = {"fine_tuning_steps": 3, "fine_tuning_rate": 0.05}


@pytest.mark.parametrize("name", ["hag-meta", "finetune", "er-gnn", "icarl", "meta-gnn"])
def test_steps_of_a_session_change_the_weights_of_the_copy_alone(name: str) -> None:
    """The settings of other tests may choose no steps at all."""
    a_copy_goes_on_by_itself(Subject(find_method(name).learner, {**SHORT[name], **STEPS}))


def ready(name: str) -> tuple[Any, Any, VisibleNodes]:
    """A learner after session 0 that was asked once, its copy, and the graph."""
    base = golden_stream("open").base
    learner, visible = find_method(name).make(SHORT[name]), base.visible_graph
    learner.fit(base)
    learner.embeddings(visible)
    learner.scores(visible, visible.nodes)
    return learner, learner.copy(visible), visible


@pytest.mark.parametrize("name", some_first(method.name for method in METHODS))
def test_a_copy_needs_no_forward_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, copy, visible = ready(name)
    expected = learner.scores(visible, visible.nodes)

    def fail(*_: object) -> None:
        raise AssertionError("it was computed again")

    for part in ("_embed", "_score_all", "_make_inputs"):
        monkeypatch.setattr(type(learner), part, fail, raising=False)
    np.testing.assert_array_equal(copy.embeddings(visible), learner.embeddings(visible))
    np.testing.assert_array_equal(copy.scores(visible, visible.nodes), expected)


def test_what_no_session_changes_is_in_memory_once() -> None:
    learner, copy, _ = ready("anchor")
    for name, tensor in learner.knowledge.frame.items():
        assert copy.knowledge.frame[name] is tensor
    for mine, theirs in zip(copy.network.parameters(), learner.network.parameters(), strict=True):
        assert mine.data_ptr() == theirs.data_ptr()
    learner, copy, _ = ready("sgc-ridge")
    assert copy.blocks.basis is learner.blocks.basis
    assert copy.memory.now.gram is learner.memory.now.gram


def test_a_copy_from_the_middle_of_a_fit_goes_on_with_it() -> None:
    base, copies = golden_stream("open").base, []

    class Copying(Progress):
        def checkpoint(self, learner: Learner) -> None:
            copies.append(learner.copy(base.visible_graph))

    learner = find_method("hag-meta").make(SHORT["hag-meta"])
    learner.fit(base, Copying())
    expected = learner.scores(base.visible_graph, base.validation)
    middle = copies[len(copies) // 2]
    middle.fit(base)
    np.testing.assert_allclose(middle.scores(base.visible_graph, base.validation), expected, rtol=1e-5, atol=1e-5)


def content(value: Any, seen: dict[int, tuple[Any, bytes]]) -> dict[int, tuple[Any, bytes]]:
    """Every array and tensor that can be reached from an object, with its bytes."""
    if isinstance(value, torch.Tensor) and value.layout == torch.sparse_csr:
        for part in (value.values(), value.col_indices(), value.crow_indices()):
            content(part, seen)
    elif isinstance(value, torch.Tensor | np.ndarray):
        array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
        seen.setdefault(id(value), (value, array.tobytes()))
    elif id(value) not in seen:
        seen[id(value)] = (value, b"")
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        for each in (*inner, *getattr(value, "__dict__", {}).values(), getattr(value, "__self__", None)):
            if not isinstance(each, type | str | int | float | bytes | None):
                content(each, seen)
    return seen


@pytest.mark.parametrize("name", some_first(method.name for method in METHODS))
def test_nothing_that_a_reader_sees_is_written_to(name: str) -> None:
    """Sessions, other labels and another graph for the copy; all that the learner holds stays byte for byte."""
    stream = golden_stream("open")
    base, visible = stream.base, stream.base.visible_graph
    steps = STEPS if "fine_tuning_steps" in {row.name for row in find_method(name).settings_rows()} else {}
    learner = find_method(name).make({**SHORT[name], **steps})
    learner.fit(base)
    learner.embeddings(visible)
    learner.scores(visible, visible.nodes)
    learner.explain(visible, int(visible.nodes[0]))
    before = content(learner, {})
    assert sum(len(each) for _, each in before.values()) > 50_000, "weights and embeddings are among it"
    copy = learner.copy(visible)
    for number in (1, 2):
        whole = stream.session(number)
        copy.learn(Session(number, whole.new_classes, whole.supports, whole.support_labels, visible, "open"))
        copy.scores(visible, visible.nodes)
        copy.restate(visible, (base.train[::2], base.train_labels[::2]), (whole.supports, whole.support_labels))
        copy.drop_nodes(whole.supports[:1])
    larger = join_without_edges(visible.loaded(), visible.nodes[-1:] + 1, visible.loaded().features[:1])
    copy.use_embeddings(larger, copy.embeddings(visible)[[*range(visible.node_count), 0]])
    copy.scores(larger, larger.nodes)
    for value, expected in before.values():
        assert not expected or content(value, {})[id(value)][1] == expected
