"""HAG-Meta: what it computes, its variants, and the traps of the authors' code."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from graphfcl import (
    BaseSession,
    DivergenceError,
    HagMeta,
    HagMetaSettings,
    InputError,
    Protocol,
    Stream,
    build_graph,
    evaluate,
    find_method,
    load_dataset,
    make_stream,
)
from graphfcl.methods.shared.episodes import Episode
from graphfcl.methods.shared.validation_sessions import held_out_folds
from graphfcl.nn import GraphInputs
from tests.methods.test_checks import make, stream_of


def fitted(stream: Stream, **changes: Any) -> HagMeta:
    learner = make("hag-meta", **changes)
    assert isinstance(learner, HagMeta)
    learner.fit(stream.base)
    return learner


@pytest.fixture(scope="module")
def stream() -> Stream:
    return stream_of()


def prepared(stream: Stream) -> tuple[HagMeta, GraphInputs, Episode]:
    """A learner at the start of meta-training, and an episode with two known tasks."""
    learner = make("hag-meta")
    assert isinstance(learner, HagMeta)
    inputs = GraphInputs(stream.base.visible_graph.loaded(), learner.device)
    learner._start(stream.base, inputs)
    sampler = learner._sampler(stream.base, np.arange(4, 7))
    sampler.sample(learner.random)
    return learner, inputs, sampler.sample(learner.random)


def test_prototypes_are_means_of_train_nodes_and_attended_supports(stream: Stream) -> None:
    """Trap: the authors' means run over all nodes of a class, queries included."""
    learner = fitted(stream)
    learner.learn(stream.session(1))
    learner.learn(stream.session(2))
    visible = stream.evaluation_graph(2)
    embedding = learner.network.node_embeddings(GraphInputs(visible.loaded(), learner.device))
    found = learner.memory.prototypes(learner.network, embedding, len(learner.classes_))
    assert found.shape[0] == 9, "each class once; the trap doubled the current ones"
    assert embedding.attention is not None
    base = stream.base
    for column in range(7):
        rows = visible.rows(base.train[base.train_labels == column])
        torch.testing.assert_close(found[column], embedding.values[torch.from_numpy(rows)].mean(dim=0))
    for number in (1, 2):
        supports = torch.from_numpy(visible.rows(stream.session(number).supports))
        weights = torch.softmax(embedding.attention[supports], dim=0)
        torch.testing.assert_close(found[6 + number], weights @ embedding.values[supports])


def test_scores_are_negative_squared_distances(stream: Stream) -> None:
    learner = fitted(stream)
    visible, nodes = stream.evaluation_graph(0), stream.queries(0).nodes[:5]
    embedding = learner.network.node_embeddings(GraphInputs(visible.loaded(), learner.device))
    prototypes = learner.memory.prototypes(learner.network, embedding, len(learner.classes_))
    for node, scores in zip(nodes, learner.scores(visible, nodes), strict=True):
        z = embedding.values[int(visible.rows(np.array([node]))[0])]
        expected = [-float(((z - p) ** 2).sum()) for p in prototypes]
        np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-4)


