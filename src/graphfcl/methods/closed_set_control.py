"""A control of the track ``isolated``: the gain from knowing that a session's graph contains only its new classes.

The vector of a node v consists of its own features and the features two hops away, projected on the k leading right
singular vectors B of X in session 0 (rows of unit length). It is whitened by the class-balanced within-class covariance
S_w of session 0, with D = 2k::

    f(v) = [ n(XB)_v , n(ÂÂXB)_v ]        n(·): centred on the visible graph of session 0, then scaled to unit length
    x(v) = unit( (f(v) − m) L^(−T) )      L Lᵀ = S_w + ρ tr(S_w)/D · I

A class is the mean of x over its nodes, and the score of a class is the cosine with this mean.

**A session** computes the means of its supports and then repeats ``rounds`` rounds of self-training: each unlabelled
node of the session's graph gets the class with the highest score, and the mean of a new class is taken over its
supports and these nodes. Under ``isolated``, only the new classes are candidates, because the graph contains no others
(``closed_set``). On the other tracks, and with ``closed_set=false``, all classes seen are candidates. With
``rounds=0`` there is no self-training.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import svds

from graphfcl.errors import InputError
from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.learner import SILENT, Learner, Progress
from graphfcl.methods.settings import CheckedSettings, Count, Number, Positive
from graphfcl.methods.shared.untrained_features import prepare
from graphfcl.methods.state import NO_STORE, EncoderStore
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True)
class ClosedSetControlSettings(CheckedSettings):
    """Settings of the control. Symbols in brackets refer to the formulas in the module docstring."""

    rank: Count = 128
    """Maximum number of columns of the basis B (k)."""
    shrinkage: Positive = 0.3
    """Fraction of the mean variance that is added to the diagonal of the covariance (ρ)."""
    rounds: Number = 2
    """Rounds of self-training per session; 0 for none."""
    closed_set: bool = True
    """Under the track isolated, assign the nodes of a session to its new classes only."""


class ClosedSetControl(Learner):
    """A nearest-mean classifier that assigns the nodes of an isolated session to its new classes only.

    Attributes:
        sums_: (C, D) sums of the vectors behind each class mean.
        basis_: (d, k) B.
        centres_: (2, k) means of the two blocks.
        shift_: (D,) m.
        whitening_: (D, D) L^(−T).
    """

    title = "nearest mean that trains itself on a session, knowing which classes an isolated one holds"
    reference = "a control of this project, docs/visibility.md"
    settings_type = ClosedSetControlSettings
    control = True
    randomness = ("columns",)  # more than WIDEST columns are reduced by a random hash
    settings: ClosedSetControlSettings
    _latest: tuple[VisibleNodes, np.ndarray, np.ndarray] | None = None  # graph, whitening_, vectors

    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:  # noqa: ARG002
        if self.classes_:
            if self.classes_ != base.classes:
                raise InputError("this learner was fitted on other classes: make a new one to fit it.")
            return
        visible = base.visible_graph
        self.basis_ = self._leading_vectors(prepare(visible.loaded().features, self.seed))
        blocks = self._blocks(visible)
        self.centres_ = np.stack([block.mean(axis=0) for block in blocks])
        vectors = self._centred(blocks)[visible.rows(base.train)]
        self.shift_ = vectors.mean(axis=0)  # (D,) m
        self.whitening_ = self._whitening(vectors, base.train_labels)
        self.sums_ = _class_sums(self._whitened(vectors), base.train_labels, len(base.classes))
        self.classes_ = base.classes
        progress.checkpoint(self)

    def learn(self, session: Session) -> None:
        first, self.classes_ = len(self.classes_), self.classes_ + session.new_classes
        count, rows = len(self.classes_), session.visible_graph.rows(session.supports)
        vectors = self._vectors(session.visible_graph)
        supports = _class_sums(vectors[rows], session.support_labels, count)
        self.sums_ = labelled = np.pad(self.sums_, ((0, count - first), (0, 0))) + supports
        unlabelled = np.delete(vectors, rows, axis=0)
        lowest = first if session.track == "isolated" and self.settings.closed_set else 0
        for _ in range(self.settings.rounds if session.new_classes else 0):
            chosen = lowest + self._scores(unlabelled)[:, lowest:].argmax(axis=1)
            new = chosen >= first  # the means of older classes stay as they are
            self.sums_ = labelled + _class_sums(unlabelled[new], chosen[new], count)

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        return self._scores(self._vectors(visible))[visible.rows(nodes)]

    def _scores(self, vectors: np.ndarray) -> np.ndarray:
        """Compute (n, C) cosines with the sums, which have the same directions as the means."""
        return vectors @ _unit(self.sums_).T

    # From a graph to x(v)

    def _leading_vectors(self, features: Any) -> np.ndarray:
        """Compute (d, k) B, or the identity if there are at most k columns."""
        nodes, width = features.shape
        rank = min(self.settings.rank, nodes - 1)
        if width <= rank:
            return np.eye(width, dtype=np.float32)
        start = np.random.default_rng(self.seed).standard_normal(min(nodes, width))
        vectors = svds(features.astype(np.float64), k=rank, v0=start, return_singular_vectors="vh")[2]
        return np.ascontiguousarray(vectors.T, dtype=np.float32)

    def _blocks(self, visible: VisibleNodes) -> tuple[np.ndarray, np.ndarray]:
        """Compute XB and ÂÂXB."""
        graph = visible.loaded()
        own = np.asarray(prepare(graph.features, self.seed) @ self.basis_)
        return own, graph.normalised @ (graph.normalised @ own)

    def _centred(self, blocks: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return np.hstack([_unit(block - centre) for block, centre in zip(blocks, self.centres_, strict=True)])

    def _whitening(self, vectors: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Compute L^(−T)."""
        sums, counts = _class_sums(vectors, labels, int(labels.max()) + 1), np.bincount(labels)
        apart = (vectors - (sums / np.maximum(1, counts)[:, None])[labels]) / np.sqrt(counts[labels])[:, None]
        covariance = apart.T @ apart / np.count_nonzero(counts)
        size = len(covariance)
        covariance += (self.settings.shrinkage * np.trace(covariance) / size + 1e-12) * np.eye(size)
        return linalg.inv(linalg.cholesky(covariance, lower=True)).T.astype(np.float32)

    def _whitened(self, vectors: np.ndarray) -> np.ndarray:
        return _unit((vectors - self.shift_) @ self.whitening_)

    def _vectors(self, visible: VisibleNodes) -> np.ndarray:
        """Compute (n, D) x of all nodes, and cache it, because an evaluation requests scores in blocks."""
        latest = self._latest
        if latest is None or latest[0] is not visible or latest[1] is not self.whitening_:
            vectors = self._whitened(self._centred(self._blocks(visible)))
            self._latest = latest = (visible, self.whitening_, vectors)
        return latest[2]


def _unit(values: np.ndarray) -> np.ndarray:
    """Scale rows to length 1; a zero row stays zero."""
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)


def _class_sums(vectors: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """(C, D) sums of the vectors of each class."""
    ones, places = np.ones(labels.size, dtype=np.float32), np.arange(labels.size)
    members = sparse.csr_array((ones, (labels, places)), shape=(count, labels.size))
    return members @ vectors
