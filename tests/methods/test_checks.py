"""The contract every learner keeps, and what our own methods keep besides. A new method is checked at once."""

import json
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import (
    InputError,
    Learner,
    Progress,
    Protocol,
    Session,
    Stream,
    evaluate,
    find_method,
    load_dataset,
    make_stream,
)
from graphfcl.experiments import load_checkpoint, save_checkpoint
from graphfcl.methods import METHODS
from graphfcl.methods.testing import RULES, Rule, Subject
from graphfcl.methods.testing.rules import (
    a_loaded_learner_scores_the_same,
    an_interrupted_fit_goes_on,
    dropped_nodes_are_no_longer_needed,
    embeddings_are_what_scores_come_from,
    explain_answers_or_says_none,
    learn_appends_classes,
    scores_are_numbers,
    scores_do_not_depend_on_who_else_is_asked,
    stored_says_what_is_kept,
)
from tests.golden.samples import SHORT
from tests.marks import SOME_METHODS, some_first

GRAPH = "synthetic:nodes=700,edges=2800,classes=10,features=300,signal=0.6,skew=0.5"
EASY = "synthetic:nodes=400,edges=1600,classes=10,features=100,signal=0.9,skew=0.4"  # SHORT training is enough for it
# Several parts of held-out classes, which SHORT has, would only take longer here.
NARROW: dict[str, Any] = {"hidden": 32, "size": 16, "pretraining.epochs": 8}
ONCE: dict[str, Any] = {**NARROW, "validation_folds": 1}
QUICK: dict[str, dict[str, Any]] = {
    "anchor": {**NARROW, "rank": 32},
    "sgc-ridge": {"rank": 32},
    "ranpac": {"rank": 32, "width": 200},
    "teen": {"rank": 32},
    "fecam": {"rank": 16},
    "meta-gnn": {**ONCE, "episodes": 40, "fine_tuning": ((2, 0.01),)},
    "gpn": {**ONCE, "episodes": 60},
    "cec": {**ONCE, "episodes": 60},
    "proto-gcn": NARROW,
    "proto-gat": NARROW,
    "finetune": {**NARROW, "fine_tuning": ((2, 0.001),)},
    "er-gnn": {**NARROW, "fine_tuning": ((5, 0.001),)},
    "icarl": {**NARROW, "fine_tuning": ((5, 0.005),)},
    "geometer": {**ONCE, "episodes": 60, "least_episodes": 0, "fine_tuning": ((2, 0.005),)},
    "tap": {**NARROW, "pretraining.epochs": 5, "fine_tuning": ((2, 0.01),)},
    "mecoin": {
        **SHORT["mecoin"],
        "pretraining.epochs": 8,
        "books": 16,
        "keys": 32,
        "first_steps": 100,
        "fine_tuning_steps": 30,
    },
    "tem": {"rank": 32},
    "closed-set-control": {"rank": 32},
    "hag-meta": {**ONCE, "episodes": 60, "fine_tuning": ((2, 0.005),)},
    "lpmc": {**ONCE, "contrast.epochs": 20, "episodes": 60, "fine_tuning": ((2, 0.005),)},
}
QUICK["anchor-pool"] = QUICK["joint"] = QUICK["anchor"]
NAMES = [method.name for method in METHODS]
# Rules that one learner of a method is enough for; the others fit learners of their own.
SHARING = (
    learn_appends_classes,
    scores_are_numbers,
    scores_do_not_depend_on_who_else_is_asked,
    a_loaded_learner_scores_the_same,
    stored_says_what_is_kept,
    embeddings_are_what_scores_come_from,
    explain_answers_or_says_none,
    dropped_nodes_are_no_longer_needed,
)


def make(name: str, seed: int = 0, **changes: Any) -> Learner:
    return find_method(name).make({**QUICK.get(name, {}), **changes}, seed=seed)


def make_short(name: str, seed: int = 0) -> Learner:
    return find_method(name).make(SHORT[name], seed=seed)


def make_walked(name: str, seed: int = 0) -> Learner:
    return make(name, seed) if name == "tem" else make_short(name, seed)  # its short training magnifies rounding


def stream_of(seed: int = 0, graph_name: str = GRAPH, **changes: Any) -> Stream:
    graph, _ = load_dataset(graph_name)
    return make_stream(graph, Protocol(base=4, pseudo_novel=3, way=1, shot=5), seed=seed, **changes)


@pytest.fixture(scope="module", params=some_first(NAMES))
def walked(request: pytest.FixtureRequest) -> tuple[str, Learner, Stream]:
    """A learner after its first novel session."""
    stream = stream_of()
    learner = make_walked(request.param)
    learner.fit(stream.base)
    learner.learn(stream.session(1))
    return request.param, learner, stream


