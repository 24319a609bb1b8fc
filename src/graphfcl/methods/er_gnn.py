"""ER-GNN: experience replay on graphs.

Fan Zhou, Chengtai Cao: Overcoming Catastrophic Forgetting in Graph Neural Networks with Experience Replay. AAAI 2021.

A buffer B stores nodes of each class, and a session trains on its supports and on the buffer. There are two forms:

- ``replay=printed``, the paper's: the buffer has e nodes per class, and the loss is β·L(current) + (1 − β)·L(buffer)
  with β = |B|/(|B| + |current|). This suits a buffer that is small compared to the current data. In a few-shot session
  the buffer is larger, and β gives nine tenths of the loss to ten supports.
- ``replay=balanced``, the default: all classes have the same weight in the loss, and the buffer has 2,000 nodes in
  total, as in iCaRL. MF is then the better selection, where the paper prefers IM. With a larger buffer more steps are
  useful, so up to fifty steps are candidates.

The nodes of a class are selected by one of three criteria:

- MF, mean of features: the nodes nearest to the class mean.
- CM, coverage maximisation: the nodes with the fewest nodes of other classes within distance d.
- IM, influence maximisation: the nodes whose removal would change the parameters most.

Differences from the paper: distances are computed on embeddings of unit length, so d has the same meaning on every
graph. Influence is computed exactly for the parameters of the head. In the printed form, e is the number of supports K
of the stream, since novel classes have no more labels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from graphfcl.methods.bases.growing_head_learner import GrowingHeadLearner, LogitHeadSettings
from graphfcl.methods.settings import Count, Positive
from graphfcl.methods.shared import exemplar_selection
from graphfcl.methods.shared.fine_tuning import STEP_CANDIDATES, Steps
from graphfcl.methods.shared.heads import unit
from graphfcl.methods.shared.supervised_training import class_balanced, cross_entropies
from graphfcl.methods.state import Labelled
from graphfcl.nn import GraphInputs


@dataclass(frozen=True)
class ErGnnSettings(LogitHeadSettings):
    """Settings of ER-GNN."""

    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of an embedding."""
    selection: Literal["mean", "influence", "coverage"] = "mean"
    """Selection of the buffer's nodes: MF (mean), IM (influence) or CM (coverage)."""
    fine_tuning: tuple[Steps, ...] = (*STEP_CANDIDATES, (50, 0.005))
    """Candidate (steps, learning rate) pairs of a session, in addition to no steps; validation sessions choose one."""
    adjustments: tuple[float, ...] = (0.0, -0.25, 0.25)
    """Candidates for the factor τ of the logit adjustment τ log(n_c/Σn); validation sessions choose one."""
    replay: Literal["balanced", "printed"] = "balanced"
    """Equal class weights in the loss of a session, or the paper's weight β of supports against buffer."""
    buffer: Count = 2000
    """Total number of nodes in the buffer of balanced replay."""
    experiences: Count | None = None
    """Nodes kept per class (e); none means K for printed replay, and an equal share of the buffer otherwise."""
    distance: Positive = 0.5
    """Distance within which CM counts nodes of other classes (d)."""


class ErGnn(GrowingHeadLearner):
    """ER-GNN; the module docstring states the method and the differences from the paper."""

    title = "a growing head with a replay buffer of chosen nodes"
    reference = (
        "Zhou, Cao: Overcoming Catastrophic Forgetting in Graph Neural Networks with Experience Replay. AAAI 2021"
    )
    settings_type = ErGnnSettings
    settings: ErGnnSettings

    def _session_loss(self, before: torch.Tensor, supports: Labelled) -> Callable[[torch.Tensor], torch.Tensor]:  # noqa: ARG002
        labels = torch.from_numpy(np.concatenate([supports[1], self.memory.labels])).to(self.device)
        if self.settings.replay == "balanced":
            balanced = class_balanced(cross_entropies)
            return lambda logits: balanced(logits, labels)
        current, buffer = supports[1].size, self.memory.nodes.size
        beta = buffer / (buffer + current)

        def loss(logits: torch.Tensor) -> torch.Tensor:
            losses = cross_entropies(logits, labels)
            return beta * losses[:current].mean() + (1 - beta) * losses[current:].mean()

        return loss

    def _remember(self, labelled: Labelled, inputs: GraphInputs) -> None:
        nodes, labels = labelled
        share = max(1, self.settings.buffer // len(self.classes_))
        count = self.settings.experiences or (share if self.settings.replay == "balanced" else self.sizes.shot)
        chosen = self._select(self._embeddings_of(inputs, nodes), labels, count)
        self._keep(nodes[chosen], labels[chosen], inputs)
        self.memory.keep_first(count)

    def _select(self, embeddings: torch.Tensor, labels: np.ndarray, count: int) -> np.ndarray:
        """Select the positions of the nodes to keep."""
        points = unit(embeddings).cpu().numpy()
        if self.settings.selection == "mean":
            return exemplar_selection.mean_of_features(points, labels, count)
        if self.settings.selection == "coverage":
            return exemplar_selection.coverage(points, labels, count, self.settings.distance)
        with torch.no_grad():
            probabilities = torch.softmax(self.network.head(embeddings), dim=1).cpu().numpy()
        return exemplar_selection.influence(embeddings.cpu().numpy(), labels, count, probabilities)
