"""The state of a model and how it changes: all or nothing, and settled after every change."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods import Learner
from graphfcl.production.calibration import Calibration
from graphfcl.production.carried_embeddings import carry_embeddings
from graphfcl.production.graph_changes import GraphChange
from graphfcl.production.growing_graph import GrowingGraph
from graphfcl.production.history import Entry, History, new_entry
from graphfcl.production.ledger import Ledger
from graphfcl.production.model_parts import Configuration, ModelParts
from graphfcl.production.monitoring import regression_warning
from graphfcl.production.settling import settle
from graphfcl.production.stored_version import StoredVersion
from graphfcl.production.version_cache import CacheThread


class LiveModel:
    """What :class:`GraphClassifier` rests on: the parts of a model, its history, and the rules of a change.

    Learned state ends in ``_`` and is missing until the model is fitted.
    """

    def __init__(self, configuration: Configuration, *, device: str) -> None:
        self.method, self.settings = configuration.method, dict(configuration.settings)
        self.way, self.shot, self.seed = configuration.way, configuration.shot, configuration.seed
        self.max_loss, self.device = configuration.max_loss, device
        self.standardise = configuration.standardise
        self._history = History()
        self._parts: ModelParts | None = None
        self._scores: np.ndarray | None = None  # (n, columns) of every node of the graph
        self._stored: StoredVersion | None = None  # the version that the model is, until it changes
        self._cache_thread = CacheThread()

    # State

    @property
    def configuration(self) -> Configuration:
        """What the user chose, as it is now."""
        chosen = (self.method, self.settings, self.way, self.shot, self.seed, self.max_loss, self.standardise)
        return Configuration(*chosen)

    @property
    def history(self) -> History:
        """One entry per change, oldest first; those of a folder are read when they are looked at."""
        return self._history

    @history.setter
    def history(self, entries: Iterable[Entry]) -> None:
        self._history = entries if isinstance(entries, History) else History(entries)

    @property
    def graph_(self) -> GrowingGraph:
        """The graph that the model lives on."""
        return self._known_parts().graph

    @property
    def learner_(self) -> Learner:
        """The learner."""
        return self._known_parts().learner

    @property
    def ledger_(self) -> Ledger:
        """Which node is labelled with which class."""
        return self._known_parts().ledger

    @property
    def calibration_(self) -> Calibration:
        """How scores become probabilities and unknown scores."""
        return self._known_parts().calibration

    def _known_parts(self) -> ModelParts:
        if self._parts is None:  # as an attribute that is missing until the model is fitted
            raise AttributeError("this classifier is not fitted: call fit with a graph first")
        return self._parts

    def parts(self) -> ModelParts:
        """Everything that the model consists of now."""
        return self._fitted()._known_parts().configured(self.configuration)

    def all_scores(self) -> np.ndarray:
        """(n, columns) the learner's scores of every node; computed once for a state of the model."""
        if self._scores is None:
            self._scores = self._stored_scores() if self._stored else self.parts().compute_scores()
        return self._scores

    def _stored_scores(self) -> np.ndarray:
        """Those of a version as it lies in its folder: out of the cache, or computed."""
        assert self._stored is not None
        cached = None if self._stored.cache is None else self._stored.cache.scores()
        if cached is not None and len(cached) == len(self._stored.ids()):
            return cached
        scores = self._stored.compute_scores()
        self._keep_cache(self._stored, scores)
        return scores

    def _keep_cache(self, stored: StoredVersion, scores: np.ndarray) -> None:
        """Let the next reader find what had to be computed."""

    def numbers_of(self, nodes: Sequence[Any]) -> np.ndarray:
        """Node numbers of the user's ids."""
        return self._fitted().graph_.numbers_of(nodes)

    def _ids(self) -> np.ndarray:
        """(n,) the user's ids of all nodes, for which the rest of the graph need not be read."""
        return self.graph_.ids if self._stored is None else self._stored.ids()

    def _asked(self, nodes: Sequence[Any] | None) -> tuple[np.ndarray, np.ndarray]:
        """Some nodes by their ids, or all: (n,) ids as the graph has them, and their (n, columns) scores."""
        self._fitted()
        if nodes is None:
            return self._ids(), self.all_scores()
        cache = None if self._stored is None or self._scores is not None else self._stored.cache
        if cache is not None:
            rows = cache.rows_of_ids(nodes)
            scores = None if rows is None else cache.scores_of(rows)
            if scores is not None:
                return np.array(cache.own_ids(nodes)), scores
        rows_of = self.graph_.visible.rows(self.numbers_of(nodes))
        return self.graph_.with_own_ids(nodes), self.all_scores()[rows_of]

    def _fitted(self) -> Self:
        """This model; an error if it is not fitted yet."""
        if not self._is_fitted:
            raise InputError("this classifier is not fitted: call fit with a graph first.")
        return self

    @property
    def _is_fitted(self) -> bool:
        return self._parts is not None

    # Changes

    def _take(self, parts: ModelParts) -> None:
        """Consist of these parts; the configuration stays."""
        self._parts = parts

    def _change(self, **parts: Any) -> None:
        """Have other parts from now on, by name."""
        self._parts = replace(self._known_parts().read(), **parts)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """If anything goes wrong inside, the model is what it was before."""
        self._cache_thread.wait()  # what it writes must not change meanwhile
        before, scores, count = self.parts().read(), self._scores, len(self.history)
        state, embeddings = before.learner.state(), before.learner.embeddings(before.graph.visible)
        done = False
        try:
            yield
            done = True
        finally:
            if not done:
                self._take(before)
                self._scores = scores
                self.learner_.load_state(state)
                self.learner_.use_embeddings(before.graph.visible, embeddings)
                self.history.cut(count)

    def _move(self, change: GraphChange) -> Self:
        """Go on with a changed graph: only embeddings within reach of the change are computed again."""
        with self._all_or_nothing():
            share = carry_embeddings(self.learner_, self.graph_, change.graph, change.touched)
            self._change(graph=change.graph)
            entry = dict(change.entry)
            if change.removed.size:
                self.learner_.drop_nodes(change.removed)
                ledger, entry["retired"] = self.ledger_.without_nodes(change.removed).without_empty_classes()
                self._change(ledger=ledger)
                entry["exact"] = self._restate()
            else:
                self._restate()  # sums are those of the changed graph
            self._settle({**entry, "within_reach": round(share, 4)})
        return self

    def _restate(self) -> bool:
        """Let the learner know what the ledger says, and nothing else; whether nothing else is left in it."""
        restated = self.learner_.restate(self.graph_.visible, *self.ledger_.knowledge())
        return restated and self.learner_.forgets_exactly

    def _settle(self, change: dict[str, Any]) -> None:
        """After a change: scores, calibration, accuracy, an entry in the history."""
        self._scores = self._stored = None
        settled = settle(self.parts(), self.all_scores())
        self._change(calibration=settled.calibration)
        entry = {**new_entry(change), "accuracy": settled.accuracy}
        warning = regression_warning(self.history, settled.accuracy, self.max_loss)
        if warning:
            entry["warning"] = warning
        self.history.append(entry)
