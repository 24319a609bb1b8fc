"""ER-GNN: experience replay on graphs.

Fan Zhou, Chengtai Cao: Overcoming Catastrophic Forgetting in Graph Neural Networks with Experience Replay. AAAI 2021.

A buffer B keeps nodes of each class, and a session trains on its supports and on the buffer. As printed
(``replay=printed``) the buffer has e nodes a class and the loss is β·L(current) + (1 − β)·L(buffer) with
β = |B|/(|B| + |current|). That suits a buffer that is small beside the current data. In a few-shot session it is the
other way round, and β gives nine tenths of the loss to ten supports. By default (``replay=balanced``) every class
counts the same in the loss, and the buffer holds as many nodes as iCaRL's, 2,000 in all; MF is then the better choice
of nodes, where the paper prefers IM; and as a larger buffer bears more steps, a session may take fifty. The nodes of a
class are chosen by

- MF, mean of features: those nearest to the class mean;
- CM, coverage maximisation: those with the fewest nodes of other classes within distance d;
- IM, influence maximisation: those without which the parameters would be farthest from what they are.

Where this departs from the paper: distances are those of embeddings of unit length, so that d means the same on every
graph; influence is computed exactly for the parameters of the head; as printed, e is the number of supports K of the
stream, since a novel class has no more than that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from graphfcl.methods.bases.growing_head_learner import GrowingHeadLearner, LogitHeadSettings
from graphfcl.methods.learner import Labelled
from graphfcl.methods.settings import Count, Positive
from graphfcl.methods.shared import exemplar_selection
from graphfcl.methods.shared.fine_tuning import STEP_CANDIDATES, Steps
from graphfcl.methods.shared.heads import unit
from graphfcl.methods.shared.supervised_training import class_balanced, cross_entropies
from graphfcl.nn import GraphInputs


@dataclass(frozen=True)
class ErGnnSettings(LogitHeadSettings):
    """A head that grows, with a replay buffer."""

    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of an embedding."""
    selection: Literal["mean", "influence", "coverage"] = "mean"
    """How nodes are chosen: MF, IM or CM."""
    fine_tuning: tuple[Steps, ...] = (*STEP_CANDIDATES, (50, 0.005))
    """(steps, rate) candidates of a session, besides (0, 0); validation sessions choose."""
    adjustments: tuple[float, ...] = (0.0, -0.25, 0.25)
    """Candidates for τ of the logit adjustment τ log(n_c/Σn); validation sessions choose."""
    replay: Literal["balanced", "printed"] = "balanced"
    """Every class counts the same in a session's loss, or the printed β weighs supports against buffer."""
    buffer: Count = 2000
    """Nodes kept in all if the replay is balanced."""
    experiences: Count | None = None
    """Nodes kept of each class (e); none means K as printed, and else an equal share of the buffer."""
    distance: Positive = 0.5
    """Within it another class's nodes count as near, in CM (d)."""


class ErGnn(GrowingHeadLearner):
    """ER-GNN; formulas and deviations in the module docstring."""

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
        """Positions of the nodes to keep."""
        points = unit(embeddings).cpu().numpy()
        if self.settings.selection == "mean":
            return exemplar_selection.mean_of_features(points, labels, count)
        if self.settings.selection == "coverage":
            return exemplar_selection.coverage(points, labels, count, self.settings.distance)
        with torch.no_grad():
            probabilities = torch.softmax(self.network.head(embeddings), dim=1).cpu().numpy()
        return exemplar_selection.influence(embeddings.cpu().numpy(), labels, count, probabilities)
