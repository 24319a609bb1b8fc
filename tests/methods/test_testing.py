"""The contract as checks: each rule notices the learner that breaks it, and says so in one sentence."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import InputError, Learner, LearnerState, testing
from graphfcl.methods import import_method, registry
from graphfcl.methods.testing import RULES, broken_rules, check_learner, says
from tests.outside.samples import nearest_mean


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Learner]]:
    """The learner of the docs page, which keeps every rule."""
    folder = tmp_path_factory.mktemp("page")
    nearest_mean(folder, "good_nearest_mean")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry.REGISTRY, "registered", {})
        patch.setattr(sys, "path", [str(folder), *sys.path])
        yield import_method("good_nearest_mean:NearestMean").learner
        sys.modules.pop("good_nearest_mean")


def test_the_learner_of_the_page_keeps_every_rule(good: type[Learner]) -> None:
    assert [rule.__name__ for rule, why in broken_rules(good) if why] == []
    check_learner(good, {"hops": "1"})
    assert testing.check_learner is check_learner
    assert all(says(rule).endswith(".") for rule in RULES)


def breaking(good: Any, **changes: Any) -> type[Learner]:
    return type("Breaking", (good,), changes)


def variants(good: Any) -> dict[str, dict[str, Any]]:
    """For each rule a change of the good learner that breaks it."""

    def fit_without_last(self: Any, base: Any, *rest: Any) -> None:
        good.fit(self, base, *rest)
        self.classes_ = base.classes[:-1]

    def learn_in_front(self: Any, session: Any) -> None:
        good.learn(self, session)
        self.classes_ = session.new_classes + self.classes_[: -len(session.new_classes) or None]

    def nan_scores(self: Any, visible: Any, nodes: np.ndarray) -> np.ndarray:
        return good.scores(self, visible, nodes) * np.nan

    def centred_scores(self: Any, visible: Any, nodes: np.ndarray) -> np.ndarray:
        found = good.scores(self, visible, nodes)
        return found - found.mean(axis=0)

    def counting_scores(self: Any, visible: Any, nodes: np.ndarray) -> np.ndarray:
        self.asked_ = getattr(self, "asked_", 0) + 1
        return good.scores(self, visible, nodes)

    def forgetful_load(self: Any, state: LearnerState) -> None:
        good.load_state(self, state)
        self.sums_ = np.zeros_like(self.sums_)

    def learn_by_memory(self: Any, session: Any) -> None:
        good.learn(self, session)
        self._hidden = getattr(self, "_hidden", 0) + 1
        self.sums_ += self._hidden

    def aliased_state(self: Any) -> LearnerState:
        state = good.state(self)
        return LearnerState({**state.tensors, "sums_": torch.from_numpy(self.sums_)}, state.values)

    def learn_in_place(self: Any, session: Any) -> None:
        before = self.sums_
        good.learn(self, session)
        before += 1

    def sticky_load(self: Any, state: LearnerState) -> None:
        bonus = getattr(self, "bonus", 0)
        good.load_state(self, state)
        self.bonus = bonus

    def bonus_learn(self: Any, session: Any) -> None:
        good.learn(self, session)
        self.bonus = 1

    def bonus_scores(self: Any, visible: Any, nodes: np.ndarray) -> np.ndarray:
        found = good.scores(self, visible, nodes)
        return found + getattr(self, "bonus", 0) * np.arange(found.shape[1])

    def shallow_copy(self: Any, _visible: Any) -> Any:
        other = type(self)(self.settings, seed=self.seed)
        vars(other).update(vars(self))
        return other

    def random_fit(self: Any, base: Any, *rest: Any) -> None:
        good.fit(self, base, *rest)
        self.sums_ += np.random.default_rng().random(self.sums_.shape)

    def editing_fit(self: Any, base: Any, *rest: Any) -> None:
        good.fit(self, base, *rest)
        base.train_labels[:] = 0

    def fit_needs_pseudo_novel(self: Any, base: Any, *rest: Any) -> None:
        base.pseudo_novel_classes[0]
        good.fit(self, base, *rest)

    def learn_needs_new_classes(self: Any, session: Any) -> None:
        session.new_classes[0]
        good.learn(self, session)

    def learn_needs_edges(self: Any, session: Any) -> None:
        visible = session.visible_graph
        if (visible.degrees[visible.rows(session.supports)] == 0).any():
            raise ZeroDivisionError("a node without edges")
        good.learn(self, session)

    def resumed_fit(self: Any, base: Any, progress: Any = None, *_: Any) -> None:
        done = getattr(self, "rounds_", 0)
        good.fit(self, base)
        self.rounds_ = done
        for _round in range(3):
            self.rounds_ += 1
            self.sums_ *= 1 + self.rounds_
            if progress is not None:
                progress.checkpoint(self)

    def numbered_scores(self: Any, visible: Any, nodes: np.ndarray) -> np.ndarray:
        return good.scores(self, visible, nodes) + nodes[:, None] % 2

    def ordered_scores(self: Any, visible: Any, nodes: np.ndarray) -> np.ndarray:
        positions = np.arange(visible.features.shape[1])
        return good.scores(self, visible, nodes) + (visible.features[visible.rows(nodes)] @ positions)[:, None]

    return {
        "fit_learns_session_0": {"fit": fit_without_last},
        "learn_appends_classes": {"learn": learn_in_front},
        "scores_are_numbers": {"scores": nan_scores},
        "scores_do_not_depend_on_who_else_is_asked": {"scores": centred_scores},
        "asking_changes_nothing": {"scores": counting_scores},
        "a_loaded_learner_scores_the_same": {"load_state": forgetful_load},
        "a_loaded_learner_goes_on_as_the_saved_one": {"learn": learn_by_memory},
        "a_state_stays_what_it_was": {"state": aliased_state, "learn": learn_in_place},
        "an_earlier_state_is_that_of_then": {
            "load_state": sticky_load,
            "learn": bonus_learn,
            "scores": bonus_scores,
        },
        "a_copy_goes_on_by_itself": {"copy": shallow_copy, "learn": learn_in_place},
        "a_seed_gives_one_result": {"fit": random_fit},
        "what_is_handed_over_stays_as_it_is": {"fit": editing_fit},
        "every_kind_of_stream_can_be_learned": {"fit": fit_needs_pseudo_novel},
        "more_supports_and_unequal_shots_are_learned": {"learn": learn_needs_new_classes},
        "supports_without_edges_are_learned": {"learn": learn_needs_edges},
        "an_interrupted_fit_goes_on": {"fit": resumed_fit},
        "stored_says_what_is_kept": {"stored": lambda _: {"bytes": 3}},
        "embeddings_are_what_scores_come_from": {
            "embeddings": lambda _, visible: np.ones((visible.node_count, 2)),
            "embeddings_of_rows": lambda _, __, rows: np.zeros((rows.size, 2)),
        },
        "explain_answers_or_says_none": {"explain": lambda *_: "because"},
        "restating_what_is_known_changes_nothing": {
            "restate": lambda *_: True,
            "forgets_exactly": property(lambda _: True),
        },
        "dropped_nodes_are_no_longer_needed": {"drop_nodes": lambda self, _: delattr(self, "sums_")},
        "node_numbers_mean_nothing": {"scores": numbered_scores},
        "column_order_means_nothing": {"scores": ordered_scores},
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_learner_that_breaks_a_rule_is_told_which(good: type[Learner], rule: Any) -> None:
    learner = breaking(good, **variants(good)[rule.__name__])
    ((_, why),) = broken_rules(learner, rules=[rule])
    assert why
    assert "\n" not in why
    with pytest.raises(testing.ContractError) as caught:
        check_learner(learner)
    assert says(rule) in str(caught.value), "the message says what the contract says"
    assert why.split(":")[0] in str(caught.value)


def test_a_state_that_cannot_be_written_names_the_attribute(good: type[Learner]) -> None:
    def fit(self: Any, base: Any, *rest: Any) -> None:
        good.fit(self, base, *rest)
        self.pairs_ = {(1, 2): 3}

    broken = {rule.__name__: why for rule, why in broken_rules(breaking(good, fit=fit)) if why}
    assert "Breaking.pairs_ is a dict, which a state cannot contain" in broken["a_loaded_learner_scores_the_same"]


def test_networks_and_optimisers_are_kept_by_their_state_dict(good: type[Learner]) -> None:
    learner, copy = good(seed=1), good(seed=1)
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimiser = torch.optim.Adam(network.parameters())
    network(torch.ones(4, 2)).sum().backward()
    optimiser.step()
    learner.weights_, learner.steps_ = network.state_dict(), optimiser.state_dict()  # type: ignore[attr-defined]
    learner.layers_ = [torch.ones(2), {"deep": (torch.zeros(1), [1, None])}]  # type: ignore[attr-defined]
    state = learner.state()
    copy.load_state(LearnerState(state.tensors, json.loads(json.dumps(state.values))))
    other = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    other.load_state_dict(copy.weights_)  # type: ignore[attr-defined]
    for one, each in zip(network.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(one, each)
    again = torch.optim.Adam(other.parameters())
    again.load_state_dict(copy.steps_)  # type: ignore[attr-defined]
    assert torch.equal(again.state_dict()["state"][0]["exp_avg"], optimiser.state_dict()["state"][0]["exp_avg"])
    assert torch.equal(copy.layers_[0], torch.ones(2))  # type: ignore[attr-defined]
    assert copy.layers_[1]["deep"] == (torch.zeros(1), [1, None])  # type: ignore[attr-defined]
    learner.network_ = network  # type: ignore[attr-defined]
    with pytest.raises(
        InputError, match=r"network_ is a Sequential, which a state cannot contain: keep its state_dict\(\)"
    ):
        learner.state()
    del learner.network_  # type: ignore[attr-defined]
    learner.deep_ = {"a": [torch.ones(1), {3, 4}]}  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"deep_\['a'\]\[1\] is a set, which a state cannot contain: keep tensors"):
        learner.state()


def test_a_deterministic_learner_may_ignore_the_seed(good: type[Learner]) -> None:
    first, second = (good(seed=seed).state().values["seed"] for seed in (0, 1))
    assert (first, second) == (0, 1)


def test_what_is_no_learner_is_refused_before_any_rule() -> None:
    with pytest.raises(InputError, match=r"derives from graphfcl\.Learner"):
        check_learner(dict)  # type: ignore[arg-type]


def test_learned_attributes_come_back_as_they_were(good: type[Learner]) -> None:
    learner, copy = good(seed=1), good(seed=1)
    learner.whole_, learner.half_ = np.arange(3), np.ones((2, 2), np.float16)  # type: ignore[attr-defined]
    learner.flat_, learner.random_ = torch.ones(2), np.random.default_rng(7)  # type: ignore[attr-defined]
    learner.plain_, learner.none_ = {"a": [1, 2.5, "x", True]}, None  # type: ignore[attr-defined]
    learner.scale_, learner.nan_ = np.float32(0.5), float("nan")  # type: ignore[attr-defined]
    copy.left_over_ = 3  # type: ignore[attr-defined]
    learner.passing = object()  # type: ignore[attr-defined]
    copy.load_state(learner.state())
    for name in ("whole_", "half_"):
        np.testing.assert_array_equal(getattr(copy, name), getattr(learner, name))
        assert getattr(copy, name).dtype == getattr(learner, name).dtype
    assert torch.equal(copy.flat_, torch.ones(2))  # type: ignore[attr-defined]
    assert copy.random_.random() == learner.random_.random()  # type: ignore[attr-defined]
    assert copy.plain_ == learner.plain_  # type: ignore[attr-defined]
    assert copy.none_ is None  # type: ignore[attr-defined]
    assert copy.scale_ == 0.5  # type: ignore[attr-defined]
    assert np.isnan(copy.nan_)  # type: ignore[attr-defined]
    assert not hasattr(copy, "passing")
    assert not hasattr(copy, "left_over_"), "what the state does not have is forgotten"
    with pytest.raises(InputError, match="another method, seed or settings"):
        good(seed=2).load_state(learner.state())


def test_the_page_is_where_it_is_said_to_be() -> None:
    assert (Path(__file__).parents[2] / "docs" / "your-method.md").exists()
