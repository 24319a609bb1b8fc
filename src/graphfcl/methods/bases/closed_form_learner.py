"""Closed-form learners: fixed node vectors, sums over labelled nodes, and a head computed from these sums."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import nn

from graphfcl.errors import DivergenceError
from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.bases.encoder_learner import EncoderLearner, EncoderSettings, Stage
from graphfcl.methods.blocks import MemoryNeed, NodeTables, RowBlock, Table, open_tables
from graphfcl.methods.blocks.interface import some_of_each_class
from graphfcl.methods.blocks.opening import open_whole
from graphfcl.methods.learner import Learner, Progress
from graphfcl.methods.settings import Count, Weight
from graphfcl.methods.shared.class_statistics import ClassStatistics, Parts, counts_with, in_parts
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.prototype_network import PrototypeNetwork
from graphfcl.methods.shared.untrained_blocks import UntrainedBlocks
from graphfcl.methods.shared.untrained_features import unit_rows
from graphfcl.methods.shared.validation_sessions import ValidationSessions, choose_over_draws
from graphfcl.methods.state import (
    Labelled,
    LastTables,
    Tensors,
    join_labelled,
)
from graphfcl.nn import Encoder, GraphInputs, tensor_of
from graphfcl.stream.sessions import BaseSession, Session

CHUNK = 1024  # nodes that are scored at a time
FEW = 20_480  # number of labelled nodes whose vectors are read at a time
NEAR = 1024  # up to this many nodes, neighbourhoods are read instead of blocks of a table
MOST_QUERIES = 100_000  # with more validation nodes, choices use at most ``MOST_OF_CLASS`` of each class
MOST_OF_CLASS = 2000
BYTES_OF_QUERY = 2  # memory per number of a query's embedding
BYTES_OF_LABELLED = 6  # memory per number of a labelled node's embedding, including copies while it is gathered
COPIES = 10  # memory of choosing as a multiple of the stored statistics, including factors and solutions

Kind = Literal["propagated", "encoder"]
Choice = dict[str, Any]  # values that validation sessions choose, by name of the setting


@dataclass(frozen=True)
class ClosedFormSettings(EncoderSettings):
    """Settings of node vectors and choices. Settings of the encoder only apply to ``features=encoder``."""

    features: Kind = "propagated"
    """Node vectors: propagated features, which depend on no label, or the output of the pre-trained encoder."""
    rank: Count = 1024
    """Maximum number of columns of the basis of propagated features; a vector has twice as many."""
    hop_weight: Weight = 2.0
    """Weight of the propagated features against a node's own features (a)."""
    margin: Weight = 0.01
    """Score gain that a candidate needs over the first one to replace it."""


