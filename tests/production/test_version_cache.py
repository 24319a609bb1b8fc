"""The cache spares a forward pass and is never needed."""

import shutil
from pathlib import Path

import numpy as np

from graphfcl.production import GraphClassifier
from tests.production.models import same_answers


def scores_of(model: GraphClassifier) -> np.ndarray | None:
    """Those that are there before anybody asks."""
    assert model._state is not None
    return model._state.asked.known


def test_a_loaded_model_answers_the_same_without_and_with_the_cache(folder: Path) -> None:
    with_cache = GraphClassifier.load(folder)
    assert scores_of(with_cache) is not None
    shutil.rmtree(folder / "cache")
    without = GraphClassifier.load(folder)
    assert scores_of(without) is None
    same_answers(with_cache, without, 1e-5)
    (folder / "cache").mkdir()
    (folder / "cache" / "newest.safetensors").write_bytes(b"nonsense")
    same_answers(GraphClassifier.load(folder), without, 1e-5)
