"""What is made of features before any label is seen."""

import numpy as np
import pytest
import torch
from scipy import sparse

from graphfcl.graph import VisibleGraph
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
