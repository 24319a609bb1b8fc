"""ANCHOR: class sums are anchors, the visible graph moves the means.

A method of this project. Nothing is trained after session 0, no node is stored, and a session is a sum.

**Session 0.** Every node v gets a vector of three blocks, two of which no label ever touched::

    f(v) = [ a₀ n(XB)_v , a₂ n(ÂÂXB)_v , a_z n(Z)_v ]      n(·): minus the mean of session 0, then of unit length

X: features, words with rows of unit length; B: the leading right singular vectors of session 0's X; Z: a GCN (256,
128, no last ReLU), trained on all classes of session 0 with every class counting the same. With S_w the within-class
covariance of session 0, every class counting the same, shrunk to Ŝ = S_w + ρ tr(S_w)/D · I, one Cholesky decomposition
Ŝ = L Lᵀ gives

    x(v) = unit( (f(v) − m) L^(−T) )

in which class means under a common covariance are told apart by their angle. On x a softmax head is trained, for the
classes of session 0 alone (``head.py``).

**A session** adds S_c += Σ x(v), n_c += 1 over the supports of class c. Sums commute: sessions in any order, or all at
once, give the same state. Centre, basis, covariance and encoder stay as session 0 left them.

**Scores** come from (S, n) and the graph visible now. With means μ_c = S_c / n_c::

    P₀ = softmax_c( T x·μ_c / ℓ_c ),   P = what neighbours make of P₀                    (where classes lie)
    μ_c ← (S_c + Σ_v P_vc x_v) / (n_c + Σ_v P_vc)                                        (what then their means are)

twice, over all visible nodes, labelled or not. The sums are a prior that weighs as much as the labels behind it: a
class with thousands of them moves little, one with five goes where its nodes lie. The stored sums are those of the
graphs their nodes were learned on; as the graph grows the visible nodes, which are embedded again, pull every mean
along. ℓ_c is the length of the mean without its noise: the mean of n unit vectors with true mean length ℓ has squared
length ℓ² + (1 − ℓ²)/n, so a mean of five is too long; ℓ is shrunk to that of well-known classes. Neighbours are heard
by smoothing or by the links between classes (``neighbours.py``). How the probability of the classes of session 0 is
shared out among them is in the end half the head's say.

**Chosen by validation sessions** of the run: how much the surroundings weigh (a₂), how many hops they reach, and how
neighbours are heard (s, steps, β): one of five (``choosing.py``). All else is one constant for all graphs, fixed on
development graphs (``docs/anchor.md``).
"""

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from graphfcl.graph import VisibleGraph
from graphfcl.graph.visible_folder import VisibleFolder
from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.explanation import Evidence, explained
from graphfcl.methods.anchor.frame_sizes import first_layer_shape, frame_rank
from graphfcl.methods.anchor.head import joined_nodes, retrained_head, shared_out, some_nodes_of_each, trained_head
from graphfcl.methods.anchor.hop_encoder import HopEncoder, NoEncoder, RowTraining, row_training
from graphfcl.methods.anchor.in_memory import NodesInMemory
from graphfcl.methods.anchor.on_disk import NodesOnDisk
from graphfcl.methods.anchor.rounds import Rounds
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.storage import FIRST_LAYER, AnchorKnowledge
from graphfcl.methods.anchor.vectors import block_type, joined, points
from graphfcl.methods.bases.encoder_learner import EncoderLearner, Stage
from graphfcl.methods.blocks.folder_inputs import FolderInputs
from graphfcl.methods.blocks.last_tables import LastTables
from graphfcl.methods.learner import EncoderStore, Explanation, Labelled, Learner, LearnerState, Progress, Tensors
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.supervised_training import SupervisedTraining
from graphfcl.methods.shared.trained_head import head_training
from graphfcl.methods.shared.untrained_features import around_rows, prepare
from graphfcl.nn import Encoder, GcnRows, GraphInputs, Linear, tensor_of
from graphfcl.stream import BaseSession, Session

