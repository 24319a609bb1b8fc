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

    P₀ = softmax_c( T x·μ_c / ℓ_c ),   P = three steps of P ← s ÂP + (1 − s) P₀          (where classes lie)
    μ_c ← (S_c + Σ_v P_vc x_v) / (n_c + Σ_v P_vc)                                        (what then their means are)

twice, over all visible nodes, labelled or not. The sums are a prior that weighs as much as the labels behind it: a
class with thousands of them hardly moves, one with five goes where its nodes lie. The stored sums are those of the
graphs their nodes were learned on; as the graph grows the visible nodes, which are embedded anew, pull every mean
along. ℓ_c is the length of the mean without its noise: the mean of n unit vectors with true mean length ℓ has squared
length ℓ² + (1 − ℓ²)/n, so a mean of five is too long; ℓ is shrunk to that of well-known classes.

**Chosen by validation sessions** of the run: one of three pairs (a₂, s), from "neighbours say much" to "nothing". They
are tried on the two blocks that know no label, since Z has seen the classes held out. All else is one constant for all
graphs, fixed on `cora-ml`, `amazon-computers` and synthetic graphs (``docs/anchor.md``).
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from torch import nn

from graphfcl.errors import InputError
from graphfcl.graph import Features, VisibleGraph
from graphfcl.methods.anchor_means import Anchors, unit_rows, whitening
from graphfcl.methods.graph_learner import GraphLearner
from graphfcl.methods.learner import EncoderStore, Labelled, Progress, Tensors
from graphfcl.methods.settings import MethodSettings
from graphfcl.methods.supervised import SupervisedSettings, SupervisedTraining, class_balanced
from graphfcl.methods.trained_head import cross_entropies
from graphfcl.methods.training import require_range
from graphfcl.methods.validation import STEP_DRAWS, ValidationSessions
from graphfcl.nn import ENCODERS, GraphInputs, Linear
from graphfcl.stream import BaseSession, Session

WIDEST = 16_384  # feature columns above which a seeded sign hash folds them together
MATRIX_BYTES = 7_000_000  # of the basis and of the encoder's first layer, each, as 16-bit floats
BLOCKS = ("own features", "features two hops around", "encoder")


@dataclass(frozen=True)
class AnchorSettings(MethodSettings):
    """rank: columns of the basis B at most. raw_weight, encoder_weight: a₀ and a_z. shrinkage: ρ. temperature: T.

    length_prior: nodes that the usual length of a mean counts for. rounds: how often means are estimated anew.
    smoothing_steps: on Â. candidates: pairs (a₂, s) that validation sessions choose from; another than the first must
    be better by ``margin``. two_hop_weight, smoothing: fix them instead. ``pretraining`` is the encoder's training.
    """

    hidden: int = 256
    size: int = 128
    last_relu: bool = False
    pretraining: SupervisedSettings = field(
        default_factory=lambda: SupervisedSettings(epochs=15, patience=5, learning_rate=0.01)
    )
    rank: int = 512
    raw_weight: float = 1.0
    encoder_weight: float = 0.7
    shrinkage: float = 0.1
    temperature: float = 30.0
    length_prior: float = 20.0
    rounds: int = 2
    smoothing_steps: int = 3
    candidates: tuple[tuple[float, float], ...] = ((2.0, 0.7), (0.5, 0.3), (0.1, 0.0))
    margin: float = 0.02
    two_hop_weight: float | None = None
    smoothing: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rank", "smoothing_steps"):
            require_range(name, getattr(self, name), least=1)
        for name in ("raw_weight", "encoder_weight", "two_hop_weight", "rounds", "margin", "length_prior"):
            require_range(name, getattr(self, name), least=0)
        for name in ("shrinkage", "temperature"):
            require_range(name, getattr(self, name), above=0)
        require_range("smoothing", self.smoothing, least=0, below=1)
        if not self.candidates:
            raise InputError("candidates is empty: it must have at least one pair (two_hop_weight, smoothing).")


