"""The formulas of ANCHOR against plain loops."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import sparse

from graphfcl import VisibleGraph
from graphfcl.methods.anchor import AnchorSettings
from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.frame import gram, times_upper, whitening
from graphfcl.methods.anchor.metric import Metric, directions_of
from graphfcl.methods.anchor.settings import Neighbourhood
from graphfcl.methods.shared.untrained_features import symmetric, unit_rows
from tests.methods.anchor.whole_rounds import posteriors


def points(count: int = 60, size: int = 5, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    values = torch.randn(count, size, generator=random)
    return values / values.norm(dim=1, keepdim=True), torch.arange(count) % classes


@pytest.mark.parametrize("size", [3, 4, 5, 11, 12])
def test_products_in_tiles_are_whole_products(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphfcl.methods.anchor.frame.TILE", 4)
    random = torch.Generator().manual_seed(size)
    values, upper = torch.randn(7, size, generator=random), torch.randn(size, size, generator=random).triu()
    torch.testing.assert_close(gram(values), values.T @ values)
    torch.testing.assert_close(times_upper(values, upper), values @ upper)


def test_the_whitening_is_that_of_a_loop() -> None:
    values, labels = points(61)
    labels[labels == 3] = torch.arange(15) % 2  # classes of several sizes, one without a point, one with one
    labels[60] = 4
    frame = whitening(values, labels, 5, 0.3)
    middle, root = frame["middle"], frame["whitening"]
    within = np.zeros((5, 5))
    means = []
    for c in (0, 1, 2, 4):
        own = values[labels == c].double().numpy()
        means.append(own.mean(axis=0))
        for row in own:
            within += np.outer(row - means[-1], row - means[-1]) * (0.5 / (60 - 3) + 0.5 / (3 * max(1, len(own) - 1)))
    assert float(frame["shift"]) == pytest.approx(0.3 * np.trace(within) / 5)
    within += 0.3 * np.trace(within) / 5 * np.eye(5)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(within), rtol=1e-4)
    assert not root.tril(-1).any()
    np.testing.assert_allclose(middle, np.mean(means, axis=0), atol=1e-6)
    upper = root[tuple(torch.triu_indices(5, 5))]
    assert torch.equal(symmetric(upper), root + torch.triu(root, 1).T)
    # The symmetric root of a state of before gives vectors with the same angles.
    values_, vectors = np.linalg.eigh(np.linalg.inv(within))
    other = torch.from_numpy((vectors * np.sqrt(values_)) @ vectors.T).float()
    gram, expected = (unit_rows((values - middle) @ each) for each in (root, other))
    np.testing.assert_allclose(gram @ gram.T, expected @ expected.T, atol=1e-4)


def some_graph(edges: float = 0.1) -> VisibleGraph:
    """60 nodes with weighted edges; some may have none."""
    drawn = sparse.random_array((60, 60), density=edges, random_state=np.random.default_rng(0), dtype=np.float32)
    adjacency = sparse.csr_array(sparse.triu(drawn, 1) + sparse.triu(drawn, 1).T)
    return VisibleGraph(np.arange(60), adjacency, np.zeros((60, 1), np.float32))


def softmax_of_a_loop(logits: np.ndarray) -> np.ndarray:
    return np.array([[math.exp(value) / sum(math.exp(other) for other in row) for value in row] for row in logits])


def links_of_a_loop(dense: np.ndarray, posterior: np.ndarray) -> np.ndarray:
    """What the classes of neighbours say, node by node."""
    nodes, classes = posterior.shape
    weights = dense / dense[dense > 0].mean()
    links = np.zeros((classes, classes))
    for v in range(nodes):
        for u in range(nodes):
            links += weights[v, u] * np.outer(posterior[v], posterior[u])
    usual = links.sum(axis=0) / links.sum()
    actual = np.zeros((nodes, classes))
    for v in range(nodes):
        for c in range(classes):
            for other in range(classes):
                expected = 50 * (0.7 * usual[other] + 0.3 * (c == other))
                ratio = math.log((links[c, other] + expected) / (links[c].sum() + 50) / usual[other])
                near = sum(weights[v, u] * posterior[u, other] for u in range(nodes))
                actual[v, c] += near * ratio / math.sqrt(max(1, weights[v].sum()))
    return actual


@pytest.mark.parametrize("weight", [0.0, 0.8])
def test_posteriors_are_those_of_a_loop(weight: float) -> None:
    values, labels = points()
    visible = some_graph()
    settings = SimpleNamespace(rounds=2, temperature=4.0, length_prior=3.0, unlabelled_weight=14.0)
    known = Anchors.empty().plus(values[:12], labels[:12], 4)
    actual, _ = posteriors(known, values, visible, Neighbourhood(1.0, 2, 0.6, 3, weight), settings)

    x, dense = values.double().numpy(), visible.normalised.toarray().astype(float)
    plain = (dense - np.diag(np.diag(dense))) * np.sqrt(np.outer(1 / np.diag(dense), 1 / np.diag(dense)))
    before, limited = None, 0
    sums = [sum(x[v] for v in range(12) if labels[v] == c) for c in range(4)]
    counts = [3.0] * 4
    means, weights = [sums[c] / counts[c] for c in range(4)], list(counts)
    for turn in range(3):
        squares = [
            min(1, max(0, (means[c] @ means[c] - 1 / weights[c]) / max(0.3, 1 - 1 / weights[c]))) for c in range(4)
        ]
        sure = [c for c in range(4) if weights[c] >= 20] or list(range(4))
        usual = max(1e-4, sum(squares[c] for c in sure) / len(sure))
        lengths = [math.sqrt((weights[c] * squares[c] + 3 * usual) / (weights[c] + 3)) for c in range(4)]
        logits = np.array([[4 * (x[v] @ means[c]) / lengths[c] for c in range(4)] for v in range(60)])
        for _ in range(2 if weight else 1):
            with_links = logits
            if weight:
                start = softmax_of_a_loop(logits) if before is None else before
                with_links = logits + weight * links_of_a_loop(plain, start)
            first = softmax_of_a_loop(with_links)
            posterior = first
            for _ in range(3):
                posterior = 0.6 * dense @ posterior + 0.4 * first
            posterior = posterior / posterior.sum(axis=1, keepdims=True)
            before = posterior
        if turn < 2:
            totals = [posterior[:, c].sum() for c in range(4)]
            parts = [min(14.0, totals[c]) for c in range(4)]
            weights = [(counts[c] + parts[c]) ** 2 / (counts[c] + parts[c] ** 2 / totals[c]) for c in range(4)]
            found = [sum(posterior[v, c] * x[v] for v in range(60)) / totals[c] for c in range(4)]
            means = [(sums[c] + parts[c] * found[c]) / (counts[c] + parts[c]) for c in range(4)]
            limited += sum(totals[c] > 14 for c in range(4))
    assert 0 < limited < 8
    np.testing.assert_allclose(actual, posterior, rtol=1e-4, atol=1e-6)


def test_links_say_nothing_without_edges() -> None:
    values, labels = points()
    settings = SimpleNamespace(rounds=2, temperature=4.0, length_prior=3.0, unlabelled_weight=14.0)
    known = Anchors.empty().plus(values[:12], labels[:12], 4)
    visible = some_graph(edges=0.0)
    with_links, _ = posteriors(known, values, visible, Neighbourhood(1.0, 2, 0.0, 1, 1.0), settings)
    without, _ = posteriors(known, values, visible, Neighbourhood(1.0, 2, 0.0, 1, 0.0), settings)
    np.testing.assert_allclose(with_links, without, rtol=1e-5)


def test_links_tell_classes_that_link_to_others() -> None:
    """Two kinds of nodes look alike; what sets them apart is whom they link to: never their own kind."""
    random = np.random.default_rng(0)
    truth = np.arange(400) % 4
    rows = np.repeat(np.arange(400), 4)
    partner = np.array([2, 3, 0, 1])[truth[rows]]
    columns = random.integers(0, 100, rows.size) * 4 + partner
    half = sparse.csr_array((np.ones(rows.size, np.float32), (rows, columns)), shape=(400, 400))
    adjacency = sparse.csr_array(half + half.T)
    visible = VisibleGraph(np.arange(400), adjacency, np.zeros((400, 1), np.float32))
    looks = np.eye(3, dtype=np.float32)[np.array([0, 0, 1, 2])[truth]] + 0.02 * random.standard_normal((400, 3))
    values = torch.from_numpy((looks / np.linalg.norm(looks, axis=1, keepdims=True)).astype(np.float32))
    settings = SimpleNamespace(rounds=2, temperature=20.0, length_prior=3.0, unlabelled_weight=200.0)
    labels = torch.from_numpy(truth)
    known = Anchors.empty().plus(values[:200], labels[:200], 4)
    accuracy = []
    for weight in (0.0, 1.0):
        actual, _ = posteriors(known, values, visible, Neighbourhood(1.0, 2, 0.0, 1, weight), settings)
        accuracy.append(float((actual.argmax(dim=1) == labels).float().mean()))
    assert accuracy[0] < 0.85
    assert accuracy[1] > 0.95


@pytest.mark.parametrize("links", [0.0, 0.7])
def test_a_class_without_a_label_takes_no_part(links: float) -> None:
    values, labels = points()
    three = labels < 3
    settings = SimpleNamespace(rounds=2, temperature=4.0, length_prior=3.0, unlabelled_weight=14.0)
    visible, how = some_graph(), Neighbourhood(1.0, 2, 0.5, 2, links)
    fewer, more = (Anchors.empty().plus(values[three], labels[three], count) for count in (3, 5))
    plain, _ = posteriors(fewer, values, visible, how, settings)
    wider, _ = posteriors(more, values, visible, how, settings)
    np.testing.assert_allclose(wider[:, :3], plain, rtol=1e-6)
    assert not wider[:, 3:].any()


def test_a_mean_of_few_is_corrected_for_its_noise() -> None:
    """Means of n unit vectors around one direction: the corrected length does not depend on n."""
    random = torch.Generator().manual_seed(1)
    centre = torch.zeros(200)
    centre[0] = 1.0
    lengths = []
    for count in (5, 2000):
        actual = []
        for _ in range(50 if count == 5 else 1):
            drawn = centre + 0.1 * torch.randn(count, 200, generator=random)
            drawn = drawn / drawn.norm(dim=1, keepdim=True)
            mean = drawn.double().mean(dim=0, keepdim=True)
            settings = AnchorSettings(length_prior=0.0)
            weight = torch.tensor([float(count)], dtype=torch.float64)
            direction = directions_of(mean, weight, Metric(None, 1.0), settings)
            actual.append(float(mean.norm() / direction.norm()))
        lengths.append(np.mean(actual))
    assert lengths[0] == pytest.approx(lengths[1], rel=0.03)
