"""A linear head over all classes of session 0, trained on all of their train nodes."""

from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.encoder_learner import GraphLearner
from graphfcl.methods.learner import Labelled, Progress, Tensors
from graphfcl.methods.shared.replay_memory import ReplayMemory
from graphfcl.methods.shared.supervised_training import HeadLoss, SupervisedTraining, class_balanced
from graphfcl.nn import GraphInputs, Linear
from graphfcl.stream import BaseSession, Session


def cross_entropies(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """(n,) −log softmax(logits)[label]."""
    return nn.functional.cross_entropy(logits, labels, reduction="none")


class HeadNetwork(nn.Module):
    def __init__(self, encoder: nn.Module, head: Linear) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, needed: Any, generator: torch.Generator | None = None) -> torch.Tensor:
        """(r, classes) logits."""
        return self.head(self.encoder(needed, generator))


class TrainedHead(GraphLearner):
    """Session 0 after pre-training: encoder and head on all train nodes, every class counting the same, stopped by the
    validation nodes. Scores are logits. ``memory`` holds what is kept of the labelled nodes.

    A method says what a node's loss is (:meth:`_node_losses`), what it keeps (:meth:`_remember`), what a session does.
    """

    settings: Any
    network: HeadNetwork

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.memory = ReplayMemory.empty()

    def _node_losses(self) -> HeadLoss:
        """The loss of each node at session 0."""
        return cross_entropies

    def _remember(self, labelled: Labelled, inputs: GraphInputs) -> None:
        """Keep some of the labelled nodes of a session, session 0 included."""

    def _build(self, encoder: nn.Module, start: torch.Generator) -> nn.Module:
        head = Linear(self.settings.size, len(self.classes_), start).to(self.device)
        self.training = self._training(encoder, head, "session 0")
        return HeadNetwork(encoder, head)

    def _training(self, encoder: nn.Module, head: Linear, stage: str) -> SupervisedTraining:
        loss = class_balanced(self._node_losses())
        return SupervisedTraining(encoder, head, self.settings.pretraining, stage=stage, loss=loss, balanced=True)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == "pre-trained":
            self._enter("session 0", progress)
        train = (base.train, base.train_labels)
        validation = (base.validation, base.validation_labels)
        self.training.run(train, validation, inputs, self.generator, progress, self)
        self._remember(train, inputs)

    def _with_memory(self, session: Session, inputs: GraphInputs) -> GraphInputs:
        """The session's graph, with the nodes in memory beside it where they are not in it."""
        visible = self.memory.beside(session.visible_graph)
        return inputs if visible is session.visible_graph else GraphInputs(visible, self.device)

    def _keep(self, nodes: np.ndarray, labels: np.ndarray, inputs: GraphInputs) -> None:
        isolated = self.track == "isolated"
        self.memory = self.memory.with_nodes(nodes, labels, inputs.visible, keep_features=isolated)

    def drop_nodes(self, nodes: np.ndarray) -> None:
        self._answers = None
        self.memory = self.memory.without(nodes)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.network.head(self._embed_all(inputs))

    @torch.no_grad()
    def _embed(self, inputs: GraphInputs, nodes: np.ndarray) -> torch.Tensor:
        """(nodes, h) in evaluation mode."""
        if inputs.table is not None:
            return inputs.table[torch.from_numpy(inputs.visible.rows(nodes)).to(self.device)]
        return self.network.encoder(self.network.encoder.rows(inputs, inputs.visible.rows(nodes)))  # type: ignore[operator]

    def _data_stored(self) -> dict[str, int]:
        return {**super()._data_stored(), **self.memory.stored()}

    def _own_values(self) -> dict[str, Any]:
        training = {"training": self.training.values()} if self.stage == "session 0" else {}
        return {**super()._own_values(), **training}

    def _own_tensors(self) -> Tensors:
        training = self.training.tensors() if self.stage == "session 0" else {}
        return {**super()._own_tensors(), **self.memory.tensors(), **training}

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        super()._load_own(values, tensors)
        self.memory = ReplayMemory.load(tensors)
        if self.stage == "session 0":
            self.training.load(values["training"], tensors)
