"""What the stages of training start from and what their steps minimise, seen from outside.

A learner is watched through the messages of its progress, its saved state, the episodes that samplers hand out, and a
hook on every step of every optimiser.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from graphfcl import Learner, LearnerState, Progress, Protocol, Stream, VisibleGraph, load_dataset, make_stream
from graphfcl.methods.shared.episodes import Episode, TaskSampler
from graphfcl.methods.shared.validation_sessions import KnownClasses, held_out_folds
from tests.methods.shared.test_prototype_network import loss_by_loop
from tests.methods.test_checks import make

# How a learner is watched


@contextmanager
def watched_steps(see: Callable[[list[torch.Tensor]], None]) -> Iterator[None]:
    """``see`` is handed the parameters, with their gradients, at every optimiser step before it is taken."""

    def hook(optimiser: torch.optim.Optimizer, *_: Any) -> None:
        see([parameter for group in optimiser.param_groups for parameter in group["params"]])

    handle = register_optimizer_step_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def watched_episodes(monkeypatch: pytest.MonkeyPatch, sampler: type) -> list[Episode]:
    """Every episode that samplers of a type hand out from now on."""
    handed: list[Episode] = []
    plain = sampler.sample  # type: ignore[attr-defined]

    def sample(*arguments: Any) -> Episode:
        handed.append(plain(*arguments))
        return handed[-1]

    monkeypatch.setattr(sampler, "sample", sample)
    return handed


class Watch(Progress):
    """Keeps the state in which a stage begins, and knows whether the steps of a session are being tried."""

    def __init__(self, stage: str = "") -> None:
        self.stage = stage
        self.begun: LearnerState | None = None
        self.trying = False

    def step(self, stage: str, step: int, total: int, **_: float | None) -> None:
        # The first candidate is no step at all; what comes before it is other training.
        self.trying = stage == "choosing fine-tuning" and step < total

    def checkpoint(self, learner: Learner) -> None:
        state = learner.state()
        if self.begun is None and state.values["stage"] == self.stage:
            self.begun = state


def weights_of(learner: Any) -> dict[str, torch.Tensor]:
    """By the names that they have in a saved state."""
    return dict(learner.network.named_parameters())


def gradient(weight: torch.Tensor) -> torch.Tensor:
    assert weight.grad is not None
    return weight.grad


def largest(tensors: list[torch.Tensor]) -> torch.Tensor:
    """A layer on the features: of all parameters these are the largest."""
    return max(tensors, key=torch.Tensor.numel).detach().clone()


def stream_of() -> Stream:
    graph, _ = load_dataset("synthetic:nodes=300,edges=900,classes=8,features=40,signal=0.8,skew=0.5")
    return make_stream(graph, Protocol(base=3, pseudo_novel=3, way=1, shot=3), seed=0)


# Refit

FEW_EPISODES = {"pretraining.epochs": 4, "episodes": 6, "validate_every": 2}


@pytest.mark.parametrize("name", ["hag-meta", "gpn", "cec", "meta-gnn"])
def test_the_refit_starts_from_the_pre_trained_weights(name: str) -> None:
    """Whatever the weights are when it begins."""
    changes = {**FEW_EPISODES, "fine_tuning_steps": 0} if name in ("hag-meta", "meta-gnn") else FEW_EPISODES
    stream, watch = stream_of(), Watch("refit")
    asked = (stream.base.visible_graph, stream.base.validation)
    learner = make(name, **changes)
    learner.fit(stream.base, watch)
    assert learner.chosen()["episodes"] > 0
    assert watch.begun is not None, "there was a refit"
    begun = watch.begun

    def scores_after_changing(names: str) -> np.ndarray:
        """Of a learner that goes on from where the refit begins, with other tensors of these names."""
        tensors = {key: value * 0.9 if key.startswith(names) else value for key, value in begun.tensors.items()}
        other = make(name, **changes)
        other.load_state(replace(begun, tensors=tensors))
        other.fit(stream.base)
        return other.scores(*asked)

    np.testing.assert_array_equal(scores_after_changing("network."), learner.scores(*asked))
    assert not np.allclose(scores_after_changing("pretrained."), learner.scores(*asked))


# Choosing the steps of a session


@pytest.mark.parametrize("name", ["hag-meta", "finetune", "er-gnn", "icarl"])
def test_every_trial_of_steps_starts_from_the_same_weights(name: str) -> None:
    stream, watch = stream_of(), Watch()
    # A meta-trained method holds out a part of the classes, the others all: so many sessions has a trial.
    base = stream.base
    (first,) = held_out_folds(base, 0, 1)
    sessions = len(first) if name == "hag-meta" else len(base.pseudo_novel_classes)
    candidates = ((1, 0.01), (1, 0.05))
    changes: dict[str, Any] = {"refit": False} if name == "hag-meta" else {}
    learner = make(name, fine_tuning=candidates, **changes)
    starts: list[torch.Tensor] = []
    with watched_steps(lambda parameters: starts.append(largest(parameters)) if watch.trying else None):
        learner.fit(stream.base, watch)
    assert len(starts) == 3 * len(candidates) * sessions, "each is tried on three draws, with a step a session"
    assert len({start.numpy().tobytes() for start in starts[::sessions]}) == 1
    if name == "hag-meta":
        kept = [value for value in learner.state().tensors.values() if value.shape == starts[0].shape]
        assert any(torch.equal(value, starts[0]) for value in kept), "trials leave no trace"


# Steps


def assert_same_gradients(found: list[torch.Tensor], loss: torch.Tensor, weights: list[torch.Tensor]) -> None:
    """To the digits of the graph's own matrix, which is float32; what is nearly zero may be zero."""
    for one, other in zip(found, torch.autograd.grad(loss, weights), strict=True):
        assert float((one - other).abs().max()) <= 1e-5 * float(other.abs().max()) + 1e-9