REHEARSAL_EPOCHS = 5  # with three times as many a rehearsal teaches the same


class AnchorNetwork(nn.Module):
    """The encoder alone."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder


class Anchor(EncoderLearner):
    """ANCHOR; formulas in the module docstring.

    known: what session 0 fixed, the class sums, and what validation sessions chose.
    """

    name: ClassVar[str] = "anchor"
    title: ClassVar[str] = (
        "whitened class sums as anchors, means moved by the visible graph; closed form, stores no node"
    )
    reference: ClassVar[str] = "this project, docs/anchor.md"
    settings_type: ClassVar[type[Any]] = AnchorSettings
    production_settings: ClassVar[dict[str, Any]] = {"hidden": 128, "pretraining.epochs": 10, "head_nodes": 500}
    earlier_settings: ClassVar[dict[str, Any]] = {"unit_rows": True, "head_share": 0.0}
    lasting_tensors: ClassVar[tuple[str, ...]] = ("network.", "frame.")
    works_on_disk: ClassVar[bool] = True
    settings: AnchorSettings
    network: AnchorNetwork
    training: SupervisedTraining

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        first = Neighbourhood(*(*self.settings.candidates[0], 0.0)[:5])
        self.known = AnchorKnowledge(first, self._first_layer)
        self.last_tables: LastTables = LastTables()
        self._first_shape: tuple[int, int] | None = None  # of the encoder's first weights, while a network is made

    def parts(self) -> tuple[Part, ...]:
        running = (self.training,) if self.stage == Stage.ENCODER else ()
        return (self.memory, *running, self.known)

    # Session 0

    def _start(self, base: BaseSession, inputs: Any) -> None:
        self.known.encoder_input = self._usable_input(inputs)
        self._first_shape = first_layer_shape(
            self.settings,
            self.known.encoder_input,
            inputs.feature_count,
            inputs.visible.node_count,
            len(base.classes),
        )
        try:
            super()._start(base, inputs)
        finally:
            self._first_shape = None

    def _usable_input(self, inputs: Any) -> str:
        """What the encoder reads; one of a graph that stays on the disk reads stored hops."""
        wanted = self.settings.encoder_input
        return "hops" if wanted == "graph" and isinstance(inputs, FolderInputs) else wanted

    def _make_network(self) -> None:
        chosen, kind = self.settings, self.known.encoder_input
        start = torch.Generator().manual_seed(self.seed)
        assert self._first_shape is not None
        width, hidden = self._first_shape
        encoder: Encoder
        if kind == "graph":
            encoder = self._make_encoder(start, hidden)
        elif kind == "hops":
            encoder = HopEncoder(width, hidden, chosen.size, start, dropout=chosen.dropout, basis=self._basis)
        else:
            encoder = NoEncoder(start)
        encoder = encoder.to(self.device)
        head = Linear(encoder.size, self.sizes.many, start).to(self.device)
        make = row_training if kind == "hops" else head_training
        self.training = make(encoder, head, chosen.pretraining, stage="encoder")
        self.network = self._build(encoder, start).to(self.device)

    def _basis(self) -> torch.Tensor:
        return self.known.frame["basis"]

    def _build(self, encoder: Encoder, start: torch.Generator) -> AnchorNetwork:  # noqa: ARG002
        return AnchorNetwork(encoder)

    def _pretrain(self, base: BaseSession, inputs: Any, progress: Progress, encoders: EncoderStore) -> None:  # noqa: ARG002
        """Nothing: the encoder is trained on all classes of session 0 at once. A limit too small is refused here."""
        self._nodes(inputs).require_room(base, self._rank(inputs.feature_count), self.seed)

    def _train(self, base: BaseSession, inputs: Any, progress: Progress) -> None:
        nodes, frame = self._nodes(inputs), self.known.frame
        nodes.require_room(base, self._rank(inputs.feature_count), self.seed)
        if self.stage == Stage.PRE_TRAINED:
            self._enter(Stage.ENCODER, progress)
        train, validation = (base.train, base.train_labels), (base.validation, base.validation_labels)
        if isinstance(inputs, FolderInputs):
            inputs.progress = progress
        if "basis" not in frame:
            steps, scales = nodes.leading_vectors(self._rank(inputs.feature_count), self.seed)
            frame |= {"basis": (steps * scales).to(self.device), "basis.scales": scales.to(self.device)}
        self._train_encoder(train, validation, inputs, progress)
        with torch.no_grad():
            self.known.round_first_layer()
            self.known.neighbourhood = nodes.choose(base, self.seed, progress)
            embeddings = nodes.fix_frame(base)
            self.cache.keep_embeddings(base.visible_graph, embeddings)
            self.known.anchors = nodes.anchors(embeddings, train, len(base.classes))
            if self.settings.head_share > 0:
                steps, rate = self.settings.head_steps, self.settings.head_rate
                few = some_nodes_of_each(train, nodes.most_for_head, self.seed)
                asked = some_nodes_of_each(validation, nodes.most_asked, self.seed)
                both = nodes.points(embeddings, joined_nodes(few, asked))  # of a folder every call is a pass
                parts = [each.split([len(few[0]), len(asked[0])]) for each in both]
                shown, asked_points = zip(*parts, strict=True)
                found = trained_head(self._head_start(self.known.anchors), shown, asked_points, steps, rate, progress)
                self.known.head, self.known.head_steps = found
                self.known.head_counts = _counts(base.train_labels, len(self.known.head))

    def _train_encoder(self, train: Labelled, validation: Labelled, inputs: Any, progress: Progress) -> None:
        if self.known.encoder_input == "graph":
            self.training.run(train, validation, inputs, self.generator, progress, self)
        if isinstance(self.training, RowTraining):
            nodes, most = self._nodes(inputs), self.settings.encoder_nodes
            with torch.no_grad():
                chosen = [some_nodes_of_each(part, most, self.seed) for part in (train, validation)]
                every = nodes.hop_rows(joined_nodes(*chosen)[0]).split([len(part[0]) for part in chosen])
                rows = [(part, tensor_of(chosen[place][1], self.device)) for place, part in enumerate(every)]
            self.training.run_rows(rows[0], rows[1], self.generator, progress, self)

    def _nodes(self, inputs: Any) -> Any:
        """The nodes of a graph, in memory or on disk."""
        kind = NodesOnDisk if isinstance(inputs, FolderInputs) else NodesInMemory
        return kind(inputs, self.known, self.network.encoder, self.settings)

    def _head_start(self, anchors: Anchors) -> torch.Tensor:
        """(M, D) the rule of the means, by the sums of session 0."""
        return self.settings.temperature * anchors.directions(self.settings)

    def _forget_training(self) -> None:
        self.cache.classes_changed()  # the embeddings are those of the trained encoder

    def _rank(self, width: int) -> int:
        """Columns of the basis: as many as asked for, or as the bytes allow."""
        first = self._first_layer().numel() if self.known.encoder_input == "graph" else 0
        return frame_rank(self.settings, self.known.encoder_input, width, self.sizes.many, first)

    # From a graph to x(v)

    def _make_inputs(self, visible: VisibleGraph, *, sparing: bool = False) -> Any:
        unit = self.settings.unit_rows
        if isinstance(visible, VisibleFolder):
            return FolderInputs(visible, self.seed, unit=visible.reader.sparse_features if unit is None else unit)
        words = not isinstance(visible.features, np.ndarray)
        features = prepare(visible.features, self.seed, unit=words if unit is None else unit)
        return GraphInputs(visible.with_features(features), self.device, sparing=sparing)

    def _blocks(self, inputs: GraphInputs, rows: np.ndarray) -> list[torch.Tensor]:
        """XB, ÂÂXB and Z of some nodes; only their neighbourhoods are read."""
        basis, encoder = self.known.frame["basis"], self.network.encoder
        near: GcnRows = encoder.rows(inputs, rows)
        around = around_rows(inputs.visible, rows, self.known.neighbourhood.hops, basis, near)
        # Rounded as in a table of all nodes.
        # A state of the first edition answers to the digit as it did, with blocks that were not rounded.
        kind = torch.float32 if self.known.first_edition else block_type(inputs)
        return [block.to(kind).float() for block in (inputs.raw(rows) @ basis, around, encoder(near))]

    def _embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        """x(v) in 16 bits: what a node is known by."""
        frame, weights = self.known.frame, self.known.weights(self.settings)
        if rows is None:
            return self._nodes(inputs).embeddings()
        return points(joined(self._blocks(inputs, rows), frame, weights), frame)

    def vectors_to_draw(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray | None:
        with torch.no_grad():
            rows = torch.from_numpy(visible.rows(nodes)).to(self.device)
            return self._embeddings(self.cache.inputs(visible))[rows].float().cpu().numpy()

    # Sessions and scores

    @property
    def forgets_exactly(self) -> bool:
        return True

    @property
    def reach(self) -> int:
        return max(2, self.known.neighbourhood.hops)

    def _keeps_weights(self) -> bool:
        return True

    @torch.no_grad()
    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        points = self._points(session.visible_graph, inputs, (session.supports, session.support_labels))
        self.known.anchors = self.known.anchors.plus(*points, len(self.classes_))

    def _points(
        self, visible: VisibleGraph, inputs: GraphInputs, labelled: Labelled
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """x of some labelled nodes, and their columns."""
        if isinstance(inputs, FolderInputs):
            near, rows = inputs.near(labelled[0], self.reach)
            alone = GraphInputs(near, self.device, sparing=True)
            return self._embed(alone, rows), tensor_of(labelled[1], self.device)
        known = self.cache.embeddings(inputs)
        if known is not None:
            return self._nodes(inputs).points(known, labelled)
        alone = GraphInputs(inputs.visible, self.device, sparing=True)
        return self._embed(alone, visible.rows(labelled[0])), tensor_of(labelled[1], self.device)

    def watch(self, visible: VisibleGraph, progress: Progress) -> None:
        inputs = self.cache.inputs(visible)
        if isinstance(inputs, FolderInputs):
            inputs.progress = progress

    def _score_all(self, inputs: Any) -> Any:
        embeddings: Any = self._embeddings(inputs)
        nodes = self._nodes(inputs)
        found = nodes.scores(embeddings, lambda: self._rounds(inputs, embeddings))
        if isinstance(inputs, FolderInputs):
            self.last_tables.replace_by([table.folder for table in (*nodes.tables(), embeddings, found)])
        return found

    def _rounds(self, inputs: GraphInputs, embeddings: torch.Tensor) -> Rounds:
        """Kept as long as scores are, so that explanations need no pass over the graph."""
        found: Rounds | None = self.cache.beside(inputs)
        if found is None:
            found = Rounds.of(self.known.anchors, embeddings, inputs, self.known.neighbourhood, self.settings)
            self.cache.keep_beside(inputs, found)
        return found

    @torch.no_grad()
    def restate(self, visible: VisibleGraph, train: Labelled, supports: Labelled) -> bool:
        self.cache.classes_changed()
        nodes, labels = (np.concatenate(parts) for parts in zip(train, supports, strict=True))
        inputs = self.cache.inputs(visible)
        embeddings = self._embeddings(inputs)
        self.cache.keep_embeddings(visible, embeddings)
        known = self._nodes(inputs)
        self.known.anchors = known.anchors(embeddings, (nodes, labels), len(self.classes_))
        self._restate_head(known, embeddings, train)
        return True

    def _restate_head(self, known: Any, embeddings: Any, train: Labelled) -> None:
        """Train the head again if labels of session 0 were taken back or merged: it knows no later ones.

        Labels of session 0 only ever go, or move to another column as a whole class, so their numbers tell.
        """
        rows = len(self.known.head)
        of_head, counts = train[1] < rows, _counts(train[1], rows)
        if torch.equal(counts, self.known.head_counts):
            return
        self.known.head_counts = counts
        if of_head.any():
            shown = train[0][of_head], train[1][of_head]
            some = some_nodes_of_each(shown, known.most_for_head, self.seed)
            points = known.points(embeddings, some)
            start = self._head_start(known.anchors(embeddings, shown, rows))
            self.known.head = retrained_head(start, points, self.known.head_steps, self.settings.head_rate)

    def rehearsal(self) -> Learner | None:
        """One without a head, whose encoder is trained for a few epochs alone; basis and neighbourhood are those of
        this one.

        Neither has seen a label of the classes that are held out, but for the choice between five neighbourhoods.
        """
        training = self.settings.pretraining
        training = replace(training, epochs=min(training.epochs, REHEARSAL_EPOCHS))
        fixed = replace(self.settings, pretraining=training, head_share=0.0, **self.known.neighbourhood._asdict())
        found = type(self)(fixed, seed=self.seed, device=self.device)
        found.known.frame |= {name: self.known.frame[name] for name in ("basis", "basis.scales")}
        found.cache.share(self.cache)
        found.cache.weights_changed()  # the graph is the same, its embeddings are not
        return found

    @torch.no_grad()
    def scores_without(
        self, visible: VisibleGraph, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        """Subtracted from the sums, and asked without estimating means: that would take a pass over the graph."""
        _ = train, supports
        points, labels = self._points(visible, self.cache.inputs(visible), left_out)
        return self.known.anchors.minus(points, labels).logits(points, self.settings).cpu().numpy()

    @torch.no_grad()
    def explain(self, visible: VisibleGraph, node: int, top: int = 5) -> Explanation | None:
        row = int(visible.rows(np.array([node]))[0])
        inputs, how, settings = self.cache.inputs(visible), self.known.neighbourhood, self.settings
        embeddings = self._embeddings(inputs)
        self.cache.keep_embeddings(visible, embeddings)
        rounds, near = self._rounds(inputs, embeddings), visible.normalised[[row]]
        around = embeddings[torch.from_numpy(near.indices).to(self.device)]
        blocks = self._blocks(GraphInputs(inputs.visible, self.device, sparing=True), np.array([row]))
        evidence = Evidence(
            visible=visible,
            prepared=inputs.visible,
            row=row,
            rounds=rounds,
            answer=shared_out(rounds.posterior[[row]], embeddings[[row]], self.known.head, settings.head_share)[0],
            near=near,
            own=self.known.anchors.probabilities(around, rounds.directions, settings.temperature),
            blocks=blocks,
            joined=joined(blocks, self.known.frame, self.known.weights(self.settings))[0],
            frame=self.known.frame,
            temperature=settings.temperature,
            weights=(settings.raw_weight, how.hop_weight),
            how=how,
        )
        return explained(evidence, top)

    # State

    def _first_layer(self) -> torch.Tensor:
        first: Any = self.network.encoder.first
        return first.weight.detach()

    def _become(self, other: Self) -> None:
        self.known.encoder_input = other.known.encoder_input
        self._first_shape = _shape(other._first_layer())
        try:
            super()._become(other)
        finally:
            self._first_shape = None

    def load_state(self, state: LearnerState) -> None:
        first = state.tensors.get(FIRST_LAYER)
        self.known.encoder_input = state.values.get("encoder_input", "graph")
        self._first_shape = None if first is None else _shape(first)
        try:
            super().load_state(state)
        finally:
            self._first_shape = None

    def _refuse_misfit(self, weights: Tensors) -> None:
        if self.known.encoder_input == "graph":
            super()._refuse_misfit(weights)


def _counts(columns: np.ndarray, count: int) -> torch.Tensor:
    """(count,) how many labels each of the first columns has."""
    return torch.from_numpy(np.bincount(columns[columns < count], minlength=count)).double()


def _shape(weight: torch.Tensor) -> tuple[int, int]:
    return weight.shape[0], weight.shape[1]
