"""A change of a model under construction. No other thread sees it, so a failed change leaves nothing behind."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from graphfcl.errors import InputError, quoted
from graphfcl.graph.ids import listed, normal
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.production.answers.answers import ModelAnswers, class_probabilities
from graphfcl.production.answers.expected_errors import expected_errors
from graphfcl.production.changes.graph_changes import GraphChange
from graphfcl.production.changes.guards import LossGuard, NewClasses
from graphfcl.production.labels.history import Entry, History, new_entry
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.production.labels.statements import Statement, Support
from graphfcl.production.model.calibrating import compute_answers, regression_warning, with_renamed_class
from graphfcl.production.model.label_gain import SUMS, observed_sums
from graphfcl.production.model.parts import Configuration, ModelParts
from graphfcl.production.model.state import AnsweringLearner, ModelState

Result = TypeVar("Result")


class Draft:
    """The next state of a model: graph and labels, which a change replaces, and a copy of the learner.

    Args:
        before: State that the change starts from.
        configuration: Parameters of the model.
        learner: Learner of a new model. None: the learner of ``before`` is copied when it is first changed.
        guard: Refuses a change that costs too much accuracy.
    """

    def __init__(
        self,
        before: ModelState,
        configuration: Configuration,
        learner: Learner | None = None,
        guard: LossGuard | None = None,
    ) -> None:
        parts = before.parts.read()
        self.graph, self.labels, self.calibration = parts.graph, parts.label_store, parts.calibration
        self.entries: list[Entry] = []
        self.before, self.configuration, self._learner, self.guard = before, configuration, learner, guard
        self._answers: ModelAnswers | None = None

    @property
    def learner(self) -> Learner:
        """The learner, which the draft may change."""
        if self._learner is None:
            self._learner = self.before.answering.copy()
        return self._learner

    def using(self, use: Callable[[Learner], Result]) -> Result:
        """Compute something with the learner. If a learner from a folder fails, the folder is reported as damaged."""

        def attempt(learner: Learner) -> Result:
            self._learner = learner
            return use(learner)

        with self.before.answering.checked():
            return self.graph.attempt(self.learner, attempt)

    @property
    def history(self) -> History:
        """All changes, including those of the draft."""
        return self.before.history.plus(self.entries)

    # Labels and classes

    def learn(self, supports: Sequence[Support], on_conflict: str, new_classes: NewClasses) -> None:
        """Learn from supports. If no label is new, only the history grows."""
        from graphfcl.production.changes.label_batch import make_batch  # a fit does not need it

        batch = make_batch(supports, self.graph, self.labels, on_conflict, new_classes)
        change: Entry = {"what": "learn", "new": [], **batch.as_json(self.labels)}
        if not batch.learned:
            self.labels = self.labels.with_statements(batch.statements)
            self.record(change)
            return
        replaced = np.array([each.number for each in batch.replaced], dtype=np.int64)
        self._drop_accepted(np.array([each.number for each in batch.learned], dtype=np.int64))
        replaced = replaced[np.isin(replaced, self.labels.nodes)]
        if replaced.size:
            change |= self._drop_labels(replaced)
        self.labels, new = self.using(
            lambda learner: batch.teach(learner, self.labels, self.graph.visible, len(self.history))
        )
        change["new"] = [self.labels.label(name) for name in new]
        self.finalise(change)

    def accept(self, nodes: Sequence[Any], statement: Statement) -> None:
        """Store predicted classes of unlabelled nodes as accepted labels; no prediction depends on them."""
        numbers = np.unique(self.graph.numbers_of(nodes))
        if not numbers.size:
            raise InputError("there is nothing to accept: give at least one node.")
        taken = numbers[np.isin(numbers, self.labels.nodes)]
        if taken.size:
            more = f" (and {taken.size - 1} more)" if taken.size > 1 else ""
            (first,) = self.graph.ids_of(taken[:1]).tolist()
            raise InputError(f"node {quoted(first)}{more} has a label already: leave it out; nothing was accepted.")
        answers = self.before.answering.answers_at(self.graph.rows_of(numbers))
        probabilities = class_probabilities(self.labels, answers)
        classes = probabilities.argmax(axis=1)
        counts = np.bincount(classes, minlength=len(self.labels.classes)).tolist()
        accepted = {name: count for name, count in zip(self.labels.classes, counts, strict=True) if count}
        errors = expected_errors(probabilities.max(axis=1))
        self.labels = self.labels.with_accepted(numbers, classes, statement)
        self.record({"what": "accept", "accepted": accepted, "expected_errors": errors.as_json()})

    def review(self, nodes: Sequence[Any], statement: Statement) -> None:
        """Mark the labels of some nodes as reviewed."""
        numbers = self._labelled(nodes, "to review")
        self.labels = self.labels.with_statements(dict.fromkeys(numbers.tolist(), (statement,)))
        self.record({"what": "review", "nodes": self.graph.ids_of(numbers).tolist(), "by": statement.by})

    def unlearn(self, nodes: Sequence[Any]) -> None:
        """Remove the labels of some nodes; a class that loses its last label is retired."""
        numbers = self._labelled(nodes, "to take back")
        change = {"what": "unlearn", "nodes": self.graph.ids_of(numbers).tolist()}
        learned = self._drop_accepted(numbers)
        if learned.size:
            self.finalise({**change, **self._drop_labels(learned)})
        else:
            self.record({**change, "retired": [], "exact": True})

    def rename(self, old_label: Any, new_label: Any) -> None:
        """Rename a class, also in the last accuracy and in the guard; no prediction depends on it."""
        before = self.labels
        self.labels = before.renamed(old_label, new_label)
        old, new = before.resolve(old_label), normal(before.text(new_label))
        accuracy = self.history.last_accuracy()
        if accuracy:
            accuracy = with_renamed_class(accuracy, old, new)
        if self.guard:
            self.guard = self.guard.renamed(old, new)
        self.record({"what": "rename", "from": before.label(old), "to": before.label(new)}, accuracy)

    def merge(self, source: Any, into: Any) -> None:
        """Merge one class into another."""
        before = self.labels
        source, into = before.resolve(source), before.resolve(into)
        self.labels = before.merged(source, into)
        exact = self.restate()
        if not exact:
            self.labels = before.united(source, into)
            self.restate()
        self.finalise({"what": "merge", "from": before.label(source), "into": before.label(into), "exact": exact})

    def retire(self, label: Any) -> None:
        """Stop predicting a class; its nodes lose their label."""
        before, name = self.labels, self.labels.resolve(label)
        self.labels = before.retired(name)
        trained = before.count_trained(np.setdiff1d(before.nodes, self.labels.nodes))
        self.finalise({"what": "retire", "class": before.label(name), **self._restated(trained)})

    def _labelled(self, nodes: Sequence[Any], purpose: str) -> np.ndarray:
        """Return the numbers of some nodes; refuse a node without a label."""
        numbers = self.graph.numbers_of(nodes)
        unlabelled = ~np.isin(numbers, self.labels.nodes)
        if unlabelled.any():
            missing = listed(nodes)[int(np.flatnonzero(unlabelled)[0])]
            raise InputError(f"node {quoted(missing)} has no label {purpose}; nothing was changed.")
        return numbers

    def _drop_accepted(self, nodes: np.ndarray) -> np.ndarray:
        """Remove accepted labels, which the learner has not learned; returns the nodes with other labels."""
        accepted = np.isin(nodes, self.labels.nodes[self.labels.accepted()])
        if accepted.any():
            self.labels = self.labels.without_nodes(nodes[accepted])
        return nodes[~accepted]

    def _drop_labels(self, nodes: np.ndarray) -> Entry:
        """Remove labels from the label store and the learner; returns the fields of the history entry."""
        trained = self.labels.count_trained(nodes)
        self.labels, emptied = self.labels.without_nodes(nodes).without_empty_classes()
        self.learner.drop_nodes(nodes)
        return {"retired": [self.labels.label(name) for name in emptied], **self._restated(trained)}

    def _restated(self, trained: int) -> Entry:
        """Restate the learner after labels were removed; returns the fields ``exact`` and ``trained`` of the history
        entry.

        ``exact`` says whether the model is as if the removed labels had never been given. It is not if ``fit`` used
        some of them (``trained`` counts these), because weights and chosen settings do not change. It is not without
        validation nodes either, because the previous calibration stays then.
        """
        exact = self.restate() and not trained and self.labels.with_role(LabelRole.VALIDATION)[0].size > 0
        return {"exact": exact, **({"trained": trained} if trained else {})}

    # The graph

    def change_graph(self, change: GraphChange) -> None:
        """Continue with a changed graph. If nothing changed, only the history grows."""
        if not change.removed.size and not any(each.size for each in change.touched):
            self.record(change.entry)
            return
        before, self.graph = self.graph, change.graph
        entry = {**change.entry, **self.using(lambda learner: change.graph.carry(learner, before, change.touched))}
        if change.removed.size:
            self.learner.drop_nodes(change.removed)
            self.labels, retired = self.labels.without_nodes(change.removed).without_empty_classes()
            entry["retired"] = retired
        # The class sums of the learner belong to the previous graph. If restating is deferred, the next query does it.
        exact = self.learner.forgets_exactly if self.graph.restate_due else self.restate()
        self.finalise({**entry, "exact": exact} if change.removed.size else entry)

    # Ends of a change

    def exchange(self, parts: ModelParts) -> None:
        """Continue with a model that was trained again."""
        self.configuration = parts.configuration
        self.graph, self.labels, self.calibration = parts.graph, parts.label_store, parts.calibration
        self._learner = parts.learner

    def restate(self) -> bool:
        """Restate the learner from the current labels; returns whether removed labels have no effect on it any more."""
        _ = self.learner  # copy it before ``in_use``: whoever uses the learner now may be waiting for ``in_use``
        with self.graph.in_use():
            restated = self.using(lambda learner: learner.restate(self.graph.visible, *self.labels.knowledge()))
        self.graph = self.graph.restated()
        return restated and self.learner.forgets_exactly

    def finalise(self, change: Entry, *, at_once: bool = False, warn: bool = True, progress: Progress = SILENT) -> None:
        """Compute scores, calibration and accuracy, and add an entry to the history.

        If scores take passes over a graph folder, they are computed later, unless ``at_once`` is set or there is a
        guard.

        Args:
            change: Fields of the history entry.
            at_once: Compute the scores now.
            warn: Add a warning to the entry if classes lost more than ``max_loss``.
            progress: Receives the progress.
        """
        self.calibration = replace(self.calibration, stale=True)
        entry = self._entry(change)
        if at_once or self.guard or not self.graph.passes:
            progress = self.guard.progress if self.guard else progress
            answers = self.using(lambda learner: compute_answers(self._parts(learner), progress))
            self._answers, self.calibration = answers, answers.calibration
            assert answers.accuracy is not None
            if self.guard:
                self.guard.check(answers.accuracy)
            entry["accuracy"] = self._with_sums(entry["what"], answers.accuracy)
            warning = regression_warning(self.history, answers.accuracy, self.configuration.max_loss)
            if warn and warning:
                entry["warning"] = warning
        else:
            _ = self.learner  # copy it: the state after the change has its own
        self.entries.append(entry)

    def _with_sums(self, what: str, accuracy: dict[str, Any]) -> dict[str, Any]:
        """Add the sums of the learning curve, which only `learn` updates, to an accuracy."""
        before = self.history.last_accuracy() or {}
        sums = before.get(SUMS)
        if what == "learn":
            sums = observed_sums(self.before.parts.label_store, before, self.labels, accuracy)
        return {**accuracy, SUMS: sums} if sums else accuracy

    def record(self, change: Entry, accuracy: dict[str, Any] | None = None) -> None:
        """Add an entry for a change that affects no prediction. Its accuracy is by default the last one measured."""
        accuracy = accuracy or self.history.last_accuracy()
        self.entries.append({**self._entry(change), **({"accuracy": accuracy} if accuracy else {})})

    def _entry(self, change: Entry) -> Entry:
        """Make a history entry. It contains the new number of labels of each class for which this number changed, 0 if
        it is gone.
        """
        before = _label_counts(self.before.parts.label_store) if self.before.history else {}
        now = _label_counts(self.labels)
        changed = {name: now.get(name, 0) for name in {**before, **now} if before.get(name) != now.get(name)}
        return {**new_entry(change), **({"label_counts": changed} if changed else {})}

    def finished(self, current: ModelState) -> ModelState:
        """Return the state after the change, based on the current state, which may have been saved meanwhile."""
        if self._learner is None:
            answering = current.answering.with_parts(self._parts(current.parts.learner))
        else:
            answering = AnsweringLearner(self._parts(self._learner), self._answers)
        return replace(current, answering=answering, history=current.history.plus(self.entries))

    def _parts(self, learner: Learner) -> ModelParts:
        return ModelParts(self.configuration, self.graph, learner, self.labels, self.calibration)


def _label_counts(labels: LabelStore) -> dict[str, int]:
    return dict(zip(labels.classes, labels.counts().tolist(), strict=True))