def test_scores_do_not_depend_on_what_else_is_asked(walked: tuple[str, Learner, Stream]) -> None:
    _, learner, stream = walked
    visible, nodes = stream.evaluation_graph(1), stream.queries(1).nodes
    together = learner.scores(visible, nodes)
    np.testing.assert_array_equal(learner.scores(visible, nodes[::3]), together[::3])
    np.testing.assert_array_equal(learner.scores(stream.evaluation_graph(1), nodes[:1]), together[:1])
    assert together.shape == (nodes.size, stream.classes_seen(1)) == (nodes.size, len(learner.classes_))


def rules_of_methods() -> Iterator[Any]:
    """Every rule with every method; `make test` leaves out rules that fit learners of their own for most methods."""
    for name in NAMES:
        for rule in RULES:
            few = rule not in SHARING and name not in SOME_METHODS
            yield pytest.param(name, rule, id=f"{name}-{rule.__name__}", marks=pytest.mark.long if few else ())


@pytest.mark.parametrize(("name", "rule"), [*rules_of_methods()])
def test_every_method_keeps_the_contract(name: str, rule: Rule) -> None:
    """As :func:`graphfcl.testing.check_learner` does, a test for each rule."""
    rule(subject_of(name, whole=rule is an_interrupted_fit_goes_on))


@cache
def subject_of(name: str, *, whole: bool) -> Subject:
    """whole: with all draws of held-out classes, which most rules have nothing to do with."""
    learner = find_method(name).learner
    draws = any(field.name == "validation_folds" for field in fields(learner.settings_type))
    settings = QUICK[name] if name == "tem" else SHORT[name]  # its short training magnifies rounding
    return Subject(learner, {**settings, **({"validation_folds": 1} if draws and not whole else {})})


