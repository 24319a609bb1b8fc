"""Small models for tests."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import Graph, GraphClassifier, load_dataset
from graphfcl.production.graph.growing_graph import GrowingGraph
from graphfcl.production.labels.history import History
from graphfcl.production.model.codec import decode, encode_in_memory
from tests.methods.test_checks import QUICK

NAME = "synthetic:nodes=500,edges=1500,classes=10,features=200,signal=1.0,skew=0.5"
HIDDEN = ("class-08", "class-09")


def graph_in_memory(model: GraphClassifier) -> GrowingGraph:
    """The graph of a model, of which a test looks at arrays."""
    assert isinstance(model.graph_, GrowingGraph)
    return model.graph_


@cache
def small_graph() -> Graph:
    return load_dataset(NAME)[0]


def quick(method: str, **changes: Any) -> dict[str, Any]:
    episodes = {"episodes": 20} if "episodes" in QUICK.get(method, {}) else {}
    training = {"pretraining.epochs": 4} if "pretraining.epochs" in QUICK.get(method, {}) else {}
    return {**QUICK.get(method, {}), **episodes, **training, **changes}


def fitted(method: str = "proto-gcn", **changes: Any) -> GraphClassifier:
    return GraphClassifier(method, quick(method, **changes)).fit(small_graph(), hide_classes=HIDDEN)


def members(name: str | int) -> list[Any]:
    """Ids of the nodes that truly are of a class."""
    graph = small_graph()
    number = graph.class_number(name)
    assert number is not None
    return graph.node_ids[graph.labels == number].tolist()


def same_answers(first: GraphClassifier, second: GraphClassifier, tolerance: float = 0.0) -> None:
    assert first.classes_ == second.classes_
    np.testing.assert_allclose(first.predict_proba(), second.predict_proba(), atol=tolerance, rtol=tolerance)
    # A score among known nodes is steep where few of them are: rounding may move a single node far.
    assert np.abs(first.unknown_scores() - second.unknown_scores()).mean() <= max(tolerance, 1e-12) * 20


def copy_of(model: GraphClassifier) -> GraphClassifier:
    """An equal model, by way of files."""
    copy = GraphClassifier.from_parts(decode(encode_in_memory(model.parts()).__getitem__, device="cpu"))
    assert copy._state is not None
    copy._hold(replace(copy._state, history=History(model.history)))
    return copy


def with_parts(
    model: GraphClassifier, history: Sequence[dict[str, Any]] | None = None, **parts: Any
) -> GraphClassifier:
    """A model with other parts, as a folder of another time might hold them."""
    found = GraphClassifier.from_parts(replace(model.parts(), **parts))
    assert found._state is not None
    found._hold(replace(found._state, history=History(model.history if history is None else history)))
    return found


def cached(model: GraphClassifier) -> bool:
    """Whether a model that was loaded found the cache of its folder."""
    assert model._state is not None
    stored = model._state.answering.stored
    return stored is not None and stored.cache is not None


def everything(folder: Path) -> dict[str, bytes]:
    """The content of every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def read_all(folder: Path, version: int | None = None) -> GraphClassifier:
    """Load a version and read every part of it."""
    model = GraphClassifier.load(folder, version=version)
    model.parts().read()
    return model


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """List every fsync and every rename from now on."""
    calls: list[tuple[str, str]] = []
    plain_sync, plain_replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        calls.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))
        plain_sync(descriptor)

    def replace(source: Any, target: Any) -> None:
        calls.append(("rename", f"{source} -> {target}"))
        plain_replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    return calls
