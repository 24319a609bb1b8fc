"""Learners in closed form: vectors that no session changes, sums over labelled nodes, and a head computed from them."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from graphfcl.errors import DivergenceError
from graphfcl.graph import VisibleGraph
from graphfcl.methods.bases.encoder_learner import EncoderLearner, Stage
from graphfcl.methods.bases.settings import EncoderSettings
from graphfcl.methods.learner import Labelled, Learner, Progress, Tensors
from graphfcl.methods.settings import require_choice, require_range
from graphfcl.methods.shared.choosing import choose_over_draws
from graphfcl.methods.shared.class_statistics import ClassStatistics, Statistics
from graphfcl.methods.shared.node_vectors import KINDS, Kind, NodeVectors
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.prototype_network import PrototypeNetwork
from graphfcl.methods.shared.untrained_blocks import prepared_inputs
from graphfcl.methods.shared.validation_sessions import ValidationSessions, all_held_out
from graphfcl.nn import Encoder, GraphInputs, tensor_of
from graphfcl.stream import BaseSession, Session

CHUNK = 1024  # nodes that are scored at a time

Choice = dict[str, Any]  # settings that validation sessions choose, by name


@dataclass(frozen=True)
class ClosedFormSettings(EncoderSettings):
    """The vectors of nodes, and how choices are made. Settings of the encoder count with ``features=encoder`` alone."""

    features: Kind = "propagated"
    """What a node is known by: propagated features that no label touched, or the pre-trained encoder."""
    rank: int = 1024
    """Columns of the basis of propagated features at most; a vector has twice as many."""
    hop_weight: float = 2.0
    """Weight of the features around a node (a) against its own."""
    margin: float = 0.01
    """By so much another candidate must be better than the first to be chosen."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("features", self.features, KINDS)
        require_range("rank", self.rank, least=1)
        require_range("hop_weight", self.hop_weight, least=0)
        require_range("margin", self.margin, least=0)


