"""What is put on a device for a few rows of a graph that is asked about once."""

import numpy as np
import pytest
import torch
from scipy import sparse

from graphfcl import VisibleGraph
from graphfcl.nn import GraphInputs


def graph(*, dense: bool) -> VisibleGraph:
    random = np.random.default_rng(0)
    edges = sparse.random_array((40, 40), density=0.1, random_state=random, dtype=np.float32)
    features = sparse.random_array((40, 12), density=0.3, random_state=random, dtype=np.float32, format="csr")
    return VisibleGraph(np.arange(40), sparse.csr_array(edges + edges.T), features.toarray() if dense else features)


@pytest.mark.parametrize("dense", [False, True])
def test_a_sparing_graph_reads_the_same_rows_and_nothing_else(dense: bool) -> None:
    visible, rows = graph(dense=dense), np.array([7, 3, 31])
    weights = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
    whole, sparing = (GraphInputs(visible, torch.device("cpu"), sparing=each) for each in (False, True))
    np.testing.assert_allclose(sparing.raw(rows) @ weights, whole.raw(rows) @ weights, rtol=1e-5, atol=1e-6)
    near, expected = sparing.gcn_rows(rows), whole.gcn_rows(rows)
    found = near.aggregate(near.inputs @ weights)
    np.testing.assert_allclose(found, expected.aggregate(expected.inputs @ weights), rtol=1e-5, atol=1e-6)
    assert not {"_raw", "_smoothed", "adjacency"} & set(vars(sparing))


def test_a_gpu_computes_the_whole_graph_only_where_it_is_asked_about_again() -> None:
    visible = graph(dense=False)
    assert GraphInputs(visible, torch.device("cuda")).whole_is_cheaper
    assert not GraphInputs(visible, torch.device("cuda"), sparing=True).whole_is_cheaper
    assert not GraphInputs(visible, torch.device("cpu")).whole_is_cheaper
