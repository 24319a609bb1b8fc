"""What ANCHOR computes of a graph that is in memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from graphfcl.methods.anchor.choosing import choose_neighbourhood
from graphfcl.methods.anchor.class_sums import Anchors, whitening
from graphfcl.methods.anchor.head import LabelledPoints, shared_out
from graphfcl.methods.anchor.rounds import Rounds
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.storage import AnchorKnowledge
from graphfcl.methods.anchor.vectors import block_table, block_type, column_means, joined_rows, points_of_table
from graphfcl.methods.learner import Labelled, Progress
from graphfcl.methods.shared.untrained_features import leading_vectors
from graphfcl.nn import Encoder, GraphInputs, tensor_of
from graphfcl.stream import BaseSession


@dataclass(frozen=True, eq=False)
class NodesInMemory:
    """The nodes of one visible graph, as ANCHOR with this knowledge sees them."""

    inputs: GraphInputs
    known: AnchorKnowledge
    encoder: Encoder
    settings: AnchorSettings

    def require_room(self, base: BaseSession, rank: int, seed: int) -> None:
        """The graph is in memory already."""

    def leading_vectors(self, rank: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        """B in 8 bits, and the scales of its columns."""
        return leading_vectors(self.inputs, rank, seed)

    def hop_rows(self, nodes: np.ndarray) -> torch.Tensor:
        """(m, 3k) what an encoder of hops reads."""
        every: torch.Tensor = self.encoder.rows(self.inputs, None)
        return every[torch.from_numpy(self.inputs.visible.rows(nodes)).to(self.inputs.device)]

    def choose(self, base: BaseSession, seed: int, progress: Progress) -> Neighbourhood:
        """The neighbourhood, on the leading columns of the basis."""
        leading = self.known.frame["basis"][:, : self.settings.trial_rank]
        return choose_neighbourhood(base, self.inputs, leading, self.settings, seed, progress)

    def fix_frame(self, base: BaseSession) -> torch.Tensor:
        """Centres, middle and whitening; answers x of all nodes, for which the blocks are made once."""
        frame, table, weights = self.known.frame, self._table(), self.known.weights(self.settings)
        rank = frame["basis"].shape[1]
        widths = [rank, rank, table.shape[1] - 2 * rank]
        frame |= {f"centre.{place}": means for place, means in enumerate(column_means(table).split(widths))}
        rows = torch.from_numpy(self.inputs.visible.rows(base.train)).to(self.inputs.device)
        vectors = joined_rows(table, rows, frame, weights)
        labels = tensor_of(base.train_labels, self.inputs.device)
        middle, root = whitening(vectors, labels, len(base.classes), self.settings.shrinkage)
        frame |= {"middle": middle, "whitening": root.half().float()}
        return points_of_table(table, frame, weights)

    def embeddings(self) -> torch.Tensor:
        """(n, D) x of all nodes in 16 bits."""
        return points_of_table(self._table(), self.known.frame, self.known.weights(self.settings))

    def _table(self) -> torch.Tensor:
        """The blocks of all nodes."""
        codes = self.encoder(self.encoder.rows(self.inputs, None))
        # A state of the first edition answers to the digit as it did, with blocks that were not rounded.
        kind = torch.float32 if self.known.first_edition else block_type(self.inputs)
        return block_table(self.inputs, self.known.frame["basis"], self.known.neighbourhood.hops, codes, kind)

    def points(self, embeddings: torch.Tensor, labelled: Labelled) -> LabelledPoints:
        """x of some labelled nodes, and their columns."""
        rows = torch.from_numpy(self.inputs.visible.rows(labelled[0])).to(self.inputs.device)
        return embeddings[rows], tensor_of(labelled[1], self.inputs.device)

    def anchors(self, embeddings: torch.Tensor, labelled: Labelled, count: int) -> Anchors:
        """The sums of labelled nodes."""
        return Anchors.empty().plus(*self.points(embeddings, labelled), count)

    @property
    def most_for_head(self) -> int | None:
        """Nodes of a class that the head is trained on at most; None: all."""
        return self.settings.head_nodes

    @property
    def most_asked(self) -> int | None:
        """Nodes of a class that it is validated on at most."""
        return None

    def scores(self, embeddings: torch.Tensor, rounds: Any) -> torch.Tensor:
        """(n, C) of every node. rounds: answers what the rounds over the graph ended with."""
        found: Rounds = rounds()
        posterior = shared_out(found.posterior, embeddings, self.known.head, self.settings.head_share)
        return scores_from(posterior, self.known.anchors.logits(embeddings, self.settings))


def scores_from(posterior: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """(n, C) log-probabilities, and how near a node is to any class by the sums alone.

    That is the same for all its classes, so it changes no probability, but it tells nodes of unknown classes, which the
    rounds would hide. logits: (n, C) by the sums alone.
    """
    return torch.log(posterior.clamp(min=1e-12)) + torch.logsumexp(logits, dim=1, keepdim=True)
