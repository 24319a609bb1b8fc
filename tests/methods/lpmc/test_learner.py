"""What LPMC may learn from, what it keeps, and how its encoder starts."""

from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import EncoderStore, InputError, PaperSession, find_method, make_stream
from graphfcl.methods import Tensors
from graphfcl.methods.lpmc.learner import Lpmc, LpmcSettings
from graphfcl.methods.shared.training_state import copy_weights
from graphfcl.methods.testing import Subject
from graphfcl.methods.testing.rules import an_interrupted_fit_goes_on, restating_what_is_known_changes_nothing
from tests.golden.samples import SHORT, golden_stream


def settings_of(**changes: Any) -> LpmcSettings:
    return find_method("lpmc").settings_with({**SHORT["lpmc"], **changes})


def fitted(track: str = "transductive", **changes: Any) -> Lpmc:
    learner = Lpmc(settings_of(**changes))
    learner.fit(golden_stream(track).base)
    return learner


def test_it_is_handed_supports_only() -> None:
    """The released code also trains on ten labelled queries a class, and replays them."""
    assert not Lpmc.trains_on_query_labels
    strict = golden_stream("transductive")
    stream = make_stream(strict.graph, strict.protocol, seed=0, name="paper")
    learner = Lpmc(settings_of())
    learner.fit(stream.base)
    session = stream.session(1, with_query_labels=False)
    assert not isinstance(session, PaperSession)
    learner.learn(session)
    assert set(learner.memory.supports[0]) == set(session.supports)


def test_nothing_enters_the_memory_at_test() -> None:
    """The released code puts fresh labelled nodes of the test pool into the memory before it scores."""
    stream, learner = golden_stream("transductive"), fitted()
    for number in range(1, len(stream) + 1):
        learner.learn(stream.session(number))
        before = [array.tolist() for array in (*learner.memory.train, *learner.memory.supports)]
        learner.scores(stream.evaluation_graph(number), stream.queries(number).nodes)
        assert [array.tolist() for array in (*learner.memory.train, *learner.memory.supports)] == before
    supports = np.concatenate([stream.session(number).supports for number in range(1, len(stream) + 1)])
    assert set(learner.memory.train[0]) == set(stream.base.train)
    assert set(learner.memory.supports[0]) == set(supports)


def test_a_class_is_one_vector_under_isolated() -> None:
    stream, learner = golden_stream("isolated"), fitted("isolated")
    assert (learner.fine_tuning.steps, learner.memory.train[0].size) == (0, 0)
    assert learner.memory.kept is not None
    before = learner.memory.kept.clone()
    learner.learn(stream.session(1))
    assert learner.memory.kept.shape == (8, learner.settings.size)
    assert torch.equal(learner.memory.kept[:7], before)
    assert learner.stored()["nodes"] == 0
    assert learner.stored()["embeddings"] == learner.memory.kept.nbytes + learner.memory.counts.nbytes


def test_steps_are_chosen_by_validation_sessions_or_fixed() -> None:
    chosen = fitted(validation_folds=1, fine_tuning_steps=None, fine_tuning=((1, 0.001),)).chosen()
    assert (chosen["fine_tuning_steps"], chosen["fine_tuning_rate"]) in {(0, 0.0), (1, 0.001)}
    learner = fitted()
    assert learner.chosen()["fine_tuning_steps"] == 2
    before = copy_weights(learner.network.encoder)["first.weight"]
    learner.learn(golden_stream("transductive").session(1))
    assert not torch.equal(before, copy_weights(learner.network.encoder)["first.weight"])


def test_session_0_ends_with_the_steps_of_a_session() -> None:
    weights = [
        copy_weights(fitted(validation_folds=1, fine_tuning_steps=steps).network.encoder)["first.weight"]
        for steps in (0, 2)
    ]
    assert not torch.equal(weights[0], weights[1])


def test_without_steps_a_label_taken_back_leaves_no_trace() -> None:
    changes = {**SHORT["lpmc"], "validation_folds": 1, "fine_tuning_steps": 0}
    learner = Lpmc(settings_of(**changes))
    learner.fit(golden_stream("open").base)
    assert learner.forgets_exactly
    restating_what_is_known_changes_nothing(Subject(Lpmc, changes))


class Keys(EncoderStore):
    """Notes what is asked for, and remembers."""

    def __init__(self) -> None:
        self.found: dict[str, Tensors] = {}

    def get(self, key: dict[str, Any], compute: Any) -> Tensors:
        name = str(sorted(key.items(), key=str))
        self.found.setdefault(name, {})
        self.found[name] = self.found[name] or compute()
        return self.found[name]


def test_encoders_of_different_starts_are_kept_apart_and_used_again() -> None:
    base, keys = golden_stream("transductive").base, Keys()

    def run(**changes: Any) -> Lpmc:
        learner = Lpmc(settings_of(validation_folds=1, episodes=4, **changes))
        learner.fit(base, encoders=keys)
        return learner

    first = run()
    assert not first.pretraining_reused_
    for changes in ({"start": "both"}, {"start": "supervised"}, {"contrast.epochs": 3}):
        assert not run(**changes).pretraining_reused_
    assert len(keys.found) == 4
    again = run()
    assert again.pretraining_reused_
    nodes = base.validation
    np.testing.assert_array_equal(first.scores(base.visible_graph, nodes), again.scores(base.visible_graph, nodes))


@pytest.mark.parametrize("start", ["both", "supervised"])  # the contract is checked with the default
def test_every_start_goes_on_after_an_interruption(start: str) -> None:
    an_interrupted_fit_goes_on(Subject(Lpmc, {**SHORT["lpmc"], "validation_folds": 1, "start": start}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"eps": 0.0}, "eps is 0.0"),
        ({"min_points": 0}, "min_points is 0"),
        ({"temperature": 0.0}, "temperature is 0.0"),
        ({"start": "none"}, "start is 'none'"),
        ({"base_share": 0.0}, "base_share is 0.0"),
        ({"distillation": -1.0}, "distillation is -1.0"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LpmcSettings(**changes)
