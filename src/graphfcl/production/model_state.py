"""One state of a model: what everybody reads while the next one is being made."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from graphfcl.asking.memory import Memory
from graphfcl.graph.ids import text_array
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.production.answers import Answers
from graphfcl.production.calibration import Calibration, Readings
from graphfcl.production.history import History
from graphfcl.production.model_parts import ModelParts, is_on_disk
from graphfcl.production.node_names import NodeNames
from graphfcl.production.stored_version import StoredVersion

if TYPE_CHECKING:
    from graphfcl.production.answers_on_disk import AnswersOnDisk
    from graphfcl.production.asked_on_disk import AskedOnDisk

Keep = Callable[[StoredVersion, Answers], None]
Result = TypeVar("Result")


class AskedLearner:
    """The learner of a state, which one thread at a time asks, so that a method need not know of threads.

    known: (n, columns) scores of every node of the graph, and readings: what they are asked by besides, if they were
    computed. Whoever finds them there does not wait. stored: the version that the state is, as it lies in its folder.
    keep: told what had to be computed of it, for the next reader. memory: what else was computed of it on this graph.
    """

    def __init__(
        self,
        parts: ModelParts,
        known: np.ndarray | None = None,
        readings: Readings | None = None,
        stored: StoredVersion | None = None,
        keep: Keep | None = None,
        lock: AbstractContextManager[Any] | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.known, self.readings, self.stored = known, readings, stored
        self._parts, self._keep = parts, keep
        self._lock: AbstractContextManager[Any] = lock or threading.RLock()
        self.memory = memory or Memory()

    def with_parts(self, parts: ModelParts) -> "AskedLearner":
        """The same learner, which answers the same, in a model of which something else changed."""
        return AskedLearner(parts, self.known, self.readings, self.stored, lock=self._lock, memory=self.memory)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other thread uses it; a learner of a folder that cannot do its work is damaged."""
        with self._lock, self.checked():
            yield

    def checked(self) -> AbstractContextManager[None]:
        """The same for a copy of it, which no other thread has."""
        return nullcontext() if self.stored is None else self.stored.using_learner()

    def scores(self) -> np.ndarray:
        """(n, columns) of every node; computed once."""
        return self.answers().scores

    def answers(self) -> Answers:
        """What the model says of every node; computed once."""
        if self.known is None or self.readings is None:
            with self.alone():
                self._compute()
        assert self.known is not None
        assert self.readings is not None
        return Answers(self.known, self.readings.strangeness, self.readings.temperatures)

    def answers_at(self, rows: np.ndarray) -> Answers:
        """What the model says of some rows of its graph."""
        return self.answers().of(rows)

    def using(self, use: Callable[[Learner], Result]) -> Result:
        """What is computed with the learner, while no other thread uses it."""
        with self.alone():
            return use(self._parts.learner)

    def _compute(self) -> None:
        """Scores and readings, out of the cache of the folder as far as they are there."""
        stored, scores = self.stored, self.known
        if scores is None and stored is not None:
            scores = stored.cached_scores()
        cached = scores is not None
        if scores is None:
            scores = self._parts.compute_scores() if stored is None else stored.compute_scores()
        if self.readings is None and cached and stored is not None and stored.cache is not None:
            self.readings = stored.cache.readings(stored.keys.readings)
        if self.readings is None:
            from graphfcl.production.settling import readings_of

            self.readings, cached = readings_of(self._parts, scores), False
        self.known = scores
        if not cached and stored is not None and self._keep is not None:
            self._keep(stored, Answers(scores, self.readings.strangeness, self.readings.temperatures))

    def answers_of(self, nodes: Sequence[Any]) -> Answers | None:
        """What the folder's cache has about some nodes, as long as nothing more was read; None if it has not all."""
        return self.stored.cached_answers(nodes) if self.known is None and self.stored is not None else None

    def readings_at_hand(self) -> Readings | None:
        """The readings of every node, as far as they were computed before."""
        stored = self.stored
        if self.readings is not None or stored is None or stored.cache is None:
            return self.readings
        return stored.cache.readings(stored.keys.readings)

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
    asked: "AskedLearner | AskedOnDisk"
    history: History = field(default_factory=History)
    version: int | None = None

    @classmethod
    def of(cls, parts: ModelParts, known: np.ndarray | None = None, readings: Readings | None = None) -> Self:
        """The first state of a model. known, readings: if they were computed."""
        return cls(parts, asked_learner(parts, known, readings))

    @classmethod
    def of_version(cls, stored: StoredVersion, history: History, keep: Keep | None) -> Self:
        """The state of a model in a folder."""
        if stored.on_disk:
            from graphfcl.production.asked_on_disk import AskedOnDisk

            return cls(stored.parts, AskedOnDisk(stored.parts, stored=stored), history, stored.version)
        return cls(stored.parts, AskedLearner(stored.parts, stored=stored, keep=keep), history, stored.version)

    def ids(self) -> np.ndarray:
        """(n,) the user's ids of all nodes, for which the rest of the graph need not be read."""
        stored = self.asked.stored
        return self.parts.graph.ids if stored is None else stored.ids()

    @property
    def node_count(self) -> int:
        """How many nodes there are; ids of a graph on the disk are not read for it."""
        return len(self.ids()) if self.on_disk is None else self.parts.graph.node_count

    def names(self) -> NodeNames:
        """How its nodes are found, for which the rest of the graph need not be read."""
        stored = self.asked.stored
        return self.parts.graph.names if stored is None else stored.node_names()

    def in_blocks(
        self, nodes: Sequence[Any] | None, progress: Progress = SILENT
    ) -> Iterator[tuple[np.ndarray, Answers]]:
        """Some nodes by their ids, or all, one block after the other: ids, and what the model says of them."""
        from_disk = self.on_disk
        if from_disk is None:
            yield self.asked_about(nodes)
            return
        graph: Any = self.parts.graph
        rows = None if nodes is None else graph.numbers_of(nodes)
        self.found_on_disk(progress)
        if rows is not None:
            yield graph.ids_at(rows), from_disk.read(lambda found: found.of(rows), progress)
            return
        for part, answers in from_disk.in_blocks(progress):
            yield graph.ids_at(part), answers

    @property
    def on_disk(self) -> "AskedOnDisk | None":
        """What asks the learner if the graph stays on the disk."""
        return None if isinstance(self.asked, AskedLearner) else self.asked

    def calibration(self, progress: Progress = SILENT) -> Calibration:
        """How scores become answers. On a graph folder that follows from the scores, and may take a pass over it."""
        return self.parts.calibration if self.on_disk is None else self.found_on_disk(progress).calibration

    def found_on_disk(self, progress: Progress = SILENT) -> "AnswersOnDisk":
        """What the model says of every node of its graph folder."""
        from_disk = self.on_disk
        assert from_disk is not None
        return from_disk.on_disk(progress)

    def asked_about(self, nodes: Sequence[Any] | None) -> tuple[np.ndarray, Answers]:
        """Some nodes by their ids, or all: (n,) ids as the graph has them, and what the model says of them."""
        if nodes is None:
            return self.ids(), self.asked.answers()
        found = self.asked.answers_of(nodes)
        if found is not None:
            return own_ids(nodes, numbers=self.asked.stored is not None and self.asked.stored.has_numbers), found
        graph = self.parts.graph
        return graph.with_own_ids(nodes), self.asked.answers().of(graph.visible.rows(graph.numbers_of(nodes)))

    def saved_as(self, number: int, count: int) -> "ModelState":
        """The same, of which the first ``count`` changes are in a version; a first version holds all of them."""
        return replace(self, history=self.history.saved_as(number, count), version=number)

    def copy(self) -> "ModelState":
        """An equal state with a learner of its own; all else is immutable and shared."""
        parts = replace(self.parts.read(), learner=self.asked.copy())
        asked = self.on_disk.with_parts(parts) if self.on_disk else asked_learner(parts, *self._computed())
        return replace(self, parts=parts, asked=asked)

    def _computed(self) -> tuple[np.ndarray | None, Readings | None]:
        return self.asked.known, self.asked.readings


def asked_learner(
    parts: ModelParts, known: np.ndarray | None = None, readings: Readings | None = None
) -> "AskedLearner | AskedOnDisk":
    """What asks the learner of these parts. known, readings: if they were computed, of a graph in memory."""
    if is_on_disk(vars(parts).get("graph")):  # one that was not read yet stays so
        from graphfcl.production.asked_on_disk import AskedOnDisk

        return AskedOnDisk(parts)
    return AskedLearner(parts, known, readings)


def own_ids(nodes: Sequence[Any], *, numbers: bool) -> np.ndarray:
    """(n,) ids that are known to be in the graph, as it has them."""
    return np.array([int(each) for each in nodes], dtype=np.int64) if numbers else text_array([str(n) for n in nodes])