class AnchorNetwork(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder


class Anchor(GraphLearner):
    """The learner."""

    name: ClassVar[str] = "anchor"
    settings_type = AnchorSettings
    settings: AnchorSettings
    network: AnchorNetwork

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.frame: Tensors = {}  # what session 0 fixed: basis, centres, middle, whitening
        self.hop_: tuple[float, float] = self.settings.candidates[0]  # (a₂, s)
        self.anchors = Anchors.empty()

    # Session 0

    def _make_network(self) -> None:
        chosen, features = self.settings, self.sizes["features"]
        start = torch.Generator().manual_seed(self.seed)
        widest = max(16, MATRIX_BYTES // (2 * features))
        encoder = ENCODERS[chosen.encoder](
            features,
            min(chosen.hidden, widest),
            chosen.size,
            start,
            dropout=chosen.dropout,
            last_relu=chosen.last_relu,
        ).to(self.device)
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
            first = self._first_layer()
            first.copy_(first.half())  # as it is stored
            self._fix_frame(base, inputs, progress)
            table = self._whitened(self._blocks(inputs, None))
            self.anchors = Anchors.empty().plus(*self._rows_of(table, inputs, train), len(base.classes))

    def _fix_frame(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        self.frame = {"basis": self._basis(inputs.visible.features)}
        blocks = self._blocks(inputs, None)
        self.frame |= {f"centre.{place}": block.mean(dim=0) for place, block in enumerate(blocks)}
        self.hop_ = self._choose(base, inputs, blocks, progress)
        rows = torch.from_numpy(inputs.visible.rows(base.train)).to(self.device)
        labels = torch.from_numpy(base.train_labels).to(self.device)
        middle, root = whitening(self._joined(blocks)[rows], labels, len(base.classes), self.settings.shrinkage)
        self.frame |= {"middle": middle, "whitening": root}

    def _basis(self, features: Features) -> torch.Tensor:
        """(d, k) the leading right singular vectors, in 16 bits as they are stored; the identity if that is smaller.

        Subspace iteration from a seeded start (Halko, Martinsson, Tropp 2011), on the side of the features, which are
        fewer than the nodes.
        """
        width = features.shape[1]
        rank = min(self.settings.rank, max(16, MATRIX_BYTES // (2 * width)))
        if width <= rank or features.shape[0] <= rank:
            return torch.eye(width, device=self.device).half()
        random = np.random.default_rng([self.seed, 3])
        span = random.standard_normal((width, min(rank + 20, width))).astype(np.float32)
        for _ in range(4):
            span, _ = np.linalg.qr(np.asarray(features.T @ (features @ span)))
        seen = np.asarray(features @ span)
        _, vectors = np.linalg.eigh(seen.T @ seen)
        found = np.ascontiguousarray(span @ vectors[:, ::-1][:, :rank])
        return torch.from_numpy(found).to(self.device).half()

    def _choose(
        self, base: BaseSession, inputs: GraphInputs, blocks: list[torch.Tensor], progress: Progress
    ) -> tuple[float, float]:
        """(a₂, s): held-out classes arrive in validation sessions, on the blocks that no label touched."""
        chosen = self.settings
        fixed = (chosen.two_hop_weight, chosen.smoothing)
        candidates = [
            tuple(own if given is None else given for own, given in zip(pair, fixed, strict=True))
            for pair in chosen.candidates
        ]
        validation = ValidationSessions.draw(base, self.seed)
        if len(set(candidates)) == 1 or not validation.has_new_classes:
            return candidates[0]  # type: ignore[return-value]
        nodes, labels = validation.many
        rows = torch.from_numpy(inputs.visible.rows(nodes)).to(self.device)
        asked = inputs.visible.rows(validation.asked[0])
        scores = []
        for place, (two_hop, smoothing) in enumerate(candidates):
            joined = self._joined(blocks[:2], (chosen.raw_weight, two_hop))
            known = torch.from_numpy(labels).to(self.device)
            middle, root = whitening(joined[rows], known, validation.known_count, chosen.shrinkage)
            table = unit_rows((joined - middle) @ root).half()
            many = Anchors.empty().plus(table[rows], known, validation.known_count)
            found = []
            for draw in range(min(STEP_DRAWS, len(validation.supports))):
                alone = validation.only(draw)
                few = next(iter(reversed(list(alone.sessions()))))
                both = many.plus(*self._rows_of(table, inputs, (few.supports, few.support_classes)), few.class_count)
                posterior, _ = both.transduced(table, inputs.adjacency, smoothing, chosen)
                found.append(alone.score_of(posterior.argmax(dim=1).cpu().numpy()[asked]))
            scores.append(float(np.mean(found)))
            progress.step("choosing hops", place + 1, len(candidates), score=max(scores))
        best = int(np.argmax(scores))
        return candidates[best if scores[best] > scores[0] + chosen.margin else 0]  # type: ignore[return-value]

    # From a graph to x(v)

    def _make_inputs(self, visible: VisibleGraph, *, sparing: bool = False) -> GraphInputs:
        prepared = VisibleGraph(visible.nodes, visible.adjacency, prepare(visible.features, self.seed))
        return GraphInputs(prepared, self.device, sparing=sparing)

    def _blocks(self, inputs: GraphInputs, rows: np.ndarray | None) -> list[torch.Tensor]:
        """XB, ÂÂXB and Z of all nodes, or of some: then only their neighbourhoods are read."""
        basis, encoder = self.frame["basis"].float(), self.network.encoder
        encoded = encoder(encoder.rows(inputs, rows))  # type: ignore[operator]
        if rows is None:
            raw = inputs.raw() @ basis
            return [raw, inputs.adjacency @ (inputs.adjacency @ raw), encoded]
        normalised = inputs.visible.normalised
        inner = normalised[rows]
        around = np.unique(inner.indices)
        outer = normalised[around]
        beyond = np.unique(outer.indices)
        own = inputs.raw(rows) @ basis
        far = (inputs.raw(beyond) @ basis).cpu().numpy()
        near = inner[:, around] @ (outer[:, beyond] @ far)
        return [own, torch.from_numpy(near).to(self.device), encoded]

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
        found = self._table(self._make_inputs(visible, sparing=True), visible.rows(labelled[0]))
        return found, torch.from_numpy(labelled[1]).to(self.device)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        table = self._table(inputs, None) if inputs.table is None else inputs.table
        posterior, _ = self.anchors.transduced(table, inputs.adjacency, self.hop_[1], self.settings)
        return torch.log(posterior.clamp(min=1e-12))

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
        return {"two_hop_weight": self.hop_[0], "smoothing": self.hop_[1]}

    def stored(self) -> dict[str, int]:
        found = super().stored()
        if self.stage == "ready":
            found["weights"] -= self._first_layer().nbytes // 2  # it is stored in 16 bits
            found["weights"] += sum(tensor.nbytes for tensor in self.frame.values())
        return {**found, "embeddings": self.anchors.sums.nbytes + self.anchors.counts.nbytes}

    def _first_layer(self) -> torch.Tensor:
        first: Any = self.network.encoder.first
        return first.weight.detach()

    # State

    def _own_values(self) -> dict[str, Any]:
        training = {"training": self.training.values()} if self.stage == "encoder" else {}
        return {**super()._own_values(), "hop": list(self.hop_), **training}

    def _own_tensors(self) -> Tensors:
        training = self.training.tensors() if self.stage == "encoder" else {}
        kept: Tensors = {}
        if self.stage == "ready":
            kept = {"network.encoder.first.weight": self._first_layer().half().cpu()}
            kept |= {f"frame.{name}": tensor.cpu() for name, tensor in self.frame.items()}
        return {**super()._own_tensors(), **training, **kept, **self.anchors.tensors()}

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        super()._load_own(values, tensors)
        self.hop_ = (values["hop"][0], values["hop"][1])
        self.frame = {
            name.removeprefix("frame."): tensor.to(self.device)
            for name, tensor in tensors.items()
            if name.startswith("frame.")
        }
        self.anchors = Anchors.load(tensors, self.device)
        if self.stage == "encoder":
            self.training.load(values["training"], tensors)


def prepare(features: Features, seed: int) -> Features:
    """Rows of unit length; more than ``WIDEST`` columns are folded together by a seeded sign hash."""
    if features.shape[1] == 0:
        return np.ones((features.shape[0], 1), dtype=np.float32)
    if features.shape[1] > WIDEST:
        features = features @ _folding(features.shape[1], seed)
    if isinstance(features, np.ndarray):
        length = np.linalg.norm(features, axis=1, keepdims=True)
        return (features / np.maximum(length, 1e-8)).astype(np.float32)
    scaled = sparse.csr_array(features, dtype=np.float32, copy=True)
    length = np.sqrt(np.asarray((scaled * scaled).sum(axis=1)).ravel())
    scaled.data /= np.repeat(np.maximum(length, 1e-8), np.diff(scaled.indptr))
    return scaled


def _folding(width: int, seed: int) -> sparse.csr_array:
    digest = hashlib.sha256(f"{seed}:{width}".encode()).digest()
    random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    signs = random.choice(np.array([-1, 1], dtype=np.float32), width)
    return sparse.csr_array((signs, (np.arange(width), random.integers(0, WIDEST, width))), shape=(width, WIDEST))
