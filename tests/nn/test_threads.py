"""Threads may ask about one graph at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from graphfcl import VisibleGraph, load_dataset
from graphfcl.nn import ENCODERS, GraphInputs


@pytest.mark.parametrize("kind", ["gcn", "gat"])
@pytest.mark.parametrize("features", ["words", "dense"])
def test_rows_asked_for_at_once_are_those_asked_for_alone(kind: str, features: str) -> None:
    graph, _ = load_dataset(f"synthetic:nodes=3000,edges=9000,features=60,kind={features}")
    visible = VisibleGraph(np.arange(3000), graph.adjacency, graph.features)
    inputs = GraphInputs(visible, torch.device("cpu"))
    encoder = ENCODERS[kind](60, 32, 8, torch.Generator().manual_seed(0))
    random = np.random.default_rng(0)
    asked = [random.choice(3000, size=700, replace=False) for _ in range(6)]

    @torch.no_grad()
    def embed(rows: np.ndarray) -> torch.Tensor:
        return encoder(encoder.rows(inputs, rows))

    alone = [embed(rows) for rows in asked]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(15):
            for found, expected in zip(pool.map(embed, asked), alone, strict=True):
                assert torch.equal(found, expected)
