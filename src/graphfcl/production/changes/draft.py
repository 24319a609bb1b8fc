"""A change of a model in the making. No other thread sees it, so that one that fails leaves nothing behind."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from graphfcl.errors import InputError, quoted
from graphfcl.graph.ids import listed, normal
from graphfcl.graph.labels import alike_names
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.changes.graph_changes import GraphChange
from graphfcl.production.changes.label_batch import prepare
from graphfcl.production.labels.history import Entry, History, new_entry
from graphfcl.production.labels.label_store import LabelRole, Support
from graphfcl.production.model.calibrating import compute_answers, regression_warning
from graphfcl.production.model.parts import Configuration, ModelParts
from graphfcl.production.model.state import AnsweringLearner, ModelState

Result = TypeVar("Result")
Change = dict[str, Any]


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


def teach(draft: "Draft", supports: Sequence[Support], on_conflict: str) -> Change | None:
    """Learn from supports; None if no label is new, and the history has its entry already."""
    label_batch = prepare(supports, draft.graph, draft.label_store, on_conflict)
    change: Change = {"what": "learn", "new": [], **label_batch.as_json(draft.label_store)}
    if not label_batch.learned:
        draft.label_store = draft.label_store.with_statements(label_batch.statements)
        draft.record(change)
        return None
    if label_batch.replaced:
        trained = draft.label_store.trained_on(label_batch.taken_back)
        draft.label_store, emptied = draft.label_store.without_nodes(label_batch.taken_back).without_empty_classes()
        change["retired"] = [draft.label_store.label(name) for name in emptied]
        draft.learner.drop_nodes(label_batch.taken_back)
        change |= _restated(draft, trained)
    draft.label_store, names = draft.using(
        lambda learner: label_batch.teach(learner, draft.label_store, draft.graph.visible, len(draft.history))
    )
    change["new"], new = [draft.label_store.label(name) for name in names], set(names)
    alike = [group for group in alike_names(draft.label_store.classes) if new.intersection(group)]
    return {**change, "alike": alike} if alike else change


def take_back(draft: "Draft", nodes: Sequence[Any]) -> Change:
    """The labels of some nodes go; a class that loses its last one is retired."""
    numbers = draft.graph.numbers_of(nodes)
    unknown = ~np.isin(numbers, draft.label_store.nodes)
    if unknown.any():
        missing = listed(nodes)[int(np.flatnonzero(unknown)[0])]
        raise InputError(f"node {quoted(missing)} has no label to take back; nothing was changed.")
    trained = draft.label_store.trained_on(numbers)
    draft.label_store, emptied = draft.label_store.without_nodes(numbers).without_empty_classes()
    retired = [draft.label_store.label(name) for name in emptied]
    change = {"what": "unlearn", "nodes": draft.graph.ids_of(numbers).tolist(), "retired": retired}
    draft.learner.drop_nodes(numbers)
    return {**change, **_restated(draft, trained)}


def rename_class(draft: "Draft", old_label: Any, new_label: Any) -> None:
    """Rename a class, also in the last accuracy; no answer depends on it."""
    before = draft.label_store
    draft.label_store = before.renamed(old_label, new_label)
    old, new = before.resolved(old_label), normal(before.text(new_label))
    accuracy = draft.history.last_accuracy()
    if accuracy:
        classes = {new if name == old else name: value for name, value in accuracy["classes"].items()}
        accuracy = {**accuracy, "classes": classes}
    draft.record({"what": "rename", "from": before.label(old), "to": before.label(new)}, accuracy)


def merge_classes(draft: "Draft", source: Any, into: Any) -> Change:
    """Merge one class into another."""
    before = draft.label_store
    source, into = before.resolved(source), before.resolved(into)
    draft.label_store = before.merged(source, into)
    exact = draft.restate()
    if not exact:
        draft.label_store = before.united(source, into)
        draft.restate()
    return {"what": "merge", "from": before.label(source), "into": before.label(into), "exact": exact}


def retire_class(draft: "Draft", label: Any) -> Change:
    """Stop predicting a class; its nodes lose their label."""
    before, name = draft.label_store, draft.label_store.resolved(label)
    draft.label_store = before.retired(name)
    trained = before.trained_on(np.setdiff1d(before.nodes, draft.label_store.nodes))
    return {"what": "retire", "class": draft.label_store.label(name), **_restated(draft, trained)}


def _restated(draft: "Draft", trained: int) -> Change:
    """Restate the learner, and tell whether the model is as if the labels that went had never been given.

    trained: how many of them ``fit`` used; what it trained and chose by them stays. Without a validation node the
    previous calibration stays.
    """
    exact = draft.restate() and not trained and draft.label_store.of_part(LabelRole.VALIDATION)[0].size > 0
    return {"exact": exact, **({"trained": trained} if trained else {})}
