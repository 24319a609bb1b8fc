"""Copies of a model, in this process and in others."""

import copy
import json
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import SILENT, GraphClassifier
from graphfcl.methods import registry
from graphfcl.production.store.parts import Part
from tests.outside.samples import GRAPH, nearest_mean
from tests.production.models import fitted, members, same_answers


@pytest.mark.parametrize("method", ["anchor", "sgc-ridge", "hag-meta", "joint"])
def test_a_deep_copy_is_equal_and_goes_its_own_way(method: str) -> None:
    model, eight, nine = fitted(method), members("class-08"), members("class-09")
    model.learn({"eight": eight[:5]})
    before = model.predict_proba()
    other = copy.deepcopy(model)
    np.testing.assert_array_equal(other.predict_proba(), before)
    assert (other.history, other.configuration, other.version) == (model.history, model.configuration, model.version)
    other.learn({"nine": nine[:5]}).rename("eight", "acht")
    assert "nine" not in model.classes_
    assert "acht" not in model.classes_
    assert len(model.history) == 2
    np.testing.assert_array_equal(model.predict_proba(), before)
    model.learn({"nine": nine[:5]}).rename("eight", "acht")
    same_answers(other, model, 1e-5)


def test_what_a_copy_computes_for_itself_is_the_same(model: GraphClassifier) -> None:
    """Its learner has its own state, not only scores that were carried over."""
    other = copy.deepcopy(model)
    assert other.learner_ is not model.learner_
    assert other.graph_ is model.graph_, "it is immutable"
    mine, theirs = (each.graph.all_scores(each.learner, SILENT) for each in (model.parts(), other.parts()))
    np.testing.assert_array_equal(theirs, mine)


def test_a_model_that_is_not_fitted_is_copied_too() -> None:
    other = copy.deepcopy(GraphClassifier("proto-gcn", {"pretraining.epochs": 3}, way=3))
    assert (other.method, other.settings, other.way) == ("proto-gcn", {"pretraining.epochs": 3}, 3)
    assert repr(other) == "GraphClassifier('proto-gcn', not fitted)"


class Named(GraphClassifier):
    """A user's own class, with an attribute of its own."""

    owner = "nobody"


def test_a_class_derived_from_it_keeps_its_attributes(model: GraphClassifier) -> None:
    named = Named.from_parts(model.parts())
    assert isinstance(named, Named)
    named.owner = "somebody"
    for other in (copy.deepcopy(named), copy.copy(named)):
        assert isinstance(other, Named)
        assert other.owner == "somebody"
        same_answers(other, named)


def answer(model: GraphClassifier, supports: dict[str, list[Any]]) -> tuple[np.ndarray, np.ndarray, Any]:
    """In a worker: answers, and answers after it learned something there."""
    before = model.predict_proba()
    model.learn(supports)
    return before, model.predict_proba(), model.history[-1]["what"]


@pytest.fixture(scope="module")
def workers() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("method", ["anchor", "finetune"])
def test_a_worker_process_answers_the_same(workers: ProcessPoolExecutor, method: str) -> None:
    model = fitted(method).learn({"eight": members("class-08")[:5]})
    supports = {"nine": members("class-09")[:5]}
    before, after, what = workers.submit(answer, model, supports).result(timeout=60)
    np.testing.assert_array_equal(before, model.predict_proba())
    assert len(model.history) == 2, "what a worker learns stays there"
    model.learn(supports)
    np.testing.assert_allclose(after, model.predict_proba(), rtol=1e-4, atol=1e-5)
    assert what == "learn"


SCRIPT = f"""
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import warnings

import numpy as np
from graphfcl import GraphClassifier, load_dataset
from nearest_mean import NearestMean

warnings.simplefilter("error")


class Mine(NearestMean):
    pass


def ask(model):
    warnings.simplefilter("error")
    return model.predict_proba(), type(model.learner_).__name__


if __name__ == "__main__":
    graph, _ = load_dataset({GRAPH!r})
    models = [GraphClassifier(kind).fit(graph) for kind in (NearestMean, Mine)]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for model, (found, name) in zip(models, pool.map(ask, models)):
            assert np.array_equal(found, model.predict_proba())
            print(name)
"""


@pytest.mark.long
def test_a_method_of_the_users_own_travels_with_its_model(tmp_path: Path) -> None:
    """One of a module, and one of the script itself."""
    nearest_mean(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["NearestMean", "Mine"], done.stderr[-2000:]


def test_the_state_travels_as_plain_values_and_arrays(model: GraphClassifier) -> None:
    """What a process hands to another holds no object that could run anything but the class of the model's learner."""
    sent = model.__getstate__()
    assert sent["learner"] is registry.find_method("proto-gcn").learner
    for part in sent["state"].parts.values():
        assert type(part) is Part
        assert json.loads(json.dumps(part.values)) == part.values
        assert all(type(array) is np.ndarray and array.dtype.kind in "biuf" for array in part.arrays.values())
    assert all(type(array) is np.ndarray and array.dtype.kind == "f" for array in sent["state"].answers)
    assert type(sent["state"].history) is str
    plain = (str, int, float, bool, type(None))
    assert all(isinstance(value, (*plain, dict)) for value in sent["plain"].values())
