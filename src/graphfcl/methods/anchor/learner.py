"""ANCHOR: class sums are anchors, the visible graph moves the means.

A method of this project. Nothing is trained after session 0, no node is stored, and a session is a sum.

**Session 0.** Every node v gets a vector of three blocks, two of which no label ever touched::

    f(v) = [ a₀ n(XB)_v , a₂ n(ÂÂXB)_v , a_z n(Z)_v ]      n(·): minus the mean of session 0, then of unit length

X: features with rows of unit length; B: the leading right singular vectors of session 0's X; Z: a GCN (256, 128, no
last ReLU), trained on all classes of session 0 with every class counting the same. With S_w the within-class covariance
of session 0, every class counting the same, shrunk to Ŝ = S_w + ρ tr(S_w)/D · I, one eigen-decomposition gives

    x(v) = unit( (f(v) − m) Ŝ^(−1/2) )

in which class means under a common covariance are told apart by their angle.

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
by smoothing or by the links between classes (``neighbours.py``).

**Chosen by validation sessions** of the run: how much the surroundings weigh (a₂), how many hops they reach, and how
neighbours are heard (s, steps, β): one of five. They are tried on the two blocks that know no label, since Z has seen
all classes of session 0. All else is one constant for all graphs, fixed on development graphs (``docs/anchor.md``).
"""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from graphfcl.graph import VisibleGraph
from graphfcl.methods.anchor.class_sums import Anchors, whitening
from graphfcl.methods.anchor.explanation import Evidence, explained
from graphfcl.methods.anchor.neighbours import Surroundings
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.storage import FIRST_LAYER, AnchorKnowledge
from graphfcl.methods.bases.encoder_learner import EncoderLearner, Stage
from graphfcl.methods.learner import EncoderStore, Explanation, Labelled, LearnerState, Progress
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.supervised_training import SupervisedTraining
from graphfcl.methods.shared.trained_head import head_training
from graphfcl.methods.shared.untrained_features import around_rows, leading_vectors, prepare, propagated, unit_rows
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions, all_held_out
from graphfcl.nn import Encoder, GcnRows, GraphInputs, Linear, tensor_of
from graphfcl.stream import BaseSession, Session

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
            self._fix_frame(base, inputs, progress)
            embeddings = self._embed(inputs)
            points = self._rows_of(embeddings, inputs, train)
            self.known.anchors = Anchors.empty().plus(*points, len(base.classes))

    def _fix_frame(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        features, frame = inputs.visible.features, self.known.frame
        steps, scales = leading_vectors(inputs, self._rank(features.shape[1]), self.seed)
        frame |= {"basis": (steps * scales).to(self.device), "basis.scales": scales.to(self.device)}
        self.known.neighbourhood = self._choose_neighbourhood(base, inputs, progress)
        blocks = self._blocks(inputs, None)
        frame |= {f"centre.{place}": block.mean(dim=0) for place, block in enumerate(blocks)}
        rows = torch.from_numpy(inputs.visible.rows(base.train)).to(self.device)
        labels = tensor_of(base.train_labels, self.device)
        middle, root = whitening(self._joined(blocks)[rows], labels, len(base.classes), self.settings.shrinkage)
        frame |= {"middle": middle, "whitening": root.half().float()}

    def _rank(self, width: int) -> int:
        """Columns of the basis: as many as asked for, or as the bytes allow."""
        room = MAX_FRAME_BYTES - self._first_layer().numel()
        rank = self.settings.rank
        while rank > 16 and width * rank + (2 * rank + self.settings.size) ** 2 > room:
            rank -= 16
        return rank

    def _choose_neighbourhood(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> Neighbourhood:
        """Held-out classes arrive in validation sessions, on the blocks that no label touched."""
        candidates = self.settings.neighbourhoods()
        # No label touched these blocks, so every pseudo-novel class can stand for a novel one.
        validation = ValidationSessions.draw(all_held_out(base), self.seed)
        if len(candidates) == 1 or not validation.has_new_classes:
            return candidates[0]
        raw, scores = inputs.raw() @ self.known.frame["basis"], list[float]()
        for candidate in candidates:
            scores.append(self._try(candidate, inputs, raw, validation))
            progress.step("choosing hops", len(scores), len(candidates), score=max(scores))
        best = int(np.argmax(scores))
        return candidates[best if scores[best] > scores[0] + self.settings.margin else 0]

    def _try(self, how: Neighbourhood, inputs: GraphInputs, raw: torch.Tensor, validation: ValidationSessions) -> float:
        """The score of validation sessions with the two blocks that know no label."""
        chosen = self.settings
        blocks = [block - block.mean(dim=0) for block in (raw, propagated(inputs, raw, how.hops))]
        weights = (chosen.raw_weight, how.hop_weight)
        joined = torch.cat([weight * unit_rows(block) for weight, block in zip(weights, blocks, strict=True)], dim=1)
        nodes, labels = validation.train
        rows = torch.from_numpy(inputs.visible.rows(nodes)).to(self.device)
        columns = tensor_of(labels, self.device)
        middle, root = whitening(joined[rows], columns, validation.known_count, chosen.shrinkage)
        embeddings = unit_rows((joined - middle) @ root).half()
        before = Anchors.empty().plus(embeddings[rows], columns, validation.known_count)
        asked, around, found = inputs.visible.rows(validation.asked[0]), Surroundings(inputs, how), []
        for draw in range(min(STEP_DRAWS, len(validation.supports))):
            alone = validation.only(draw)
            *_, last = alone.sessions()
            labelled = (last.supports, last.support_classes)
            after = before.plus(*self._rows_of(embeddings, inputs, labelled), last.class_count)
            posterior, _ = after.transduced(embeddings, around, chosen)
            found.append(alone.score_of(posterior.argmax(dim=1).cpu().numpy()[asked]))
        return float(np.mean(found))

    # From a graph to x(v)

    def _make_inputs(self, visible: VisibleGraph, *, sparing: bool = False) -> GraphInputs:
        return GraphInputs(visible.with_features(prepare(visible.features, self.seed)), self.device, sparing=sparing)

    def _blocks(self, inputs: GraphInputs, rows: np.ndarray | None) -> list[torch.Tensor]:
        """XB, ÂÂXB and Z of all nodes, or of some: then only their neighbourhoods are read."""
        basis, encoder, hops = self.known.frame["basis"], self.network.encoder, self.known.neighbourhood.hops
        near: GcnRows = encoder.rows(inputs, rows)
        if rows is None:
            raw = inputs.raw() @ basis
            return [raw, propagated(inputs, raw, hops), encoder(near)]
        around = around_rows(inputs.visible, rows, hops, basis, near)
        return [inputs.raw(rows) @ basis, around, encoder(near)]

    def _joined(self, blocks: list[torch.Tensor]) -> torch.Tensor:
        """f(v): the blocks side by side, each centred, of unit length, and weighted."""
        chosen = self.settings
        weights = (chosen.raw_weight, self.known.neighbourhood.hop_weight, chosen.encoder_weight)
        parts = [
            weight * unit_rows(block - self.known.frame[f"centre.{place}"])
            for place, (block, weight) in enumerate(zip(blocks, weights, strict=True))
        ]
        return torch.cat(parts, dim=1)

    def _embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        """x(v) in 16 bits: what a node is known by."""
        frame = self.known.frame
        return unit_rows((self._joined(self._blocks(inputs, rows)) - frame["middle"]) @ frame["whitening"]).half()

    def vectors_to_draw(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray | None:
        with torch.no_grad():
            return self._embeddings(self.cache.inputs(visible)).float().cpu().numpy()[visible.rows(nodes)]

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
        posterior, _ = anchors.transduced(embeddings, Surroundings(inputs, self.known.neighbourhood), self.settings)
        # How near a node is to any class by the sums alone: the same for all its classes, so it changes no probability,
        # but it tells nodes of unknown classes, which the rounds would hide.
        near = torch.logsumexp(anchors.logits(embeddings, self.settings), dim=1, keepdim=True)
        return torch.log(posterior.clamp(min=1e-12)) + near

    @torch.no_grad()
    def restate(self, visible: VisibleGraph, train: Labelled, supports: Labelled) -> bool:
        self.cache.classes_changed()
        nodes, labels = (np.concatenate(parts) for parts in zip(train, supports, strict=True))
        inputs = self.cache.inputs(visible)
        embeddings = self._embeddings(inputs)
        self.cache.keep_embeddings(visible, embeddings)
        points = self._rows_of(embeddings, inputs, (nodes, labels))
        self.known.anchors = Anchors.empty().plus(*points, len(self.classes_))
        return True

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
        inputs, anchors, how = self.cache.inputs(visible), self.known.anchors, self.known.neighbourhood
        embeddings = torch.from_numpy(self.embeddings(visible)).to(self.device)
        surroundings = Surroundings(inputs, how)
        posterior, directions = anchors.transduced(embeddings, surroundings, self.settings)
        logits = self.settings.temperature * embeddings.float() @ directions.T
        blocks = self._blocks(inputs, np.array([row]))
        evidence = Evidence(
            visible=visible,
            prepared=inputs.visible,
            surroundings=surroundings,
            posterior=posterior,
            own=torch.softmax(logits.masked_fill(~(anchors.counts > 0), -torch.inf), dim=1),
            directions=directions,
            blocks=blocks,
            joined=self._joined(blocks)[0],
            frame=self.known.frame,
            temperature=self.settings.temperature,
            weights=(self.settings.raw_weight, how.hop_weight),
            hops=how.hops,
        )
        return explained(evidence, row, top)

    # State

    def _first_layer(self) -> torch.Tensor:
        first: Any = self.network.encoder.first
        return first.weight.detach()

    def load_state(self, state: LearnerState) -> None:
        first = state.tensors.get(FIRST_LAYER)
        self._hidden = None if first is None else first.shape[1]
        try:
            super().load_state(state)
        finally:
            self._hidden = None
