"""A change of a model in the making. Nobody else sees it, so that one that fails leaves nothing behind."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from graphfcl.methods import Learner, Progress
from graphfcl.methods.blocks.retried_learner import computed_with
from graphfcl.production.answers_on_disk import AnswersOnDisk
from graphfcl.production.asked_on_disk import AskedOnDisk, compute_answers
from graphfcl.production.calibration import Readings
from graphfcl.production.carried_embeddings import carry_embeddings
from graphfcl.production.graph_changes import GraphChange
from graphfcl.production.history import Entry, History, new_entry
from graphfcl.production.model_parts import Configuration, ModelParts, is_on_disk
from graphfcl.production.model_state import AskedLearner, ModelState
from graphfcl.production.monitoring import regression_warning
from graphfcl.production.settling import Settled, settle

Result = TypeVar("Result")


class Draft:
    """What a model will consist of: graph and ledger, which a change replaces, and a copy of the learner.

    before: the state that the change starts from. learner: that of a model which nobody has seen yet; without it the
    one of ``before`` is copied, once something is to be changed in it.
    """

    def __init__(self, before: ModelState, configuration: Configuration, learner: Learner | None = None) -> None:
        parts = before.parts.read()
        self.graph, self.ledger, self.calibration = parts.graph, parts.ledger, parts.calibration
        self.entries: list[Entry] = []
        self._before, self._configuration, self._learner = before, configuration, learner
        self._scores: np.ndarray | None = None
        self._readings: Readings | None = None
        self._answers: AnswersOnDisk | None = None

    @property
    def learner(self) -> Learner:
        """A learner that may be changed."""
        if self._learner is None:
            self._learner = self._before.asked.copy()
        return self._learner

    def using(self, use: Callable[[Learner], Result]) -> Result:
        """What the learner does: one that was read from a folder and cannot do it is damaged.

        On a graph folder it may meet a damaged file of the work folder, which is then computed again.
        """
        with self._before.asked.checked():
            if not is_on_disk(self.graph):
                return use(self.learner)

            def attempt(learner: Learner) -> Result:
                self._learner = learner
                return use(learner)

            return computed_with(self.learner, attempt)

    @property
    def history(self) -> History:
        """All changes, those of the draft included."""
        return self._before.history.plus(self.entries)

    def move(self, change: GraphChange) -> Entry:
        """Go on with a changed graph; what the history says of it.

        Only embeddings within reach of the change are computed again.
        """
        before, self.graph = self.graph, change.graph
        if is_on_disk(change.graph):  # sums and scores are computed again when somebody asks
            return change.entry
        share = self.using(lambda learner: carry_embeddings(learner, before, change.graph, change.touched))
        entry = {**change.entry, "within_reach": round(share, 4)}
        if not change.removed.size:
            self.restate()  # sums are those of the changed graph
            return entry
        self.learner.drop_nodes(change.removed)
        self.ledger, retired = self.ledger.without_nodes(change.removed).without_empty_classes()
        return {**entry, "retired": retired, "exact": self.restate()}

    def exchange(self, parts: ModelParts) -> None:
        """Go on with a model that was trained anew."""
        self.graph, self.ledger, self.calibration = parts.graph, parts.ledger, parts.calibration
        self._learner = parts.learner

    def restate(self) -> bool:
        """Let the learner know what the ledger says, and nothing else; whether nothing else is left in it."""
        _ = self.learner  # it is copied while no other thread uses it, which may wait to compute
        with self.graph.in_use() if is_on_disk(self.graph) else nullcontext():
            restated = self.using(lambda learner: learner.restate(self.graph.visible, *self.ledger.knowledge()))
        if is_on_disk(self.graph):
            moved: Any = replace(self.graph, restate_due=False)
            self.graph = moved
        return restated and self.learner.forgets_exactly

    def settle(self, change: dict[str, Any], max_loss: float) -> None:
        """The end of a change: scores, calibration, accuracy, an entry in the history.

        A model on a graph folder is settled when somebody asks it: a change commits what was learned, and returns.
        """
        parts = self._parts(self.learner)
        if is_on_disk(self.graph):
            self.entries.append(new_entry(change))
            return
        self._scores, settled = self.using(lambda _: _settled(parts))
        self.calibration, self._readings = settled.calibration, settled.readings
        entry = {**new_entry(change), "accuracy": settled.accuracy}
        warning = regression_warning(self.history, settled.accuracy, max_loss)
        if warning:
            entry["warning"] = warning
        self.entries.append(entry)

    def settle_on_disk(self, change: dict[str, Any], progress: Progress) -> None:
        """The end of a fit on a graph folder: its answers are computed at once."""
        self._answers = computed_with(self.learner, lambda learner: compute_answers(self._parts(learner), progress))
        self.calibration = self._answers.calibration
        self.entries.append({**new_entry(change), "accuracy": self._answers.accuracy})

    def record(self, change: dict[str, Any], accuracy: dict[str, Any] | None = None) -> None:
        """The end of a change that no answer depends on. accuracy: the one of before, if nothing else is given."""
        accuracy = accuracy or self.history.last_accuracy()
        self.entries.append({**new_entry(change), **({"accuracy": accuracy} if accuracy else {})})

    def finished(self, current: ModelState) -> ModelState:
        """The state after the change. current: the model's, which may have been saved meanwhile."""
        history = current.history.plus(self.entries)
        if self._learner is None:
            parts = self._parts(current.parts.learner)
            return replace(current, parts=parts, asked=current.asked.with_parts(parts), history=history)
        parts = self._parts(self._learner)
        if is_on_disk(self.graph):
            return replace(current, parts=parts, asked=AskedOnDisk(parts, self._answers), history=history)
        return replace(current, parts=parts, asked=AskedLearner(parts, self._scores, self._readings), history=history)

    def _parts(self, learner: Learner) -> ModelParts:
        return ModelParts(self._configuration, self.graph, learner, self.ledger, self.calibration)


def _settled(parts: ModelParts) -> tuple[np.ndarray, Settled]:
    """The scores of all nodes, and what they make of calibration and accuracy."""
    scores = parts.compute_scores()
    return scores, settle(parts, scores)
