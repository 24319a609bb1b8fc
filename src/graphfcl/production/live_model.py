"""The state of a model and how it changes: all or nothing, and settled after every change."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods import Learner
from graphfcl.production.answers import Answers
from graphfcl.production.calibration import Calibration, Readings
from graphfcl.production.carried_embeddings import carry_embeddings
from graphfcl.production.graph_changes import GraphChange
from graphfcl.production.growing_graph import GrowingGraph
from graphfcl.production.history import History, new_entry
from graphfcl.production.ledger import Ledger
from graphfcl.production.model_parts import Configuration, ModelParts
from graphfcl.production.monitoring import regression_warning
from graphfcl.production.settling import readings_of, settle


class LiveModel:
    """What :class:`GraphClassifier` rests on: the parts of a model, its history, and the rules of a change.

    Learned state ends in ``_`` and is missing until the model is fitted.
    """

    graph_: GrowingGraph
    learner_: Learner
    ledger_: Ledger
    calibration_: Calibration

    def __init__(self, configuration: Configuration, *, device: str) -> None:
        self.method, self.settings = configuration.method, dict(configuration.settings)
        self.way, self.shot, self.seed = configuration.way, configuration.shot, configuration.seed
        self.max_loss, self.device = configuration.max_loss, device
        self.standardise = configuration.standardise
        self.history: History = []
        self._scores: np.ndarray | None = None  # (n, columns) of every node of the graph
        self._readings: Readings | None = None  # of every node

    # State

    @property
    def configuration(self) -> Configuration:
        """What the user chose, as it is now."""
        chosen = (self.method, self.settings, self.way, self.shot, self.seed, self.max_loss, self.standardise)
        return Configuration(*chosen)

    def parts(self) -> ModelParts:
        """Everything that the model consists of now."""
        self._fitted()
        return ModelParts(self.configuration, self.graph_, self.learner_, self.ledger_, self.calibration_)

    def all_scores(self) -> np.ndarray:
        """(n, columns) the learner's scores of every node; computed once for a state of the model."""
        if self._scores is None:
            self._scores = self.parts().compute_scores()
        return self._scores

    def numbers_of(self, nodes: Sequence[Any]) -> np.ndarray:
        """Node numbers of the user's ids."""
        return self._fitted().graph_.numbers_of(nodes)

    def all_answers(self) -> Answers:
        """What the model says of every node; computed once for a state of the model."""
        scores = self.all_scores()
        if self._readings is None:
            self._readings = readings_of(self.parts(), scores)
        return Answers(scores, self._readings.strangeness, self._readings.temperatures)

    def _answers_of(self, nodes: Sequence[Any] | None) -> Answers:
        """Those of some nodes, given by their ids, or of all."""
        found = self.all_answers()
        return found if nodes is None else found.of(self.graph_.visible.rows(self.numbers_of(nodes)))

    def _fitted(self) -> Self:
        """This model; an error if it is not fitted yet."""
        if not self._is_fitted:
            raise InputError("this classifier is not fitted: call fit with a graph first.")
        return self

    @property
    def _is_fitted(self) -> bool:
        return hasattr(self, "graph_")

    # Changes

    def _take(self, parts: ModelParts) -> None:
        """Consist of these parts; the configuration stays."""
        self.graph_, self.learner_ = parts.graph, parts.learner
        self.ledger_, self.calibration_ = parts.ledger, parts.calibration

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """If anything goes wrong inside, the model is what it was before."""
        before, count = self.parts(), len(self.history)
        scores, readings = self._scores, self._readings
        state, embeddings = before.learner.state(), before.learner.embeddings(before.graph.visible)
        done = False
        try:
            yield
            done = True
        finally:
            if not done:
                self._take(before)
                self._scores, self._readings = scores, readings
                self.learner_.load_state(state)
                self.learner_.use_embeddings(before.graph.visible, embeddings)
                del self.history[count:]

    def _move(self, change: GraphChange) -> Self:
        """Go on with a changed graph: only embeddings within reach of the change are computed again."""
        with self._all_or_nothing():
            share = carry_embeddings(self.learner_, self.graph_, change.graph, change.touched)
            self.graph_ = change.graph
            entry = dict(change.entry)
            if change.removed.size:
                self.learner_.drop_nodes(change.removed)
                self.ledger_, entry["retired"] = self.ledger_.without_nodes(change.removed).without_empty_classes()
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
        self._scores = None
        settled = settle(self.parts(), self.all_scores())
        self.calibration_, self._readings = settled.calibration, settled.readings
        entry = {**new_entry(change), "accuracy": settled.accuracy}
        warning = regression_warning(self.history, settled.accuracy, self.max_loss)
        if warning:
            entry["warning"] = warning
        self.history.append(entry)
