"""RanPAC against plain loops, and the traps of its released form."""

from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import InputError, Protocol, evaluate, find_method, load_dataset, make_stream
from graphfcl.methods.ranpac import RELEASED_PENALTIES, RanpacSettings, drawn_fifth
from graphfcl.methods.shared.class_statistics import RidgeSums
from tests.methods.closed_forms import QUICK, fitted, labelled_vectors, plus, stream_of, vectors_of, walked


def lifted_by_loop(learner: Any, vectors: np.ndarray, centre: np.ndarray) -> np.ndarray:
    matrix = learner.projection.double().numpy()
    return np.array([np.maximum(vector @ matrix, 0) for vector in vectors]) - centre


def weights_by_loop(points: np.ndarray, labels: np.ndarray, penalty: float, *, balanced: bool) -> np.ndarray:
    """(M, C), node by node. penalty: λ tr(G)/M if balanced, otherwise λ itself."""
    size, count = points.shape[1], labels.max() + 1
    gram, right = np.zeros((size, size)), np.zeros((size, count))
    for point, label in zip(points, labels, strict=True):
        weight = 1 / (labels == label).sum() if balanced else 1.0
        gram += weight * np.outer(point, point)
        right[:, label] += weight * point
    share = penalty * np.trace(gram) / size if balanced else penalty
    return np.linalg.solve(gram + share * np.eye(size), right)


@pytest.mark.parametrize(("form", "penalty"), [("balanced", 0.5), ("released", 2.0)])
def test_scores_are_those_of_a_loop(form: str, penalty: float) -> None:
    stream = stream_of()
    learner = walked("ranpac", stream, form=form, penalty=penalty)
    start, visible = stream.base.visible_graph, stream.evaluation_graph(2)
    nothing = np.zeros(40)
    mean = lifted_by_loop(learner, vectors_of(learner, start), nothing).mean(axis=0)
    centre = mean if form == "balanced" else nothing
    np.testing.assert_allclose(learner.centre, centre, atol=1e-4)
    vectors, labels = labelled_vectors(learner, stream)
    points = lifted_by_loop(learner, vectors, centre)
    weights = weights_by_loop(points, labels, penalty, balanced=form == "balanced")
    wanted = lifted_by_loop(learner, vectors_of(learner, visible), centre) @ weights
    found = learner.scores(visible, visible.nodes)
    np.testing.assert_allclose(found, wanted, atol=2e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("form", ["balanced", "released"])
def test_lifted_a_few_at_a_time_sums_are_the_same(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    base = stream_of().base
    wanted = fitted("ranpac", base, form=form).memory.now
    monkeypatch.setattr("graphfcl.methods.shared.class_statistics.CHUNK", 7)
    found = fitted("ranpac", base, form=form).memory.now
    torch.testing.assert_close(found.gram, wanted.gram)
    torch.testing.assert_close(found.sums, wanted.sums)
    assert found.balanced == (form == "balanced")
    assert found.loaded(found.tensors(), torch.device("cpu")).balanced == found.balanced


def test_the_projection_is_standard_normal_and_of_the_seed() -> None:
    base = stream_of().base
    learner = fitted("ranpac", base, width=400)
    assert learner.projection.shape == (32, 400)
    assert abs(float(learner.projection.mean())) < 0.03
    assert abs(float(learner.projection.std()) - 1) < 0.03
    other = find_method("ranpac").make(QUICK["ranpac"], seed=1)
    other.fit(base)
    assert not torch.equal(other.projection, fitted("ranpac", base).projection)  # type: ignore[attr-defined]


def test_the_penalty_is_in_units_of_the_gram_matrix() -> None:
    """Were it not, longer vectors would be penalised less."""
    learner = fitted("ranpac", stream_of().base)
    random = torch.Generator().manual_seed(0)
    points, labels = torch.randn(50, 40, generator=random), torch.randint(3, (50,), generator=random)
    short, long = (plus(RidgeSums.empty(40), scale * points, labels, 3) for scale in (1, 100))
    answers = [learner._head(sums, None, 3, {"penalty": 0.5})["weights"] for sums in (short, long)]
    torch.testing.assert_close(answers[0], 100 * answers[1], rtol=1e-4, atol=1e-6)


def test_as_released_new_classes_are_hardly_ever_answered() -> None:
    graph = load_dataset("synthetic:nodes=800,edges=1600,classes=8,features=120,signal=0.2,skew=0.8")[0]
    stream = make_stream(graph, Protocol(base=3, pseudo_novel=2, way=1, shot=3), seed=0)
    found = {}
    for form in ("balanced", "released"):
        learner = find_method("ranpac").make({"rank": 60, "width": 300, "form": form})
        found[form] = evaluate(learner, stream).metrics.sessions[-1].novel or 0.0
    assert found["released"] < 0.1
    assert found["balanced"] > found["released"] + 0.25


def test_the_fifth_that_is_left_out_is_drawn() -> None:
    """Train nodes stand class by class: the last fifth of them would be the last classes alone."""
    labels = np.repeat(np.arange(5), 40)
    left_out = drawn_fifth(labels.size, seed=0)
    assert left_out.sum() == 40
    assert (np.bincount(labels[left_out], minlength=5) > 2).all()


def test_the_released_penalty_has_the_least_squared_error_on_base_classes() -> None:
    stream = stream_of()
    learner = fitted("ranpac", stream.base, form="released")
    base, visible = stream.base, stream.base.visible_graph
    known = base.train_labels < 3
    vectors = vectors_of(learner, visible)[visible.rows(base.train[known])]
    labels, left_out = base.train_labels[known], drawn_fifth(int(known.sum()), seed=0)
    points = lifted_by_loop(learner, vectors, np.zeros(40))
    errors = []
    for penalty in RELEASED_PENALTIES:
        weights = weights_by_loop(points[~left_out], labels[~left_out], penalty, balanced=False)
        errors.append(((points[left_out] @ weights - np.eye(3)[labels[left_out]]) ** 2).mean())
    assert learner.chosen() == {"penalty": RELEASED_PENALTIES[int(np.argmin(errors))]}


def test_settings_out_of_range_are_refused() -> None:
    for changes, words in [
        ({"form": "printed"}, "form is 'printed'"),
        ({"width": 0}, "width is 0"),
        ({"penalties": ()}, "penalties is empty"),
        ({"penalty": 0.0}, "penalty is 0.0"),
    ]:
        with pytest.raises(InputError, match=words):
            RanpacSettings(**changes)  # type: ignore[arg-type]
