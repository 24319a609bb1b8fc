"""One state of a model: what everybody reads while the next one is being made."""

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from graphfcl.methods import Learner
from graphfcl.production.answers import Answers
from graphfcl.production.calibration import Readings
from graphfcl.production.history import Entry
from graphfcl.production.model_parts import ModelParts
from graphfcl.production.settling import readings_of


class AskedLearner:
    """The learner of a state, which one thread at a time asks, so that a method need not know of threads.

    known: (n, columns) scores of every node of the graph, and readings: what they are asked by besides, if they were
    computed. Whoever finds them there does not wait.
    """

    def __init__(self, parts: ModelParts, known: np.ndarray | None = None, readings: Readings | None = None) -> None:
        self.known, self.readings = known, readings
        self._parts = parts
        self._lock = threading.RLock()

    def alone(self) -> AbstractContextManager[Any]:
        """While nobody else asks it."""
        return self._lock

    def scores(self) -> np.ndarray:
        """(n, columns) of every node; computed once."""
        if self.known is None:
            with self._lock:
                if self.known is None:
                    self.known = self._parts.compute_scores()
        return self.known

    def answers(self) -> Answers:
        """What the model says of every node; computed once."""
        scores = self.scores()
        if self.readings is None:
            with self._lock:
                if self.readings is None:
                    self.readings = readings_of(self._parts, scores)
        return Answers(scores, self.readings.strangeness, self.readings.temperatures)

    def copy(self) -> Learner:
        """A learner that knows the same and goes on by itself."""
        with self._lock:
            return self._parts.learner.copy(self._parts.graph.visible)


@dataclass(frozen=True, eq=False)
class ModelState:
    """Never changed: a change makes the next state.

    parts: what the model consists of. asked: its learner. history: all changes up to here, oldest first. version: of
    the folder that the model was last loaded from or saved to.
    """

    parts: ModelParts
    asked: AskedLearner
    history: tuple[Entry, ...] = ()
    version: int | None = None

    @classmethod
    def of(cls, parts: ModelParts, known: np.ndarray | None = None) -> Self:
        """The first state of a model. known: its scores, if they were computed."""
        return cls(parts, AskedLearner(parts, known))

    def answers_of(self, nodes: Sequence[Any] | None) -> Answers:
        """What the model says of some nodes, given by their ids, or of all."""
        graph = self.parts.graph
        rows = None if nodes is None else graph.visible.rows(graph.numbers_of(nodes))
        answers = self.asked.answers()
        return answers if rows is None else answers.of(rows)

    def saved_as(self, number: int, count: int) -> "ModelState":
        """The same, of which the first ``count`` changes are in a version; a first version holds all of them."""
        history = tuple(
            {**entry, "version": number} if place < count and (number == 1 or entry["version"] is None) else entry
            for place, entry in enumerate(self.history)
        )
        return replace(self, history=history, version=number)

    def copy(self) -> "ModelState":
        """An equal state with a learner of its own; all else is immutable and shared."""
        parts = replace(self.parts, learner=self.asked.copy())
        return replace(self, parts=parts, asked=AskedLearner(parts, self.asked.known, self.asked.readings))