class _Asking(Progress):
    """Asks for scores and embeddings while the learner is trained."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def checkpoint(self, learner: Learner) -> None:
        learner.embeddings(self.stream.base.visible_graph)
        if learner.name != "meta-gnn":  # which has no class means before the end
            learner.scores(self.stream.base.visible_graph, self.stream.base.validation)


@pytest.mark.parametrize("name", some_first(["hag-meta", "gpn", "finetune", "cec", "meta-gnn", "icarl"]))
def test_asking_during_the_fit_changes_nothing(name: str) -> None:
    stream = stream_of()
    found = []
    for progress in (Progress(), _Asking(stream)):
        learner = make_short(name)
        learner.fit(stream.base, progress)
        found.append(learner.scores(stream.base.visible_graph, stream.base.validation))
    np.testing.assert_array_equal(found[0], found[1])


def save_scores(name: str, folder: Path) -> None:
    """Run in a process that no learner has been in."""
    learner, stream = make_walked(name), stream_of()
    learner.load_state(load_checkpoint(folder / "learner.safetensors")[0])
    np.save(folder / "scores.npy", learner.scores(stream.evaluation_graph(1), stream.queries(1).nodes))


def test_saved_and_loaded_in_a_fresh_process_it_scores_the_same(
    walked: tuple[str, Learner, Stream], tmp_path: Path
) -> None:
    """Processes come from a server that has imported torch, which takes longer than all the rest, and nothing else."""
    name, learner, stream = walked
    save_checkpoint(tmp_path / "learner.safetensors", learner.state(), {})
    processes = get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    process = processes.Process(target=save_scores, args=(name, tmp_path))
    process.start()
    process.join()
    assert process.exitcode == 0
    expected = learner.scores(stream.evaluation_graph(1), stream.queries(1).nodes)
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), expected)


def test_a_loaded_learner_goes_on_learning(walked: tuple[str, Learner, Stream], tmp_path: Path) -> None:
    name, learner, stream = walked
    save_checkpoint(tmp_path / "learner.safetensors", learner.state(), {"note": 1})
    state, run = load_checkpoint(tmp_path / "learner.safetensors")
    assert run == {"note": 1}
    first, second = make_walked(name), make_walked(name)
    for copy in (first, second):
        copy.load_state(state)
        copy.learn(stream.session(2))
    visible, nodes = stream.evaluation_graph(2), stream.queries(2).nodes
    np.testing.assert_array_equal(first.scores(visible, nodes), second.scores(visible, nodes))
    assert first.classes_ == stream.classes[: stream.classes_seen(2)]
    assert first.classes_[: len(learner.classes_)] == learner.classes_, "classes are append-only"


def test_the_state_knows_only_labelled_nodes(walked: tuple[str, Learner, Stream]) -> None:
    """Which nodes were there before would betray the session of a node."""
    _, learner, stream = walked
    labelled = set(stream.base.train) | set(stream.base.validation) | set(stream.session(1).supports)
    for name, tensor in learner.state().tensors.items():
        if name.endswith(".nodes"):
            assert set(tensor.tolist()) <= labelled
    tensors = learner.state().tensors
    whole_numbers = [tensors[name].numel() for name in tensors if tensors[name].dtype == torch.int64]
    assert max(whole_numbers, default=0) <= len(labelled)
    json.dumps(learner.state().values)
    stored = learner.stored()
    assert set(stored) == {"nodes", "features", "embeddings", "weights"}
    assert stored["weights"] > 0
    assert sum(stored.values()) < 10**6


@pytest.mark.parametrize("name", ["hag-meta", "anchor", "icarl"])
def test_back_at_the_start_a_learner_is_new(name: str) -> None:
    stream = stream_of()
    learner = make_short(name)
    start = learner.state()
    learner.fit(stream.base)
    expected = learner.scores(stream.base.visible_graph, stream.base.validation)
    learner.learn(stream.session(1))
    learner.load_state(start)
    assert learner.classes_ == ()
    assert sum(learner.stored().values()) == sum(make_short(name).stored().values())
    learner.fit(stream.base)
    np.testing.assert_array_equal(learner.scores(stream.base.visible_graph, stream.base.validation), expected)


def test_a_fitted_learner_is_not_fitted_to_something_else(walked: tuple[str, Learner, Stream]) -> None:
    _, learner, _ = walked
    with pytest.raises(InputError, match="make a new one"):
        learner.fit(stream_of(seed=4).base)


def test_another_learner_s_state_is_refused(walked: tuple[str, Learner, Stream]) -> None:
    name, learner, _ = walked
    with pytest.raises(InputError, match="another method, seed or settings"):
        make_walked(name, seed=5).load_state(learner.state())


def test_another_seed_gives_another_result(walked: tuple[str, Learner, Stream]) -> None:
    name, learner, stream = walked
    if name == "closed-set-control":
        pytest.skip("it draws nothing on a graph with so few columns")
    other = make_walked(name, seed=1)
    other.fit(stream.base)
    other.learn(stream.session(1))
    visible, nodes = stream.evaluation_graph(1), stream.queries(1).nodes
    assert not np.array_equal(other.scores(visible, nodes), learner.scores(visible, nodes))


KINDS: dict[str, dict[str, Any]] = {
    "one shot": {"shot": 1},
    "a smaller last session": {"way": 2, "base": 3},
    "no pseudo-novel classes": {"way": 3, "pseudo_novel": 0},
    "fewer than N": {"way": 3, "pseudo_novel": 1},
    "isolated": {"track": "isolated"},
    "open": {"track": "open"},
    "paper": {"name": "paper"},
}


def kinds_of_streams() -> Iterator[Any]:
    """Every kind of stream with every method. That all of them can be learned is a rule of the contract; how well they
    end is tried in CI for each method on one kind, and by `make test-all` on all.
    """
    for place, name in enumerate(NAMES):
        for number, (kind, changes) in enumerate(KINDS.items()):
            marks = (pytest.mark.long,) if number == place % len(KINDS) else (pytest.mark.long, pytest.mark.soak)
            yield pytest.param(name, changes, id=f"{kind}-{name}", marks=marks)


@pytest.mark.parametrize(("name", "changes"), [*kinds_of_streams()])
def test_every_kind_of_stream_ends_above_chance(name: str, changes: dict[str, Any]) -> None:
    learner = make(name) if name in ("icarl", "mecoin") else make_short(name)  # whose heads take more steps
    measures = evaluate(learner, stream_of(seed=1, graph_name=EASY, **changes)).metrics
    for session in measures.sessions:
        assert session.balanced_accuracy > 2 / session.classes
        if session.novel is not None and changes.get("shot") != 1:
            assert session.novel > 1 / session.classes


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_supports_without_edges_are_finite(name: str) -> None:
    graph, _ = load_dataset("synthetic:nodes=400,edges=300,classes=8,features=200,signal=0.8,skew=1.0")
    stream = make_stream(graph, Protocol(base=3, pseudo_novel=3, way=1), seed=0)
    assert any((s.visible_graph.degrees[s.visible_graph.rows(s.supports)] == 0).any() for s in stream)
    measures = evaluate(make_short(name), stream).metrics
    assert measures.sessions[-1].balanced_accuracy > 2 / 8


def test_a_given_table_spares_the_forward_pass_and_changes_no_score(walked: tuple[str, Learner, Stream]) -> None:
    name, learner, stream = walked
    visible, nodes = stream.evaluation_graph(1), stream.queries(1).nodes
    expected = learner.scores(visible, nodes)
    copy, plain = make_walked(name), make_walked(name)
    for other in (copy, plain):
        other.load_state(learner.state())
    table = learner.embeddings(visible)
    copy.use_embeddings(visible, table)
    np.testing.assert_allclose(copy.scores(visible, nodes), expected, rtol=1e-5, atol=1e-5)
    if table.shape[1]:
        copy.use_embeddings(visible, np.zeros_like(table))
        assert not np.allclose(copy.scores(visible, nodes), expected), "the table is what scores come from"
        copy.use_embeddings(visible, table)
    session = stream.session(1)
    more = Session(2, (), session.supports, session.support_labels, visible, stream.protocol.track)
    for other in (copy, plain):
        other.learn(more)
    np.testing.assert_allclose(copy.scores(visible, nodes), plain.scores(visible, nodes), rtol=1e-4, atol=1e-4)
