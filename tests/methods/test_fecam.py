"""FeCAM against plain loops, and the traps of its released code."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from graphfcl import InputError, Session
from graphfcl.methods.fecam import FecamSettings, correlations, shrunk, tukey
from tests.methods.closed_forms import ENCODER, fitted, labelled_vectors, stream_of, unit, vectors_of, walked


def tukey_by_loop(vectors: np.ndarray, power: float) -> np.ndarray:
    return np.array([unit(np.array([np.sign(x) * abs(x) ** power for x in vector])) for vector in vectors])


def correlation_by_loop(covariance: np.ndarray, diagonal: float, off_diagonal: float) -> np.ndarray:
    size = len(covariance)
    on = np.mean([covariance[i, i] for i in range(size)])
    off = np.mean([covariance[i, j] for i in range(size) for j in range(size) if i != j])
    found = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            found[i, j] = covariance[i, j] + (diagonal * on if i == j else off_diagonal * off)
    return np.array([[found[i, j] / np.sqrt(found[i, i] * found[j, j]) for j in range(size)] for i in range(size)])


def scores_by_loop(
    points: np.ndarray, labels: np.ndarray, asked: np.ndarray, *, many: int, lends: bool, off_diagonal: float
) -> np.ndarray:
    """Shrinkage 0.7 and, where classes lend, share 0.2."""
    count = labels.max() + 1
    means = [points[labels == c].mean(axis=0) for c in range(count)]
    covariances = [np.cov(points[labels == c].T) for c in range(count)]
    columns = []
    for c in range(count):
        place, covariance = unit(means[c]), covariances[c]
        if c >= many and lends:
            strengths = np.array([np.exp(16 * unit(means[c]) @ unit(means[b])) for b in range(many)])
            strengths /= strengths.sum()
            covariance = covariance + sum(strengths[b] * covariances[b] for b in range(many))
            lent = unit(sum(strengths[b] * unit(means[b]) for b in range(many)))
            place = unit(0.8 * place + 0.2 * lent)
        inverse = np.linalg.inv(correlation_by_loop(covariance, 0.7, off_diagonal))
        columns.append([-(x - place) @ inverse @ (x - place) for x in asked])
    return np.array(columns).T


@pytest.mark.parametrize("changes", [{}, {"calibrated": False}, {"off_diagonal": 0.3}, {"power": 1.0}])
def test_scores_are_those_of_a_loop(changes: dict[str, Any]) -> None:
    stream = stream_of()
    learner = walked("fecam", stream, shrinkage=0.7, share=0.2, **changes)
    visible, power = stream.evaluation_graph(2), changes.get("power", 0.5)
    vectors, labels = labelled_vectors(learner, stream)
    points, asked = (tukey_by_loop(each, power) for each in (vectors, vectors_of(learner, visible)))
    lends, off = changes.get("calibrated", True), changes.get("off_diagonal", 0.0)
    wanted = scores_by_loop(points, labels, asked, many=6, lends=lends, off_diagonal=off)
    found = learner.scores(visible, visible.nodes)
    np.testing.assert_allclose(found, wanted, atol=5e-3 * np.abs(wanted).max())


def test_the_correlation_is_that_of_the_matrix_and_not_of_its_rows_as_data() -> None:
    random = np.random.default_rng(0)
    covariances = torch.tensor(np.stack([np.cov(random.standard_normal((4, 30))) for _ in range(2)]))
    found = correlations(shrunk(covariances, 0.5))
    for c in range(2):
        np.testing.assert_allclose(found[c], correlation_by_loop(covariances[c].numpy(), 0.5, 0.0), rtol=1e-12)
        assert not torch.allclose(found[c], torch.corrcoef(covariances[c]))
    # A tight class has the same metric as a wide one: without a log-determinant it would always lose.
    torch.testing.assert_close(correlations(shrunk(100 * covariances, 0.5)), found)


def test_negative_numbers_have_a_power_too() -> None:
    values = torch.tensor([[-0.25, 0.09, 0.0]])
    wanted = torch.nn.functional.normalize(torch.tensor([[-0.5, 0.3, 0.0]]))
    torch.testing.assert_close(tukey(values, 0.5), wanted)
    stream = stream_of()
    learner = walked("fecam", stream, last_relu=False, **ENCODER)
    visible = stream.evaluation_graph(2)
    assert (learner.embeddings(visible) < 0).any()
    assert np.isfinite(learner.scores(visible, visible.nodes)).all()


class Largest(TorchDispatchMode):
    """The number of entries of the largest tensor that is made."""

    def __init__(self) -> None:
        super().__init__()
        self.entries = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.entries = max(self.entries, found.numel())
        return found


def test_no_tensor_has_all_nodes_twice_nor_all_nodes_classes_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphfcl.methods.bases.closed_form_learner.CHUNK", 16)
    stream = stream_of()
    learner = fitted("fecam", stream.base)
    visible = stream.base.visible_graph
    inputs = learner.cache.inputs(visible)
    embeddings, head = torch.from_numpy(learner.embeddings(visible)), learner._head_now(inputs)
    with Largest() as largest:
        learner._scores(embeddings, head)
    assert largest.entries <= 6 * visible.node_count < visible.node_count**2


@pytest.mark.parametrize("calibrated", [True, False])
@pytest.mark.parametrize("supports", [1, 4])
def test_fewer_supports_than_columns_are_no_trouble(supports: int, calibrated: bool) -> None:
    stream = stream_of(shot=4)
    learner = fitted("fecam", stream.base, calibrated=calibrated)
    session = stream.session(1)
    few = (session.supports[:supports], session.support_labels[:supports])
    learner.learn(Session(1, session.new_classes, *few, session.visible_graph, session.track))
    scores = learner.scores(session.visible_graph, session.visible_graph.nodes)
    assert np.isfinite(scores).all()


def test_settings_out_of_range_are_refused() -> None:
    for changes, words in [
        ({"rank": 129}, "rank is 129; .* at most 128"),
        ({"features": "encoder", "size": 257}, "size is 257; .* at most 256"),
        ({"power": 0.0}, "power is 0.0"),
        ({"shrinkage": 0.0}, "shrinkage is 0.0"),
        ({"share": 1.0}, "share is 1.0"),
        ({"shrinkages": ()}, "shrinkages is empty"),
    ]:
        with pytest.raises(InputError, match=words):
            FecamSettings(**changes)  # type: ignore[arg-type]
