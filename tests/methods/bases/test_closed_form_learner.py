"""What closed forms promise together, on both kinds of vectors."""

from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import Session, find_method
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions
from graphfcl.methods.testing import RULES, Rule, Subject
from tests.methods.closed_forms import ENCODER, QUICK, fitted, stream_of
from tests.production.models import copy_of, members, same_answers
from tests.production.models import fitted as fitted_model

NAMES = tuple(QUICK)
CANDIDATES: dict[str, dict[str, Any]] = {
    "ranpac": {"penalties": (1e4, 1e-6, 1.0)},
    "teen": {"shares": (0.9, 0.0, 0.2)},
    "fecam": {"shrinkages": (1e-3, 3.0), "shares": (0.9, 0.1)},
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_on_the_encoder_the_contract_is_kept_too(rule: Rule) -> None:
    rule(Subject(find_method("ranpac").learner, {**QUICK["ranpac"], **ENCODER}))


NARROW: dict[str, dict[str, Any]] = {"ranpac": {"width": 12}}  # wider, all penalties are right about every node


@pytest.mark.parametrize("name", NAMES)
def test_the_candidate_is_the_one_that_validation_sessions_like_best(name: str) -> None:
    """By the harmonic mean over base and held-out classes, with learners that never heard of the latter."""
    base = stream_of().base
    fixed = NARROW.get(name, {})
    learner = fitted(name, base, margin=0.0, **CANDIDATES[name], **fixed)
    validation = ValidationSessions.draw(base, base.pseudo_novel_columns, 0)
    settings = find_method(name).settings_with({**QUICK[name], **CANDIDATES[name]})
    candidates = find_method(name).learner(settings)._candidates()  # type: ignore[attr-defined]
    scores = []
    for choice in candidates:
        found = []
        for draw in range(STEP_DRAWS):
            alone = validation.only(draw)
            reduced, sessions = alone.as_stream(base)
            copy = fitted(name, reduced, **choice, **fixed)
            for session in sessions:
                copy.learn(session)
            found.append(alone.score_of(copy.scores(base.visible_graph, alone.queries[0]).argmax(axis=1)))
        scores.append(np.mean(found))
    assert len(set(scores)) > 1
    assert learner.chosen() == candidates[int(np.argmax(scores))]


def test_the_encoder_has_seen_no_label_of_a_held_out_class() -> None:
    """Otherwise validation sessions would be won by whoever trusts new classes least."""
    base = stream_of().base
    whole = fitted("teen", base, **ENCODER)
    reduced, _ = ValidationSessions.draw(base, base.pseudo_novel_columns, 0).as_stream(base)
    alone = fitted("teen", reduced, **ENCODER)
    for mine, theirs in zip(whole.network.parameters(), alone.network.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_node_it_is_what_never_saw_it(name: str) -> None:
    stream = stream_of(track="open")
    session, visible = stream.session(1), stream.base.visible_graph
    train, supports = (stream.base.train, stream.base.train_labels), (session.supports, session.support_labels)
    learner, never = fitted(name, stream.base), fitted(name, stream.base)
    learner.learn(session)
    before = learner.scores(visible, visible.nodes)
    never.learn(Session(1, session.new_classes, supports[0][1:], supports[1][1:], visible, "open"))
    found = learner.scores_without(visible, (supports[0][:1], supports[1][:1]), train, supports)
    wanted = never.scores(visible, supports[0][:1])
    np.testing.assert_allclose(found, wanted, atol=1e-4 * np.abs(wanted).max())
    np.testing.assert_array_equal(learner.scores(visible, visible.nodes), before)
    learner.restate(visible, train, (supports[0][:0], supports[1][:0]))
    assert np.isneginf(learner.scores(visible, visible.nodes)[:, -1]).all(), "a class without a node is no answer"


@pytest.mark.parametrize("name", NAMES)
def test_no_encoder_is_made_for_propagated_features(name: str) -> None:
    learner = fitted(name, stream_of().base)
    assert not [key for key in learner.state().tensors if key.startswith("network.")]
    assert learner.pretraining_seconds_ == 0
    stored, tensors = learner.stored(), learner.state().tensors
    assert sum(stored.values()) == sum(tensors[key].nbytes for key in tensors if key != "generator")
    assert stored["nodes"] == stored["features"] == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_calibration_learner_has_the_same_choice_fixed(name: str) -> None:
    learner = fitted(name, stream_of().base, margin=0.0)
    other = learner.calibration_learner()
    assert other is not None
    assert other._candidates() == [learner.choice]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_in_production_learns_and_unlearns_with_it(name: str) -> None:
    model = fitted_model(name)
    never, eight = copy_of(model), members("class-08")
    never.learn({"eight": eight[:5]})
    model.learn({"eight": eight[:6]})
    model.unlearn([eight[5]])
    assert model.history[-1]["exact"]
    same_answers(model, never, 1e-6)
    assert (np.array(model.predict(eight[:5])) == "eight").mean() > 0.5
