"""The trunks of joint training: each against a plain version, the choice, and states in between."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graphfcl import InputError, Protocol, Stream, find_method, load_dataset, make_stream
from graphfcl.methods.joint import TRUNKS, Joint
from graphfcl.methods.testing import Rule, Subject
from graphfcl.methods.testing import rules as contract
from graphfcl.methods.testing.subject import Checkpoints, through_a_file
from graphfcl.metrics import balanced_accuracy, confusion_matrix
from tests.golden.samples import SHORT, golden_stream
from tests.marks import some_first
from tests.methods.test_sgc_ridge import weights_by_loop

QUICK: dict[str, Any] = SHORT["joint"]
RULES: tuple[Rule, ...] = (
    contract.scores_do_not_depend_on_who_else_is_asked,
    contract.asking_changes_nothing,
    contract.a_loaded_learner_scores_the_same,
    contract.a_loaded_learner_goes_on_as_the_saved_one,
    contract.a_state_stays_what_it_was,
    contract.an_earlier_state_is_that_of_then,
    contract.every_kind_of_stream_can_be_learned,
    contract.more_supports_and_unequal_shots_are_learned,
    contract.embeddings_are_what_scores_come_from,
    contract.dropped_nodes_are_no_longer_needed,
)


@pytest.fixture(scope="module")
def stream() -> Stream:
    return golden_stream("transductive")


def fitted(stream: Stream, *trunks: str, **changes: Any) -> Joint:
    learner = find_method("joint").make({**QUICK, "trunks": trunks or TRUNKS, **changes}, seed=0)
    assert isinstance(learner, Joint)
    learner.fit(stream.base)
    return learner


def accuracy_on_validation(learner: Joint, stream: Stream) -> float:
    base = stream.base
    found = learner.scores(base.visible_graph, base.validation).argmax(axis=1)
    return balanced_accuracy(confusion_matrix(base.validation_labels, found, len(base.classes)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("trunk", some_first(TRUNKS[1:], ["ridge"]))
def test_every_trunk_keeps_the_contract(trunk: str, rule: Rule) -> None:
    rule(Subject(Joint, {**QUICK, "trunks": (trunk,)}))


@pytest.mark.parametrize("trunk", TRUNKS)
def test_the_accuracy_of_a_trunk_is_that_of_its_answers(stream: Stream, trunk: str) -> None:
    learner = fitted(stream, trunk)
    assert learner.chosen()["trunk"] == trunk
    assert learner.chosen()[f"validation_{trunk}"] == pytest.approx(accuracy_on_validation(learner, stream), abs=1e-4)


@pytest.mark.parametrize("best", TRUNKS)
def test_the_trunk_with_the_best_accuracy_is_taken_and_kept_alone(stream: Stream, best: str) -> None:
    learner = find_method("joint").make(QUICK, seed=0)
    assert isinstance(learner, Joint)
    plain, tried = learner._fit_trunk, []

    def fit_trunk(name: str, *rest: Any) -> None:
        plain(name, *rest)
        tried.append(name)
        learner.retraining.accuracies[name] = 0.95 if name == best else 0.9

    learner._fit_trunk = fit_trunk  # type: ignore[method-assign, assignment]
    learner.fit(stream.base)
    assert tried == list(TRUNKS)
    assert learner.chosen()["trunk"] == best
    kept = {name.split(".")[1] for name in learner.state().tensors if name.startswith("network.")}
    assert kept == ({"wide-gcn", "features"} if best == "features" else {best})
    assert (learner.state().tensors["blocks.steps"].numel() > 0) == (best in ("features", "ridge"))
    for number in (1, 2):
        learner.learn(stream.session(number, with_pool_labels=True))
    copy = find_method("joint").make(QUICK, seed=0)
    copy.load_state(through_a_file(learner.state()))
    visible, nodes = stream.evaluation_graph(2), stream.queries(2).nodes
    np.testing.assert_allclose(copy.scores(visible, nodes), learner.scores(visible, nodes), rtol=1e-5, atol=1e-6)


def test_of_equal_trunks_the_first_is_taken_and_one_that_was_not_asked_for_never() -> None:
    retraining = find_method("joint").make(QUICK).retraining  # type: ignore[attr-defined]
    retraining.accuracies = {"gcn": 0.5, "wide-gcn": 0.8, "features": 0.8, "ridge": 0.8}
    retraining.settle()
    assert retraining.trunk == "wide-gcn"
    retraining = find_method("joint").make({**QUICK, "trunks": ("ridge", "features")}).retraining  # type: ignore[attr-defined]
    retraining.accuracies = {"wide-gcn": 0.9, "features": 0.5, "ridge": 0.6}
    retraining.settle()
    assert retraining.trunk == "ridge"


@pytest.mark.parametrize(
    "trunks",
    [*(pytest.param(trunks, marks=pytest.mark.long) for trunks in (TRUNKS, ("features",))), ("wide-gcn", "ridge")],
    ids=" ".join,
)
def test_interrupted_at_any_checkpoint_it_ends_the_same(stream: Stream, trunks: tuple[str, ...]) -> None:
    states = Checkpoints()
    whole = find_method("joint").make({**QUICK, "trunks": trunks}, seed=0)
    whole.fit(stream.base, states)
    whole.learn(stream.session(1, with_pool_labels=True))
    visible, nodes = stream.evaluation_graph(1), stream.queries(1).nodes
    expected = whole.scores(visible, nodes)
    for place, state in enumerate(states.kept):
        copy = find_method("joint").make({**QUICK, "trunks": trunks}, seed=0)
        copy.load_state(through_a_file(state))
        copy.fit(stream.base)
        copy.learn(stream.session(1, with_pool_labels=True))
        np.testing.assert_array_equal(copy.scores(visible, nodes), expected, err_msg=f"checkpoint {place}")
        assert copy.chosen() == whole.chosen()


def all_labels(stream: Stream, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Of session 0, and the supports and pools of the sessions."""
    nodes, labels = [stream.base.train], [stream.base.train_labels]
    for number in range(1, last + 1):
        session: Any = stream.session(number, with_pool_labels=True)
        nodes += [session.supports, session.pool]
        labels += [session.support_labels, session.pool_labels]
    return np.concatenate(nodes), np.concatenate(labels)


