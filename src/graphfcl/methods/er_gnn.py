"""ER-GNN: experience replay on graphs.

Fan Zhou, Chengtai Cao: Overcoming Catastrophic Forgetting in Graph Neural Networks with Experience Replay. AAAI 2021.

A buffer B keeps e nodes of each class. A session minimises β·L(current) + (1 − β)·L(buffer) with
β = |B|/(|B| + |current|). The nodes of a class are chosen by

- MF, mean of features: those nearest to the class mean;
- CM, coverage maximisation: those with the fewest nodes of other classes within distance d;
- IM, influence maximisation: those without which the parameters would be farthest from what they are.

Where this departs from the paper: distances are those of embeddings of unit length, so that d means the same on every
graph; influence is computed exactly for the parameters of the head; e is the number of supports K of the stream, since
a novel class has no more than that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch

from graphfcl.errors import InputError
from graphfcl.methods.bases.growing_head_learner import HeadLearner, HeadSettings
from graphfcl.methods.learner import Labelled
from graphfcl.methods.shared import exemplar_selection as selection
from graphfcl.methods.shared.heads import unit
from graphfcl.methods.shared.trained_head import cross_entropies
from graphfcl.methods.shared.training_state import require_range
from graphfcl.nn import GraphInputs

SELECTIONS = ("influence", "coverage", "mean")


@dataclass(frozen=True)
class ErGnnSettings(HeadSettings):
    """selection: IM, CM or MF. experiences: e, the nodes kept of each class; none means K. distance: d of CM."""

    selection: Literal["influence", "coverage", "mean"] = "influence"
    experiences: int | None = None
    distance: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.selection not in SELECTIONS:
            raise InputError(f"selection is {self.selection!r}; there are {', '.join(SELECTIONS)}.")
        require_range("experiences", self.experiences, least=1)
        require_range("distance", self.distance, above=0)


class ErGnn(HeadLearner):
    """The learner."""

    name: ClassVar[str] = "er-gnn"
    settings_type = ErGnnSettings
    settings: ErGnnSettings

    def _session_loss(self, before: torch.Tensor, supports: Labelled) -> Callable[[torch.Tensor], torch.Tensor]:  # noqa: ARG002
        labels = torch.from_numpy(np.concatenate([supports[1], self.memory.labels])).to(self.device)
        current, buffer = supports[1].size, self.memory.nodes.size
        beta = buffer / (buffer + current)

        def loss(logits: torch.Tensor) -> torch.Tensor:
            losses = cross_entropies(logits, labels)
            return beta * losses[:current].mean() + (1 - beta) * losses[current:].mean()

        return loss

    def _remember(self, labelled: Labelled, inputs: GraphInputs) -> None:
        nodes, labels = labelled
        count = self.settings.experiences or self.sizes["shot"]
        chosen = self._select(self._embed(inputs, nodes), labels, count)
        self._keep(nodes[chosen], labels[chosen], inputs)
        self.memory = self.memory.first(count)

    def _select(self, embeddings: torch.Tensor, labels: np.ndarray, count: int) -> np.ndarray:
        """Positions of the nodes to keep."""
        points = unit(embeddings).cpu().numpy()
        if self.settings.selection == "mean":
            return selection.mean_of_features(points, labels, count)
        if self.settings.selection == "coverage":
            return selection.coverage(points, labels, count, self.settings.distance)
        with torch.no_grad():
            probabilities = torch.softmax(self.network.head(embeddings), dim=1).cpu().numpy()
        return selection.influence(embeddings.cpu().numpy(), labels, count, probabilities)