@pytest.mark.usefixtures("double_precision")
def test_fine_tuning_minimises_the_loss_by_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few supports of a new class would otherwise be drowned by the queries of old ones."""
    stream = stream_of()
    learner = make("hag-meta", episodes=4, validate_every=2, dropout=0.0, fine_tuning_steps=2)
    learner.fit(stream.base)
    learner.learn(stream.session(1))
    session, episodes = stream.session(2), watched_episodes(monkeypatch, KnownClasses)
    steps = []

    def see(parameters: list[torch.Tensor]) -> None:
        steps.append(len(episodes))
        episode, weights = episodes[-1], weights_of(learner)
        counts = np.bincount(episode.query_classes, minlength=episode.class_count)
        assert counts[-1] < counts[0], "classes differ in their queries"
        assert {id(value) for value in parameters} == {id(value) for value in weights.values()}
        loss = loss_by_loop(weights, session.visible_graph.loaded(), episode, tla="printed", by_class=True)
        assert_same_gradients([gradient(value) for value in weights.values()], loss, list(weights.values()))

    with watched_steps(see):
        learner.learn(session)
    assert steps == [1, 2]


def maml_by_hand(
    weights: dict[str, torch.Tensor], visible: VisibleGraph, episode: Episode, *, steps: int, rate: float, second: bool
) -> torch.Tensor:
    """The loss of the queries after inner steps on the supports; ``second``: differentiated through them."""
    matrix, features = (
        torch.from_numpy(part.toarray().astype(np.float64)) for part in (visible.adjacency, visible.features)
    )
    matrix = matrix + torch.eye(len(matrix))
    scale = matrix.sum(dim=1) ** -0.5
    matrix = scale[:, None] * matrix * scale[None]

    def embed(values: list[torch.Tensor], nodes: np.ndarray) -> torch.Tensor:
        hidden = torch.relu(matrix @ features @ values[0] + values[1])
        return torch.relu(matrix @ hidden @ values[2] + values[3])[np.searchsorted(visible.nodes, nodes)]

    def loss(values: list[torch.Tensor], nodes: np.ndarray, classes: np.ndarray) -> torch.Tensor:
        logits = embed(values, nodes) @ values[4] + values[5]
        return torch.stack([torch.logsumexp(row, 0) - row[k] for row, k in zip(logits, classes, strict=True)]).mean()

    encoder = [weights[f"encoder.{layer}.{part}"] for layer in ("first", "second") for part in ("weight", "bias")]
    supports = embed(encoder, episode.supports)
    means = [supports[torch.from_numpy(episode.support_classes == k)].mean(dim=0) for k in range(episode.class_count)]
    values = [*encoder, torch.stack([2 * p for p in means], dim=1), torch.stack([-(p * p).sum() for p in means])]
    for _ in range(steps):
        inner = loss(values, episode.supports, episode.support_classes)
        slopes = torch.autograd.grad(inner, values, create_graph=True)
        values = [v - rate * (s if second else s.detach()) for v, s in zip(values, slopes, strict=True)]
    return loss(values, episode.queries, episode.query_classes)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("first_order", [False, True])
def test_meta_gnn_s_steps_go_through_the_inner_steps(monkeypatch: pytest.MonkeyPatch, first_order: bool) -> None:
    stream, steps = stream_of(), 0
    changes: dict[str, Any] = {
        "episodes": 3,
        "validate_every": 3,
        "fine_tuning": (),
        "refit": False,
        "pretraining.epochs": 3,
    }
    learner = make("meta-gnn", first_order=first_order, dropout=0.0, inner_steps=3, inner_rate=0.1, **changes)
    episodes = watched_episodes(monkeypatch, TaskSampler)

    def see(_: list[torch.Tensor]) -> None:
        nonlocal steps
        if not episodes:
            return  # pre-training
        steps += 1
        weights = weights_of(learner)
        losses = [
            maml_by_hand(weights, stream.base.visible_graph.loaded(), episodes[-1], steps=3, rate=0.1, second=second)
            for second in (not first_order, first_order)
        ]
        found = [gradient(value) for value in weights.values()]
        assert_same_gradients(found, losses[0], list(weights.values()))
        with pytest.raises(AssertionError):
            assert_same_gradients(found, losses[1], list(weights.values()))

    with watched_steps(see):
        learner.fit(stream.base)
    assert steps == 3
