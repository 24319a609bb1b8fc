"""Explanations of ANCHOR's predictions: which blocks, features and neighbours decided between two classes.

The logit difference T x·(d_a − d_b) of the two most likely classes a and b with directions d is linear in f(v). Each
block of f is linear in features once its length is known. The difference is therefore a sum over blocks. The part of
the first block is a sum over the node's features, and the part of the second block a sum over surrounding nodes. The
effect of head and ridge regression, a difference of log-probabilities, is reported as one number.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from graphfcl.methods.anchor.frame import joined
from graphfcl.methods.anchor.rounds import Rounds, answers
from graphfcl.methods.anchor.storage import AnchorKnowledge
from graphfcl.methods.learner import Explanation
from graphfcl.methods.shared.surroundings import Surroundings, best_columns

BLOCKS = ("own features", "features around", "encoder", "head and ridge")


@dataclass(frozen=True, eq=False)
class Evidence(Surroundings):
    """The data of an explanation. ``blocks`` are the three (1, k) blocks of the node."""

    rounds: Rounds
    blocks: list[torch.Tensor]
    knowledge: AnchorKnowledge

    def table_rows(self, rows: np.ndarray) -> np.ndarray:
        """Translate rows of ``graph`` to rows of the tables."""
        return self.tables.visible.rows(self.numbers(rows))

    @torch.no_grad()
    def explain(self, top: int, columns: Sequence[int] | None) -> Explanation:
        """Explain the prediction for the node. The arguments are those of :meth:`Learner.explain`."""
        here = self.table_rows(np.array([self.row]))
        posterior = self.rounds.posteriors_at(here)
        tensors = self.knowledge.answer_tensors()
        points = self.rounds.x.rows_at(here).float()
        answer = answers(posterior, points, tensors, self.knowledge.settings.head_share)[0]
        order = best_columns(answer, columns, top)
        first, second = order[0], order[min(1, len(order) - 1)]

        blocks, frame, weights = self.blocks, self.knowledge.frame, self.knowledge.weights
        centred = joined(blocks, frame, weights)[0] - frame["middle"]
        length = (centred @ frame["whitening"]).norm().clamp(min=1e-8)
        towards = frame["whitening"] @ (self.rounds.directions[first] - self.rounds.directions[second])
        towards = towards * self.knowledge.settings.temperature / length
        sizes = [block.shape[1] for block in blocks]
        by_both = torch.log(answer.clamp(min=1e-12)) - torch.log(posterior[0].clamp(min=1e-12))
        parts = [*(part.sum() for part in (centred * towards).split(sizes)), by_both[first] - by_both[second]]
        scaled = [
            towards.split(sizes)[place] * weights[place] / (blocks[place][0] - frame[f"centre.{place}"]).norm()
            for place in range(2)
        ]
        of_features, of_around = ((frame["basis"] @ part).cpu().numpy() for part in scaled)
        own = self.rounds.own_at(self.table_rows(self.near.indices))
        return Explanation(
            classes=tuple((column, float(answer[column])) for column in order),
            before_smoothing=tuple(own[int(np.flatnonzero(self.near.indices == self.row)[0])].tolist()),
            blocks={name: float(value) for name, value in zip(BLOCKS, parts, strict=True)},
            features=self.features(of_features, top),
            around=self.around(of_around, self.knowledge.neighbourhood.hops, top),
            neighbours=self._neighbours(own[:, first].cpu().numpy(), first, second, top),
        )

    def _neighbours(
        self, own: np.ndarray, first: int, second: int, top: int
    ) -> tuple[tuple[int, float, float, float], ...]:
        """List the strongest neighbours. ``own`` is their (m,) posterior of the first class from their own vectors."""
        others = self.near.indices != self.row
        nodes, shares, own = self.numbers(self.near.indices[others]), self.near.data[others], own[others]
        links = self._links()[others]
        adds = self.knowledge.neighbourhood.links * (links[:, first] - links[:, second])
        order = np.lexsort((-shares * own, -np.abs(adds)))[:top]
        return tuple((int(nodes[k]), float(shares[k]), float(own[k]), float(adds[k])) for k in order)

    def _links(self) -> np.ndarray:
        """Compute the (m, C) contributions of links to neighbours to the logits, without the weight β."""
        rows, mean, ratios = self.near.indices, np.float32(self.tables.mean_weight), self.rounds.ratios
        if ratios is None:
            return np.zeros((rows.size, len(self.rounds.counts)))
        weights = self.graph.adjacency[[self.row]].toarray()[0, rows]  # 0 for the node itself
        root = np.sqrt(np.maximum(self.graph.degrees[self.row] / mean, 1))
        posteriors = self.rounds.posteriors_at(self.table_rows(rows))
        return (weights / mean / root)[:, None] * (posteriors @ ratios.T).cpu().numpy()