class ClosedFormLearner(EncoderLearner):
    """Session 0 fixes the vectors z(v) of nodes (``NodeVectors``); every session, session 0 included, adds the vectors
    of its labelled nodes, as its graph shows them, to statistics of the classes. No node is kept and no step is taken.

    A method says which statistics it keeps (:meth:`_nobody`, :meth:`_read`), what it computes from them when scores
    are asked for (:meth:`_head`) and how that scores vectors (:meth:`_answers`). What it does not fix
    (:meth:`_candidates`) validation sessions choose, in which all pseudo-novel classes arrive at once. Neither kind of
    vector has seen a label of theirs: the encoder is pre-trained on base classes alone.

    vectors: z. memory: the statistics. choice: what was chosen.
    """

    settings_type: ClassVar[type[Any]] = ClosedFormSettings
    lasting_tensors: ClassVar[tuple[str, ...]] = ("network.", "blocks.")
    memory: ClassStatistics

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        chosen = self.settings
        self.vectors = NodeVectors(chosen.features, chosen.rank, chosen.hop_weight)
        self.memory = ClassStatistics(self._nobody(0), self._read)
        self.choice: Choice = self._candidates()[0]

    # What a method says

    @abstractmethod
    def _nobody(self, size: int) -> Statistics:
        """Statistics of no class, for vectors of ``size`` columns."""

    @abstractmethod
    def _read(self, tensors: Tensors, device: torch.device) -> Statistics:
        """Statistics from a state."""

    @abstractmethod
    def _plus(self, statistics: Any, vectors: torch.Tensor, labels: torch.Tensor, count: int) -> Statistics:
        """With more labelled vectors, of ``count`` classes in all."""

    def _reweighted(self, statistics: Any, vectors: torch.Tensor, labels: torch.Tensor, counts: torch.Tensor) -> Any:  # noqa: ARG002
        """Statistics in which earlier labelled vectors weigh as in classes of so many labels (``counts``)."""
        return statistics

    @abstractmethod
    def _candidates(self) -> list[Choice]:
        """What may be chosen, the default first."""

    @abstractmethod
    def _head(self, statistics: Any, many: int, choice: Choice) -> Any:
        """What classes are scored by; the first ``many`` are those of session 0, all others have few labels."""

    @abstractmethod
    def _answers(self, vectors: torch.Tensor, head: Any) -> torch.Tensor:
        """(r, C) scores of some vectors."""

    def _fix(self, inputs: GraphInputs, embeddings: torch.Tensor) -> None:
        """Fix what else session 0's graph decides, after the vectors."""

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), self.vectors, OwnAttributes(self, values={"choice": "choice"}))

    # Session 0

    @property
    def _has_encoder(self) -> bool:
        return self.settings.features == "encoder"

    @property
    def _width(self) -> int:
        """D: columns of a vector."""
        return self.settings.size if self._has_encoder else self.vectors.blocks.width

    def _build(self, encoder: Encoder, start: torch.Generator) -> PrototypeNetwork:  # noqa: ARG002
        return PrototypeNetwork(encoder)

    def _make_network(self) -> None:
        if self._has_encoder:
            super()._make_network()
        else:
            self.network = nn.Module()

    def _refuse_misfit(self, weights: Tensors) -> None:
        if self._has_encoder:
            super()._refuse_misfit(weights)

    def _start(self, base: BaseSession, inputs: GraphInputs) -> None:
        super()._start(base, inputs)
        if not self._has_encoder:
            self.stage = Stage.PRE_TRAINED

    @torch.no_grad()
    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        self.vectors.fix(inputs, self.seed)
        embeddings = self._embed(inputs)
        self.cache.keep_embeddings(base.visible_graph, embeddings)
        self._fix(inputs, embeddings)
        validation = ValidationSessions.draw(all_held_out(base), self.seed)
        known = self._with(self._nobody(self._width), inputs, validation.train)
        self.choice = self._choose(known, inputs, validation, progress)
        # The base classes have the same columns in both, and their vectors are summed up already.
        later = base.train_labels >= validation.known_count
        labelled = (base.train[later], base.train_labels[later])
        self.memory.hold(self._with(known, inputs, labelled, len(self.classes_)))

    def _choose(self, known: Any, inputs: GraphInputs, validation: ValidationSessions, progress: Progress) -> Choice:
        """The candidate with the best mean score over draws of the supports, or the first if it is hardly better.

        known: statistics of the base classes.
        """
        candidates, asked = self._candidates(), self._embeddings_of(inputs, validation.asked[0])

        def scores_of(draw: ValidationSessions) -> list[float]:
            *_, last = draw.sessions()
            statistics = self._with(known, inputs, (last.supports, last.support_classes))
            heads = (self._head(statistics, validation.known_count, choice) for choice in candidates)
            found = (self._scored(asked, head, statistics.counts).argmax(dim=1) for head in heads)
            return [draw.score_of(each.cpu().numpy()) for each in found]

        return choose_over_draws(candidates, validation, scores_of, progress, margin=self.settings.margin)

    def _forget_training(self) -> None:
        """Vectors are fixed before anything is learned: there is nothing to forget."""
        self.cache.classes_changed()

    # From a graph to vectors

    def _make_inputs(self, visible: VisibleGraph, *, sparing: bool = False) -> GraphInputs:
        if self._has_encoder:
            return super()._make_inputs(visible, sparing=sparing)
        return prepared_inputs(visible, self.device, self.seed, sparing=sparing)

    def _encoded(self, inputs: GraphInputs, rows: np.ndarray | None) -> torch.Tensor:
        return self.network.embed(inputs, rows)

    def _embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        return self.vectors.embedded(inputs, self._encoded, rows)

    def _embeddings_of(self, inputs: GraphInputs, nodes: np.ndarray) -> torch.Tensor:
        """(nodes, D) embeddings of some nodes, from their neighbourhoods alone if those of all are not at hand."""
        rows, known = inputs.visible.rows(nodes), self.cache.embeddings(inputs)
        if known is not None:
            return known[torch.tensor(rows, device=self.device)]
        return self._embed(GraphInputs(inputs.visible, self.device, sparing=True), rows)

    def vectors_to_draw(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray | None:
        return self.embeddings(visible)[visible.rows(nodes)].astype(np.float32)

    # Sessions and scores

    def _keeps_weights(self) -> bool:
        return True

    @torch.no_grad()
    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        labelled, statistics = (session.supports, session.support_labels), self.memory.now
        if session.earlier.size:
            count = len(self.classes_)
            added = torch.bincount(tensor_of(session.support_labels, self.device), minlength=count)
            counts = added.to(statistics.counts)
            counts[: len(statistics.counts)] += statistics.counts
            vectors = self.vectors.of(self._embeddings_of(inputs, session.earlier))
            statistics = self._reweighted(statistics, vectors, tensor_of(session.earlier_labels, self.device), counts)
        self.memory.hold(self._with(statistics, inputs, labelled, len(self.classes_)))

    def _with(self, statistics: Any, inputs: GraphInputs, labelled: Labelled, count: int = 0) -> Any:
        """Statistics with more labelled nodes, of ``count`` classes in all, or of as many as they say."""
        nodes, columns = labelled
        count = max(count, len(statistics.counts), int(columns.max(initial=-1)) + 1)
        vectors = self.vectors.of(self._embeddings_of(inputs, nodes))
        return self._plus(statistics, vectors, tensor_of(columns, self.device), count)

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        head = self.memory.head(lambda now: self._head(now, self.sizes.many, self.choice))
        return self._scored(self._embeddings(inputs), head, self.memory.now.counts)

    def _scored(self, embeddings: torch.Tensor, head: Any, counts: torch.Tensor) -> torch.Tensor:
        """(n, C) scores, some nodes at a time; −∞ for a class without a labelled node."""
        parts = [self._answers(self.vectors.of(part), head) for part in embeddings.split(CHUNK)]
        return torch.cat(parts).masked_fill(~(counts > 0), -torch.inf)

    def chosen(self) -> dict[str, Any]:
        return dict(self.choice)

    # What is known of labelled nodes

    @torch.no_grad()
    def restate(self, visible: VisibleGraph, train: Labelled, supports: Labelled) -> bool:
        inputs = self.cache.inputs(visible)
        self.cache.keep_embeddings(visible, self._embeddings(inputs))
        self.cache.classes_changed()
        nobody = self._nobody(self._width)
        self.memory.hold(self._with(nobody, inputs, _joined(train, supports), len(self.classes_)))
        return True

    def rehearsal(self) -> Learner | None:
        """One with the same choice."""
        return type(self)(replace(self.settings, **self.choice), seed=self.seed, device=self.device)

    @torch.no_grad()
    def scores_without(
        self, visible: VisibleGraph, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        """The classes of the nodes to leave out are summed up again without them; all others stay as they are.

        That is exact if the sums are those of this graph; if an older graph left so much in them that there is no
        solution, all classes are summed up again.
        """
        inputs, count = self.cache.inputs(visible), len(self.classes_)
        nodes, columns = _joined(train, supports)
        of_these = np.isin(columns, left_out[1])
        remaining = of_these & ~np.isin(nodes, left_out[0])
        nobody = self._nobody(self._width)
        old, new = (self._with(nobody, inputs, (nodes[part], columns[part]), count) for part in (of_these, remaining))
        statistics = self.memory.now.exchanged(old, new)
        try:
            head = self._head(statistics, self.sizes.many, self.choice)
        except DivergenceError:
            return super().scores_without(visible, left_out, train, supports)
        return self._scored(self._embeddings_of(inputs, left_out[0]), head, statistics.counts).cpu().numpy()


def _joined(train: Labelled, supports: Labelled) -> Labelled:
    nodes, columns = (np.concatenate(parts) for parts in zip(train, supports, strict=True))
    return nodes, columns
