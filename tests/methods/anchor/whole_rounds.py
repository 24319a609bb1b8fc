"""The rounds of ANCHOR over a graph in memory, with all posteriors at hand."""

from typing import Any

import numpy as np
import torch

from graphfcl import VisibleGraph
from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.rounds import run_rounds
from graphfcl.methods.anchor.settings import Neighbourhood
from graphfcl.methods.blocks.resident import ResidentTables
from graphfcl.nn import GraphInputs


def posteriors(
    anchors: Anchors, x: torch.Tensor, visible: VisibleGraph, how: Neighbourhood, settings: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, C) posteriors of all nodes, and the (C, D) directions."""
    tables = ResidentTables(visible, GraphInputs(visible, x.device))
    rounds = run_rounds(tables, tables.take(x), anchors, how, settings)
    return rounds.posteriors_at(np.arange(len(x))), rounds.directions


def links_of(visible: VisibleGraph) -> np.ndarray:
    """(n, n) d^(−1/2) A with edge weights of mean 1."""
    weights = visible.adjacency.toarray().astype(np.float64)
    weights /= weights[weights > 0].mean()
    return weights / np.sqrt(np.maximum(weights.sum(axis=1), 1))[:, None]


def ratios_of(visible: VisibleGraph, posterior: np.ndarray) -> np.ndarray:
    """(C, C) log(Θ_cc' / π_c')."""
    weights = visible.adjacency.toarray().astype(np.float64)
    weights /= weights[weights > 0].mean()
    links = posterior.T @ weights @ posterior
    usual = links.sum(axis=0) / links.sum()
    profile = (links + 50 * (0.7 * usual + 0.3 * np.eye(len(usual)))) / (links.sum(axis=1, keepdims=True) + 50)
    return np.log(profile / usual)
