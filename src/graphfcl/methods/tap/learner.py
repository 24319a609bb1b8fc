"""TAP: topology-based class augmentation and prototype calibration.

Yayong Li, Peyman Moghadam, Can Peng, Nan Ye, Piotr Koniusz: Inductive Graph Few-shot Class Incremental Learning. WSDM
2025. The method is designed for sessions with separate graphs (the track ``isolated``). Between sessions it keeps only
weights and prototypes.

**Session 0** (``training.py``). An encoder is trained on three topologies of the labelled nodes with a cosine head with
margin. Each topology has its own classes, 3C in total::

    a) the visible graph    b) random groups of N classes, edges within groups, 30 % random edges    c) no edges
    L = 0.7 ℓ_a + 0.15 ℓ_b + 0.15 ℓ_c,    ℓ = −log softmax(s (cos(z, w) − m·1[y])),  s = 15, m = 0.1

Then p_c is the mean of z over the train nodes of class c on the visible graph, and the head is discarded.

**A session** takes Adam steps from θ to θ' on the loss ℓ of the supports against old prototypes and refined new ones,
and sets θ ← 0.95 θ + 0.05 θ'. Old prototypes are corrected for the drift of the supports i::

    p_c ← p_c + Σ_i w_ci (z_i^new − z_i^old) / Σ_i w_ci,    w_ci = exp(−‖z_i^old − p_c‖² / 2σ²)

A new prototype starts at the mean of its supports. It is refined twice by the unlabelled nodes u within k hops of the
supports. Each of them is assigned to its nearest class with weight q_u = max_c softmax_c(cos(z_u, p_c)/0.1)::

    p̃_c = (Σ_{u→c} q_u z_u + Σ_supports z) / (Σ_{u→c} q_u + K_c),    p_c ← 0.7 p̃_c + 0.3 p_c

Scores are s·cos(z, p_c). With ``fine_tuning_steps=0`` there are no steps and no drift.

Differences from the paper and the released code:

- K_c is the number of supports of class c. The released code divides by N and splits the supports by N, which mixes
  classes if N and K differ.
- Random edges are only used in training, and connect any two nodes of a group. The released code also adds them to the
  test graph, and draws them from the ends of the first edges only.
- Graph b contains the labelled nodes only, since the group of other nodes is unknown, and is drawn every ten steps.
  Remaining classes form a smaller group, where the released code leaves them without edges. Branch c is the layer
  without aggregation, which is equivalent to each node having itself as its only neighbour.
- All classes have the same weight in a loss, as in the headline metric. The base classes are trained first, and then
  all of session 0, so that fine-tuning steps are chosen with an encoder that has not seen the pseudo-novel classes.
  Validation nodes stop both trainings, each of which has at most the paper's thousand steps.
- Validation sessions choose steps and learning rate of a session. Candidates include no steps and the paper's five
  steps at 0.01. Each session has a new optimiser without weight decay. The released code uses a decay of 5e-4 and keeps
  the moments. With a new optimiser, decay would move every weight at full rate, even weights of words that no support
  has.
- The contribution of unlabelled nodes to new prototypes is computed before the first step and is constant during the
  steps, whose gradient only passes through the supports. Otherwise each step would pass through most of the graph.
- The encoder is the GCN that all methods share, without the last ReLU; the paper uses a GAT with twelve heads of 16.
  ``encoder=gat`` uses this project's GAT, whose training takes three times as long, with a lower accuracy on
  development graphs.
- The prototype of a known class that gets further supports is updated as a mean over all its labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse

from graphfcl.methods.bases.encoder_learner import EncoderLearner, Stage
from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.fine_tuning import FineTuning, choose_on_copy
from graphfcl.methods.shared.heads import CosineHead, LogitAdjustment, unit
from graphfcl.methods.shared.memories import PrototypeMemory
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.prototype_network import (
    NodeEmbeddings,
    PrototypeNetwork,
    class_means,
    squared_distances,
)
from graphfcl.methods.shared.supervised_training import class_balanced, session_zero
from graphfcl.methods.shared.training_state import copy_weights, make_adam, take_steps
from graphfcl.methods.tap.training import TOPOLOGY_SETTINGS, TapSettings, TopologyTraining, cosface
from graphfcl.nn import Encoder, GatEncoder, GcnEncoder, GraphInputs, tensor_of
from graphfcl.stream.sessions import BaseSession, Session

SMALLEST = 1e-12  # lower bound of a sum of weights


def neighbourhood(adjacency: sparse.csr_array, rows: np.ndarray, hops: int) -> np.ndarray:
    """Return the rows within some hops of the given rows, without these rows."""
    reached = np.zeros(adjacency.shape[0], dtype=bool)
    reached[rows] = True
    for _ in range(hops):
        reached |= (adjacency @ reached.astype(np.float32)) > 0
    reached[rows] = False
    return np.flatnonzero(reached)


def drift(prototypes: torch.Tensor, before: torch.Tensor, after: torch.Tensor, width: float) -> torch.Tensor:
    """Compute the (C, h) drift of prototypes, Σ_i w_ci (z_i' − z_i) / Σ_i w_ci, w_ci = exp(−‖z_i − p_c‖²/2σ²).

    ``before`` and ``after`` are the (s, h) embeddings z and z' of the supports before and after the steps, and
    ``width`` is σ.
    """
    near = torch.exp(-squared_distances(prototypes, before).clamp(min=0) / (2 * width**2))
    return near @ (after - before) / near.sum(dim=1, keepdim=True).clamp(min=SMALLEST)


@dataclass(frozen=True, eq=False)
class Members:
    """Contributions of unlabelled nodes to each class: (C, h) Σ q_u z_u and (C,) Σ q_u over the assigned nodes."""

    sums: torch.Tensor
    masses: torch.Tensor


def assigned(prototypes: torch.Tensor, values: torch.Tensor, temperature: float) -> Members:
    """Assign unlabelled nodes with (u, h) embeddings to the nearest class.

    The weight of a node is q_u = max_c softmax_c(cos(z_u, p_c)/temperature).
    """
    shares = torch.softmax(unit(values) @ unit(prototypes).T / temperature, dim=1)
    weights, classes = shares.max(dim=1)
    sums = torch.zeros_like(prototypes).index_add(0, classes, weights[:, None] * values)
    return Members(sums, prototypes.new_zeros(len(prototypes)).index_add(0, classes, weights))


def refined(
    prototypes: torch.Tensor, members: Members, supports: torch.Tensor, labels: torch.Tensor, share: float
) -> torch.Tensor:
    """Compute (C, h) refined prototypes share·p̃_c + (1 − share)·p_c.

    p̃_c = (Σ_u q_u z_u + Σ_supports z)/(Σ_u q_u + K_c), where K_c is the number of class c's ``supports``, which are
    (s, h) embeddings. A class without supports is unchanged.
    """
    sums = members.sums.index_add(0, labels, supports)
    counts = torch.bincount(labels, minlength=len(prototypes))
    masses = (members.masses + counts).clamp(min=SMALLEST)[:, None]
    return torch.where((counts > 0)[:, None], share * sums / masses + (1 - share) * prototypes, prototypes)


class Tap(EncoderLearner):
    """TAP; the module docstring states the formulas and the differences from the paper."""

    title = "three topologies at session 0, prototypes calibrated by unlabelled neighbours"
    reference = "Li et al.: Inductive Graph Few-shot Class Incremental Learning. WSDM 2025"
    settings_type = TapSettings
    settings: TapSettings
    network: PrototypeNetwork
    memory: PrototypeMemory
    training: TopologyTraining

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = PrototypeMemory()
        self.fine_tuning = FineTuning(self.settings)
        self.adjustment = LogitAdjustment()

    def parts(self) -> tuple[Part, ...]:
        running = (self.training,) if self.stage == Stage.SESSION_ZERO else ()
        return (*super().parts(), *running, self.fine_tuning)

    # Session 0

    def _build(self, encoder: Encoder, start: torch.Generator) -> PrototypeNetwork:
        assert isinstance(encoder, GcnEncoder | GatEncoder)
        chosen, way = self.settings, self.sizes.way
        base, every = (
            CosineHead(chosen.size, 3 * count, chosen.scale, start).to(self.device)
            for count in (self.sizes.base, self.sizes.many)
        )
        self.pretraining = TopologyTraining(encoder, base, chosen, way=way, stage="pre-training", name="pretraining")
        self.training = TopologyTraining(encoder, every, chosen, way=way, stage="session 0", name="training")
        return PrototypeNetwork(encoder)

    def _encoder_options(self, base: BaseSession) -> dict[str, Any]:
        return {"tap": {name: getattr(self.settings, name) for name in TOPOLOGY_SETTINGS} | {"way": base.way}}

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == Stage.PRE_TRAINED:
            choose_on_copy(self, base, progress)
            self._enter(Stage.SESSION_ZERO, progress)
        if base.pseudo_novel_classes:  # without them, pre-training already used all of session 0
            self.training.run(*session_zero(base), inputs, self, progress)
        embeddings = self.network.node_embeddings(inputs)
        self.memory.keep(self.memory.prototypes(self.network, embeddings, len(self.classes_)))

    # Incremental sessions

    def _keeps_weights(self) -> bool:
        return self.fine_tuning.steps == 0

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        rows = inputs.visible.rows(session.supports)
        around = torch.from_numpy(neighbourhood(inputs.visible.adjacency, rows, self.settings.hops)).to(self.device)
        labels, places = tensor_of(session.support_labels, self.device), torch.from_numpy(rows).to(self.device)
        if self.fine_tuning.steps:
            self._adapt(inputs, rows, around, labels)
        with torch.no_grad():
            values = self._embeddings(inputs)
            self.cache.keep_embeddings(inputs.visible, values)
            fresh = self._calibrated(values[places], labels, values[around])
        self.memory.add_prototypes(fresh, session.support_labels)

    def _calibrated(self, supports: torch.Tensor, labels: torch.Tensor, around: torch.Tensor) -> torch.Tensor:
        """Compute (classes, h) means of the supports, refined for new classes by the unlabelled nodes around them.

        For a known class with supports in this session, the result is their mean. For known classes without supports,
        it has no meaning.
        """
        old, chosen = self._old(), self.settings
        means = self._started(supports, labels)
        new = labels >= len(old)
        prototypes = torch.cat([old, means[len(old) :]])
        for _ in range(chosen.rounds):
            members = assigned(prototypes, around, chosen.temperature)
            prototypes = refined(prototypes, members, supports[new], labels[new], chosen.refined_share)
        return torch.cat([means[: len(old)], prototypes[len(old) :]])

    def _old(self) -> torch.Tensor:
        """Return the (known classes, h) stored prototypes."""
        assert self.memory.kept is not None
        return self.memory.kept

    def _started(self, supports: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Compute the (classes, h) means of supports."""
        return class_means(supports, labels, len(self.classes_))

    def _adapt(self, inputs: GraphInputs, rows: np.ndarray, around: torch.Tensor, labels: torch.Tensor) -> None:
        """Take the steps of a session, interpolate the weights, and correct old prototypes for drift."""
        chosen, encoder, old = self.settings, self.network.encoder, self._old()
        needed = encoder.rows(inputs, rows)
        with torch.no_grad():
            values = self._embed(inputs)
            before, unlabelled = encoder(needed), values[around]
            prototypes = torch.cat([old, self._started(before, labels)[len(old) :]])
            members = assigned(prototypes, unlabelled, chosen.temperature)
        start, new = copy_weights(encoder), labels >= len(old)
        loss_of = class_balanced(cosface(chosen.scale, chosen.margin))
        optimiser = make_adam(encoder.parameters(), self.fine_tuning.rate, chosen.weight_decay)

        def loss() -> torch.Tensor:
            supports = encoder(needed, self.generator)
            means = torch.cat([old, self._started(supports, labels)[len(old) :]])
            moved = refined(means, members, supports[new], labels[new], chosen.refined_share)
            return loss_of(chosen.scale * unit(supports) @ unit(moved).T, labels)

        take_steps(optimiser, self.fine_tuning.steps, loss)
        with torch.no_grad():
            for name, weight in encoder.named_parameters():
                weight.copy_(torch.lerp(start[name], weight, chosen.step_share))
            self.memory.kept = old + drift(old, before, encoder(needed), chosen.drift_width)

    # Scores

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        """Compute (n, classes) s·cos(z, p_c)."""
        values = self._embeddings(inputs)
        embedding = NodeEmbeddings(inputs.visible, values, None)
        prototypes = self.memory.prototypes(self.network, embedding, len(self.classes_))
        return self.settings.scale * unit(values) @ unit(prototypes).T
