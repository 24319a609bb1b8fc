"""Session 0 of TAP: one encoder, three topologies, and a label space for each."""

from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.methods.learner import SILENT, Labelled, Learner, Progress
from graphfcl.methods.settings import settings_as_json
from graphfcl.methods.shared.heads import CosineHead, unit
from graphfcl.methods.shared.pretraining import Pretraining
from graphfcl.methods.shared.prototype_network import class_shares, query_shares, weighted_prototypes
from graphfcl.methods.shared.supervised_training import HeadLoss, SupervisedTraining, class_balanced
from graphfcl.methods.tap.settings import TapSettings
from graphfcl.methods.tap.topologies import ClassGroups, encode, inputs_of
from graphfcl.nn import GatEncoder, GcnEncoder, GraphInputs, tensor_of
from graphfcl.stream.sessions import BaseSession

KEYS = ("scale", "margin", "group_weight", "edgeless_weight", "random_edges")  # what else an encoder depends on


def cosface(scale: float, margin: float) -> HeadLoss:
    """(n,) −log softmax(s·(cos − m·1[y]))[y] of (n, C) logits s·cos and labels y."""

    def losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        own = torch.zeros_like(logits).scatter(1, labels[:, None], scale * margin)
        return nn.functional.cross_entropy(logits - own, labels, reduction="none")

    return losses


class TopologyTraining(SupervisedTraining):
    """Steps on L = λ_a ℓ_a + λ_b ℓ_b + λ_c ℓ_c: the visible graph, class groups, no edges.

    Class k has the columns k, C + k and 2C + k of the head, one for each topology. A validation asks for the nearest
    prototype on the visible graph, which is how nodes are classified later.

    weights: the three λ. way: N, classes of a group.
    """

    encoder: GcnEncoder | GatEncoder
    head: CosineHead
    groups: ClassGroups
    inputs: GraphInputs
    prototype_rows: torch.Tensor
    prototype_labels: torch.Tensor

    def __init__(
        self,
        encoder: GcnEncoder | GatEncoder,
        head: CosineHead,
        settings: TapSettings,
        *,
        way: int,
        stage: str,
        name: str,
    ) -> None:
        loss = class_balanced(cosface(settings.scale, settings.margin))
        super().__init__(encoder, head, settings.pretraining, stage=stage, name=name, loss=loss, balanced=True)
        self.way, self.random_edges = way, settings.random_edges
        aside = (settings.group_weight, settings.edgeless_weight)
        self.weights = (1 - sum(aside), *aside)

    def run(
        self,
        train: Labelled,
        validation: Labelled,
        inputs: GraphInputs,
        generator: torch.Generator,
        progress: Progress = SILENT,
        learner: Learner | None = None,
    ) -> None:
        rows = inputs.visible.rows(train[0])
        self.groups = ClassGroups(inputs.visible.adjacency, rows, train[1], self.way, self.random_edges)
        self.inputs = inputs
        self.prototype_rows = torch.from_numpy(rows).to(inputs.device)
        self.prototype_labels = tensor_of(train[1], inputs.device)
        super().run(train, validation, inputs, generator, progress, learner)

    def _epoch(self, needed: Any, rows: torch.Tensor, labels: torch.Tensor, generator: torch.Generator) -> torch.Tensor:  # noqa: ARG002
        """Some steps on one draw of the groups."""
        seed = torch.randint(2**62, (), generator=generator, device=generator.device)
        graph = inputs_of(self.groups.draw(np.random.default_rng(int(seed))), self.inputs.device)
        for _ in range(self.settings.steps_per_epoch):
            self.optimiser.zero_grad(set_to_none=True)
            loss = self._loss(graph, rows, labels, generator)
            loss.backward()
            self.optimiser.step()
        self.epoch += 1
        return loss.detach()

    def _loss(
        self, groups: GraphInputs, rows: torch.Tensor, labels: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """L of the labelled nodes, every class counting the same. groups: a drawn graph of these nodes alone."""
        encoder, count = self.encoder, self.head.weight.shape[1] // 3
        projected = self.inputs.raw() @ encoder.first.weight
        chosen = projected.index_select(0, rows)
        embeddings = (
            encode(encoder, projected, self.inputs, generator).index_select(0, rows),
            encode(encoder, chosen, groups, generator),
            encode(encoder, chosen, None, generator),
        )
        losses = [self.loss(self.head(values), place * count + labels) for place, values in enumerate(embeddings)]
        return sum((weight * loss for weight, loss in zip(self.weights, losses, strict=True)), losses[0].new_zeros(()))

    @torch.no_grad()
    def _accuracy(self, needed: Any, rows: torch.Tensor, labels: torch.Tensor) -> float:
        values, own = self.encoder(needed), self.prototype_labels
        count = int(own.max()) + 1
        prototypes = weighted_prototypes(values[self.prototype_rows], class_shares(own, count), own, count)
        right = (unit(values[rows]) @ unit(prototypes).T).argmax(dim=1) == labels
        return float((right * query_shares(labels, count, by_class=True)).sum())


class TopologyPretraining(Pretraining):
    """The encoder of the base classes alone, from which the whole of session 0 is trained."""

    def __init__(self, encoder: GcnEncoder | GatEncoder, head: CosineHead, settings: TapSettings, way: int) -> None:
        self.encoder, self.settings, self.way = encoder, settings, way
        self.training = TopologyTraining(encoder, head, settings, way=way, stage="pre-training", name="pretraining")

    def key(self, base: BaseSession, learner: Learner) -> dict[str, Any]:
        settings = settings_as_json(self.settings)
        own = {name: settings[name] for name in KEYS}
        return {**super().key(base, learner), "tap": {**own, "way": self.way}}
