"""The learner of a state of a model, and its answers about all nodes, which are computed once."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from graphfcl.active.memory import Memory
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.methods.blocks.damaged_files import DamagedFile, computed_again
from graphfcl.production.answers.answers import Answers, ModelAnswers
from graphfcl.production.model.parts import ModelParts
from graphfcl.production.model.stored_version import StoredVersion

Keep = Callable[[StoredVersion, "AnsweringLearner"], None]
Result = TypeVar("Result")


class AnsweringLearner:
    """The learner of a state, which one thread at a time uses, so that a method need not be thread-safe.

    found: the answers of all nodes, if they were computed. Whoever finds them there does not wait. stored: the version
    that the state is, as it lies in its folder. keep: called when the answers of a version had to be computed, so that
    the next reader finds them. memory: what else was computed of the learner on this graph.
    """

    def __init__(
        self,
        parts: ModelParts,
        found: ModelAnswers | None = None,
        stored: StoredVersion | None = None,
        keep: Keep | None = None,
        lock: AbstractContextManager[Any] | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.found, self.stored = found, stored
        self._parts, self._keep = parts, keep
        self._answering: Learner | None = None
        self._lock: AbstractContextManager[Any] = lock or threading.RLock()
        self.memory = memory or Memory()

    def with_parts(self, parts: ModelParts) -> "AnsweringLearner":
        """The same learner, which answers the same, in a model of which something else changed."""
        return AnsweringLearner(parts, self.found, self.stored, lock=self._lock, memory=self.memory)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other thread uses it; a learner of a folder that cannot do its work is damaged."""
        with self._lock, self.checked():
            yield

    def checked(self) -> AbstractContextManager[None]:
        """The same for a copy of it, which no other thread has."""
        return nullcontext() if self.stored is None else self.stored.using_learner()

    def is_at_hand(self) -> bool:
        """Whether answers were computed before, by this process or by one that left them on disk."""
        if self.found is None and self.stored is not None:
            self.found = self.stored.answers()
        return self.found is not None

    def answers(self, progress: Progress = SILENT) -> ModelAnswers:
        """What the model says of all nodes; computed once."""
        found = self.found
        if found is not None:
            return found
        with self.alone():
            if not self.is_at_hand():
                with self._parts.graph.in_use():
                    if not self.is_at_hand():  # nor did another process compute them while this one waited
                        self.found = self._computed(progress)
                        if self.stored is not None and self._keep is not None:
                            self._keep(self.stored, self)
            assert self.found is not None
            return self.found

    def _computed(self, progress: Progress) -> ModelAnswers:
        parts, stored = self._parts.read(), self.stored
        return parts.graph.attempt(
            parts.learner, lambda learner: compute_answers(replace(parts, learner=learner), progress, stored)
        )

    def read(self, read: Callable[[ModelAnswers], Result], progress: Progress = SILENT) -> Result:
        """What is read of the answers; what of them turns out to be damaged is computed again."""

        def attempt() -> Result:
            try:
                return read(self.answers(progress))
            except DamagedFile:
                self.found = None
                raise

        return computed_again(attempt)

    def answers_at(self, rows: np.ndarray) -> Answers:
        """What the model says of some rows of its graph."""
        return self.read(lambda found: found.of(rows))

    def using(self, use: Callable[[Learner], Result]) -> Result:
        """What is computed with the learner as it answers, while no other thread or process computes.

        A learner that is due to be restated on a changed graph is restated in a copy first, once.
        """
        graph = self._parts.graph

        def restated(learner: Learner) -> Learner:
            learner.restate(graph.visible, *self._parts.label_store.knowledge())
            return learner

        def attempt(learner: Learner) -> Result:
            self._answering = learner
            return use(learner)

        with self.alone(), graph.in_use():
            if self._answering is None:
                learner = self._parts.learner
                due = graph.restate_due
                self._answering = graph.attempt(learner.copy(graph.visible), restated) if due else learner
            return graph.attempt(self._answering, attempt)

    def answers_of(self, nodes: Sequence[Any]) -> Answers | None:
        """What the folder's cache has about some nodes, as long as nothing more was read; None if it has not all."""
        return self.stored.cached_answers(nodes) if self.found is None and self.stored is not None else None

    def ood_score_at_hand(self) -> np.ndarray | None:
        """(n,) of every node of a graph in memory, as far as it was computed before."""
        if self.found is None:
            return None if self.stored is None else self.stored.cached_ood_score()
        return None if self._parts.graph.passes else self.found.ood_score

    def copy(self) -> Learner:
        """A learner that knows the same and goes on by itself."""
        with self.alone():
            return self._parts.learner.copy(self._parts.graph.visible)


def compute_answers(
    parts: ModelParts, progress: Progress = SILENT, stored: StoredVersion | None = None
) -> ModelAnswers:
    """Scores of all nodes, and what calibration and accuracy follow from them.

    Where the learner is due to be restated on a changed graph, a copy of it is. stored: the version of these parts,
    which may have the scores.
    """
    from graphfcl.production.model.finalising import settle

    with parts.graph.in_use(), parts.graph.at_work() as graph:
        learner = parts.learner if graph is parts.graph else parts.learner.copy(graph.visible)
        if graph.restate_due:
            learner = learner.copy(graph.visible)
            learner.watch(graph.visible, progress)
            learner.restate(graph.visible, *parts.label_store.knowledge())

        def compute() -> Any:
            return graph.all_scores(learner, progress)

        scores = compute() if stored is None else stored.scores(compute)
        settled = settle(replace(parts, graph=graph, learner=learner), scores)
        return graph.make_answers(scores, settled.readings, settled.calibration, settled.accuracy)
