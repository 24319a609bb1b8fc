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
from graphfcl.methods.anchor.choosing import choose_neighbourhood
from graphfcl.methods.anchor.class_sums import Anchors, whitening
from graphfcl.methods.anchor.explanation import Evidence, explained
from graphfcl.methods.anchor.head import retrained_head, shared_out, some_of_each, trained_head
from graphfcl.methods.anchor.rounds import Rounds
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.storage import FIRST_LAYER, AnchorKnowledge
from graphfcl.methods.anchor.vectors import (
    block_table,
    block_type,
    column_means,
    joined,
    joined_rows,
    points,
    points_of_table,
)
from graphfcl.methods.bases.encoder_learner import EncoderLearner, Stage
from graphfcl.methods.learner import EncoderStore, Explanation, Labelled, Learner, LearnerState, Progress
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.supervised_training import SupervisedTraining
from graphfcl.methods.shared.trained_head import head_training
from graphfcl.methods.shared.untrained_features import around_rows, leading_vectors, prepare
from graphfcl.nn import Encoder, GcnRows, GraphInputs, Linear, tensor_of
from graphfcl.stream import BaseSession, Session

REHEARSAL_EPOCHS = 5  # with three times as many a rehearsal teaches the same
MAX_FRAME_BYTES = 18_000_000  # storage budget for basis, whitening, encoder


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
    settings: AnchorSettings
    network: AnchorNetwork
    training: SupervisedTraining

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        first = Neighbourhood(*(*self.settings.candidates[0], 0.0)[:5])
        self.known = AnchorKnowledge(first, self._first_layer)
        self._hidden: int | None = None  # of the state that is being read

    def parts(self) -> tuple[Part, ...]:
        running = (self.training,) if self.stage == Stage.ENCODER else ()
        return (self.memory, *running, self.known)

    # Session 0

    def _make_network(self) -> None:
        chosen = self.settings
        start = torch.Generator().manual_seed(self.seed)
        hidden = self._hidden or min(chosen.hidden, max(16, MAX_FRAME_BYTES // (4 * self.sizes.features)))
        encoder = self._make_encoder(start, hidden)
        head = Linear(chosen.size, self.sizes.many, start).to(self.device)
        self.training = head_training(encoder, head, chosen.pretraining, stage="encoder")
        self.network = self._build(encoder, start).to(self.device)

    def _build(self, encoder: Encoder, start: torch.Generator) -> AnchorNetwork:  # noqa: ARG002
        return AnchorNetwork(encoder)

    def _pretrain(self, base: BaseSession, inputs: GraphInputs, progress: Progress, encoders: EncoderStore) -> None:
        """The encoder is trained on all classes of session 0 at once."""

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == Stage.PRE_TRAINED:
            self._enter(Stage.ENCODER, progress)
        train, validation = (base.train, base.train_labels), (base.validation, base.validation_labels)
        self.training.run(train, validation, inputs, self.generator, progress, self)
        with torch.no_grad():
            self.known.round_first_layer()
            self._choose_basis(base, inputs, progress)
            embeddings = self._fix_frame(base, inputs)
            self.cache.keep_embeddings(base.visible_graph, embeddings)
            of_train, of_validation = (self._rows_of(embeddings, inputs, part) for part in (train, validation))
            self.known.anchors = Anchors.empty().plus(*of_train, len(base.classes))
            if self.settings.head_share > 0:
                steps, rate = self.settings.head_steps, self.settings.head_rate
                shown = some_of_each(of_train, self.settings.head_nodes, self.seed)
                found = trained_head(self._head_start(), shown, of_validation, steps, rate, progress)
                self.known.head, self.known.head_steps = found

    def _head_start(self) -> torch.Tensor:
        """(M, D) the rule of the means, for the classes of session 0."""
        return self.settings.temperature * self.known.anchors.directions(self.settings)[: self.sizes.many]

    def _forget_training(self) -> None:
        self.cache.classes_changed()  # the embeddings are those of the trained encoder

    def _choose_basis(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        """B, unless it was given, and on its leading columns the neighbourhood."""
        frame = self.known.frame
        if "basis" not in frame:
            steps, scales = leading_vectors(inputs, self._rank(inputs.visible.features.shape[1]), self.seed)
            frame |= {"basis": (steps * scales).to(self.device), "basis.scales": scales.to(self.device)}
        leading = frame["basis"][:, : self.settings.trial_rank]
        self.known.neighbourhood = choose_neighbourhood(base, inputs, leading, self.settings, self.seed, progress)

    def _fix_frame(self, base: BaseSession, inputs: GraphInputs) -> torch.Tensor:
        """Centres, middle and whitening; answers x of all nodes, for which the blocks are made once."""
        frame, table = self.known.frame, self._table(inputs)
        rank = frame["basis"].shape[1]
        widths = [rank, rank, table.shape[1] - 2 * rank]
        frame |= {f"centre.{place}": means for place, means in enumerate(column_means(table).split(widths))}
        rows = torch.from_numpy(inputs.visible.rows(base.train)).to(self.device)
        vectors = joined_rows(table, rows, frame, self._weights())
        labels = tensor_of(base.train_labels, self.device)
        middle, root = whitening(vectors, labels, len(base.classes), self.settings.shrinkage)
        frame |= {"middle": middle, "whitening": root.half().float()}
        return points_of_table(table, frame, self._weights())

    def _weights(self) -> tuple[float, float, float]:
        return self.settings.raw_weight, self.known.neighbourhood.hop_weight, self.settings.encoder_weight

    def _rank(self, width: int) -> int:
        """Columns of the basis: as many as asked for, or as the bytes allow."""
        room = MAX_FRAME_BYTES - self._first_layer().numel()
        rank, size, classes = self.settings.rank, self.settings.size, self.sizes.many
        while rank > 16 and width * rank + (2 * rank + size) * (2 * rank + size + 2 * classes) > room:
            rank -= 16
        return rank

    # From a graph to x(v)

    def _make_inputs(self, visible: VisibleGraph, *, sparing: bool = False) -> GraphInputs:
        unit = self.settings.unit_rows
        words = not isinstance(visible.features, np.ndarray)
        features = prepare(visible.features, self.seed, unit=words if unit is None else unit)
        return GraphInputs(visible.with_features(features), self.device, sparing=sparing)

    def _blocks(self, inputs: GraphInputs, rows: np.ndarray) -> list[torch.Tensor]:
        """XB, ÂÂXB and Z of some nodes; only their neighbourhoods are read."""
        basis, encoder = self.known.frame["basis"], self.network.encoder
        near: GcnRows = encoder.rows(inputs, rows)
        around = around_rows(inputs.visible, rows, self.known.neighbourhood.hops, basis, near)
        # Rounded as in a table of all nodes.
        kind = self._block_type(inputs)
        return [block.to(kind).float() for block in (inputs.raw(rows) @ basis, around, encoder(near))]

    def _embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        """x(v) in 16 bits: what a node is known by."""
        frame, weights = self.known.frame, self._weights()
        if rows is None:
            return points_of_table(self._table(inputs), frame, weights)
        return points(joined(self._blocks(inputs, rows), frame, weights), frame)

    def _table(self, inputs: GraphInputs) -> torch.Tensor:
        """The blocks of all nodes."""
        encoder = self.network.encoder
        codes = encoder(encoder.rows(inputs, None))
        hops = self.known.neighbourhood.hops
        return block_table(inputs, self.known.frame["basis"], hops, codes, self._block_type(inputs))

    def _block_type(self, inputs: GraphInputs) -> torch.dtype:
        """A state of the first edition answers to the digit as it did, with blocks that were not rounded."""
        return torch.float32 if self.known.first_edition else block_type(inputs)

    def vectors_to_draw(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray | None:
        with torch.no_grad():
            rows = torch.from_numpy(visible.rows(nodes)).to(self.device)
            return self._embeddings(self.cache.inputs(visible))[rows].float().cpu().numpy()

    def _rows_of(
        self, embeddings: torch.Tensor, inputs: GraphInputs, labelled: Labelled
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.from_numpy(inputs.visible.rows(labelled[0])).to(self.device)
        return embeddings[rows], tensor_of(labelled[1], self.device)

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
        known = self.cache.embeddings(inputs)
        if known is not None:
            return self._rows_of(known, inputs, labelled)
        alone = GraphInputs(inputs.visible, self.device, sparing=True)
        return self._embed(alone, visible.rows(labelled[0])), tensor_of(labelled[1], self.device)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        embeddings, anchors = self._embeddings(inputs), self.known.anchors
        rounds = self._rounds(inputs, embeddings)
        posterior = shared_out(rounds.posterior, embeddings, self.known.head, self.settings.head_share)
        # How near a node is to any class by the sums alone: the same for all its classes, so it changes no probability,
        # but it tells nodes of unknown classes, which the rounds would hide.
        near = torch.logsumexp(anchors.logits(embeddings, self.settings), dim=1, keepdim=True)
        return torch.log(posterior.clamp(min=1e-12)) + near

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
        found, columns = self._rows_of(embeddings, inputs, (nodes, labels))
        before, self.known.anchors = self.known.anchors, Anchors.empty().plus(found, columns, len(self.classes_))
        rows = len(self.known.head)
        of_head, same = columns < rows, torch.equal(before.counts[:rows], self.known.anchors.counts[:rows])
        if not same and bool(of_head.any()):  # other labels, not only another graph: two classes may have become one
            steps, rate = self.known.head_steps, self.settings.head_rate
            labelled = some_of_each((found[of_head], columns[of_head]), self.settings.head_nodes, self.seed)
            self.known.head = retrained_head(self._head_start(), labelled, steps, rate)
        return True

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
            joined=joined(blocks, self.known.frame, self._weights())[0],
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
        self._hidden = other._first_layer().shape[1]
        try:
            super()._become(other)
        finally:
            self._hidden = None

    def load_state(self, state: LearnerState) -> None:
        first = state.tensors.get(FIRST_LAYER)
        self._hidden = None if first is None else first.shape[1]
        try:
            super().load_state(state)
        finally:
            self._hidden = None