class ClosedFormLearner(EncoderLearner):
    """A learner that classifies fixed node vectors z(v) by class statistics.

    Session 0 determines how vectors are computed. Every session, including session 0, adds the vectors of its labelled
    nodes to the class statistics. No node is kept, and no gradient step is taken. There are two kinds of vectors::

        propagated   z(v) = [ w₁ n(XB)_v , w₂ n(ÂÂXB)_v ]      ``UntrainedBlocks``
        encoder      z(v) = unit( g_θ(v) )                     g_θ: the pre-trained encoder

    n(·) subtracts the mean over the visible graph of session 0 and scales rows to unit length. The cached *embedding*
    of a node is z without the weights, in 16 bits for propagated features.

    A method defines the weights (:meth:`_weights`), its statistics (:meth:`_empty`) of points (:meth:`_points`), the
    head computed from them (:meth:`_head`), and the scores of vectors (:meth:`answers`). Validation sessions, in which
    all pseudo-novel classes arrive at once, choose among :meth:`_candidates`. Vectors do not depend on labels of the
    pseudo-novel classes: the encoder is pre-trained on the base classes alone.

    Attributes:
        blocks: Blocks of propagated features.
        memory: The class statistics.
        choice: The chosen values.
    """

    settings_type: ClassVar[type[Any]] = ClosedFormSettings
    lasting_tensors: ClassVar[tuple[str, ...]] = ("network.", "blocks.")
    works_on_disk = True  # only with propagated features
    choices: ClassVar[dict[str, str]] = {}
    """From the setting that fixes a value to the setting that lists its candidates."""
    memory: Any

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.blocks = UntrainedBlocks()
        self.memory = ClassStatistics(self._empty(0))
        self.choice: Choice = self._candidates()[0]
        self.last_tables: LastTables = LastTables()

    # What a method defines

    @abstractmethod
    def _empty(self, size: int) -> Any:
        """Return statistics without a class for vectors of ``size`` columns."""

    def _points(self, vectors: torch.Tensor) -> torch.Tensor:
        """Compute the (r, P) points that statistics sum over."""
        return vectors

    def _reweighted(self, statistics: Any, earlier: Parts, counts: torch.Tensor) -> Any:  # noqa: ARG002
        """Adapt the weights of earlier labelled vectors to the label counts after an addition."""
        return statistics

    def _candidates(self) -> list[Choice]:
        """List all combinations of candidate values for the settings in ``choices``, the default first."""
        fixed = ((getattr(self.settings, name), getattr(self.settings, many)) for name, many in self.choices.items())
        values = (many if one is None else (one,) for one, many in fixed)
        return [dict(zip(self.choices, each, strict=True)) for each in product(*values)]

    @abstractmethod
    def _head(self, statistics: Any, inputs: NodeTables, many: int, choice: Choice) -> Tensors:
        """Compute the head from statistics. The first ``many`` classes are those of session 0."""

    @staticmethod
    @abstractmethod
    def answers(vectors: torch.Tensor, head: Tensors) -> torch.Tensor:
        """Compute (m, C) scores of vectors."""

    def _weights(self) -> tuple[float, float]:
        """Return w₁ and w₂. By default z has unit length."""
        around = self.settings.hop_weight
        length = (1 + around**2) ** 0.5
        return 1 / length, around / length

    def _fit_vectors(self, inputs: NodeTables, embeddings: Table) -> None:
        """Compute further values that depend on the graph of session 0 and its vectors."""

    @property
    def _statistics(self) -> Any:
        return self.memory.now

    def _set_statistics(self, statistics: Any) -> None:
        self.memory.set(statistics)

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), self.blocks, OwnAttributes(self, "choice"))

    # Session 0

    @property
    def _has_encoder(self) -> bool:
        return getattr(self.settings, "features", "propagated") == "encoder"

    @property
    def _width(self) -> int:
        """Number of columns D of a vector."""
        return self.settings.size if self._has_encoder else self.blocks.width

    def _build(self, encoder: Encoder, start: torch.Generator) -> PrototypeNetwork:  # noqa: ARG002
        return PrototypeNetwork(encoder)

    def _make_network(self) -> None:
        if self._has_encoder:
            super()._make_network()
        else:
            self.network = nn.Module()

    def _check_sizes(self, weights: Tensors) -> None:
        if self._has_encoder:
            super()._check_sizes(weights)

    def _check_above_chance(self, base: BaseSession) -> None:
        if self._has_encoder:  # propagated features cannot collapse
            super()._check_above_chance(base)

    def _start(self, base: BaseSession, inputs: NodeTables) -> None:
        super()._start(base, inputs)
        if not self._has_encoder:
            self.stage = Stage.PRE_TRAINED

    @torch.no_grad()
    def _train(self, base: BaseSession, inputs: NodeTables, progress: Progress) -> None:
        inputs.watch(progress)
        validation = ValidationSessions.draw(base, base.pseudo_novel_columns, self.seed)
        if validation.queries[0].size > MOST_QUERIES:
            validation = validation.with_queries(some_of_each_class(validation.queries, MOST_OF_CLASS, self.seed))
        if not self._has_encoder:
            self.blocks.fit(inputs, self.settings.rank, self.seed, self._held(base, inputs, validation))
        embeddings = self._table(inputs)
        self.cache.keep_embeddings(base.visible_graph, embeddings)
        self._fit_vectors(inputs, embeddings)
        statistics = self._with(self._empty(self._width), inputs, validation.train)
        self.choice = self._choose(statistics, inputs, validation, progress)
        # The base classes have the same columns in both, and their vectors are already in the sums.
        later = base.train_labels >= validation.known_count
        labelled = (base.train[later], base.train_labels[later])
        self._set_statistics(self._with(statistics, inputs, labelled, len(self.classes_)))

    def _choose(self, of_base: Any, inputs: NodeTables, validation: ValidationSessions, progress: Progress) -> Choice:
        """Choose a candidate by :func:`choose_over_draws`; ``of_base`` are statistics of the base classes."""
        candidates, queries = self._candidates(), self._rows(inputs, validation.queries[0])

        def scores_of(draw: ValidationSessions) -> list[float]:
            *_, last = draw.sessions()
            with_supports = self._with(of_base, inputs, last.supports)
            heads = (self._solved(with_supports, inputs, validation.known_count, choice) for choice in candidates)
            return [draw.score_of(self._scores(queries, head).argmax(dim=1).cpu().numpy()) for head in heads]

        margin = getattr(self.settings, "margin", 0.0)
        return choose_over_draws(candidates, validation, scores_of, progress, margin=margin)

    def _held(self, base: BaseSession, inputs: NodeTables, validation: ValidationSessions) -> MemoryNeed:
        """State the memory of choosing: vectors of validation nodes, vectors of labelled nodes, and statistics."""
        rows, columns = validation.queries[0].size, 2 * min(self.settings.rank, inputs.node_count, inputs.feature_count)
        vectors = rows * BYTES_OF_QUERY + min(base.train.size, FEW) * BYTES_OF_LABELLED
        size = columns * vectors + COPIES * self._empty(columns).nbytes
        return MemoryNeed(size, f"choosing on {rows:,} rows of {columns:,} columns")

    def _forget_training(self) -> None:
        """Keep embeddings: they do not change during training."""
        self.cache.classes_changed()

    # From a graph to vectors

    def _make_inputs(self, visible: VisibleNodes, *, sparing: bool = False) -> NodeTables:  # noqa: ARG002
        if self._has_encoder:
            return open_whole(visible, self.device)
        return open_tables(visible, self.device, self.seed, unit=True)

    def watch(self, visible: VisibleNodes, progress: Progress) -> None:
        self.cache.inputs(visible).watch(progress)

    def _whole(self, inputs: NodeTables) -> GraphInputs:
        assert inputs.whole is not None, "an encoder needs the graph in memory"
        return inputs.whole

    def _table(self, inputs: NodeTables) -> Table:
        """Return the (n, D) embeddings of all nodes, from the cache or by a pass over the graph."""
        table = self.cache.embeddings(inputs)
        if table is not None:
            return table
        if self._has_encoder:
            return inputs.take(unit_rows(self.network.embed(self._whole(inputs))))
        return self.blocks.table(inputs)

    def _near(self, inputs: NodeTables, nodes: np.ndarray) -> torch.Tensor:
        """Compute (nodes, D) embeddings from the neighbourhoods of the nodes."""
        if not self._has_encoder:
            return self.blocks.vectors_of(inputs, nodes)
        return unit_rows(self.network.embed(*inputs.neighbourhood(nodes, self.reach)))

    def _rows(self, inputs: NodeTables, nodes: np.ndarray) -> torch.Tensor:
        """Return (nodes, D) embeddings of some nodes.

        They are computed from the neighbourhoods if the table of all nodes is not cached or, in sessions, if reading
        its rows would take longer. The latest result is cached, since leave-one-out scores request the same nodes
        repeatedly.
        """
        kept = self.cache.intermediate(inputs)
        if kept is None or not np.isin(nodes, kept[0]).all():
            there, table = np.unique(nodes), self.cache.embeddings(inputs)
            few = self.stage == Stage.READY and there.size <= NEAR
            near = table is None or (few and not table.random_access)
            kept = (there, self._near(inputs, there) if near else table.rows_at(inputs.visible.rows(there)))
            self.cache.keep_intermediate(inputs, kept)
        return kept[1][tensor_of(np.searchsorted(kept[0], nodes), self.device)]

    def _labelled(self, inputs: NodeTables, labelled: Labelled) -> Parts:
        """Yield points of labelled nodes and their columns, in chunks ordered by row."""
        nodes, columns = labelled
        order = np.argsort(inputs.visible.rows(nodes), kind="stable")
        for start in range(0, nodes.size, FEW):
            some = order[start : start + FEW]
            for embeddings, labels in in_parts(self._rows(inputs, nodes[some]), tensor_of(columns[some], self.device)):
                yield self._points(self._vectors(embeddings)), labels

    @property
    def _scales(self) -> torch.Tensor:
        """(D,) factors from an embedding to z."""
        if self._has_encoder:
            return torch.ones(self._width, device=self.device)
        return self.blocks.weighted(*self._weights()).float()

    def _vectors(self, embeddings: torch.Tensor) -> torch.Tensor:
        """Compute (m, D) z in 32 bits."""
        return embeddings * self._scales

    @torch.no_grad()
    def _kept_table(self, visible: VisibleNodes) -> Table:
        table = self._table(self.cache.inputs(visible))
        if self.stage == Stage.READY:
            self.cache.keep_embeddings(visible, table)
        return table

    def embeddings(self, visible: VisibleNodes) -> np.ndarray:
        return self._kept_table(visible).readable()

    @torch.no_grad()
    def embeddings_of_rows(self, visible: VisibleNodes, rows: np.ndarray) -> np.ndarray:
        return self._near(self._make_inputs(visible), visible.numbers(rows)).cpu().numpy()

    def use_embeddings(self, visible: VisibleNodes, embeddings: np.ndarray) -> None:
        self.cache.classes_changed()
        self.cache.keep_embeddings(visible, self.cache.inputs(visible).take(tensor_of(embeddings, self.device)))

    def vectors_to_draw(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray | None:
        return self._kept_table(visible).rows_at(visible.rows(nodes)).float().cpu().numpy()

    # Sessions and scores

    def _keeps_weights(self) -> bool:
        return True

    @torch.no_grad()
    def _learn(self, session: Session, inputs: NodeTables) -> None:
        statistics, count = self._statistics, len(self.classes_)
        if session.earlier.size:
            counts = counts_with(statistics.counts, tensor_of(session.support_labels, self.device), count)
            earlier = self._labelled(inputs, (session.earlier, session.earlier_labels))
            statistics = self._reweighted(statistics, earlier, counts)
        self._set_statistics(self._with(statistics, inputs, (session.supports, session.support_labels), count))

    def _with(self, statistics: Any, inputs: NodeTables, labelled: Labelled, count: int = 0) -> Any:
        """Statistics with more labelled nodes, of ``count`` classes in all, or of as many as they say."""
        count = max(count, len(statistics.counts), int(labelled[1].max(initial=-1)) + 1)
        counts = counts_with(statistics.counts, tensor_of(labelled[1], self.device), count)
        return statistics.plus(self._labelled(inputs, labelled), counts)

    def _solved(self, statistics: Any, inputs: NodeTables, many: int, choice: Choice) -> Tensors:
        return {"counts": statistics.counts, "scales": self._scales, **self._head(statistics, inputs, many, choice)}

    def _head_now(self, inputs: NodeTables) -> Tensors:
        return self.memory.head(lambda now: self._solved(now, inputs, self.sizes.many, self.choice))

    def _score_all(self, inputs: NodeTables) -> Any:
        embeddings, head = self._table(inputs), self._head_now(inputs)
        tables = {"embeddings": embeddings}
        count = len(head["counts"])
        scores = inputs.table("scores", self.score_block, count, tables=tables, tensors=head, method=self.name)
        self.last_tables.replace_by(inputs.stored_behind(embeddings, scores))
        return scores.readable()

    @classmethod
    def score_block(cls, block: RowBlock) -> torch.Tensor:
        """Compute the (rows, C) scores of a chunk of rows, in a worker."""
        return cls._scores(block.rows("embeddings"), block.tensors)

    @classmethod
    def _scores(cls, embeddings: torch.Tensor, head: Tensors) -> torch.Tensor:
        """Compute (m, C) scores in chunks; −∞ for a class without a labelled node."""
        parts = [cls.answers(part * head["scales"], head) for part in embeddings.split(CHUNK)]
        return torch.cat(parts).masked_fill(~(head["counts"] > 0), -torch.inf)

    def chosen(self) -> dict[str, Any]:
        return dict(self.choice)

    # Memory of labelled nodes

    @torch.no_grad()
    def restate(self, visible: VisibleNodes, train: Labelled, supports: Labelled) -> bool:
        inputs = self.cache.inputs(visible)
        self.cache.keep_embeddings(visible, self._table(inputs))
        self.cache.classes_changed()
        self._set_statistics(
            self._with(self._empty(self._width), inputs, join_labelled(train, supports), len(self.classes_))
        )
        return True

    def calibration_learner(self) -> Learner | None:
        """Make a learner with the same choice."""
        return type(self)(replace(self.settings, **self.choice), seed=self.seed, device=self.device)

    @torch.no_grad()
    def scores_without(
        self, visible: VisibleNodes, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        # The statistics of the affected classes are computed again without these nodes. This is exact if the sums were
        # computed on this graph. If sums from an older graph lead to no solution, all classes are computed again.
        inputs, count = self.cache.inputs(visible), len(self.classes_)
        nodes, columns = join_labelled(train, supports)
        of_these = np.isin(columns, left_out[1])
        remaining = of_these & ~np.isin(nodes, left_out[0])
        empty = self._empty(self._width)
        old, new = (self._with(empty, inputs, (nodes[part], columns[part]), count) for part in (of_these, remaining))
        try:
            head = self._solved(self._statistics.exchanged(old, new), inputs, self.sizes.many, self.choice)
        except DivergenceError:
            return super().scores_without(visible, left_out, train, supports)
        return self._scores(self._rows(inputs, left_out[0]), head).cpu().numpy()
