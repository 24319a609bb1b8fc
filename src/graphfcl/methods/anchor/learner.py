"""ANCHOR: class sums of labelled nodes as anchors, and class means moved by the visible graph.

A method of this project. After session 0 nothing is trained, no node is stored, and learning a session adds sums.

**Session 0.** Every node v gets a vector of three blocks. The first two depend on no label::

    f(v) = [ a₀ n(XB)_v , a₂ n(ÂÂXB)_v , a_z n(Z)_v ]      n(·): centred on session 0, then scaled to unit length

X: features; bag-of-words rows have unit length. B: the leading right singular vectors of X in session 0. Z: the output
of a GCN (64, 64, no last ReLU), trained on all classes of session 0 with equal class weights. Let S_w be the
within-class covariance of session 0, shrunk to Ŝ = S_w + ρ tr(S_w)/D · I. A Cholesky decomposition Ŝ = L Lᵀ gives

    x(v) = unit( (f(v) − m) L^(−T) )

In this space classes have the same covariance, so the angle between class means separates them. A softmax head on x is
trained for the classes of session 0 (``head.py``).

**A session** adds S_c += Σ x(v) and n_c += 1 over the supports of class c. It adds Q += Σ x(v) x(v)ᵀ over the supports
of classes that arrived after session 0, and the same products of x(v) Lᵀ for the ridge regression. Sums commute, so the
order of sessions does not matter. Centre, basis, whitening and encoder do not change.

**Scores** are computed from (S, n, Q) and the graph visible now. Q estimates how the covariance of later classes
differs from the covariance of session 0, which gives the metric A (``class_sums.py``). With μ_c = S_c / n_c, two
rounds over all visible nodes, labelled or not, compute::

    P₀ = softmax_c( T x·Aμ_c / (ℓ_c √q) ),   P: P₀ after neighbours are taken into account                   (E-step)
    μ_c ← (S_c + t Σ_v P_vc x_v / Σ_v P_vc) / (n_c + t),   t = min(τ, Σ_v P_vc)                              (M-step)

The sums act as a prior with the weight of their labels: the mean of a class with thousands of labels moves little,
the mean of a class with five labels moves to its nodes. The stored sums were computed on earlier graphs; the visible
nodes, which are embedded again, adapt the means to the current graph. ℓ_c is the length of the mean, corrected for
sampling noise. Neighbours are taken into account by smoothing or by the links between classes (``rounds.py``). Within
the classes of session 0, the probabilities of head and means are averaged with weight γ (``head.py``). The final
probability is a geometric mean with a ridge regression on the labels of all classes (``ridge.py``), whose weight grows
with the number of labels of a class: P'_c ∝ P_c^(1−g_c) r_c^(g_c),  g_c = g n_c/(n_c + 20).

**Validation sessions choose** one of five neighbourhoods: the weight of the propagated features (a₂), their number of
hops, and how neighbours' predictions are used (s, steps, β; ``choosing.py``). All other settings are constants.
``docs/anchor-results.md`` lists the nodes on which they were selected.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import torch

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.anchor.choosing import choose_neighbourhood
from graphfcl.methods.anchor.class_sums import Anchors, Shrinkage
from graphfcl.methods.anchor.explanation import Evidence
from graphfcl.methods.anchor.frame import Blocks, block_kind, joined, whitened
from graphfcl.methods.anchor.hop_encoder import (
    AnchorNetwork,
    HopEncoder,
    NoEncoder,
    RowTraining,
    hop_table,
    row_training,
)
from graphfcl.methods.anchor.left_out import logits_without
from graphfcl.methods.anchor.ridge import RidgeFrame, RidgeSums
from graphfcl.methods.anchor.rounds import Rounds, run_rounds, score_table
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.storage import FIRST_LAYER, AnchorKnowledge, first_layer_shape, frame_rank
from graphfcl.methods.bases.encoder_learner import EncoderLearner, Stage
from graphfcl.methods.blocks import NodeTables, Table, open_tables
from graphfcl.methods.blocks.interface import TYPES, Tensors, some_of_each_class
from graphfcl.methods.learner import Explanation, Learner, Progress
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.supervised_training import SupervisedTraining, head_training
from graphfcl.methods.shared.untrained_features import around_rows
from graphfcl.methods.state import (
    EncoderStore,
    Labelled,
    LastTables,
    LearnerState,
)
from graphfcl.nn import Encoder, GcnRows, GraphInputs, Linear, tensor_of
from graphfcl.stream import BaseSession, Session

HELD_OUT_EPOCHS = 5  # of the calibration run; with three times as many epochs its result is the same


class Anchor(EncoderLearner):
    """ANCHOR, a closed-form learner that stores sums of labelled vectors per class and no nodes.

    After session 0 nothing is trained. ``docs/anchor.md`` and the docstring of this module state the formulas.

    Args:
        settings: An instance of ``AnchorSettings``; by default the default settings.
        seed: Seed of all random numbers.
        device: PyTorch device for tensors.

    Attributes:
        knowledge: Everything besides the encoder: the frame of session 0, the class sums, the head, and the
            neighbourhood that validation chose.

    Examples:
        >>> from graphfcl import Anchor, evaluate, find_method, load_dataset, make_stream
        >>> graph, protocol = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> settings = find_method("anchor").settings_with({"pretraining": {"epochs": 1}, "rank": 16})
        >>> learner = Anchor(settings, seed=0)
        >>> evaluation = evaluate(learner, make_stream(graph, protocol, seed=0))
        >>> len(learner.classes_), evaluation.metrics.average > 0.8
        (6, True)
    """

    name: ClassVar[str] = "anchor"
    title: ClassVar[str] = (
        "whitened class sums as anchors, means moved by the visible graph; closed form, stores no node"
    )
    reference: ClassVar[str] = "this project, docs/anchor.md"
    settings_type: ClassVar[type[Any]] = AnchorSettings
    production_settings: ClassVar[dict[str, Any]] = {"pretraining.epochs": 10, "head_nodes": 500}
    lasting_tensors: ClassVar[tuple[str, ...]] = ("network.", "frame.")
    works_on_disk: ClassVar[bool] = True
    settings: AnchorSettings
    network: AnchorNetwork
    training: SupervisedTraining

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        first = Neighbourhood(*(*self.settings.candidates[0], 0.0)[:5])
        self.knowledge = AnchorKnowledge(self.settings, seed, first, self._first_layer)
        self.last_tables: LastTables = LastTables()
        self._first_shape: tuple[int, int] | None = None  # shape of the encoder's first weight matrix

    def parts(self) -> tuple[Part, ...]:
        running = (self.training,) if self.stage == Stage.ENCODER else ()
        return (self.memory, *running, self.knowledge)

    # Session 0

    def _start(self, base: BaseSession, inputs: NodeTables) -> None:
        wanted = self.settings.encoder_input
        self.knowledge.encoder_input = "hops" if wanted == "graph" and inputs.whole is None else wanted
        shape = (inputs.feature_count, inputs.node_count, len(base.classes))
        basis = self.knowledge.frame.get("basis")  # present in a calibration run, which shares the fitted basis
        rank = None if basis is None else basis.shape[1]
        self._first_shape = first_layer_shape(self.settings, self.knowledge.encoder_input, *shape, rank=rank)
        super()._start(base, inputs)

    def _make_network(self) -> None:
        chosen, kind = self.settings, self.knowledge.encoder_input
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
        return self.knowledge.frame["basis"]

    def _build(self, encoder: Encoder, start: torch.Generator) -> AnchorNetwork:  # noqa: ARG002
        return AnchorNetwork(encoder)

    def _pretrain(self, base: BaseSession, inputs: NodeTables, progress: Progress, encoders: EncoderStore) -> None:  # noqa: ARG002
        """Only check the memory limit: :meth:`_train` trains the encoder on all classes of session 0 at once."""
        self._require_room(base, inputs)

    def _require_room(self, base: BaseSession, tables: NodeTables) -> None:
        self.knowledge.require_room(tables, base, self._rank(tables.feature_count), self.network.encoder.size)

    def _train(self, base: BaseSession, inputs: NodeTables, progress: Progress) -> None:
        self._require_room(base, inputs)
        if self.stage == Stage.PRE_TRAINED:
            self._enter(Stage.ENCODER, progress)
        train, validation = (base.train, base.train_labels), (base.validation, base.validation_labels)
        inputs.watch(progress)
        knowledge, settings, frame = self.knowledge, self.settings, self.knowledge.frame
        if "basis" not in frame:
            exact = self.knowledge.encoder_input != "graph"  # an encoder that reads XB needs reproducible digits
            steps, scales = inputs.leading_vectors(self._rank(inputs.feature_count), self.seed, exact=exact)
            frame |= {"basis": (steps * scales).to(self.device), "basis.scales": scales.to(self.device)}
        self._train_encoder(train, validation, inputs, progress)
        with torch.no_grad():
            knowledge.round_first_layer()
            knowledge.neighbourhood = choose_neighbourhood(
                base, inputs, frame["basis"], settings, self.seed, progress, knowledge.kind
            )
            blocks = self._blocks(inputs)
            fixed = blocks.frame(blocks.centres(), train, len(base.classes), settings.shrinkage)
            frame |= {**fixed, "whitening": fixed["whitening"].half().float()}
            x = blocks.vectors(frame, last_use=True)
            self.cache.keep_embeddings(base.visible_graph, x)
            shrinkage = Shrinkage.of(len(base.classes), frame, settings)
            knowledge.anchors = Anchors.of(inputs, x, train, len(base.classes), shrinkage)
            knowledge.ridge = RidgeSums.empty(RidgeFrame.of(len(base.classes), frame, settings))
            if settings.head_share > 0:
                knowledge.train_head(inputs, x, train, validation, progress)

    def _train_encoder(self, train: Labelled, validation: Labelled, tables: NodeTables, progress: Progress) -> None:
        if isinstance(self.training, RowTraining):
            chosen = [some_of_each_class(part, self.settings.encoder_nodes, self.seed) for part in (train, validation)]
            self.training.run_nodes(chosen, hop_table(tables, self._basis()), tables, progress, self)
        elif self.knowledge.encoder_input == "graph":
            assert tables.whole is not None
            self.training.run(train, validation, tables.whole, self, progress)

    def _forget_training(self) -> None:
        self.cache.classes_changed()  # the embeddings already come from the trained encoder

    def _rank(self, width: int) -> int:
        """Number of basis columns for features of this width."""
        first = self._first_layer().numel() if self.knowledge.encoder_input == "graph" else 0
        return frame_rank(self.settings, self.knowledge.encoder_input, width, self.sizes.many, first)

    # From a graph to x(v)

    def _make_inputs(self, visible: VisibleNodes, *, sparing: bool = False) -> NodeTables:  # noqa: ARG002
        return open_tables(visible, self.device, self.seed, unit=self.settings.unit_rows)

    def _blocks(self, tables: NodeTables) -> Blocks:
        """Compute XB, ÂÂXB and Z for all nodes."""
        encoder, how = self.network.encoder, self.knowledge.neighbourhood
        own = tables.own(self._basis())
        parts = [own, *tables.hops(own, (how.hops,))]
        if isinstance(encoder, HopEncoder):
            parts.append(encoder.table(tables))
        elif self.knowledge.encoder_input == "graph":
            assert tables.whole is not None
            parts.append(tables.take(encoder(encoder.rows(tables.whole, None))))
        return Blocks.of(tables, parts, self.knowledge.weights, self.knowledge.kind)

    def _blocks_at(self, near: GraphInputs, rows: np.ndarray) -> list[torch.Tensor]:
        """Compute XB, ÂÂXB and Z for some rows from their neighbourhoods, rounded as in a table of all nodes."""
        encoder, kind = self.network.encoder, TYPES[block_kind(near.visible, self.knowledge.kind)]
        read: GcnRows = encoder.rows(near, rows)
        around = around_rows(near.visible, rows, self.knowledge.neighbourhood.hops, self._basis(), read)
        return [block.to(kind).float() for block in (near.raw(rows) @ self._basis(), around, encoder(read))]

    def _embeddings(self, inputs: NodeTables) -> Table:  # type: ignore[override]
        """Compute x for all nodes, or take it from the cache."""
        kept = self.cache.embeddings(inputs)
        if kept is not None:
            return kept
        self.knowledge.require_scores(inputs, self.network.encoder.size)
        return self._blocks(inputs).vectors(self.knowledge.frame, last_use=True)

    def _vectors(self, tables: NodeTables, nodes: np.ndarray) -> torch.Tensor:
        """Read x for a few nodes from the cached table, or compute it from their neighbourhoods."""
        kept = self.cache.embeddings(tables)
        if kept is not None and kept.random_access:
            return kept.rows_at(tables.visible.rows(nodes))
        frame, weights = self.knowledge.frame, self.knowledge.weights
        blocks = self._blocks_at(*tables.neighbourhood(nodes, self.reach))
        return whitened(joined(blocks, frame, weights), frame, self.knowledge.kind)

    def embeddings(self, visible: VisibleNodes) -> Any:
        with torch.no_grad():
            table = self._embeddings(self.cache.inputs(visible))
            if self.stage == Stage.READY:
                self.cache.keep_embeddings(visible, table)
            return table.readable()

    def embeddings_of_rows(self, visible: VisibleNodes, rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self._vectors(self._make_inputs(visible), visible.numbers(rows)).cpu().numpy()

    def use_embeddings(self, visible: VisibleNodes, embeddings: np.ndarray) -> None:
        self.cache.classes_changed()
        table = self.cache.inputs(visible).take(tensor_of(embeddings, self.device))
        self.cache.keep_embeddings(visible, table)

    def vectors_to_draw(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray | None:
        with torch.no_grad():
            x = self._embeddings(self.cache.inputs(visible))
            self.cache.keep_embeddings(visible, x)
            return x.rows_at(visible.rows(nodes)).float().cpu().numpy()

    # Sessions and scores

    @property
    def forgets_exactly(self) -> bool:
        return True

    @property
    def reach(self) -> int:
        return max(2, self.knowledge.neighbourhood.hops)

    def _keeps_weights(self) -> bool:
        return True

    @torch.no_grad()
    def _learn(self, session: Session, inputs: NodeTables) -> None:
        x = self._vectors(inputs, session.supports)
        labels = tensor_of(session.support_labels, self.device)
        self.knowledge.add(x, labels, len(self.classes_))

    def watch(self, visible: VisibleNodes, progress: Progress) -> None:
        self.cache.inputs(visible).watch(progress)

    def _score_all(self, inputs: NodeTables) -> Any:
        rounds = self._rounds(inputs)
        knowledge = self.knowledge
        scores = score_table(inputs, rounds, knowledge.anchors, knowledge.answer_tensors(), self.settings)
        readable = scores.readable()
        self.last_tables.replace_by(inputs.stored_behind(scores))
        return readable

    def _rounds(self, tables: NodeTables) -> Rounds:
        """Run the rounds and cache them with the scores, so that explanations need no pass over the graph."""
        rounds: Rounds | None = self.cache.intermediate(tables)
        if rounds is None:
            x = self._embeddings(tables)
            self.knowledge.require_scores(tables, self.network.encoder.size, rounds=True)
            how = self.knowledge.neighbourhood
            rounds = run_rounds(tables, tables.widened(x), self.knowledge.anchors, how, self.settings)
            rounds = replace(rounds, x=x)
            rounds = rounds.with_ratios(tables) if how.links > 0 else rounds
            self.cache.keep_intermediate(tables, rounds)
        return rounds

    @torch.no_grad()
    def restate(self, visible: VisibleNodes, train: Labelled, supports: Labelled) -> bool:
        self.cache.classes_changed()
        tables = self.cache.inputs(visible)
        x = self._embeddings(tables)
        self.cache.keep_embeddings(visible, x)
        self.knowledge.restate(tables, x, train, supports, len(self.classes_))
        return True

    def calibration_learner(self) -> Learner | None:
        """Make the learner of the calibration run: no head, and a few epochs of encoder training.

        It shares the basis and the neighbourhood with this learner. The basis depends on no label. The neighbourhood,
        one of five candidates, was chosen with labels of the held-out classes.
        """
        training = self.settings.pretraining
        training = replace(training, epochs=min(training.epochs, HELD_OUT_EPOCHS))
        fixed = replace(self.settings, pretraining=training, head_share=0.0, **self.knowledge.neighbourhood._asdict())
        learner = type(self)(fixed, seed=self.seed, device=self.device)
        learner.knowledge.frame |= {name: self.knowledge.frame[name] for name in ("basis", "basis.scales")}
        learner.cache.share(self.cache)
        learner.cache.weights_changed()  # the graph is the same, its embeddings are not
        return learner

    @torch.no_grad()
    def scores_without(
        self, visible: VisibleNodes, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        _ = train, supports  # subtracted from the sums; the means are not estimated again, which takes a graph pass
        x, labels = self._vectors(self.cache.inputs(visible), left_out[0]), tensor_of(left_out[1], self.device)
        return logits_without(self.knowledge.anchors, x, labels, self.settings).cpu().numpy()

    @torch.no_grad()
    def explain(
        self, visible: VisibleNodes, node: int, top: int = 5, columns: Sequence[int] | None = None
    ) -> Explanation | None:
        tables = self.cache.inputs(visible)
        self.cache.keep_embeddings(visible, self._embeddings(tables))
        rounds = self._rounds(tables)
        near, rows = tables.neighbourhood(np.array([node]), self.reach)
        blocks = self._blocks_at(near, rows)
        return Evidence(tables, near.visible, int(rows[0]), rounds, blocks, self.knowledge).explain(top, columns)

    # State

    def _first_layer(self) -> torch.Tensor:
        first: Any = self.network.encoder.first
        return first.weight.detach()

    def _copy_from(self, other: Self) -> None:
        self.knowledge.encoder_input = other.knowledge.encoder_input
        self._first_shape = _shape(other._first_layer())
        super()._copy_from(other)

    def load_state(self, state: LearnerState) -> None:
        first = state.tensors.get(FIRST_LAYER)
        self.knowledge.encoder_input = state.values.get("encoder_input", "graph")
        self._first_shape = None if first is None else _shape(first)
        super().load_state(state)

    def _check_sizes(self, weights: Tensors) -> None:
        if self.knowledge.encoder_input == "graph":
            super()._check_sizes(weights)


def _shape(weight: torch.Tensor) -> tuple[int, int]:
    return weight.shape[0], weight.shape[1]
