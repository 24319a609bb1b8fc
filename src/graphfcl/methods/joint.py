"""Joint training: an upper reference that uses more labels than other methods receive.

At each session, its models are trained again on *all* training data of *all* classes seen: the train nodes of session
0, the supports of novel classes, and the labels of their pool. Only ANCHOR with pool labels receives the pool too.
Results are marked "uses pool labels". All classes have the same weight.

Its probability is a weighted mean over three kinds of models, so no model has to be selected::

    P = 0.6 P_anchor + 0.2 softmax(T W h) + 0.1 softmax(U h) + 0.1 softmax(V g)
    h(v) = [ n(XB)_v , 2 n(Â…ÂXB)_v ],   g(v) = [ n(XB)_v , n(Â…ÂXB)_v , n(Z)_v ]

- P_anchor: ANCHOR with the pool among its supports (``anchor_pool.py``).
- W: class-balanced ridge regression in closed form. T: ANCHOR's temperature.
- U, V: linear softmax heads. Z: the output of a GCN with the size of ANCHOR's encoder, trained from scratch.

n(·) centres rows and scales them to unit length. B, the number of hops, and the centres of the first two blocks come
from session 0; the centre of Z comes from the graph on which the GCN was trained. Epochs and steps are constants that
were selected on development graphs.

A single model, selected and stopped by its accuracy on session 0, would be a weaker reference. All classes of session 0
have many labels, and models that differ by less than a point there differ by many points on new classes. Even the same
model differs by points with other random numbers of dropout, for example on a GPU.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.anchor.head import retrained_head
from graphfcl.methods.anchor.learner import Anchor
from graphfcl.methods.anchor.settings import AnchorSettings
from graphfcl.methods.blocks import NodeTables
from graphfcl.methods.learner import Learner, Progress
from graphfcl.methods.settings import Count, Positive
from graphfcl.methods.shared.class_statistics import RidgeSums, counts_with, in_parts
from graphfcl.methods.shared.memories import ReplayMemory, pool_among_supports
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.supervised_training import head_training
from graphfcl.methods.shared.training_state import copy_weights
from graphfcl.methods.shared.untrained_features import unit_rows
from graphfcl.methods.state import Labelled, Tensors
from graphfcl.nn import Encoder, GraphInputs, Linear, tensor_of
from graphfcl.stream.sessions import BaseSession, Session

HOP_WEIGHT = 2.0  # weight of the propagated features in h
CHUNK = 16_384  # rows that are converted from 16 to 32 bits at a time
SHARES = (0.6, 0.2, 0.1, 0.1)  # weights of ANCHOR, ridge regression, the head on h, and the head on g


@dataclass(frozen=True)
class JointSettings(AnchorSettings):
    """Settings of ANCHOR and of the further models. Each session trains a GCN for ``pretraining.epochs`` epochs."""

    joint_steps: Count = 100
    """Number of training steps of the softmax heads."""
    joint_rate: Positive = 0.05
    """Learning rate of Adam in the training of the softmax heads."""
    penalty: Positive = 1.0
    """Penalty of the ridge regression on all labels, relative to the mean eigenvalue of its Gram matrix."""


class Retrained(Part):
    """The models that are trained again at each session. Tensors are replaced, and never written in place.

    Attributes:
        encoder: Weights of the GCN.
        centre: (h,) mean of the GCN's output on the graph on which it was trained.
        head: (C, D) V in 16 bits.
        plain_head: (C, 2k) U in 16 bits.
        ridge: (2k, C) W.
    """

    name = "retrained"
    saved = ("encoder", "centre", "head", "plain_head", "ridge")

    def __init__(self) -> None:
        self.encoder: Tensors = {}
        self.centre = self.head = self.plain_head = self.ridge = torch.zeros(0)

    def stored(self) -> dict[str, int]:
        return {"weights": sum(tensor.nbytes for tensor in self.tensors().values())}


class Joint(Anchor):
    """Joint training; the module docstring states the formulas. ``memory`` stores all labelled nodes."""

    name = "joint"
    title = "models trained again at each session on all labels of all classes (uses pool labels)"
    reference = "upper reference"
    settings_type = JointSettings
    uses_pool_labels = True
    works_on_disk = False
    settings: JointSettings
    memory: ReplayMemory

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = ReplayMemory()
        self.retrained = Retrained()

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), self.retrained)

    def _train(self, base: BaseSession, inputs: NodeTables, progress: Progress) -> None:
        super()._train(base, inputs, progress)
        self._retrain((base.train, base.train_labels), inputs, "session 0")

    def _learn(self, session: Session, inputs: NodeTables) -> None:
        session = pool_among_supports(session)
        super()._learn(session, inputs)
        self._retrain((session.supports, session.support_labels), inputs, f"session {session.number}")

    def _retrain(self, labelled: Labelled, inputs: NodeTables, stage: str) -> None:
        """Add labels, and train on all labels on the graph of a session."""
        tables, now = self._tables_with_memory(labelled, inputs), self.retrained
        encoder = self._train_gcn(tables, stage)
        with torch.no_grad():
            output = _output(encoder, tables)
            centre = output.mean(dim=0)
            blocks = self._joint_blocks(tables, self.memory.nodes, output - centre)
            columns = tensor_of(self.memory.labels, self.device)
            plain = _weighted(blocks, len(centre))
            now.head, now.plain_head = (self._train_head(each, columns) for each in (blocks, plain))
            now.ridge = self._solve_ridge(plain, columns)
        now.encoder, now.centre = copy_weights(encoder), centre

    def _tables_with_memory(self, labelled: Labelled, inputs: NodeTables) -> NodeTables:
        """Add labels to the memory, and return tables of a graph that contains all labelled nodes."""
        visible, isolated = inputs.visible.loaded(), self.track == "isolated"
        self.memory.add(*labelled, visible, keep_features=isolated)
        return (
            self._make_inputs(self.memory.graph_with_nodes(GraphInputs(visible, self.device)).visible)
            if isolated
            else inputs
        )

    def _train_gcn(self, tables: NodeTables, stage: str) -> Encoder:
        """Train the GCN from scratch; the result does not depend on earlier training."""
        start = torch.Generator().manual_seed(self.seed)
        encoder = self._make_encoder(start, self.settings.hidden)
        head = Linear(self.settings.size, len(self.classes_), start).to(self.device)
        training = head_training(encoder, head, self.settings.pretraining, stage=f"{stage}, GCN")
        dropout = torch.Generator(self.device).manual_seed(self.seed)
        training.run_epochs(self.memory.labelled, self.settings.pretraining.epochs, _whole(tables), dropout)
        return encoder

    def _train_head(self, vectors: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        start = torch.zeros(len(self.classes_), vectors.shape[1], device=self.device)
        return retrained_head(start, (vectors, columns), self.settings.joint_steps, self.settings.joint_rate)

    def _solve_ridge(self, vectors: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        empty = RidgeSums.empty(vectors.shape[1], self.device)
        sums = empty.plus(in_parts(vectors, columns), counts_with(empty.counts, columns, len(self.classes_)))
        return sums.solve(self.settings.penalty, torch.ones_like(sums.gram[0])).float()

    def _joint_blocks(self, tables: NodeTables, nodes: np.ndarray, output: torch.Tensor) -> torch.Tensor:
        """Compute (m, D) g of some nodes in 16 bits from the (n, h) centred output of the GCN."""
        rows, frame, own = tables.visible.rows(nodes), self.knowledge.frame, tables.own(self._basis())
        around = tables.hops(own, (self.knowledge.neighbourhood.hops,))[0]
        parts = [
            unit_rows(own.rows_at(rows) - frame["centre.0"]).half(),
            unit_rows(around.rows_at(rows) - frame["centre.1"]).half(),
            unit_rows(output[torch.from_numpy(rows).to(self.device)]).half(),
        ]
        return torch.cat(parts, dim=1)

    def _score_all(self, inputs: NodeTables) -> torch.Tensor:
        """Compute (n, C) log P, plus the term that ANCHOR adds to all classes of a node."""
        scores = torch.from_numpy(super()._score_all(inputs)).to(self.device)
        now = self.retrained
        if not now.encoder:  # loaded from a checkpoint within session 0
            return scores
        encoder = self._make_encoder(torch.Generator(), self.settings.hidden)
        encoder.load_state_dict(now.encoder)
        blocks = self._joint_blocks(inputs, inputs.visible.nodes, _output(encoder, inputs) - now.centre)
        head, plain_head, parts = now.head.float().T, now.plain_head.float().T, []
        for some, by_anchor in zip(blocks.split(CHUNK), scores.split(CHUNK), strict=True):
            vectors = some.float()
            plain = _weighted(vectors, len(now.centre))
            logits = (by_anchor, self.settings.temperature * (plain @ now.ridge), plain @ plain_head, vectors @ head)
            shares = (torch.softmax(each, dim=1) * share for each, share in zip(logits, SHARES, strict=True))
            parts.append(torch.log(sum(shares, torch.zeros(()))) + torch.logsumexp(by_anchor, dim=1, keepdim=True))
        return torch.cat(parts)

    def _make_inputs(self, visible: VisibleNodes, *, sparing: bool = False) -> NodeTables:
        return super()._make_inputs(visible.loaded(), sparing=sparing)

    # ANCHOR removes labels and explains predictions by class sums. Trained models cannot, so defaults are restored.
    forgets_exactly = Learner.forgets_exactly
    restate = Learner.restate
    scores_without = Learner.scores_without
    explain = Learner.explain
    calibration_learner = Learner.calibration_learner


def _weighted(blocks: torch.Tensor, size: int) -> torch.Tensor:
    """Compute (m, 2k) h from (m, 2k + size) g."""
    own, around = blocks[:, : blocks.shape[1] - size].chunk(2, dim=1)
    return torch.cat([own, HOP_WEIGHT * around], dim=1)


def _output(encoder: Encoder, tables: NodeTables) -> torch.Tensor:
    """Compute the (n, h) output for all nodes."""
    return encoder(encoder.rows(_whole(tables), None))


def _whole(tables: NodeTables) -> GraphInputs:
    assert tables.whole is not None, "the graph is in memory"
    return tables.whole
