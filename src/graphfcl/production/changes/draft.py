"""A change of a model in the making. No other thread sees it, so that one that fails leaves nothing behind."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.changes.graph_changes import GraphChange
from graphfcl.production.labels.history import Entry, History, new_entry
from graphfcl.production.labels.monitoring import regression_warning
from graphfcl.production.model.computed_answers import AnsweringLearner, compute_answers
from graphfcl.production.model.parts import Configuration, ModelParts
from graphfcl.production.model.state import ModelState

Result = TypeVar("Result")


class Draft:
    """What a model will consist of: graph and label_store, which a change replaces, and a copy of the learner.

    before: the state that the change starts from. learner: that of a new model; without it the one of ``before`` is
    copied, once something is to be changed in it.
    """

    def __init__(self, before: ModelState, configuration: Configuration, learner: Learner | None = None) -> None:
        parts = before.parts.read()
        self.graph, self.label_store, self.calibration = parts.graph, parts.label_store, parts.calibration
        self.entries: list[Entry] = []
        self._before, self._configuration, self._learner = before, configuration, learner
        self._answers: ModelAnswers | None = None

    @property
    def learner(self) -> Learner:
        """A learner that may be changed."""
        if self._learner is None:
            self._learner = self._before.asked.copy()
        return self._learner

    def using(self, use: Callable[[Learner], Result]) -> Result:
        """What the learner does: one that was read from a folder and cannot do it is damaged."""

        def attempt(learner: Learner) -> Result:
            self._learner = learner
            return use(learner)

        with self._before.asked.checked():
            return self.graph.attempt(self.learner, attempt)

    @property
    def history(self) -> History:
        """All changes, those of the draft included."""
        return self._before.history.plus(self.entries)

    def move(self, change: GraphChange) -> Entry:
        """Go on with a changed graph; what the history says of it."""
        before, self.graph = self.graph, change.graph
        carried = self.using(lambda learner: change.graph.carry(learner, before, change.touched))
        entry = {**change.entry, **carried}
        if not change.removed.size:
            self._restate_now_or_later()  # sums are those of the changed graph
            return entry
        self.learner.drop_nodes(change.removed)
        self.label_store, retired = self.label_store.without_nodes(change.removed).without_empty_classes()
        return {**entry, "retired": retired, "exact": self._restate_now_or_later()}

    def exchange(self, parts: ModelParts) -> None:
        """Go on with a model that was trained again."""
        self.graph, self.label_store, self.calibration = parts.graph, parts.label_store, parts.calibration
        self._learner = parts.learner

    def restate(self) -> bool:
        """Let the learner know what the label_store says, and nothing else; whether nothing else is left in it."""
        _ = self.learner  # it is copied while no other thread uses it, which may wait to compute
        with self.graph.in_use():
            restated = self.using(lambda learner: learner.restate(self.graph.visible, *self.label_store.knowledge()))
        self.graph = self.graph.restated()
        return restated and self.learner.forgets_exactly

    def _restate_now_or_later(self) -> bool:
        """The same; on a graph that has it due, whoever computes scores does it."""
        return self.learner.forgets_exactly if self.graph.restate_due else self.restate()

    def settle(
        self, change: dict[str, Any], max_loss: float, *, at_once: bool = False, progress: Progress = SILENT
    ) -> None:
        """The end of a change: scores, calibration, accuracy, an entry in the history.

        Where scores take passes over a graph folder, the change returns before that, unless ``at_once``.
        """
        self.calibration = replace(self.calibration, stale=True)
        entry = new_entry(change)
        if at_once or not self.graph.passes:
            found = self.using(lambda learner: compute_answers(self._parts(learner), progress))
            self._answers, self.calibration = found, found.calibration
            assert found.accuracy is not None
            entry["accuracy"] = found.accuracy
            warning = regression_warning(self.history, found.accuracy, max_loss)
            if warning:
                entry["warning"] = warning
        else:
            _ = self.learner  # the state after the change has its own
        self.entries.append(entry)

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
        return replace(current, parts=parts, asked=AnsweringLearner(parts, self._answers), history=history)

    def _parts(self, learner: Learner) -> ModelParts:
        return ModelParts(self._configuration, self.graph, learner, self.label_store, self.calibration)
