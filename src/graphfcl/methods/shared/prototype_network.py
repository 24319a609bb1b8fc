"""A prototypical network on a graph: encoder, node-level and task-level attention, and the loss of an episode."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from graphfcl.graph import VisibleGraph
from graphfcl.methods.hag_meta.network import class_weights, hard_task_loss, query_shares, weighted_cross_entropy
from graphfcl.methods.learner import Labelled
from graphfcl.methods.shared.episodes import Episode
from graphfcl.methods.shared.prototypes import (
    class_shares,
    leave_one_out_distances,
    squared_distances,
    weighted_prototypes,
)
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.nn import GcnRows, GraphInputs

Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Embedding:
    """Every node of a visible graph: (n, h) embeddings, and (n,) attention values λ̃ if there is such an attention."""

    visible: VisibleGraph
    values: torch.Tensor
    attention: torch.Tensor | None

    def rows(self, nodes: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self.visible.rows(nodes)).to(self.values.device)


class PrototypeNetwork(nn.Module):
    """encoder g_θ; nla g_ψ and tla g_φ may be None.

    hard: attention is taught the harder tasks. softmax: how the values of ``nla`` become weights inside a class.
    """

    def __init__(
        self,
        encoder: nn.Module,
        nla: nn.Module | None = None,
        tla: nn.Module | None = None,
        loss: Loss = weighted_cross_entropy,
        *,
        hard: bool = False,
        softmax: bool = True,
    ) -> None:
        super().__init__()
        self.encoder, self.nla, self.tla = encoder, nla, tla
        self.loss, self.hard, self.softmax = loss, hard, softmax

    @torch.no_grad()
    def embed(self, inputs: GraphInputs) -> Embedding:
        """All nodes, in evaluation mode."""
        table = self.table(inputs) if inputs.table is None else inputs.table
        if self.nla is None:
            return Embedding(inputs.visible, table, None)
        return Embedding(inputs.visible, table[:, :-1], table[:, -1])

    def table(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        """(r, h) embeddings of some rows or of all; with a node-level attention (r, h + 1), its values last."""
        needed = self.encoder.rows(inputs, rows)  # type: ignore[operator]
        values = self.encoder(needed)
        if self.nla is None:
            return values
        if not isinstance(needed, GcnRows):
            needed = inputs.all_gcn_rows if rows is None else inputs.gcn_rows(rows)
        return torch.cat([values, self.nla(needed)[:, None]], dim=1)

    @torch.no_grad()
    def prototypes(self, embedding: Embedding, many: Labelled, few: Labelled, count: int) -> torch.Tensor:
        """(count, h): means over the nodes of ``many``, attended sums over those of ``few``; both (nodes, columns)."""
        parts = []
        for (nodes, columns), attention in ((few, embedding.attention), (many, None)):
            rows, classes = embedding.rows(nodes), torch.from_numpy(columns).to(embedding.values.device)
            values = None if attention is None else attention[rows]
            shares = class_shares(classes, count, values, softmax=self.softmax)
            parts.append(weighted_prototypes(embedding.values[rows], shares, classes, count))
        return parts[0] + parts[1]

    @staticmethod
    @torch.no_grad()
    def scores(embedding: Embedding, nodes: np.ndarray, prototypes: torch.Tensor) -> torch.Tensor:
        """(nodes, classes): −‖z − p_k‖²."""
        return -squared_distances(embedding.values[embedding.rows(nodes)], prototypes)

    def validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:
        """Score of the validation sessions, with the prototypes that classes have then."""
        embedding = self.embed(inputs)

        def predict(many: Labelled, few: Labelled, count: int, nodes: np.ndarray) -> np.ndarray:
            prototypes = self.prototypes(embedding, many, few, count)
            return self.scores(embedding, nodes, prototypes).argmax(dim=1).cpu().numpy()

        return validation.score(predict)

    def episode_loss(
        self, inputs: GraphInputs, episode: Episode, generator: torch.Generator | None, *, by_class: bool = False
    ) -> torch.Tensor:
        """The loss of one episode; dropout is off without a generator. by_class: every class counts the same."""
        count, few, device = episode.class_count, episode.few_shot, inputs.device
        rows = inputs.visible.rows(np.concatenate([episode.supports, episode.queries]))
        needed = self.encoder.rows(inputs, rows, lead=few)  # type: ignore[operator]
        embeddings = self.encoder(needed, generator)
        supports, queries = embeddings[: episode.supports.size], embeddings[episode.supports.size :]
        classes, labels = (torch.from_numpy(a).to(device) for a in (episode.support_classes, episode.query_classes))

        attention = None
        if self.nla is not None and few:
            attention = self.nla(needed.head() if isinstance(needed, GcnRows) else inputs.gcn_rows(rows[:few]))
        attended = class_shares(classes[:few], count, attention, softmax=self.softmax)
        shares = torch.cat([attended, class_shares(classes[few:], count)])
        prototypes = weighted_prototypes(supports, shares, classes, count)
        distances = squared_distances(queries, prototypes)
        if (episode.own >= 0).any():
            own = torch.from_numpy(episode.own).to(device)
            distances = leave_one_out_distances(distances, queries, prototypes, own, supports, shares, classes)

        balance = query_shares(labels, count, by_class)
        if self.tla is None:
            return self.loss(distances, labels, torch.zeros(count, device=device), balance)
        tasks, task_of_class = (torch.from_numpy(a).to(device) for a in (episode.tasks, episode.task_of_class))
        task_weights = self.tla(prototypes, tasks, episode.base_count, len(episode.tasks))
        weights = class_weights(task_weights, task_of_class)
        if not self.hard:
            return self.loss(distances, labels, weights, balance)
        teaching = hard_task_loss(distances, labels, task_weights, task_of_class)
        return self.loss(distances, labels, weights.detach(), balance) + teaching
