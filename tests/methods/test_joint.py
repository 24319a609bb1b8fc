"""Joint training: its models against plain versions, and that it is an upper reference whatever is drawn."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graphfcl import InputError, PooledSession, Protocol, Stream, find_method, load_dataset, make_stream
from graphfcl.methods.joint import Joint
from graphfcl.metrics import balanced_accuracy, confusion_matrix
from tests.golden.samples import SHORT, golden_stream
from tests.methods.test_sgc_ridge import weights_by_loop

QUICK = SHORT["joint"]
# Few labels, weak words and many edges between classes: trained heads alone are points behind ANCHOR here.
HARD = "synthetic:nodes=1200,edges=3600,classes=14,features=200,signal=0.15,homophily=0.55,skew=0.4,seed=5"
SMALLER = {"hidden": 64, "size": 32, "rank": 96}
NOISE = 0.01  # of a balanced accuracy over some hundred test nodes


@pytest.fixture(scope="module")
def stream() -> Stream:
    return golden_stream("transductive")


def pooled(stream: Stream, number: int) -> PooledSession:
    session = stream.session(number, with_pool_labels=True)
    assert isinstance(session, PooledSession)
    return session


def learned(stream: Stream, last: int, **changes: Any) -> Joint:
    learner = find_method("joint").make({**QUICK, **changes}, seed=0)
    assert isinstance(learner, Joint)
    learner.fit(stream.base)
    for number in range(1, last + 1):
        learner.learn(pooled(stream, number))
    return learner


def all_labels(stream: Stream, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Of session 0, and the supports and pools of the sessions."""
    sessions = [pooled(stream, number) for number in range(1, last + 1)]
    nodes = [stream.base.train, *(part for each in sessions for part in (each.supports, each.pool))]
    labels = [
        stream.base.train_labels,
        *(part for each in sessions for part in (each.support_labels, each.pool_labels)),
    ]
    return np.concatenate(nodes), np.concatenate(labels)


# Its models


def unit(rows: torch.Tensor, centre: torch.Tensor) -> torch.Tensor:
    return nn.functional.normalize(rows - centre)


def head_by_loop(vectors: torch.Tensor, columns: torch.Tensor, steps: int, rate: float) -> torch.Tensor:
    """(C, D) weights of a softmax head, every class counting the same."""
    head = nn.Linear(vectors.shape[1], int(columns.max()) + 1, bias=False)
    nn.init.zeros_(head.weight)
    adam = torch.optim.Adam(head.parameters(), lr=rate)
    share = 1 / torch.bincount(columns).float() / len(head.weight)
    for _ in range(steps):
        adam.zero_grad()
        (nn.functional.cross_entropy(head(vectors), columns, reduction="none") * share[columns]).sum().backward()
        adam.step()
    return head.weight.detach()


def test_probabilities_are_the_mean_of_anchor_the_ridge_and_two_heads(stream: Stream) -> None:
    learner = learned(stream, 2, penalty=0.2, joint_steps=20)
    alone = find_method("anchor-pool").make(SHORT["anchor-pool"], seed=0)
    alone.fit(stream.base)
    for number in (1, 2):
        alone.learn(pooled(stream, number))
    visible, (nodes, labels) = stream.session(2).visible_graph.loaded(), all_labels(stream, 2)
    assert set(learner.memory.nodes) == set(nodes), "supports and pools of all sessions"
    tables, now, frame = learner.cache.inputs(visible), learner.retrained, learner.knowledge.frame
    encoder = learner._make_encoder(torch.Generator(), learner.settings.hidden)
    encoder.load_state_dict(now.encoder)
    with torch.no_grad():
        own = torch.from_numpy(tables.whole.visible.features.toarray()) @ frame["basis"]
        around = torch.from_numpy(visible.normalised @ (visible.normalised @ own.numpy()))
        output = encoder(encoder.rows(tables.whole, None))
        assert learner.knowledge.neighbourhood.hops == 2
        near, far = unit(own, frame["centre.0"]), unit(around, frame["centre.1"])
        with_output = torch.cat([near, far, unit(output, output.mean(dim=0))], dim=1)
        plain = torch.cat([near, 2 * far], dim=1)
    rows, columns = visible.rows(nodes), torch.from_numpy(labels)
    ridge = torch.from_numpy(weights_by_loop(plain[rows], columns, 0.2, np.ones(plain.shape[1]))).float()
    heads = [(each, head_by_loop(each[rows], columns, 20, 0.05)) for each in (plain, with_output)]
    by_head, by_wide_head = (torch.softmax(vectors @ weight.T, dim=1) for vectors, weight in heads)
    by_anchor = torch.softmax(torch.from_numpy(alone.scores(visible, visible.nodes)), dim=1)
    expected = 0.6 * by_anchor + 0.2 * torch.softmax(30 * plain @ ridge, dim=1) + 0.1 * (by_head + by_wide_head)
    actual = torch.softmax(torch.from_numpy(learner.scores(visible, visible.nodes)), dim=1)
    np.testing.assert_allclose(actual, expected, atol=5e-3)


