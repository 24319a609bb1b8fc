"""What is made of features before any label is seen."""

import numpy as np
import pytest
import torch
from scipy import sparse

from graphfcl import VisibleGraph
from graphfcl.methods.shared import untrained_features
from graphfcl.methods.shared.untrained_features import leading_vectors
from graphfcl.nn import GraphInputs


@pytest.mark.parametrize("dense", [False, True])
def test_a_gpu_finds_the_same_leading_vectors(dense: bool) -> None:
    """The way of a GPU, gone on a CPU: the same space as numpy's own decomposition has."""
    random = np.random.default_rng(0)
    values = (random.random((60, 30)) < 0.2) * random.random((60, 30)).astype(np.float32)
    values = (values @ np.diag(0.8 ** np.arange(30))).astype(np.float32)
    nothing = sparse.csr_array((60, 60), dtype=np.float32)
    visible = VisibleGraph(np.arange(60), nothing, values if dense else sparse.csr_array(values))
    inputs = GraphInputs(visible, torch.device("cpu"))
    start = np.random.default_rng([5, 3]).standard_normal((30, 25)).astype(np.float32)
    found = untrained_features._iterated_on_device(inputs, start, 5).numpy()
    _, _, expected = np.linalg.svd(values)
    np.testing.assert_allclose(np.abs(np.diag(expected[:5] @ found)), 1, atol=1e-3)
    steps, scales = leading_vectors(inputs, 5, 5)
    np.testing.assert_allclose(np.abs(np.diag((steps * scales).numpy().T @ found)), 1, atol=0.02)


@pytest.mark.parametrize("on_device", [False, True])
def test_leading_vectors_do_not_follow_the_order_of_nodes_or_columns(on_device: bool) -> None:
    """Neither do their signs, which a decomposition leaves to rounding."""
    random = np.random.default_rng(1)
    values = (random.standard_normal((200, 40)) @ np.diag(0.9 ** np.arange(40))).astype(np.float32)
    nothing = sparse.csr_array((200, 200), dtype=np.float32)

    def found(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        inputs = GraphInputs(VisibleGraph(np.arange(200), nothing, values[rows][:, columns]), torch.device("cpu"))
        if on_device:
            start = np.random.default_rng(2).standard_normal((40, 30)).astype(np.float32)
            vectors = untrained_features._iterated_on_device(inputs, start, 8).numpy()
        else:
            steps, scales = leading_vectors(inputs, 8, 5)
            vectors = (steps * scales).numpy()
        back = np.empty_like(vectors)
        back[columns] = vectors
        return back

    rows, columns = np.arange(200), np.arange(40)
    expected = found(rows, columns)
    assert (expected.max(axis=0) >= -expected.min(axis=0) - 0.01).all()
    for _ in range(10):
        np.testing.assert_allclose(found(random.permutation(rows), columns), expected, atol=0.02)
        np.testing.assert_allclose(found(rows, random.permutation(columns)), expected, atol=0.02)
