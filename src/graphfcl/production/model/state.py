"""One state of a model: its parts, its learner and what that answers."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from graphfcl.active.contract import Memory
from graphfcl.graph.ids import text_array
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.methods.blocks.damaged_files import DamagedFile, computed_again
from graphfcl.production.answers.answers import Answers, ModelAnswers, class_probabilities
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.graph.contract import AT_A_TIME
from graphfcl.production.labels.history import History
from graphfcl.production.model.parts import ModelParts
from graphfcl.production.model.stored_version import StoredVersion

if TYPE_CHECKING:
    from graphfcl.production.graph import NodeIndex

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
        from graphfcl.production.model.calibrating import compute_answers

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


@dataclass(frozen=True, eq=False)
class ModelState:
    """Never changed: a change makes the next state.

    parts: what the model consists of. asked: its learner. history: all changes up to here. version: of the folder that
    the model was last loaded from or saved to.
    """

    parts: ModelParts
    asked: AnsweringLearner
    history: History = field(default_factory=History)
    version: int | None = None

    @classmethod
    def of(cls, parts: ModelParts, answers: ModelAnswers | None = None) -> Self:
        """The first state of a model. answers: of all nodes, if they were computed."""
        return cls(parts, AnsweringLearner(parts, answers))

    @classmethod
    def of_version(cls, stored: StoredVersion, history: History, keep: Keep | None) -> Self:
        """The state of a model in a folder."""
        return cls(stored.parts, AnsweringLearner(stored.parts, stored=stored, keep=keep), history, stored.version)

    @property
    def passes(self) -> bool:
        """Whether answers take passes over a graph folder, and lie on disk."""
        stored = self.asked.stored
        return self.parts.graph.passes if stored is None else stored.graph.passes

    def names(self) -> "NodeIndex":
        """How its nodes are found, for which the rest of the graph need not be read."""
        stored = self.asked.stored
        return self.parts.graph.names if stored is None else stored.node_index()

    def counts(self) -> tuple[int, int]:
        """How many nodes and edges there are; of a version in a folder they are not read."""
        stored, graph = self.asked.stored, vars(self.parts).get("graph")
        if stored is not None and graph is None:
            return stored.counts()
        return self.parts.graph.node_count, self.parts.graph.edge_count

    def calibration(self, progress: Progress = SILENT) -> Calibration:
        """How scores become answers; after a change without a pass over the graph folder, one pass finds it."""
        known = self.parts.calibration
        return self.asked.answers(progress).calibration if known.stale else known

    def accuracy(self, progress: Progress = SILENT) -> dict[str, Any]:
        """As the history keeps it, or after a change without a pass over the graph folder, as one pass finds it."""
        found = self.asked.answers(progress).accuracy if self.parts.calibration.stale else None
        return found or self.history.last_accuracy() or {"validation": None, "leave_one_out": None, "classes": {}}

    def in_blocks(
        self, nodes: Sequence[Any] | None, progress: Progress = SILENT
    ) -> Iterator[tuple[np.ndarray, Answers]]:
        """Some nodes by their ids, or all, one block after the other: ids, and what the model says of them."""
        if nodes is not None:
            yield self.asked_about(nodes, progress)
            return
        names = self.names()
        for rows in names.row_parts(self.asked.answers(progress).row_bytes):
            gathered = self.asked.read(lambda found, rows=rows: found.of(rows), progress)  # type: ignore[misc]
            for low in range(0, max(1, rows.size), AT_A_TIME):
                part = slice(low, low + AT_A_TIME)
                yield names.ids_at(rows[part]), gathered.of(part)

    def asked_about(self, nodes: Sequence[Any], progress: Progress = SILENT) -> tuple[np.ndarray, Answers]:
        """Some nodes by their ids: (m,) ids as the graph has them, and what the model says of them."""
        cached = self.asked.answers_of(nodes)
        if cached is not None:
            return own_ids(nodes, numbers=self.asked.stored is not None and self.asked.stored.has_numbers), cached
        names = self.names()
        rows = names.known_rows(nodes)
        return names.ids_at(rows), self.asked.read(lambda found: found.of(rows), progress)

    def saved_as(self, number: int, count: int) -> "ModelState":
        """The same, of which the first ``count`` changes are in a version; a first version holds all of them."""
        return replace(self, history=self.history.saved_as(number, count), version=number)

    def copy(self) -> "ModelState":
        """An equal state with a learner of its own; all else is immutable and shared."""
        parts = replace(self.parts.read(), learner=self.asked.copy())
        return replace(self, parts=parts, asked=AnsweringLearner(parts, self.asked.found))


def own_ids(nodes: Sequence[Any], *, numbers: bool) -> np.ndarray:
    """(n,) ids that are known to be in the graph, as it has them."""
    return np.array([int(each) for each in nodes], dtype=np.int64) if numbers else text_array([str(n) for n in nodes])


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """(n, classes) probabilities of the nodes of a model, which are computed for the rows that are read."""

    state: ModelState

    @property
    def shape(self) -> tuple[int, int]:
        return self.state.parts.graph.visible.row_count, len(self.state.parts.label_store.classes)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """(r, classes) probabilities of some rows; each sums to 1."""
        return class_probabilities(self.state.parts.label_store, self.state.asked.answers_at(rows))

    def with_unknown_scores(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(r, classes) probabilities and (r,) unknown scores of some rows."""
        answers = self.state.asked.answers_at(rows)
        probabilities = class_probabilities(self.state.parts.label_store, answers)
        return probabilities, self.state.calibration().unknown_scores(answers.ood_score)

    def ood_score(self) -> np.ndarray:
        """(n,) of all rows; higher is stranger."""
        blocks = (np.arange(*block) for block in self.state.parts.graph.visible.row_blocks())
        return np.concatenate([self.state.asked.answers_at(rows).ood_score for rows in blocks])

    def unknown_scores(self) -> np.ndarray:
        """(n,) of all rows, the share of known nodes that are less strange."""
        return self.state.calibration().unknown_scores(self.ood_score())