def test_a_session_trains_from_scratch(stream: Stream) -> None:
    """What it knows after two sessions does not depend on the first one's training."""
    learner, other = learned(stream, 1), learned(stream, 0)
    train, other._train_gcn = other._train_gcn, lambda *_: other.network.encoder  # type: ignore[method-assign]
    other.learn(pooled(stream, 1))
    other._train_gcn = train  # type: ignore[method-assign]
    for each in (learner, other):
        each.learn(pooled(stream, 2))
    first, second = learner.retrained.tensors(), other.retrained.tensors()
    assert all(torch.equal(first[name], second[name]) for name in first)
    fewer = learned(stream, 1).retrained.tensors()
    assert not torch.equal(first["retrained.encoder.first.weight"], fewer["retrained.encoder.first.weight"])


def test_under_isolated_earlier_nodes_keep_their_features_and_have_no_edges() -> None:
    stream = golden_stream("isolated")
    learner = learned(stream, 2)
    nodes, labels = all_labels(stream, 2)
    assert dict(zip(learner.memory.nodes, learner.memory.labels, strict=True)) == dict(zip(nodes, labels, strict=True))
    assert learner.memory.features is not None
    assert learner.retrained.head.shape[0] == len(learner.classes_)


# An upper reference


def last_accuracy(name: str, stream: Stream, train: Callable[[Joint], None] = lambda _: None) -> float:
    """Balanced accuracy after the last session. train: changes how a new joint learner is trained."""
    learner = find_method(name).make(SMALLER, seed=0)
    if isinstance(learner, Joint):
        train(learner)
    learner.fit(stream.base)
    for number in range(1, len(stream) + 1):
        learner.learn(stream.session(number, with_pool_labels=learner.uses_pool_labels))
    queries = stream.queries(len(stream))
    answers = learner.scores(stream.evaluation_graph(len(stream)), queries.nodes).argmax(axis=1)
    return balanced_accuracy(confusion_matrix(queries.labels, answers, len(learner.classes_)))


@pytest.fixture(scope="module")
def hard() -> Stream:
    graph, _ = load_dataset(HARD)
    return make_stream(graph, Protocol(base=5, pseudo_novel=3, way=3, shot=5), seed=0)


@pytest.fixture(scope="module")
def joint_accuracy(hard: Stream) -> float:
    return last_accuracy("joint", hard)


@pytest.mark.parametrize("name", ["anchor", "anchor-pool"])
def test_it_is_not_behind_anchor(hard: Stream, joint_accuracy: float, name: str) -> None:
    assert joint_accuracy > last_accuracy(name, hard) - NOISE


def other_first_weights(learner: Joint) -> None:
    """By a millionth of their size."""
    make = learner._make_encoder

    def moved(*arguments: Any) -> Any:
        encoder, random = make(*arguments), torch.Generator().manual_seed(7)
        with torch.no_grad():
            for weight in encoder.parameters():
                weight.mul_(1 + 1e-6 * torch.randn(weight.shape, generator=random))
        return encoder

    learner._make_encoder = moved  # type: ignore[method-assign, assignment]


def other_dropout(learner: Joint) -> None:
    """As on a GPU, whose generator draws other numbers from the same seed."""
    train, seed = learner._train_gcn, learner.seed

    def trained(*arguments: Any) -> Any:
        learner.seed = seed + 100
        try:
            return train(*arguments)
        finally:
            learner.seed = seed

    learner._train_gcn = trained  # type: ignore[method-assign, assignment]


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1 if before > 1 else 2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("change", [other_first_weights, other_dropout])
def test_last_digits_and_other_draws_change_little(
    hard: Stream, joint_accuracy: float, change: Callable[[Joint], None]
) -> None:
    assert last_accuracy("joint", hard, change) == pytest.approx(joint_accuracy, abs=NOISE)


@pytest.mark.long
@pytest.mark.usefixtures("two_threads")
def test_another_number_of_threads_changes_little(hard: Stream, joint_accuracy: float) -> None:
    assert last_accuracy("joint", hard) == pytest.approx(joint_accuracy, abs=NOISE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"joint_steps": 0}, "joint_steps is 0"), ({"penalty": 0.0}, "above 0"), ({"rank": 0}, "rank is 0")],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_method("joint").make(changes)