def test_pretraining_sees_base_classes_only(stream: Stream) -> None:
    """Trap: the authors pre-train on base and pseudo-novel classes."""
    base = stream.base
    shuffled = base.train_labels.copy()
    pseudo = shuffled >= 4
    shuffled[pseudo] = np.random.default_rng(0).permutation(shuffled[pseudo])
    other = BaseSession(**{**vars(base), "train_labels": shuffled})
    weights = []
    for session in (base, other):
        learner = make("hag-meta", gpil=False)
        assert isinstance(learner, HagMeta)
        learner.fit(session)
        weights.append(learner.network.encoder.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_an_episode_encodes_once_and_its_gradients_are_its_own(stream: Stream) -> None:
    """Traps: base prototypes from a second forward pass; an attention optimiser that is never zeroed."""
    learner, inputs, episode = prepared(stream)
    calls = []
    learner.network.encoder.register_forward_hook(lambda *_: calls.append(1))
    learner.generator = None  # type: ignore[assignment]  # no dropout
    assert learner.meta.optimiser is not None
    for _ in range(2):
        loss = learner.network.episode_loss(inputs, episode, None)
        expected = torch.autograd.grad(loss, list(learner.network.parameters()), allow_unused=True)
        calls.clear()
        learner.meta.step(inputs, episode, learner.meta.optimiser)
        assert len(calls) == 1
        for parameter, gradient in zip(learner.network.parameters(), expected, strict=True):
            assert gradient is not None
            assert parameter.grad is not None
            torch.testing.assert_close(parameter.grad, gradient)


def test_features_stay_sparse(monkeypatch: pytest.MonkeyPatch, stream: Stream) -> None:
    """Trap: the authors' code makes a matrix that is over 99 % zeros dense."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the features were made dense")

    monkeypatch.setattr(sparse.csr_array, "toarray", refuse)
    monkeypatch.setattr(sparse.csr_array, "todense", refuse)
    monkeypatch.setattr(torch.Tensor, "to_dense", refuse)
    evaluate(make("hag-meta", episodes=20), stream)


def test_held_out_classes_are_not_meta_trained_before_the_refit(stream: Stream) -> None:
    seen: set[int] = set()
    learner = make("hag-meta", refit=False)
    assert isinstance(learner, HagMeta)
    loss = learner._episode_loss

    def watch(inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:
        if learner.stage == "meta-training":
            seen.update(episode.supports.tolist())
            seen.update(episode.queries.tolist())
        return loss(inputs, episode, by_class=by_class)

    learner._episode_loss = watch  # type: ignore[method-assign]
    learner.fit(stream.base)
    base = stream.base
    (columns,) = held_out_folds(base, learner.seed, 1)
    held_out = base.train[np.isin(base.train_labels, columns)]
    assert held_out.size
    assert not seen & set(held_out)
    assert seen & set(base.train[base.train_labels >= 4])


def test_strict_learning_never_touches_a_query(stream: Stream) -> None:
    """Trap: the final evaluation runs the training step with a loss on query labels."""
    learner = fitted(stream)
    learner.fine_tuning.set_choice(3, 0.01)
    queries = set(stream.queries(len(stream)).nodes.tolist())
    step = learner.meta.step

    def watch(inputs: GraphInputs, episode: Episode, optimiser: Any, **options: Any) -> torch.Tensor:
        assert not queries & set(episode.queries.tolist())
        assert not queries & set(episode.supports.tolist())
        return step(inputs, episode, optimiser, **options)

    learner.meta.step = watch  # type: ignore[method-assign]
    before = learner.network.encoder.state_dict()["first.weight"].clone()
    for session in stream:
        learner.learn(session)
    assert not torch.equal(before, learner.network.encoder.state_dict()["first.weight"]), "it did fine-tune"
    after = learner.state().tensors
    learner.scores(stream.evaluation_graph(3), stream.queries(3).nodes)
    assert all(torch.equal(value, after[name]) for name, value in learner.state().tensors.items())


def test_paper_sessions_take_one_step_on_query_labels() -> None:
    paper = stream_of(name="paper")
    learner = fitted(paper)
    asked = []
    step = learner.meta.step

    def watch(inputs: GraphInputs, episode: Episode, optimiser: Any, **options: Any) -> torch.Tensor:
        asked.append(set(episode.queries.tolist()))
        return step(inputs, episode, optimiser, **options)

    learner.meta.step = watch  # type: ignore[method-assign]
    learner.learn(paper.session(1, with_query_labels=True))
    assert asked == [set(paper.queries(1).nodes.tolist())]
    assert learner.chosen()["fine_tuning_steps"] == 1


def test_steps_can_be_fixed_and_a_diverging_candidate_is_passed_over(stream: Stream) -> None:
    fixed = fitted(stream, fine_tuning_steps=3, fine_tuning_rate=0.002).fine_tuning
    assert (fixed.steps, fixed.rate) == (3, 0.002)
    chosen = fitted(stream, fine_tuning=((2, 1e30),)).fine_tuning
    assert (chosen.steps, chosen.rate) == (0, 0.0)


def test_isolated_prototypes_stay_as_they_were() -> None:
    stream = stream_of(track="isolated")
    learner = fitted(stream)
    assert learner.memory.kept is not None
    before = learner.memory.kept.clone()
    learner.learn(stream.session(1))
    torch.testing.assert_close(learner.memory.kept[:7], before)
    assert learner.memory.train[0].size == 0, "no old data is kept"


@pytest.mark.parametrize(
    "changes",
    [
        {"gpil": False, "nla": False, "tla": None},
        {"tla": "invariant"},
        {"loss": "binary"},
        *(
            pytest.param(changes, marks=pytest.mark.long)
            for changes in (
                {"gpil": False},
                {"nla": False},
                {"tla": None},
                {"task_weighting": "hard"},
                {"encoder": "gat"},
                {"last_relu": False},
                {"refit": False},
            )
        ),
    ],
    ids=lambda changes: "-".join(f"{key}={value}" for key, value in changes.items()),
)
def test_variants_learn(stream: Stream, changes: dict[str, Any]) -> None:
    measures = evaluate(make("hag-meta", **changes), stream).metrics
    assert measures.sessions[-1].balanced_accuracy > 2.5 / 10


def test_an_exploding_loss_is_said_and_no_table_is_made(stream: Stream) -> None:
    with pytest.raises(DivergenceError, match=r"diverged at step \d+ .*smaller learning rate"):
        fitted(stream, **{"pretraining.learning_rate": 1e30})


def test_chance_level_is_not_a_result() -> None:
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(12), 40)
    graph = build_graph(np.zeros((480, 480)), random.random((480, 5)) * 0, labels)
    noise = make_stream(graph, Protocol(base=8, pseudo_novel=2, way=1))
    with pytest.raises(DivergenceError, match="no better than chance"):
        fitted(noise)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tla", "round", "tla"),
        ("nlaa", "true", "did you mean 'nla'"),
        ("episodes", "many", "must be a whole number"),
        ("pretraining.epoch", "3", "did you mean 'epochs'"),
        ("encoder", "gin", "must be one of gcn, gat"),
        ("pretraining.epochs", "0", "pretraining.epochs is 0; it must be at least 1"),
        ("queries", "0", "queries is 0"),
        ("dropout", "1.0", "below 1"),
        ("learning_rate", "0", "above 0"),
        ("gpil.x", "1", "single setting"),
        ("fine_tuning", "none", "only be set in Python or in the TOML file"),
    ],
)
def test_bad_settings_are_one_sentence(key: str, value: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_method("hag-meta").settings_with({key: value})


def test_gat_needs_whole_heads() -> None:
    with pytest.raises(InputError, match="multiple"):
        HagMetaSettings(encoder="gat", hidden=30)


def test_settings_come_as_text() -> None:
    settings = find_method("hag-meta").settings_with(
        {"tla": "none", "nla": "false", "pretraining.epochs": "7", "size": "8"}
    )
    assert (settings.tla, settings.nla, settings.pretraining.epochs, settings.size) == (None, False, 7, 8)


@pytest.mark.long
@pytest.mark.soak
def test_pseudo_incremental_learning_lifts_the_prototype_network_at_every_session_of_debian() -> None:
    graph, protocol = load_dataset("debian")
    stream = make_stream(graph, protocol, seed=0)
    quick = {"pretraining.epochs": 8, "episodes": 100, "nla": False, "tla": None, "fine_tuning": (), "refit": True}
    curves = []
    for gpil in (False, True):
        learner = find_method("hag-meta").make({**quick, "gpil": gpil})
        curves.append([s.balanced_accuracy for s in evaluate(learner, stream).metrics.sessions])
    lift = np.array(curves[1]) - np.array(curves[0])
    assert (lift > 0.02).all(), lift
