"""What the rounds over the visible graph end with: all that answers and explanations need of the other nodes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from graphfcl.graph import VisibleGraph
from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.neighbours import Surroundings, mean_weight
from graphfcl.methods.anchor.settings import Neighbourhood
from graphfcl.nn import GraphInputs


@dataclass(frozen=True, eq=False)
class Rounds:
    """Immutable; holds for one graph and one state of the sums.

    posterior: (n, C) of every visible node, as large as the table of scores. directions: (C, D) μ_c/ℓ_c.
    links: (C, C) log(Θ_cc' / π_c') by these posteriors, and the mean weight of an edge; None where links are not
        listened to.
    """

    posterior: torch.Tensor
    directions: torch.Tensor
    links: tuple[torch.Tensor, float] | None

    @classmethod
    def of(
        cls, anchors: Anchors, embeddings: torch.Tensor, inputs: GraphInputs, how: Neighbourhood, settings: Any
    ) -> "Rounds":
        """Run them. embeddings: (n, D) x of all visible nodes."""
        around = Surroundings(inputs, how)
        posterior, directions = anchors.transduced(embeddings, around, settings)
        if not how.links > 0:
            return cls(posterior, directions, None)
        return cls(posterior, directions, (around.ratios(posterior), mean_weight(inputs.visible)))

    def link_weights(self, visible: VisibleGraph, row: int, rows: np.ndarray, first: int, second: int) -> np.ndarray:
        """(m,) what the links of a row to some of its neighbours add to the logit of one class over another, but for
        the weight β of all links."""
        if self.links is None:
            return np.zeros(rows.size)
        (ratios, mean), near = self.links, visible.adjacency[[row]]
        order = np.argsort(near.indices)
        weights = near.data[order][np.searchsorted(near.indices, rows, sorter=order)]
        root = np.sqrt(np.maximum(visible.degrees[row] / np.float32(mean), 1))
        said = self.posterior[torch.from_numpy(rows).to(ratios.device)] @ (ratios[first] - ratios[second])
        return weights / np.float32(mean) / root * said.cpu().numpy()
