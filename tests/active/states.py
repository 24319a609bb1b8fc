"""ActiveLearningStates of points in the plane, whose clusters anybody can see."""

from typing import Any

import numpy as np
from scipy import sparse

from graphfcl import ActiveLearningState, VisibleGraph


def graph_of(count: int) -> VisibleGraph:
    """A path."""
    ends = np.arange(count - 1)
    adjacency = sparse.coo_array(
        (np.ones(2 * ends.size, dtype=np.float32), (np.r_[ends, ends + 1], np.r_[ends + 1, ends])), shape=(count, count)
    ).tocsr()
    return VisibleGraph(np.arange(count), adjacency, np.eye(count, 3, dtype=np.float32))


def heaps(sizes: tuple[int, ...], *, width: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points around centres far from each other, and the centre of each."""
    random = np.random.default_rng(seed)
    of = np.repeat(np.arange(len(sizes)), sizes)
    centres = np.zeros((len(sizes), width))
    centres[:, 0] = 20.0 * np.arange(len(sizes))
    return (centres[of] + random.normal(size=(of.size, width))).astype(np.float32), of


def make_state(vectors: np.ndarray, budget: int, **changes: Any) -> ActiveLearningState:
    """All nodes are candidates and nothing is labelled, unless changes say otherwise."""
    nothing = np.zeros(0, dtype=np.int64)
    count = vectors.shape[0]
    given: dict[str, Any] = {
        "visible": graph_of(count),
        "vectors": vectors,
        "candidates": np.arange(count),
        "labelled": nothing,
        "columns": nothing,
        "scores": None,
        "unknown_score": None,
        "budget": budget,
        "random": np.random.default_rng(5),
    }
    given |= changes
    classes = int(given["columns"].max(initial=-1)) + 1
    return ActiveLearningState(**{"late": np.zeros(classes, dtype=bool), **given})
