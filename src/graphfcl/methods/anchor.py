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
graphs their nodes were learned on; as the graph grows the visible nodes, which are embedded anew, pull every mean
along. ℓ_c is the length of the mean without its noise: the mean of n unit vectors with true mean length ℓ has squared
length ℓ² + (1 − ℓ²)/n, so a mean of five is too long; ℓ is shrunk to that of well-known classes. Neighbours are heard
by smoothing or by the links between classes (``anchor_around.py``).

**Chosen by validation sessions** of the run: how much the surroundings weigh (a₂), how many hops they reach, and how
neighbours are heard (s, steps, β): one of five. They are tried on the two blocks that know no label, since Z has seen
all classes of session 0. All else is one constant for all graphs, fixed on development graphs (``docs/anchor.md``).
"""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from graphfcl.graph import VisibleGraph
from graphfcl.methods.anchor_around import Surroundings
from graphfcl.methods.anchor_features import (
    around_rows,
    in_steps,
    leading_vectors,
    prepare,
    propagated,
    symmetric,
)
from graphfcl.methods.anchor_means import Anchors, unit_rows, whitening
from graphfcl.methods.anchor_settings import AnchorSettings, Hops
from graphfcl.methods.graph_learner import GraphLearner
from graphfcl.methods.learner import EncoderStore, Explanation, Labelled, LearnerState, Progress, Tensors
from graphfcl.methods.supervised import SupervisedTraining, class_balanced
from graphfcl.methods.trained_head import cross_entropies
from graphfcl.methods.validation import STEP_DRAWS, ValidationSessions
from graphfcl.nn import GcnRows, GraphInputs, Linear
from graphfcl.stream import BaseSession, Session

BYTES = 18_000_000  # that what session 0 fixed may take
BLOCKS = ("own features", "features around", "encoder")


class AnchorNetwork(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder


class Anchor(GraphLearner):
    """The learner."""

    name: ClassVar[str] = "anchor"
    settings_type = AnchorSettings
    lasting_tensors: ClassVar[tuple[str, ...]] = ("network.", "frame.")
    settings: AnchorSettings
    network: AnchorNetwork

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.frame: Tensors = {}  # what session 0 fixed: basis, centres, middle, whitening
        self.hop_: Hops = self.settings.candidates[0]
        self.anchors = Anchors.empty()
        self._hidden: int | None = None  # of the state that is being read

    # Session 0

    def _make_network(self) -> None:
        chosen = self.settings
        start = torch.Generator().manual_seed(self.seed)
        hidden = self._hidden or min(chosen.hidden, max(16, BYTES // (4 * self.sizes["features"])))
        encoder = self._make_encoder(start, hidden)
        head = Linear(chosen.size, self.sizes["many"], start).to(self.device)
        self.training = SupervisedTraining(
            encoder,
            head,
            chosen.pretraining,
            stage="encoder",
            loss=class_balanced(cross_entropies),
            balanced=True,
        )
        self.network = self._build(encoder, start).to(self.device)

    def _build(self, encoder: nn.Module, start: torch.Generator) -> AnchorNetwork:  # noqa: ARG002
        return AnchorNetwork(encoder)

    def _pretrain(self, base: BaseSession, inputs: GraphInputs, progress: Progress, encoders: EncoderStore) -> None:
        """The encoder is trained on all classes of session 0 at once."""

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == "pre-trained":
            self._enter("encoder", progress)
        train, validation = (base.train, base.train_labels), (base.validation, base.validation_labels)
        self.training.run(train, validation, inputs, self.generator, progress, self)
        with torch.no_grad():
            self._round_first_layer()
            self._fix_frame(base, inputs, progress)
            table = self._table(inputs, None)
            self.anchors = Anchors.empty().plus(*self._rows_of(table, inputs, train), len(base.classes))

    def _fix_frame(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        features = inputs.visible.features
        steps, scales = leading_vectors(features, self._rank(features.shape[1]), self.seed)
        self.frame |= {"basis": (steps * scales).to(self.device), "basis.scales": scales.to(self.device)}
        self.hop_ = self._choose(base, inputs, progress)
        blocks = self._blocks(inputs, None)
        self.frame |= {f"centre.{place}": block.mean(dim=0) for place, block in enumerate(blocks)}
        rows = torch.from_numpy(inputs.visible.rows(base.train)).to(self.device)
        labels = torch.from_numpy(base.train_labels).to(self.device)
        middle, root = whitening(self._joined(blocks)[rows], labels, len(base.classes), self.settings.shrinkage)
        self.frame |= {"middle": middle, "whitening": root.half().float()}

    def _rank(self, width: int) -> int:
        """Columns of the basis: as many as asked for, or as the bytes allow."""
        room = BYTES - self._first_layer().numel()
        rank = self.settings.rank
        while rank > 16 and width * rank + (2 * rank + self.settings.size) ** 2 > room:
            rank -= 16
        return rank

    def _choose(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> Hops:
        """Held-out classes arrive in validation sessions, on the blocks that no label touched."""
        chosen = self.settings
        fixed = (chosen.hop_weight, chosen.hops, chosen.smoothing, chosen.smoothing_steps, chosen.links)
        candidates: list[Any] = []
        for pair in chosen.candidates:
            five = (*pair, 0.0)[:5]  # links came later
            candidate = tuple(own if given is None else given for own, given in zip(five, fixed, strict=True))
            if candidate not in candidates:
                candidates.append(candidate)
        # No label touched these blocks, so every pseudo-novel class can stand for a novel one.
        all_new = range(len(base.base_classes), len(base.classes))
        validation = ValidationSessions.draw(replace(base, validation_columns=tuple(all_new)), self.seed)
        if len(candidates) == 1 or not validation.has_new_classes:
            return candidates[0]
        raw, scores = inputs.raw() @ self.frame["basis"], list[float]()
        for candidate in candidates:
            scores.append(self._try(candidate, inputs, raw, validation))
            progress.step("choosing hops", len(scores), len(candidates), score=max(scores))
        best = int(np.argmax(scores))
        return candidates[best if scores[best] > scores[0] + chosen.margin else 0]

    def _try(self, hop: Hops, inputs: GraphInputs, raw: torch.Tensor, validation: ValidationSessions) -> float:
        """The score of validation sessions with the two blocks that know no label."""
        chosen = self.settings
        blocks = [block - block.mean(dim=0) for block in (raw, propagated(inputs, raw, hop[1]))]
        weights = (chosen.raw_weight, hop[0])
        joined = torch.cat([weight * unit_rows(block) for weight, block in zip(weights, blocks, strict=True)], dim=1)
        nodes, labels = validation.many
        rows = torch.from_numpy(inputs.visible.rows(nodes)).to(self.device)
        known = torch.from_numpy(labels).to(self.device)
        middle, root = whitening(joined[rows], known, validation.known_count, chosen.shrinkage)
        table = unit_rows((joined - middle) @ root).half()
        many = Anchors.empty().plus(table[rows], known, validation.known_count)
        asked, around, found = inputs.visible.rows(validation.asked[0]), Surroundings(inputs, hop), []
        for draw in range(min(STEP_DRAWS, len(validation.supports))):
            alone = validation.only(draw)
            *_, few = alone.sessions()
            both = many.plus(*self._rows_of(table, inputs, (few.supports, few.support_classes)), few.class_count)
            posterior, _ = both.transduced(table, around, chosen)
            found.append(alone.score_of(posterior.argmax(dim=1).cpu().numpy()[asked]))
        return float(np.mean(found))

    # From a graph to x(v)

    def _make_inputs(self, visible: VisibleGraph, *, sparing: bool = False) -> GraphInputs:
        return GraphInputs(visible.with_features(prepare(visible.features, self.seed)), self.device, sparing=sparing)

    def _blocks(self, inputs: GraphInputs, rows: np.ndarray | None) -> list[torch.Tensor]:
        """XB, ÂÂXB and Z of all nodes, or of some: then only their neighbourhoods are read."""
        basis, encoder, hops = self.frame["basis"], self.network.encoder, self.hop_[1]
        near: GcnRows = encoder.rows(inputs, rows)  # type: ignore[operator]
        if rows is None:
            raw = inputs.raw() @ basis
            return [raw, propagated(inputs, raw, hops), encoder(near)]
        around = around_rows(inputs.visible, rows, hops, basis, near)
        return [inputs.raw(rows) @ basis, around, encoder(near)]

    def _joined(self, blocks: list[torch.Tensor], weights: tuple[float, ...] | None = None) -> torch.Tensor:
        """f(v): the blocks side by side, each centred, of unit length, and weighted."""
        chosen = self.settings
        weights = weights or (chosen.raw_weight, self.hop_[0], chosen.encoder_weight)
        parts = [
            weight * unit_rows(block - self.frame[f"centre.{place}"])
            for place, (block, weight) in enumerate(zip(blocks, weights, strict=True))
        ]
        return torch.cat(parts, dim=1)

    def _whitened(self, blocks: list[torch.Tensor]) -> torch.Tensor:
        """x(v) in 16 bits: what a node is known by."""
        return unit_rows((self._joined(blocks) - self.frame["middle"]) @ self.frame["whitening"]).half()

    def _table(self, inputs: GraphInputs, rows: np.ndarray | None) -> torch.Tensor:
        return self._whitened(self._blocks(inputs, rows))

    def _embed_all(self, inputs: GraphInputs) -> torch.Tensor:
        return (self._table(inputs, None) if inputs.table is None else inputs.table).float()

    def _rows_of(
        self, table: torch.Tensor, inputs: GraphInputs, labelled: Labelled
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.from_numpy(inputs.visible.rows(labelled[0])).to(self.device)
        return table[rows], torch.from_numpy(labelled[1]).to(self.device)

    # Sessions and scores

    @property
    def forgets_exactly(self) -> bool:
        return True

    @property
    def reach(self) -> int:
        return max(2, self.hop_[1])

    def _keeps_weights(self) -> bool:
        return True

    @torch.no_grad()
    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        labelled = (session.supports, session.support_labels)
        self.anchors = self.anchors.plus(*self._known(session.visible_graph, inputs, labelled), len(self.classes_))

    def _known(
        self, visible: VisibleGraph, inputs: GraphInputs, labelled: Labelled
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """x of some labelled nodes, and their columns."""
        if inputs.table is not None:
            return self._rows_of(inputs.table, inputs, labelled)
        alone = GraphInputs(inputs.visible, self.device, sparing=True)
        found = self._table(alone, visible.rows(labelled[0]))
        return found, torch.from_numpy(labelled[1]).to(self.device)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        table = self._table(inputs, None) if inputs.table is None else inputs.table
        posterior, _ = self.anchors.transduced(table, Surroundings(inputs, self.hop_), self.settings)
        # How near a node is to any class by the sums alone: the same for all its classes, so it changes no probability,
        # but it tells nodes of unknown classes, which the rounds would hide.
        near = torch.logsumexp(self.anchors.logits(table, self.settings), dim=1, keepdim=True)
        return torch.log(posterior.clamp(min=1e-12)) + near

    @torch.no_grad()
    def restate(self, visible: VisibleGraph, train: Labelled, supports: Labelled) -> bool:
        self._answers = None
        nodes, labels = (np.concatenate(parts) for parts in zip(train, supports, strict=True))
        inputs = self._inputs(visible)
        if inputs.table is None:
            inputs.table = self._table(inputs, None)
        self.anchors = Anchors.empty().plus(*self._rows_of(inputs.table, inputs, (nodes, labels)), len(self.classes_))
        return True

    @torch.no_grad()
    def scores_without(
        self, visible: VisibleGraph, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        """Subtracted from the sums, and asked without estimating means anew: that would take a pass over the graph."""
        _ = train, supports
        inputs = self._inputs(visible)
        points, labels = self._known(visible, inputs, left_out)
        return self.anchors.minus(points, labels).logits(points, self.settings).cpu().numpy()

    def chosen(self) -> dict[str, Any]:
        return dict(zip(("hop_weight", "hops", "smoothing", "smoothing_steps", "links"), self.hop_, strict=True))

    def stored(self) -> dict[str, int]:
        found = super().stored()
        if self.stage == "ready":
            found["weights"] -= 3 * self._first_layer().nbytes // 4  # it is stored in 8 bits
            found["weights"] += sum(tensor.nbytes for tensor in self._stored_frame().values())
        return {**found, "embeddings": self.anchors.sums.nbytes + self.anchors.counts.nbytes}

    def _round_first_layer(self) -> None:
        """To the 8 bits in which it is stored."""
        steps, scales = in_steps(self._first_layer())
        self._first_layer().copy_(steps * scales)
        self.frame["first.scales"] = scales

    def _first_layer(self) -> torch.Tensor:
        first: Any = self.network.encoder.first
        return first.weight.detach()

    def _stored_frame(self) -> Tensors:
        """The frame in the few bits it was rounded to: the basis in 8, of the symmetric root the upper half in 16."""
        frame = {name: tensor.cpu() for name, tensor in self.frame.items()}
        rows, columns = torch.triu_indices(*frame["whitening"].shape)
        steps = (frame["basis"] / frame["basis.scales"]).round().to(torch.int8)
        return {**frame, "basis": steps, "whitening": frame["whitening"][rows, columns].half()}

    def explain(self, visible: VisibleGraph, node: int, top: int = 5) -> Explanation | None:
        from graphfcl.methods.anchor_explain import explain

        return explain(self, visible, node, top)

    # State

    def _own_values(self) -> dict[str, Any]:
        training = {"training": self.training.values()} if self.stage == "encoder" else {}
        return {**super()._own_values(), "hop": list(self.hop_), **training}

    def _own_tensors(self) -> Tensors:
        training = self.training.tensors() if self.stage == "encoder" else {}
        kept: Tensors = {}
        if self.stage == "ready":
            steps = (self._first_layer() / self.frame["first.scales"]).round().to(torch.int8)
            kept = {"network.encoder.first.weight": steps.cpu()}
            kept |= {f"frame.{name}": tensor for name, tensor in self._stored_frame().items()}
        return {**super()._own_tensors(), **training, **kept, **self.anchors.tensors()}

    def load_state(self, state: LearnerState) -> None:
        first = state.tensors.get("network.encoder.first.weight")
        self._hidden = None if first is None else first.shape[1]
        try:
            super().load_state(state)
        finally:
            self._hidden = None

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        super()._load_own(values, tensors)
        weight, hops, smoothing, steps, *links = values["hop"]  # links came later
        self.hop_ = (weight, hops, smoothing, steps, *(links or [0.0]))
        self.frame = {
            name.removeprefix("frame."): tensor.to(self.device)
            for name, tensor in tensors.items()
            if name.startswith("frame.")
        }
        if self.frame:
            if "first.scales" in self.frame:
                self._first_layer().mul_(self.frame["first.scales"])
            else:  # it was once stored in 16 bits
                self._round_first_layer()
            self.frame["basis"] = self.frame["basis"].float() * self.frame["basis.scales"]
            self.frame["whitening"] = symmetric(self.frame["whitening"].float())
        self.anchors = Anchors.load(tensors, self.device)
        if self.stage == "encoder":
            self.training.load(values["training"], tensors)
