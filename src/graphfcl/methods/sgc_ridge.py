"""SGC-ridge: class-balanced ridge regression on propagated features, in closed form.

The simplest strong control: no encoder, no training, no node stored. A node v is known by a vector that no label ever
touched (propagated features as in SGC, Wu et al., 2019)::

    f(v) = [ n(XB)_v , a n(ÂÂXB)_v ]      n(·): minus the mean over session 0's visible graph, then of unit length

X: features with rows of unit length; B: the leading right singular vectors of session 0's X. With H_c the vectors of
the n_c labelled nodes of class c as rows and S_c their sum::

    G = Σ_c H_cᵀH_c / n_c,   μ_c = S_c / n_c,   W = (G + λ tr(G)/D · I)⁻¹ [μ_1 … μ_C],   score_c(v) = f(v)·W_c

**A session** adds the vectors of its supports, as its graph shows them, to G, S and n. Classes that arrive once may
arrive in any order, or all at once. More supports of a known class enter G with weight 1/(n_c + m), m their number.
G holds no class by itself, so the weight of the earlier ones changes from 1/n_c to 1/(n_c + m) only if the session
names them, as a model in production does; then the sums are a function of the set of labels. In a stream they keep
their weight. W is solved for when scores are asked for.

**λ and a** are chosen by validation sessions of the run, in which all pseudo-novel classes arrive at once; without such
classes the first candidates are taken. a scales columns of f alone, so the sums are kept without it.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
import torch

from graphfcl.errors import DivergenceError, InputError
from graphfcl.graph import VisibleGraph
from graphfcl.graph.visible_folder import VisibleFolder
from graphfcl.methods.blocks.folder_tables import FolderTables
from graphfcl.methods.blocks.labelled_rows import some_of_each_class
from graphfcl.methods.blocks.last_tables import LastTables
from graphfcl.methods.blocks.untrained import fix_blocks, near_vectors, plus_rows, scores_of, vectors_of
from graphfcl.methods.learner import NO_STORE, SILENT, EncoderStore, Labelled, Learner, LearnerState, Progress
from graphfcl.methods.settings import require_range
from graphfcl.methods.shared.choosing import choose_over_draws
from graphfcl.methods.shared.embedding_cache import EmbeddingCache
from graphfcl.methods.shared.ridge import RidgeSums, ridge_scores
from graphfcl.methods.shared.untrained_blocks import HOPS, UntrainedBlocks, prepared_inputs
from graphfcl.methods.shared.validation_sessions import ValidationSessions, all_held_out
from graphfcl.nn import GraphInputs
from graphfcl.stream import BaseSession, Session

FEW = 20_000  # labelled nodes of a graph folder whose vectors are held in memory; of more, sums are made in a pass
MOST_ASKED = 2000  # validation nodes of a class that are asked about on a graph folder


@dataclass(frozen=True)
class SgcRidgeSettings:
    """The names of formulas are those of the module docstring."""

    rank: int = 1024
    """Columns of the basis B at most."""
    penalties: tuple[float, ...] = (3.0, 1.0, 10.0)
    """Candidates of the penalty (λ); validation sessions choose."""
    hop_weights: tuple[float, ...] = (2.0, 4.0, 1.0)
    """Candidates of the weight of the features around (a); validation sessions choose."""
    margin: float = 0.01
    """By so much another candidate must be better than the first to be chosen."""
    penalty: float | None = None
    """Penalty (λ), instead of choosing it."""
    hop_weight: float | None = None
    """Weight of the features around (a), instead of choosing it."""

    def __post_init__(self) -> None:
        require_range("rank", self.rank, least=1)
        require_range("margin", self.margin, least=0)
        for name in ("penalties", "hop_weights"):
            if not getattr(self, name):
                raise InputError(f"{name} is empty: give at least one number.")
        for value in (*self.penalties, self.penalty):
            require_range("penalty", value, above=0)
        for value in (*self.hop_weights, self.hop_weight):
            require_range("hop_weight", value, least=0)

    def candidates(self) -> list[tuple[float, float]]:
        """(λ, a), the default first."""
        penalties = self.penalties if self.penalty is None else (self.penalty,)
        hop_weights = self.hop_weights if self.hop_weight is None else (self.hop_weight,)
        return list(product(penalties, hop_weights))


class SgcRidge(Learner):
    """SGC-ridge; formulas in the module docstring.

    blocks: basis and centres of f. sums: G, S and n. penalty, hop_weight: λ and a.
    """

    name: ClassVar[str] = "sgc-ridge"
    title: ClassVar[str] = "class-balanced ridge regression on propagated features; closed form, stores no node"
    reference: ClassVar[str] = "a control of this project; features of SGC, Wu et al., ICML 2019"
    settings_type: ClassVar[type[Any]] = SgcRidgeSettings
    lasting_tensors: ClassVar[tuple[str, ...]] = ("blocks.",)
    randomness: ClassVar[tuple[str, ...]] = ("nodes", "columns")  # validation supports; start of the singular vectors
    works_on_disk: ClassVar[bool] = True
    settings: SgcRidgeSettings

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.blocks = UntrainedBlocks()
        self.sums = RidgeSums.empty()
        self.penalty, self.hop_weight = self.settings.candidates()[0]
        self.cache = EmbeddingCache(self._make_inputs)
        self._weights: torch.Tensor | None = None
        self.last_tables: LastTables = LastTables()

    # Session 0

    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:  # noqa: ARG002
        if self.classes_:
            if self.classes_ != base.classes:
                raise InputError("this learner was fitted on other classes: make a new one to fit it.")
            return
        inputs = self.cache.inputs(base.visible_graph)
        validation = ValidationSessions.draw(all_held_out(base), self.seed)
        if isinstance(inputs, FolderTables):
            inputs.watch(progress)
            validation = validation.asking(some_of_each_class(validation.asked, MOST_ASKED, self.seed))
            asked = validation.asked[0].size
            kept = sum(size for size in (asked, base.train.size) if size <= FEW)
            fix_blocks(self.blocks, inputs, self.settings.rank, self.seed, chosen_on=(asked, kept))
        else:
            self.blocks.fix(inputs, self.settings.rank, self.seed)
        self.cache.keep_embeddings(base.visible_graph, self._embeddings(inputs))
        known = self._plus(RidgeSums.empty(self.blocks.width, self.device), inputs, validation.train)
        self.penalty, self.hop_weight = self._choose(known, inputs, validation, progress)
        # The base classes have the same columns in both, and their vectors are summed up already.
        later = base.train_labels >= validation.known_count
        self._learned(self._plus(known, inputs, (base.train[later], base.train_labels[later])))
        self.classes_ = base.classes
        progress.checkpoint(self)

    def _choose(
        self, known: RidgeSums, inputs: Any, validation: ValidationSessions, progress: Progress
    ) -> tuple[float, float]:
        """The (λ, a) with the best mean score over draws of the supports, or the first if it is hardly better."""
        candidates = self.settings.candidates()
        asked, _ = self._points(inputs, validation.asked)

        def scores_of(draw: ValidationSessions) -> list[float]:
            *_, last = draw.sessions()
            sums = self._plus(known, inputs, (last.supports, last.support_classes))
            solved = (self._solved(sums, *each) for each in candidates)
            found = (ridge_scores(asked, weights, sums.counts).argmax(dim=1) for weights in solved)
            return [draw.score_of(each.cpu().numpy()) for each in found]

        return choose_over_draws(candidates, validation, scores_of, progress, margin=self.settings.margin)

    # From a graph to f(v), without a

    def _make_inputs(self, visible: VisibleGraph, *, sparing: bool = False) -> Any:
        if isinstance(visible, VisibleFolder):
            return FolderTables(visible, self.seed, unit=True)
        return prepared_inputs(visible, self.device, self.seed, sparing=sparing)

    def _embeddings(self, inputs: Any) -> Any:
        """(n, 2k) of every node: a tensor, or a table of a graph folder."""
        known = self.cache.embeddings(inputs)
        if known is not None:
            return known
        return vectors_of(self.blocks, inputs) if isinstance(inputs, FolderTables) else self.blocks.of(inputs)

    def _points(self, inputs: Any, labelled: Labelled) -> tuple[torch.Tensor, torch.Tensor]:
        """Vectors of some labelled nodes, and their columns."""
        nodes, columns = labelled
        rows, known = inputs.visible.rows(nodes), self.cache.embeddings(inputs)
        if isinstance(inputs, FolderTables):
            found = self._rows_of_folder(inputs, nodes, known)
        elif known is None:
            found = self.blocks.of(GraphInputs(inputs.visible, self.device, sparing=True), rows)
        else:
            found = known[torch.tensor(rows, device=self.device)]
        return found, torch.tensor(columns, device=self.device)

    def _rows_of_folder(self, inputs: FolderTables, nodes: np.ndarray, known: Any) -> torch.Tensor:
        """Vectors of some nodes of a graph folder. A few are kept: who leaves out one after the other asks again."""

        def read(wanted: np.ndarray) -> torch.Tensor:
            if known is None:
                return near_vectors(self.blocks, inputs, wanted)
            return known.rows_at(inputs.visible.rows(wanted))

        kept = self.cache.beside(inputs)
        if nodes.size > FEW or (kept is not None and (kept[0] is not known or kept[1].size > FEW)):
            return read(nodes)
        there = np.zeros(0, dtype=np.int64) if kept is None else kept[1]
        missing = np.setdiff1d(nodes, there)
        if kept is None or missing.size:
            vectors = read(missing) if kept is None else torch.cat([kept[2], read(missing)])
            order = np.argsort(joined := np.concatenate([there, missing]))
            kept = (known, joined[order], vectors[torch.from_numpy(order)])
            self.cache.keep_beside(inputs, kept)
        return kept[2][torch.from_numpy(np.searchsorted(kept[1], nodes))]

    @property
    def reach(self) -> int:
        return HOPS

    def embeddings(self, visible: VisibleGraph) -> np.ndarray:
        found = self._embeddings(self.cache.inputs(visible))
        self.cache.keep_embeddings(visible, found)
        return found.cpu().numpy()

    def embeddings_of_rows(self, visible: VisibleGraph, rows: np.ndarray) -> np.ndarray:
        return self.blocks.of(self._make_inputs(visible, sparing=True), rows).cpu().numpy()

    def use_embeddings(self, visible: VisibleGraph, embeddings: np.ndarray) -> None:
        self.cache.classes_changed()
        self.cache.keep_embeddings(visible, torch.tensor(embeddings, device=self.device))

    def vectors_to_draw(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray | None:
        return self.embeddings(visible)[visible.rows(nodes)].astype(np.float32)

    # Sessions and scores

    def learn(self, session: Session) -> None:
        self.classes_ = self.classes_ + session.new_classes
        inputs, count = self.cache.inputs(session.visible_graph), len(self.classes_)
        sums, labels = self.sums, torch.tensor(session.support_labels, device=self.device)
        for start in range(0, session.earlier.size, FEW):
            some = slice(start, start + FEW)
            earlier = self._points(inputs, (session.earlier[some], session.earlier_labels[some]))
            sums = sums.reweighted(*earlier, self.sums.counts_with(labels, count))
        if isinstance(inputs, FolderTables):
            points = near_vectors(self.blocks, inputs, session.supports)
            self._learned(sums.plus(points, labels, count))
            return
        self._learned(self._plus(sums, inputs, (session.supports, session.support_labels), count))

    def _plus(self, sums: RidgeSums, inputs: Any, labelled: Labelled, count: int = 0) -> RidgeSums:
        """With more labelled nodes, of ``count`` classes in all, or of as many as they say."""
        count = max(count, len(sums.counts), int(labelled[1].max(initial=-1)) + 1)
        if isinstance(inputs, FolderTables) and labelled[0].size > FEW:
            return plus_rows(sums, inputs, self._embeddings(inputs), labelled, count)
        return sums.plus(*self._points(inputs, labelled), count)

    def _learned(self, sums: RidgeSums) -> None:
        self.sums, self._weights = sums, None
        self.cache.classes_changed()

    def _solved(self, sums: RidgeSums, penalty: float, hop_weight: float) -> torch.Tensor:
        """(D, C) W, with a put into it."""
        weights = sums.solve(penalty, self.blocks.weighted(hop_weight))
        if weights is None:
            raise DivergenceError(f"the ridge with penalty {penalty} cannot be solved: take a larger penalty.")
        return weights

    def scores(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray:
        # All nodes are scored at once, whatever is asked: products of other shapes differ in their last digits.
        return self.all_scores(visible)[visible.rows(nodes)]

    def all_scores(self, visible: VisibleGraph) -> Any:
        return self.cache.scores(visible, self._score_all)

    def watch(self, visible: VisibleGraph, progress: Progress) -> None:
        inputs = self.cache.inputs(visible)
        if isinstance(inputs, FolderTables):
            inputs.watch(progress)

    def _score_all(self, inputs: Any) -> Any:
        if self._weights is None:
            self._weights = self._solved(self.sums, self.penalty, self.hop_weight)
        if isinstance(inputs, FolderTables):
            vectors = self._embeddings(inputs)
            found = scores_of(inputs, vectors, self._weights, self.sums.counts)
            scores = found.readable()
            self.last_tables.replace_by(inputs.stored_behind(vectors, found))
            return scores
        return ridge_scores(self._embeddings(inputs), self._weights, self.sums.counts)

    def chosen(self) -> dict[str, Any]:
        return {"penalty": self.penalty, "hop_weight": self.hop_weight}

    # What is known of labelled nodes

    @property
    def forgets_exactly(self) -> bool:
        return True

    def restate(self, visible: VisibleGraph, train: Labelled, supports: Labelled) -> bool:
        inputs = self.cache.inputs(visible)
        self.cache.keep_embeddings(visible, self._embeddings(inputs))
        nobody = RidgeSums.empty(self.blocks.width, self.device)
        self._learned(self._plus(nobody, inputs, _joined(train, supports), len(self.classes_)))
        return True

    def rehearsal(self) -> Learner | None:
        """One with the same penalty and hop weight."""
        fixed = replace(self.settings, penalty=self.penalty, hop_weight=self.hop_weight)
        return type(self)(fixed, seed=self.seed, device=self.device)

    def scores_without(
        self, visible: VisibleGraph, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        """The classes of the nodes to leave out are summed up again without them; all others stay as they are.

        That is exact if the sums are those of this graph; if an older graph left so much in G that it cannot be
        solved, all classes are summed up again.
        """
        inputs, count = self.cache.inputs(visible), len(self.classes_)
        nodes, columns = _joined(train, supports)
        of_these = np.isin(columns, left_out[1])
        remaining = of_these & ~np.isin(nodes, left_out[0])
        nobody = RidgeSums.empty(self.blocks.width, self.device)
        old, new = (self._plus(nobody, inputs, (nodes[part], columns[part]), count) for part in (of_these, remaining))
        sums = self.sums.exchanged(old, new)
        weights = sums.solve(self.penalty, self.blocks.weighted(self.hop_weight))
        if weights is None:
            return super().scores_without(visible, left_out, train, supports)
        points, _ = self._points(inputs, left_out)
        return ridge_scores(points, weights, sums.counts).cpu().numpy()

    # State

    def copy(self, visible: VisibleGraph) -> Self:  # noqa: ARG002
        other = type(self)(self.settings, seed=self.seed, device=self.device)
        other.classes_, other.penalty, other.hop_weight = self.classes_, self.penalty, self.hop_weight
        other.blocks.become(self.blocks, self.device)
        other.sums, other._weights = self.sums, self._weights
        other.cache.share(self.cache)
        return other

    def stored(self) -> dict[str, int]:
        return {"nodes": 0, "features": 0, "embeddings": self.sums.nbytes, "weights": 0, **self.blocks.stored()}

    def state(self) -> LearnerState:
        values = {
            "method": self.name,
            "settings": self.settings_as_json(),
            "seed": self.seed,
            "classes": list(self.classes_),
            "chosen": self.chosen(),
        }
        return LearnerState({**self.blocks.tensors(), **self.sums.tensors()}, values)

    def load_state(self, state: LearnerState) -> None:
        values = state.values
        self.refuse_another(values)
        self.classes_ = tuple(values["classes"])
        self.penalty, self.hop_weight = values["chosen"]["penalty"], values["chosen"]["hop_weight"]
        self.blocks.load(values, state.tensors, self.device)
        self.cache.weights_changed()
        self._learned(RidgeSums.load(state.tensors, self.device))


def _joined(train: Labelled, supports: Labelled) -> Labelled:
    nodes, columns = (np.concatenate(parts) for parts in zip(train, supports, strict=True))
    return nodes, columns
