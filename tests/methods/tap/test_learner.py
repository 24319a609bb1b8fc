"""What a session of TAP does, and what it keeps."""

from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import InputError, Protocol, Session, find_method, load_dataset, make_stream
from graphfcl.methods.shared.supervised_training import SupervisedSettings
from graphfcl.methods.tap import learner as tap_learner
from graphfcl.methods.tap.learner import Tap, TapSettings, assigned, drift, neighbourhood, refined
from graphfcl.nn import GcnEncoder
from tests.golden.samples import SHORT, golden_stream


def fitted(track: str = "isolated", **changes: Any) -> tuple[Tap, Any]:
    stream, learner = golden_stream(track), find_method("tap").make({**SHORT["tap"], **changes})
    assert isinstance(learner, Tap)
    learner.fit(stream.base)
    return learner, stream


def kept(learner: Tap) -> torch.Tensor:
    assert learner.memory.kept is not None
    return learner.memory.kept


def encoded(learner: Tap, visible: Any, nodes: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(learner.embeddings(visible)[visible.rows(nodes)])


@pytest.mark.parametrize("track", ["isolated", "transductive", "open"])
def test_prototypes_and_weights_are_all_that_is_kept(track: str) -> None:
    learner, stream = fitted(track)
    learner.learn(stream.session(1))
    stored, classes = learner.stored(), len(learner.classes_)
    assert (stored["nodes"], stored["features"]) == (0, 0)
    assert stored["embeddings"] == classes * (learner.settings.size * 4 + 8)
    assert learner.memory.train[0].size == learner.memory.supports[0].size == 0


def test_after_session_0_prototypes_are_means_of_train_nodes_on_the_visible_graph() -> None:
    learner, stream = fitted()
    base = stream.base
    values = encoded(learner, base.visible_graph, base.train)
    expected = torch.stack([values[base.train_labels == c].mean(dim=0) for c in range(len(base.classes))])
    torch.testing.assert_close(kept(learner), expected)
    cosines = torch.nn.functional.cosine_similarity(values[:, None], expected[None], dim=2)
    np.testing.assert_allclose(
        learner.scores(base.visible_graph, base.train), 15 * cosines.numpy(), rtol=1e-4, atol=1e-4
    )


def test_a_session_without_steps_refines_new_prototypes_twice() -> None:
    learner, stream = fitted(fine_tuning_steps=0)
    session, old = stream.session(1), kept(learner).clone()
    weights = {name: value.clone() for name, value in learner.network.state_dict().items()}
    learner.learn(session)
    visible = session.visible_graph
    supports, labels = encoded(learner, visible, session.supports), torch.tensor(session.support_labels)
    rows = neighbourhood(visible.adjacency, visible.rows(session.supports), 2)
    around = torch.from_numpy(learner.embeddings(visible)[rows])
    expected = torch.cat([old, supports.mean(dim=0)[None]])  # N = 1
    for _ in range(2):
        expected = refined(expected, assigned(expected, around, 0.1), supports, labels, 0.7)
    torch.testing.assert_close(kept(learner), expected)
    torch.testing.assert_close(kept(learner)[:-1], old)
    assert all(torch.equal(weights[name], value) for name, value in learner.network.state_dict().items())


def test_weights_go_a_twentieth_of_the_way_and_old_prototypes_follow() -> None:
    learner, stream = fitted(fine_tuning_steps=3, dropout=0.0)
    start, session = learner.state(), stream.session(1)
    before = encoded(learner, session.visible_graph, session.supports)
    old = kept(learner).clone()
    from_weights = {name: value.clone() for name, value in learner.network.state_dict().items()}
    learner.learn(session)
    after = encoded(learner, session.visible_graph, session.supports)
    torch.testing.assert_close(kept(learner)[: len(old)], old + drift(old, before, after, 1.0))

    whole = find_method("tap").make({**SHORT["tap"], "fine_tuning_steps": 3, "dropout": 0.0, "step_share": 1.0})
    assert isinstance(whole, Tap)
    start.values["settings"] = whole.settings_as_json()
    whole.load_state(start)
    whole.learn(session)
    for name, value in learner.network.state_dict().items():
        full = whole.network.state_dict()[name]
        assert not torch.equal(full, from_weights[name])
        torch.testing.assert_close(value, 0.95 * from_weights[name] + 0.05 * full)


def test_a_step_is_one_of_adam_on_the_margin_loss_of_the_supports() -> None:
    """Old prototypes are constants, new ones move with their supports; classes with unequal shots count the same."""
    settings = {"fine_tuning_steps": 1, "step_share": 1.0, "dropout": 0.0}
    learner, stream = fitted("open", **settings)
    first, second = stream.session(1), stream.session(2)
    supports = np.concatenate([first.supports, second.supports[:2]])
    labels = np.concatenate([first.support_labels, second.support_labels[:2]])
    visible = first.visible_graph
    session = Session(1, first.new_classes + second.new_classes, supports, labels, visible, "open")
    old, count = kept(learner).clone(), len(learner.classes_)

    reference = learner.copy(visible)
    encoder = reference.network.encoder
    inputs, rows = reference._make_inputs(visible), visible.rows(supports)
    values = encoder(encoder.rows(inputs, None))
    means = [values[rows[labels == c]].mean(dim=0) for c in (count, count + 1)]
    around = values[neighbourhood(visible.adjacency, rows, 2)].detach()
    members = assigned(torch.cat([old, torch.stack(means).detach()]), around, 0.1)
    prototypes = list(old)
    for c, mean in zip((count, count + 1), means, strict=True):
        total = members.sums[c] + values[rows[labels == c]].sum(dim=0)
        prototypes.append(0.7 * total / (members.masses[c] + (labels == c).sum()) + 0.3 * mean)
    losses: dict[int, list[torch.Tensor]] = {count: [], count + 1: []}
    for row, label in zip(rows, labels.tolist(), strict=True):
        cosines = [torch.cosine_similarity(values[row], prototype, dim=0) for prototype in prototypes]
        logits = torch.stack([15 * (cosine - 0.1 * (c == label)) for c, cosine in enumerate(cosines)])
        losses[label].append(torch.logsumexp(logits, dim=0) - logits[label])
    optimiser = torch.optim.Adam(encoder.parameters(), lr=0.01)
    sum(torch.stack(each).mean() / 2 for each in losses.values()).backward()  # type: ignore[union-attr]
    optimiser.step()

    learner.learn(session)
    for name, value in learner.network.encoder.state_dict().items():
        # Adam's first step is a sign: a slope that rounding makes of zero goes either way.
        near = torch.isclose(value, encoder.state_dict()[name], atol=1e-4)
        assert near.float().mean() > 0.98, name


def test_what_is_kept_holds_no_graph_of_gradients() -> None:
    learner, stream = fitted()
    for number in (1, 2):
        learner.learn(stream.session(number))
        assert kept(learner).grad_fn is None
        assert not kept(learner).requires_grad


def test_every_session_has_an_optimiser_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, stream = fitted()
    made: list[torch.optim.Adam] = []
    original = tap_learner.make_adam

    def noted(*arguments: Any) -> torch.optim.Adam:
        made.append(original(*arguments))
        assert not made[-1].state_dict()["state"]
        return made[-1]

    monkeypatch.setattr(tap_learner, "make_adam", noted)
    for number in (1, 2):
        learner.learn(stream.session(number))
    assert len(made) == 2


def test_unlabelled_nodes_are_assigned_over_all_classes_old_ones_included() -> None:
    """Where old nodes are visible, they are around the supports too: they go to their own classes."""
    learner, stream = fitted("transductive", fine_tuning_steps=0, hops=5)
    session, old = stream.session(1), kept(learner).clone()
    learner.learn(session)
    values = torch.from_numpy(learner.embeddings(session.visible_graph))
    supports = encoded(learner, session.visible_graph, session.supports)
    members = assigned(torch.cat([old, supports.mean(dim=0)[None]]), values, 0.1)
    assert (members.masses[: len(old)] > 0).sum() > 1
    torch.testing.assert_close(kept(learner)[: len(old)], old)


def test_more_supports_of_a_known_class_move_its_mean_on() -> None:
    learner, stream = fitted(fine_tuning_steps=0)
    base, old = stream.base, kept(learner).clone()
    count = int((base.train_labels == 0).sum())
    more = base.validation[base.validation_labels == 0][:2]
    learner.learn(Session(1, (), more, np.zeros(more.size, dtype=np.int64), base.visible_graph, "isolated"))
    mean = encoded(learner, base.visible_graph, more).mean(dim=0)
    torch.testing.assert_close(kept(learner)[0], (count * old[0] + more.size * mean) / (count + more.size))
    torch.testing.assert_close(kept(learner)[1:], old[1:])


def test_steps_are_chosen_among_the_candidates_or_fixed() -> None:
    learner, _ = fitted(fine_tuning_steps=None, fine_tuning=((2, 0.01),))
    assert learner.chosen()["fine_tuning_steps"] in (0, 2)
    learner, _ = fitted(fine_tuning_steps=0)
    assert learner.chosen()["fine_tuning_steps"] == 0


@pytest.mark.parametrize(
    "changes", [{"group_weight": 0.9}, {"step_share": 2.0}, {"hops": -1}, {"temperature": 0.0}, {"margin": -0.1}]
)
def test_bad_settings_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TapSettings(**changes)


def test_weights_of_words_that_no_support_reaches_stay_through_all_sessions() -> None:
    """Adam turns any decay into a full step for a weight without a gradient, and sessions would add up."""
    graph, _ = load_dataset("synthetic:nodes=400,edges=500,classes=9,features=3000,signal=0.9")
    stream = make_stream(graph, Protocol(base=4, pseudo_novel=2, way=1, shot=3), seed=0)
    learner = Tap(TapSettings(fine_tuning_steps=5, pretraining=SupervisedSettings(epochs=2)))
    learner.fit(stream.base)
    encoder = learner.network.encoder
    assert isinstance(encoder, GcnEncoder)
    start = encoder.first.weight.detach().clone()
    reached = np.zeros(len(start), dtype=bool)
    for number in range(1, len(stream) + 1):
        session = stream.session(number)
        visible, rows = session.visible_graph, session.visible_graph.rows(session.supports)
        near = np.union1d(rows, neighbourhood(visible.loaded().adjacency, rows, 2))
        reached |= np.asarray(abs(visible.loaded().features[near]).sum(axis=0)).ravel() > 0
        learner.learn(session)
    moved = (encoder.first.weight.detach() != start).any(dim=1).numpy()
    assert moved.any()
    assert not reached.all()
    assert not (moved & ~reached).any()