def test_the_ridge_is_that_of_all_labels(stream: Stream) -> None:
    learner = fitted(stream, "ridge", penalties=(0.2,), hop_weights=(0.5,))
    for number in (1, 2):
        learner.learn(stream.session(number, with_pool_labels=True))
    visible, (nodes, labels) = stream.session(2).visible_graph, all_labels(stream, 2)
    vectors = torch.tensor(learner.embeddings(visible))
    scales = np.repeat([1.0, 0.5], 24)
    weights = weights_by_loop(vectors[visible.rows(nodes)], torch.tensor(labels), 0.2, scales)
    expected = vectors.double().numpy() @ weights
    np.testing.assert_allclose(learner.scores(visible, visible.nodes), expected, atol=1e-5)
    assert learner.chosen()["penalty"] == 0.2


def test_the_ridge_takes_the_penalty_that_validation_nodes_like_best() -> None:
    graph, _ = load_dataset("synthetic:nodes=400,edges=1000,classes=9,features=80,signal=0.4,skew=0.5")
    stream = make_stream(graph, Protocol(base=4, pseudo_novel=3, way=1, shot=4), seed=0)
    pairs = [(penalty, weight) for penalty in (1e4, 1.0) for weight in (0.0, 1.0)]
    alone = [fitted(stream, "ridge", penalties=(p,), hop_weights=(a,)) for p, a in pairs]
    accuracies = [accuracy_on_validation(learner, stream) for learner in alone]
    assert np.argmax(accuracies) > 0
    chosen = fitted(stream, "ridge", penalties=(1e4, 1.0), hop_weights=(0.0, 1.0)).chosen()
    assert (chosen["penalty"], chosen["hop_weight"]) == pairs[int(np.argmax(accuracies))]


def test_the_head_on_features_is_trained_again_on_all_labels(stream: Stream) -> None:
    learner = fitted(stream, "features")
    learner.learn(stream.session(1, with_pool_labels=True))
    visible, (nodes, labels) = stream.session(1).visible_graph, all_labels(stream, 1)
    found = torch.tensor(learner.embeddings(visible)).float()
    np.testing.assert_allclose(found[:, -8:].norm(dim=1), 1, atol=1e-2)
    assert found.shape[1] == 2 * 24 + 8
    head, columns = nn.Linear(56, len(learner.classes_)), torch.tensor(labels)
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)
    how = learner.settings.head_training
    adam = torch.optim.Adam(head.parameters(), lr=how.learning_rate, weight_decay=how.weight_decay)
    share = 1 / torch.bincount(columns).float()
    assert learner.retraining.epochs > 0
    for _ in range(learner.retraining.epochs * how.steps_per_epoch):
        adam.zero_grad()
        losses = nn.functional.cross_entropy(head(found[visible.rows(nodes)]), columns, reduction="none")
        ((losses * share[columns]).sum() / len(share)).backward()
        adam.step()
    with torch.no_grad():
        expected = head(found).numpy()
    np.testing.assert_allclose(learner.scores(visible, visible.nodes), expected, rtol=1e-3, atol=1e-3)


def test_under_features_the_wide_gcn_is_trained_again_as_by_itself(stream: Stream) -> None:
    features, alone = fitted(stream, "features"), fitted(stream, "wide-gcn")
    session = stream.session(1, with_pool_labels=True)
    for learner in (features, alone):
        learner.learn(session)
    first, second = (learner.network["wide-gcn"].state_dict() for learner in (features, alone))
    assert all(torch.equal(first[name], second[name]) for name in first)
    output = torch.tensor(alone.embeddings(session.visible_graph))
    centred = output - output.mean(dim=0)
    expected = centred / centred.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(features.embeddings(session.visible_graph)[:, -8:], expected, atol=1e-3)


def test_the_wide_gcn_is_trained_again_from_scratch(stream: Stream) -> None:
    """What it knows after two sessions does not depend on the first one's training."""
    learner, other = fitted(stream, "wide-gcn"), fitted(stream, "wide-gcn")
    generator = learner.generator.get_state()
    learner.learn(stream.session(1, with_pool_labels=True))
    epochs, other.retraining.epochs = other.retraining.epochs, 0
    other.learn(stream.session(1, with_pool_labels=True))
    other.retraining.epochs = epochs
    for each in (learner, other):
        each.generator.set_state(generator)
        each.learn(stream.session(2, with_pool_labels=True))
    first, second = (each.network["wide-gcn"].state_dict() for each in (learner, other))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert learner.network["wide-gcn"].head.bias.shape == (len(learner.classes_),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trunks": ("gcm",)}, "trunks is 'gcm'"),
        ({"trunks": ()}, "trunks is empty"),
        ({"rank": 0}, "rank is 0"),
        ({"penalties": (0.0,)}, "above 0"),
        ({"hop_weights": (-1.0,)}, "at least 0"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_method("joint").make(changes)
