"""What the trunks of joint training are made of, and what is remembered of how they did."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy import sparse
from torch import nn

from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.bases.encoder_learner import EncoderSettings
from graphfcl.methods.learner import Tensors
from graphfcl.methods.settings import Count, Positive, Weight
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.supervised_training import HeadNetwork, SupervisedSettings
from graphfcl.nn import DenseRows, Encoder, GraphInputs, Linear

Trunk = Literal["gcn", "wide-gcn", "features", "ridge"]
TRUNKS: tuple[Trunk, ...] = get_args(Trunk)


@dataclass(frozen=True)
class JointSettings(EncoderSettings):
    """``hidden``, ``size`` and ``pretraining`` are those of the trunk gcn."""

    trunks: tuple[Trunk, ...] = TRUNKS
    """Trunks that are tried on session 0: gcn, wide-gcn, features, ridge; with one name that one is taken."""
    wide_hidden: Count = 256
    """Width of the first layer of the wide GCN."""
    wide_size: Count = 128
    """Width of its output, which has no ReLU."""
    wide_training: SupervisedSettings = field(
        default_factory=lambda: SupervisedSettings(epochs=15, patience=5, learning_rate=0.01)
    )
    """Training of the wide GCN and its head."""
    rank: Count = 1024
    """Columns of the basis of features and ridge at most."""
    head_training: SupervisedSettings = field(
        default_factory=lambda: SupervisedSettings(epochs=30, patience=5, learning_rate=0.05, weight_decay=0.0001)
    )
    """Training of the head of the trunk features."""
    penalties: tuple[Positive, ...] = (1.0, 0.1, 0.01, 10.0)
    """Candidates of the ridge's penalty; the validation nodes of session 0 choose."""
    hop_weights: tuple[Weight, ...] = (2.0, 4.0, 1.0, 0.5)
    """Candidates of the weight of the features around in the ridge; they choose it too."""


class JointNetwork(nn.Module):
    """The weights of trunks: ``encoder`` and ``head`` are those of gcn. Once one is chosen it has that one alone."""

    encoder: Encoder
    head: Linear
    wide: HeadNetwork
    features: Linear
    ridge: Linear


class FixedVectors(Encoder):
    """Vectors that nothing trains: the dense features of a graph as they are."""

    def rows(self, graph: GraphInputs, rows: np.ndarray | None, lead: int = 0) -> torch.Tensor:  # noqa: ARG002
        every = graph.raw()
        assert isinstance(every, DenseRows)
        return every.table.values if rows is None else every.table.values[torch.tensor(rows, device=graph.device)]

    def forward(self, rows: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:  # noqa: ARG002
        return rows


def vectors_as_graph(nodes: np.ndarray, vectors: torch.Tensor) -> GraphInputs:
    """Some nodes, ascending, with their vectors as features and without edges: what a head alone is trained on."""
    nothing = sparse.csr_array((nodes.size, nodes.size), dtype=np.float32)
    return GraphInputs(VisibleGraph(nodes, nothing, vectors.float().cpu().numpy()), vectors.device)


class Retraining(Part):
    """Which trunk every session trains again, from what, and how the trunks did on session 0.

    trunks: those to choose from. trunk: its name; empty while several are tried. accuracies: balanced accuracy on
    validation nodes by trunk. epochs_by_trunk: the number of epochs that was best. epochs: that of the trunk. encoder:
    the pre-trained one, from which gcn starts. centre: mean of the wide GCN's output where it was trained. ridge: λ
    and a. columns: of the basis.
    """

    name = "retraining"
    saved = ("trunk", "accuracies", "epochs_by_trunk", "epochs", "encoder", "centre", "ridge", "columns")

    def __init__(self, trunks: tuple[str, ...]) -> None:
        self.trunks = trunks
        self.trunk = trunks[0] if len(trunks) == 1 else ""
        self.accuracies: dict[str, float] = {}
        self.epochs_by_trunk: dict[str, int] = {}
        self.epochs = 0
        self.encoder: Tensors = {}
        self.centre: torch.Tensor | None = None
        self.ridge: tuple[float, float] | None = None
        self.columns = 0

    def settle(self) -> None:
        """Take the best trunk; of equal ones the first."""
        tried = [name for name in TRUNKS if name in self.trunks]
        self.trunk = self.trunk or max(tried, key=lambda name: self.accuracies[name])
        self.epochs = self.epochs_by_trunk.get(self.trunk, 0)

    def chosen(self) -> dict[str, Any]:
        chosen: dict[str, Any] = {"trunk": self.trunk, "epochs": self.epochs}
        if self.trunk == "ridge" and self.ridge is not None:
            chosen = {"trunk": self.trunk, "penalty": self.ridge[0], "hop_weight": self.ridge[1]}
        return chosen | {f"validation_{name}": round(value, 4) for name, value in self.accuracies.items()}

    def stored(self) -> dict[str, int]:
        return {"weights": sum(value.nbytes for value in self.tensors().values())}
