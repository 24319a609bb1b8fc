"""Joint training: the upper reference, which is allowed what no other method is.

At every session it is trained again on *all* training data of *all* classes seen: the train nodes of session 0, the
supports of novel classes, and the labels of their pool, which no other method ever receives. Its results are marked
"uses pool labels". Every class counts the same.

What is trained is the best of several trunks, each fitted to the train nodes of session 0 and measured by its balanced
accuracy on the validation nodes:

- ``gcn``: a GCN (32, 16), at every session from the encoder that was pre-trained on the base classes;
- ``wide-gcn``: a GCN (256, 128, no last ReLU) on features with rows of unit length, at every session from scratch;
- ``features``: a linear softmax head on [ n(XB) , n(ÂÂXB) , n(Z) ], n(·) centred and of unit length. B and the centres
  of the first two blocks stay those of session 0; Z is the output of the wide GCN, which is trained again, then the
  head;
- ``ridge``: [ n(XB) , a n(ÂÂXB) ] and class-balanced ridge regression, solved again. λ and a are those that are best on
  the validation nodes of session 0.

The number of epochs is the one that was best on session 0.
"""

from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from scipy import sparse
from torch import nn

from graphfcl.errors import DivergenceError
from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.bases.encoder_learner import EncoderLearner, EncoderSettings, Stage
from graphfcl.methods.blocks import NodeTables, open_tables
from graphfcl.methods.learner import EncoderStore, Labelled, LearnerState, Progress, Tensors, join_labelled
from graphfcl.methods.settings import Count, Positive, Weight
from graphfcl.methods.shared.class_statistics import RidgeSums, counts_with, in_parts
from graphfcl.methods.shared.memories import ReplayMemory
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.supervised_training import (
    HeadNetwork,
    SupervisedSettings,
    SupervisedTraining,
    head_training,
    session_zero,
)
from graphfcl.methods.shared.training_state import without_prefix
from graphfcl.methods.shared.untrained_blocks import HOPS, UntrainedBlocks
from graphfcl.methods.shared.untrained_features import WIDEST, unit_rows
from graphfcl.metrics import balanced_accuracy, confusion_matrix
from graphfcl.nn import DenseRows, Encoder, GcnEncoder, GraphInputs, Linear
from graphfcl.stream.sessions import BaseSession, PooledSession, Session

Trunk = Literal["gcn", "wide-gcn", "features", "ridge"]
TRUNKS: tuple[Trunk, ...] = get_args(Trunk)
# The settings of a trunk's training, and what messages call it; the ridge is solved.
TRAININGS = {
    "gcn": ("pretraining", ""),
    "wide-gcn": ("wide_training", ", wide GCN"),
    "features": ("head_training", ", features"),
}


def needed_trunks(name: str) -> tuple[str, ...]:
    """The trunks whose weights a trunk has: features reads the output of the wide GCN."""
    return ("wide-gcn", "features") if name == "features" else (name,)


@dataclass(frozen=True)
class JointSettings(EncoderSettings):
    """``hidden``, ``size`` and ``pretraining`` are those of the trunk gcn."""

    hidden: int = 32
    """Width of the first layer of the trunk gcn."""
    size: int = 16
    """Width of its output."""
    trunks: tuple[Trunk, ...] = TRUNKS
    """Trunks that are tried on session 0: gcn, wide-gcn, features, ridge; with one name that one is taken."""
    wide_hidden: Count = 256
    """Width of the first layer of the wide GCN."""
    wide_size: Count = 128
    """Width of its output, which has no ReLU."""
    wide_training: SupervisedSettings = field(
        default_factory=lambda: SupervisedSettings(epochs=15, patience=5, learning_rate=0.01)
    )
    """Training of the wide GCN and its head."""
    rank: Count = 1024
    """Columns of the basis of features and ridge at most."""
    head_training: SupervisedSettings = field(
        default_factory=lambda: SupervisedSettings(epochs=30, patience=5, learning_rate=0.05, weight_decay=0.0001)
    )
    """Training of the head of the trunk features."""
    penalties: tuple[Positive, ...] = (1.0, 0.1, 0.01, 10.0)
    """Candidates of the ridge's penalty; the validation nodes of session 0 choose."""
    hop_weights: tuple[Weight, ...] = (2.0, 4.0, 1.0, 0.5)
    """Candidates of the weight of the features around in the ridge; they choose it too."""


