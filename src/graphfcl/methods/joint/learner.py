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

from itertools import product
from typing import Any, Self

import numpy as np
import torch

from graphfcl.errors import DivergenceError
from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.bases.encoder_learner import EncoderLearner, Stage
from graphfcl.methods.blocks import NodeTables, open_tables
from graphfcl.methods.joint.trunks import (
    TRUNKS,
    FixedVectors,
    JointNetwork,
    JointSettings,
    Retraining,
    vectors_as_graph,
)
from graphfcl.methods.learner import EncoderStore, Labelled, LearnerState, Progress
from graphfcl.methods.shared.class_statistics import RidgeSums, counts_with, in_parts
from graphfcl.methods.shared.memories import ReplayMemory
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.supervised_training import HeadNetwork, SupervisedTraining, head_training, session_zero
from graphfcl.methods.shared.training_state import without_prefix
from graphfcl.methods.shared.untrained_blocks import HOPS, UntrainedBlocks
from graphfcl.methods.shared.untrained_features import WIDEST, unit_rows
from graphfcl.metrics import balanced_accuracy, confusion_matrix
from graphfcl.nn import Encoder, GcnEncoder, GraphInputs, Linear
from graphfcl.stream.sessions import BaseSession, PooledSession, Session


class Joint(EncoderLearner):
    """Joint training; what it is allowed and its trunks in the module docstring.

    retraining: which trunk, and what its training starts from. blocks: what no label touched, of features and ridge.
    """

    title = "retrained at each session on all labels of all classes (uses pool labels)"
    reference = "upper reference"
    settings_type = JointSettings
    uses_pool_labels = True
    settings: JointSettings
    network: JointNetwork
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
        """Trunks that are fitted: those asked for or the one chosen; for features the wide GCN too."""
        wanted = (self.retraining.trunk,) if self.retraining.trunk else self.settings.trunks
        return tuple(name for name in TRUNKS if name in wanted or (name == "wide-gcn" and "features" in wanted))

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

    def _build(self, encoder: Encoder, start: torch.Generator) -> JointNetwork:
        network, names = JointNetwork(), self._names()
        head = Linear(self.settings.size, len(self.classes_), start).to(self.device)
        if "gcn" in names:
            network.encoder, network.head = encoder, head
        if "wide-gcn" in names:
            network.wide = self._new_wide()
        for name in ("features", "ridge"):
            if name in names:
                setattr(network, name, self._new_head(name))
        return network

    def _new_wide(self) -> HeadNetwork:
        chosen, start = self.settings, torch.Generator().manual_seed(self.seed)
        encoder = GcnEncoder(
            min(max(1, self.sizes.features), WIDEST),
            chosen.wide_hidden,
            chosen.wide_size,
            start,
            dropout=chosen.dropout,
            last_relu=False,
        )
        return HeadNetwork(encoder, Linear(chosen.wide_size, len(self.classes_), start)).to(self.device)

    def _new_head(self, name: str) -> Linear:
        """On fixed vectors, of zeros: the loss is convex."""
        width = 2 * self.retraining.columns + (self.settings.wide_size if name == "features" else 0)
        head = Linear(width, len(self.classes_), torch.Generator()).to(self.device)
        torch.nn.init.zeros_(head.weight)
        return head

    def _training_of(self, name: str | None, stage: str = "session 0") -> SupervisedTraining | None:
        chosen, network = self.settings, self.network
        if name == "gcn":
            return head_training(network.encoder, network.head, chosen.pretraining, stage=stage)
        if name == "wide-gcn":
            wide = network.wide
            return head_training(wide.encoder, wide.head, chosen.wide_training, stage=f"{stage}, wide GCN")
        if name == "features":
            return head_training(FixedVectors(), network.features, chosen.head_training, stage=f"{stage}, features")
        return None

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
        train, validation = session_zero(base)
        retraining = self.retraining
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
        retraining.accuracies[name], retraining.epochs_by_trunk[name] = (
            self.training.stopping.score,
            self.training.stopping.step,
        )

    def _keep_chosen_alone(self) -> None:
        """Drop what the other trunks had."""
        retraining, kept = self.retraining, JointNetwork()
        modules = {"gcn": ("encoder", "head"), "wide-gcn": ("wide",), "features": ("wide", "features")}
        for name in modules.get(retraining.trunk, (retraining.trunk,)):
            setattr(kept, name, getattr(self.network, name))
        self.network, self.training = kept, None
        if retraining.trunk == "gcn":
            retraining.encoder = without_prefix("encoder", self.pretrained)
        if retraining.trunk != "features":
            retraining.centre = None
        if retraining.trunk not in ("features", "ridge"):
            self.blocks = UntrainedBlocks()

    def _choose_ridge(self, train: Labelled, validation: Labelled, inputs: GraphInputs) -> float:
        """Fit the ridge with the best penalty and hop weight; its balanced accuracy."""
        vectors, count, best = self._vectors("ridge", inputs, None), len(self.classes_), -1.0
        sums = self._ridge_sums(train, inputs, vectors)
        asked = vectors[inputs.visible.rows(validation[0])].float()
        for penalty, hop_weight in product(self.settings.penalties, self.settings.hop_weights):
            try:
                weights = sums.solve(penalty, self.blocks.weighted(1.0, hop_weight))
            except DivergenceError:
                continue
            predicted = (asked @ weights.float()).argmax(dim=1).cpu().numpy()
            accuracy = balanced_accuracy(confusion_matrix(validation[1], predicted, count))
            if accuracy > best:
                best, self.retraining.ridge = accuracy, (penalty, hop_weight)
                self.network.ridge.weight.data = weights.float()
        return best

    def _ridge_sums(self, labelled: Labelled, inputs: GraphInputs, vectors: torch.Tensor) -> RidgeSums:
        rows, columns = inputs.visible.rows(labelled[0]), torch.tensor(labelled[1], device=self.device)
        nobody = RidgeSums.empty(self.blocks.width, self.device)
        return nobody.plus(in_parts(vectors[rows], columns), counts_with(nobody.counts, columns, len(self.classes_)))

    # Sessions and scores

    def _keep(self, labelled: Labelled, inputs: GraphInputs) -> None:
        self.memory.add(*labelled, inputs.visible, keep_features=self.track == "isolated")

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        labelled = (session.supports, session.support_labels)
        if isinstance(session, PooledSession):
            pool = (session.pool, session.pool_labels)
            labelled = (np.concatenate([labelled[0], pool[0]]), np.concatenate([labelled[1], pool[1]]))
        self._keep(labelled, inputs)
        beside, name, network = self.memory.beside(inputs), self.retraining.trunk, self.network
        stage = f"session {session.number}"
        if name == "gcn":
            network.encoder.load_state_dict(self.retraining.encoder)
            start = torch.Generator().manual_seed(self.seed)
            network.head = Linear(self.settings.size, len(self.classes_), start).to(self.device)
        if name in ("wide-gcn", "features"):
            network.wide = self._new_wide()
        if name in ("features", "ridge"):
            setattr(network, name, self._new_head(name))
        if name == "ridge":
            self._solve(beside)
            return
        if name == "features":
            self._train_again("wide-gcn", beside, stage)
            self._centre_wide_output(beside)
        self._train_again(name, beside, stage)

    def _train_again(self, name: str, inputs: GraphInputs, stage: str) -> None:
        """On all labels, for as many epochs as were best on session 0."""
        training = self._training_of(name, stage)
        assert training is not None
        epochs = self.retraining.epochs if name == self.retraining.trunk else self.retraining.epochs_by_trunk[name]
        seen = self._seen_by(name, inputs, self.memory.nodes)
        training.run_epochs(self.memory.labelled, epochs, seen, self.generator)

    def _solve(self, inputs: GraphInputs) -> None:
        assert self.retraining.ridge is not None
        penalty, hop_weight = self.retraining.ridge
        sums = self._ridge_sums(self.memory.labelled, inputs, self._vectors("ridge", inputs, None))
        self.network.ridge.weight.data = sums.solve(penalty, self.blocks.weighted(1.0, hop_weight)).float()

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
            return self.network.wide.embed(self._prepared_graph(inputs), None)
        return self.network.wide.embed(*self._prepare(inputs).near(inputs.visible.nodes[rows], HOPS))

    def _embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        name = self.retraining.trunk or self._names()[0]  # while several are tried it answers by the first
        if name == "gcn":
            return self.network.encoder(self.network.encoder.rows(inputs, rows))
        if name == "wide-gcn":
            return self._wide_output(inputs, rows)
        return self._vectors(name, inputs, rows)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        network, name = self.network, self.retraining.trunk or self._names()[0]
        heads = {"gcn": "head", "wide-gcn": "wide.head"}
        return network.get_submodule(heads.get(name, name))(self._embeddings(inputs).float())

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
