"""What equality holds after a model was saved and loaded, with its cache and without (docs/model-folder.md)."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphfcl import GraphClassifier
from tests.marks import some_first
from tests.production.models import fitted, members, small_graph

# What docs/model-folder.md promises of probabilities and unknown scores.
COMPUTED_AGAIN = (1e-6, 1e-6)
GROWN = (1e-4, 1e-3)
METHODS = some_first(["anchor", "sgc-ridge", "proto-gcn", "tem", "ranpac"], ["anchor", "sgc-ridge", "proto-gcn"])


def loaded(model: GraphClassifier, folder: Path, *, cache: bool) -> GraphClassifier:
    """The model as another process finds it."""
    model.save(folder)
    model.wait()
    if cache:
        return GraphClassifier.load(folder)
    copy = shutil.copytree(folder, folder.with_name(f"{folder.name}-{model.version}"))
    (copy / "cache.sqlite").unlink()
    return GraphClassifier.load(copy)


def assert_same_bits(one: GraphClassifier, other: GraphClassifier) -> None:
    np.testing.assert_array_equal(one.predict_proba(), other.predict_proba())
    for name, values in one.prediction_columns(coverage=0.9).items():
        np.testing.assert_array_equal(values, other.prediction_columns(coverage=0.9)[name])


def assert_close(one: GraphClassifier, other: GraphClassifier, bounds: tuple[float, float]) -> None:
    """Up to rounding: another class only where two are tied, another ``unknown`` only at the threshold."""
    probability, unknown = bounds
    first, second = one.predict_proba(), other.predict_proba()
    assert np.abs(first - second).max() <= probability
    two = np.sort(first, axis=1)[:, -2:]
    tied = two[:, 1] - two[:, 0] <= 2 * probability
    assert ((one.predict() == other.predict()) | tied).all()
    strange, also = one.unknown_scores(), other.unknown_scores()
    assert np.abs(strange - also).max() <= unknown
    at_threshold = np.abs(strange - one.calibration_.threshold) <= unknown
    said, repeated = (each.prediction_columns()["unknown"] for each in (one, other))
    assert ((said == repeated) | at_threshold).all()


def grow(model: GraphClassifier) -> None:
    """A few nodes, so that the embeddings of most others are carried over."""
    near = members("class-08")[:2]
    model.grow(nodes=([90001, 90002], small_graph().features[:2], None), edges=([90001, 90002], near, None))


CHANGES: list[Callable[[GraphClassifier], object]] = [
    lambda model: model,
    lambda model: model.learn({"eight": members("class-08")[:5]}),
    lambda model: model.unlearn(members("class-08")[:1]),
    lambda model: model.rename("eight", "8"),
]


@pytest.mark.parametrize("method", METHODS)
def test_a_loaded_model_answers_the_same(tmp_path: Path, method: str) -> None:
    model = fitted(method)
    for change in CHANGES:
        change(model)
        assert_same_bits(model, loaded(model, tmp_path / "model", cache=True))
        assert_close(model, loaded(model, tmp_path / "model", cache=False), COMPUTED_AGAIN)
    grow(model)
    assert model.history[-1]["within_reach"] < 0.5
    assert_same_bits(model, loaded(model, tmp_path / "model", cache=True))


@pytest.mark.parametrize("method", METHODS)
def test_a_grown_model_without_its_cache_answers_the_same_up_to_rounding(tmp_path: Path, method: str) -> None:
    model = fitted(method)
    model.learn({"eight": members("class-08")[:5]})
    grow(model)
    assert_close(model, loaded(model, tmp_path / "model", cache=False), GROWN)
    model.learn({"nine": members("class-09")[:5]}).unlearn(members("class-08")[:1])
    lost = loaded(model, tmp_path / "model", cache=False)
    assert_close(model, lost, GROWN)
    lost.wait()
    again = GraphClassifier.load(tmp_path / f"model-{model.version}")
    assert_same_bits(lost, again)