class FixedVectors(Encoder):
    """Vectors that nothing trains: the dense features of a graph as they are."""

    def rows(self, graph: GraphInputs, rows: np.ndarray | None, lead: int = 0) -> torch.Tensor:  # noqa: ARG002
        every = graph.raw()
        assert isinstance(every, DenseRows)
        return every.table.values if rows is None else every.table.values[torch.tensor(rows, device=graph.device)]

    def forward(self, rows: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:  # noqa: ARG002
        return rows


def vectors_as_graph(nodes: np.ndarray, vectors: torch.Tensor) -> GraphInputs:
    """Some nodes, ascending, with their vectors as features and without edges: what a head alone is trained on."""
    nothing = sparse.csr_array((nodes.size, nodes.size), dtype=np.float32)
    return GraphInputs(VisibleGraph(nodes, nothing, vectors.float().cpu().numpy()), vectors.device)


class Retraining(Part):
    """Which trunk every session trains again, from what, and how the trunks did on session 0.

    trunks: those to choose from. trunk: its name; empty while several are tried. accuracies: balanced accuracy on
    validation nodes by trunk. epochs_by_trunk: the number of epochs that was best. epochs: that of the trunk. encoder:
    the pre-trained one, from which gcn starts. centre: mean of the wide GCN's output where it was trained. ridge: λ
    and a. columns: of the basis.
    """

    name = "retraining"
    saved = ("trunk", "accuracies", "epochs_by_trunk", "epochs", "encoder", "centre", "ridge", "columns")

    def __init__(self, trunks: tuple[str, ...]) -> None:
        self.trunks = trunks
        self.trunk = trunks[0] if len(trunks) == 1 else ""
        self.accuracies: dict[str, float] = {}
        self.epochs_by_trunk: dict[str, int] = {}
        self.epochs = 0
        self.encoder: Tensors = {}
        self.centre: torch.Tensor | None = None
        self.ridge: tuple[float, float] | None = None
        self.columns = 0

    def settle(self) -> None:
        """Take the best trunk; of equal ones the first."""
        tried = [name for name in TRUNKS if name in self.trunks]
        self.trunk = self.trunk or max(tried, key=lambda name: self.accuracies[name])
        self.epochs = self.epochs_by_trunk.get(self.trunk, 0)

    def chosen(self) -> dict[str, Any]:
        chosen: dict[str, Any] = {"trunk": self.trunk, "epochs": self.epochs}
        if self.trunk == "ridge" and self.ridge is not None:
            chosen = {"trunk": self.trunk, "penalty": self.ridge[0], "hop_weight": self.ridge[1]}
        return chosen | {f"validation_{name}": round(value, 4) for name, value in self.accuracies.items()}

    def stored(self) -> dict[str, int]:
        return {"weights": sum(value.nbytes for value in self.tensors().values())}


class Joint(EncoderLearner):
    """Joint training; what it is allowed and its trunks in the module docstring.

    network: a :class:`HeadNetwork` for each trunk; once one is chosen, for that one alone.
    retraining: which trunk, and what its training starts from. blocks: what no label touched, of features and ridge.
    """

    title = "retrained at each session on all labels of all classes (uses pool labels)"
    reference = "upper reference"
    settings_type = JointSettings
    uses_pool_labels = True
    settings: JointSettings
    memory: ReplayMemory

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = ReplayMemory()
        self.retraining = Retraining(self.settings.trunks)
        self.blocks = UntrainedBlocks()
        self.training: SupervisedTraining | None = None  # of the trunk that is fitted to session 0
        self._prepared: tuple[GraphInputs, NodeTables] | None = None

    def parts(self) -> tuple[Part, ...]:
        running = (self.training,) if self.stage == Stage.SESSION_ZERO and self.training is not None else ()
        return (*super().parts(), *running, self.retraining, self.blocks)

    # Networks

    def _names(self) -> tuple[str, ...]:
        """Trunks that are fitted: those of the settings or the one chosen, and what these need."""
        wanted = (self.retraining.trunk,) if self.retraining.trunk else self.settings.trunks
        needed = {each for name in wanted for each in needed_trunks(name)}
        return tuple(name for name in TRUNKS if name in needed)

    def _next(self) -> str | None:
        """The trunk that session 0 has not fitted yet."""
        return next((name for name in self._names() if name not in self.retraining.accuracies), None)

    def _start(self, base: BaseSession, inputs: GraphInputs) -> None:
        if {"features", "ridge"} & set(self._names()):
            prepared = self._prepare(inputs)
            self.retraining.columns = min(self.settings.rank, prepared.node_count, prepared.feature_count)
        super()._start(base, inputs)

    def _make_network(self) -> None:
        super()._make_network()
        self.training = self._training_of(self._next())

    def _build(self, encoder: Encoder, start: torch.Generator) -> nn.ModuleDict:
        gcn = HeadNetwork(encoder, Linear(self.settings.size, len(self.classes_), start).to(self.device))
        return nn.ModuleDict({name: gcn if name == "gcn" else self._new(name) for name in self._names()})

    def _new(self, name: str) -> HeadNetwork:
        """A trunk as its training at a session starts: gcn with the pre-trained encoder, others from scratch."""
        chosen, count, start = self.settings, len(self.classes_), torch.Generator().manual_seed(self.seed)
        encoder: Encoder
        if name == "gcn":
            encoder, size = self.network["gcn"].encoder, chosen.size
            encoder.load_state_dict(self.retraining.encoder)
        elif name == "wide-gcn":
            features, size = min(max(1, self.sizes.features), WIDEST), chosen.wide_size
            encoder = GcnEncoder(features, chosen.wide_hidden, size, start, dropout=chosen.dropout, last_relu=False)
        else:
            encoder = FixedVectors()
            size = 2 * self.retraining.columns + (chosen.wide_size if name == "features" else 0)
        head = Linear(size, count, start)
        if isinstance(encoder, FixedVectors):
            nn.init.zeros_(head.weight)  # the loss is convex
        return HeadNetwork(encoder, head).to(self.device)

    def _training_of(self, name: str | None, stage: str = "session 0") -> SupervisedTraining | None:
        if name not in TRAININGS:
            return None
        (settings, what), trunk = TRAININGS[name], self.network[name]
        return head_training(trunk.encoder, trunk.head, getattr(self.settings, settings), stage=f"{stage}{what}")

    # Session 0

    def _pretrain(self, base: BaseSession, inputs: GraphInputs, progress: Progress, encoders: EncoderStore) -> None:
        if "gcn" in self._names():
            super()._pretrain(base, inputs, progress, encoders)

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == Stage.PRE_TRAINED:
            self._enter(Stage.SESSION_ZERO, progress)
        while (name := self._next()) is not None:
            self._fit_trunk(name, base, inputs, progress)
            self.training = self._training_of(self._next())
            progress.checkpoint(self)
        self.retraining.settle()
        self._keep_chosen_alone()
        self._keep((base.train, base.train_labels), inputs)

    def _fit_trunk(self, name: str, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        (train, validation), retraining = session_zero(base), self.retraining
        if name in ("features", "ridge") and not self.blocks.is_fixed:
            self.blocks.fix(self._prepare(inputs), self.settings.rank, self.seed)
        if name == "ridge":
            retraining.accuracies[name] = self._choose_ridge(train, validation, inputs)
            return
        if name == "features":
            self._centre_wide_output(inputs)
        assert self.training is not None
        seen = self._seen_by(name, inputs, np.concatenate([base.train, base.validation]))
        self.training.run(train, validation, seen, self, progress)
        retraining.accuracies[name] = self.training.stopping.score
        retraining.epochs_by_trunk[name] = self.training.stopping.step

    def _keep_chosen_alone(self) -> None:
        """Drop what the other trunks had."""
        retraining = self.retraining
        for name in set(self.network) - set(needed_trunks(retraining.trunk)):
            del self.network[name]
        self.training = None
        if retraining.trunk == "gcn":
            retraining.encoder = without_prefix("gcn.encoder", self.pretrained)
        if retraining.trunk != "features":
            retraining.centre = None
        if retraining.trunk not in ("features", "ridge"):
            self.blocks = UntrainedBlocks()

    def _choose_ridge(self, train: Labelled, validation: Labelled, inputs: GraphInputs) -> float:
        """Fit the ridge with the best penalty and hop weight; its balanced accuracy."""
        vectors, count, best = self._vectors("ridge", inputs, None), len(self.classes_), -1.0
        sums = self._ridge_sums(train, inputs, vectors)
        queries = vectors[inputs.visible.rows(validation[0])].float()
        for penalty, hop_weight in product(self.settings.penalties, self.settings.hop_weights):
            try:
                weights = sums.solve(penalty, self.blocks.weighted(1.0, hop_weight))
            except DivergenceError:
                continue
            predicted = (queries @ weights.float()).argmax(dim=1).cpu().numpy()
            accuracy = balanced_accuracy(confusion_matrix(validation[1], predicted, count))
            if accuracy > best:
                best, self.retraining.ridge = accuracy, (penalty, hop_weight)
                self.network["ridge"].head.weight.data = weights.float()
        return best

    def _ridge_sums(self, labelled: Labelled, inputs: GraphInputs, vectors: torch.Tensor) -> RidgeSums:
        rows, columns = inputs.visible.rows(labelled[0]), torch.tensor(labelled[1], device=self.device)
        empty = RidgeSums.empty(self.blocks.width, self.device)
        return empty.plus(in_parts(vectors[rows], columns), counts_with(empty.counts, columns, len(self.classes_)))

    # Sessions and scores

    def _keep(self, labelled: Labelled, inputs: GraphInputs) -> None:
        self.memory.add(*labelled, inputs.visible, keep_features=self.track == "isolated")

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        labelled = (session.supports, session.support_labels)
        if isinstance(session, PooledSession):
            labelled = join_labelled(labelled, (session.pool, session.pool_labels))
        self._keep(labelled, inputs)
        beside, retraining = self.memory.beside(inputs), self.retraining
        for name in needed_trunks(retraining.trunk):
            self.network[name] = self._new(name)
        for name in needed_trunks(retraining.trunk):
            if name == "ridge":
                self._solve(beside)
                continue
            if name == "features":
                self._centre_wide_output(beside)
            training = self._training_of(name, f"session {session.number}")
            assert training is not None
            # As many epochs as were best on session 0, on all labels.
            epochs = retraining.epochs if name == retraining.trunk else retraining.epochs_by_trunk[name]
            seen = self._seen_by(name, beside, self.memory.nodes)
            training.run_epochs(self.memory.labelled, epochs, seen, self.generator)

    def _solve(self, inputs: GraphInputs) -> None:
        assert self.retraining.ridge is not None
        penalty, hop_weight = self.retraining.ridge
        sums = self._ridge_sums(self.memory.labelled, inputs, self._vectors("ridge", inputs, None))
        self.network["ridge"].head.weight.data = sums.solve(penalty, self.blocks.weighted(1.0, hop_weight)).float()

    def _seen_by(self, name: str, inputs: GraphInputs, nodes: np.ndarray) -> GraphInputs:
        """What a trunk is trained on: the graph, or the vectors of some nodes."""
        if name != "features":
            return inputs if name == "gcn" else self._prepared_graph(inputs)
        nodes = np.unique(nodes)
        return vectors_as_graph(nodes, self._vectors(name, inputs, None)[inputs.visible.rows(nodes)])

    def _prepare(self, inputs: GraphInputs) -> NodeTables:
        """The same graph, its features with rows of unit length; the last one is kept."""
        if self._prepared is None or self._prepared[0] is not inputs:
            self._prepared = (inputs, open_tables(inputs.visible, self.device, self.seed, unit=True))
        return self._prepared[1]

    def _prepared_graph(self, inputs: GraphInputs) -> GraphInputs:
        whole = self._prepare(inputs).whole
        assert whole is not None, "the graph is in memory"
        return whole

    @torch.no_grad()
    def _vectors(self, name: str, inputs: GraphInputs, rows: np.ndarray | None) -> torch.Tensor:
        """(r, D) in 16 bits: the fixed vectors of the trunk features or ridge."""
        prepared, nodes = self._prepare(inputs), inputs.visible.nodes
        if rows is None:
            blocks = self.blocks.table(prepared).rows_at(np.arange(nodes.size))
        else:
            blocks = self.blocks.near(prepared, nodes[rows])
        if name == "ridge":
            return blocks
        assert self.retraining.centre is not None
        output = unit_rows(self._wide_output(inputs, rows) - self.retraining.centre)
        return torch.cat([blocks, output.half()], dim=1)

    @torch.no_grad()
    def _centre_wide_output(self, inputs: GraphInputs) -> None:
        self.retraining.centre = self._wide_output(inputs, None).mean(dim=0)

    def _wide_output(self, inputs: GraphInputs, rows: np.ndarray | None) -> torch.Tensor:
        if rows is None:
            return self.network["wide-gcn"].embed(self._prepared_graph(inputs), None)
        return self.network["wide-gcn"].embed(*self._prepare(inputs).near(inputs.visible.nodes[rows], HOPS))

    def _embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        name = self.retraining.trunk or self._names()[0]  # while several are tried it answers by the first
        if name == "gcn":
            return self.network["gcn"].embed(inputs, rows)
        if name == "wide-gcn":
            return self._wide_output(inputs, rows)
        return self._vectors(name, inputs, rows)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        name = self.retraining.trunk or self._names()[0]
        return self.network[name].head(self._embeddings(inputs).float())

    def vectors_to_draw(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray | None:
        return self.embeddings(visible)[visible.rows(nodes)].astype(np.float32)

    # State

    def _become(self, other: Self) -> None:
        self.retraining.become(other.retraining, self.device)  # which trunks there are says what the network has
        super()._become(other)

    def load_state(self, state: LearnerState) -> None:
        self.refuse_another(state.values)
        if state.values["stage"] != Stage.NEW:  # which trunks there are says what the network has
            self.retraining.load(state.values, state.tensors, self.device)
        super().load_state(state)
