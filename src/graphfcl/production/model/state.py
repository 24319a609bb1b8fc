"""One state of a model: its parts, its learner, and the learner's answers about all nodes."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from graphfcl.active.contract import Memory
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.methods.blocks.damaged_files import DamagedFile, computed_again
from graphfcl.production.answers.answers import Answers, ModelAnswers, class_probabilities
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.graph.contract import AT_A_TIME, NodeIndex
from graphfcl.production.graph.place import FolderUse
from graphfcl.production.labels.history import History
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.codec import decode, encode_in_memory
from graphfcl.production.model.parts import Configuration, ModelParts
from graphfcl.production.model.stored_version import StoredVersion
from graphfcl.production.store.parts import Part

Keep = Callable[[ModelAnswers], None]
Result = TypeVar("Result")


@dataclass(eq=False)
class AnsweringLearner:
    """The learner of a state. One thread at a time uses it, so a method need not be thread-safe.

    Attributes:
        parts: Parts of the model.
        computed: Answers about all nodes, if they were computed; their readers do not wait.
        stored: Version in the folder that this state equals.
        keep: Called after the answers of a version were computed, to store them for the next reader.
        memory: Other values that were computed from the learner on this graph.
        lock: Held by the thread that uses the learner.
        restated: The learner after it was restated on a changed graph.
    """

    parts: ModelParts
    computed: ModelAnswers | None = None
    stored: StoredVersion | None = None
    keep: Keep | None = None
    memory: Memory = field(default_factory=Memory)
    lock: AbstractContextManager[Any] = field(default_factory=threading.RLock)
    restated: Learner | None = None

    def with_parts(self, parts: ModelParts) -> "AnsweringLearner":
        """Return the same learner and answers in a model of which something else changed."""
        return AnsweringLearner(parts, self.computed, self.stored, memory=self.memory, lock=self.lock)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other threads from using the learner. Errors of a learner from a folder are reported as damage."""
        with self.lock, self.checked():
            yield

    def checked(self) -> AbstractContextManager[None]:
        """Report errors in the same way, for a copy of the learner that no other thread has."""
        return nullcontext() if self.stored is None else self.stored.using_learner()

    def has_answers(self) -> bool:
        """Return whether the answers were computed before, by this process or by one that stored them."""
        if self.computed is None and self.stored is not None:
            self.computed = self.stored.answers()
        return self.computed is not None

    def answers(self, progress: Progress = SILENT) -> ModelAnswers:
        """Return the answers about all nodes; they are computed once."""
        computed = self.computed
        if computed is not None:
            return computed
        with self.alone():
            if not self.has_answers():
                with self.parts.graph.in_use():
                    if not self.has_answers():  # another process may have computed them while this one waited
                        self.computed = self._compute(progress)
                        if self.keep is not None:
                            self.keep(self.computed)
            assert self.computed is not None
            return self.computed

    def _compute(self, progress: Progress) -> ModelAnswers:
        from graphfcl.production.model.calibrating import compute_answers

        parts, stored = self.parts.read(), self.stored
        return parts.graph.attempt(
            parts.learner, lambda learner: compute_answers(replace(parts, learner=learner), progress, stored)
        )

    def answers_at(self, rows: np.ndarray) -> Answers:
        """Return the answers about some rows of the graph. Answers in a damaged file are computed again."""

        def attempt() -> Answers:
            try:
                return self.answers().of(rows)
            except DamagedFile:
                self.computed = None
                raise

        return computed_again(attempt)

    def using(self, use: Callable[[Learner], Result]) -> Result:
        """Compute something with the learner while no other thread or process computes.

        If the learner has to be restated on a changed graph, a copy of it is restated first, once.
        """
        graph = self.parts.graph

        def restated(learner: Learner) -> Learner:
            learner.restate(graph.visible, *self.parts.label_store.knowledge())
            return learner

        def attempt(learner: Learner) -> Result:
            self.restated = learner
            return use(learner)

        with self.alone(), graph.in_use():
            if self.restated is None:
                learner = self.parts.learner
                due = graph.restate_due
                self.restated = graph.attempt(learner.copy(graph.visible), restated) if due else learner
            return graph.attempt(self.restated, attempt)

    def copy(self) -> Learner:
        """Return an equal learner that may be changed."""
        with self.alone():
            return self.parts.learner.copy(self.parts.graph.visible)


@dataclass(frozen=True, eq=False)
class ModelState:
    """An immutable state of a model: a change makes the next state.

    Attributes:
        answering: Learner of the state.
        history: All changes so far.
        version: Version of the folder that the model was last loaded from or saved to.
    """

    answering: AnsweringLearner
    history: History = field(default_factory=History)
    version: int | None = None

    @property
    def parts(self) -> ModelParts:
        """All parts of the model."""
        return self.answering.parts

    def catalogue(self) -> LabelStore:
        """Return a label store with the names of the classes; it may lack labelled nodes, to avoid reading them."""
        stored = self.answering.stored
        return self.parts.label_store if stored is None or "label_store" in vars(self.parts) else stored.names

    @property
    def passes(self) -> bool:
        """Whether answers take passes over a graph folder and are stored on disk."""
        stored = self.answering.stored
        return self.parts.graph.passes if stored is None else stored.graph.passes

    def names(self) -> NodeIndex:
        """Return the index of the nodes, without reading the rest of the graph."""
        stored = self.answering.stored
        return self.parts.graph if stored is None else stored.node_index()

    def counts(self) -> tuple[int, int]:
        """Return the numbers of nodes and edges, without reading these from a folder."""
        stored = self.answering.stored
        if stored is not None and "graph" not in vars(self.parts):
            return stored.counts()
        return self.parts.graph.node_count, self.parts.graph.edge_count

    def calibration(self) -> Calibration:
        """Return the calibration; if it is stale, it is computed with the answers."""
        calibration = self.parts.calibration
        return self.answering.answers().calibration if calibration.stale else calibration

    def accuracy(self, progress: Progress = SILENT) -> dict[str, Any]:
        """Return the accuracy as in the history; it is measured now if the calibration is stale."""
        measured = self.answering.answers(progress).accuracy if self.parts.calibration.stale else None
        return measured or self.history.last_accuracy() or {"validation": None, "leave_one_out": None, "classes": {}}

    def in_blocks(self, nodes: Sequence[Any] | None) -> Iterator[tuple[np.ndarray, Answers]]:
        """Yield ids of some nodes, or of all (None), and the answers about them, in blocks."""
        if nodes is not None:
            yield self.answers_of(nodes)
            return
        names = self.names()
        for rows in names.row_parts(self.answering.answers().row_bytes):
            answers = self.answering.answers_at(rows)
            for low in range(0, max(1, rows.size), AT_A_TIME):
                part = slice(low, low + AT_A_TIME)
                yield names.ids_at(rows[part]), answers.of(part)

    def answers_of(self, nodes: Sequence[Any]) -> tuple[np.ndarray, Answers]:
        """Return (m,) ids of some nodes as the graph stores them, and the answers about them."""
        stored = self.answering.stored if self.answering.computed is None else None
        cached = None if stored is None else stored.cached_answers(nodes)
        if cached is not None:
            return cached
        names = self.names()
        rows = names.known_rows(nodes)
        return names.ids_at(rows), self.answering.answers_at(rows)

    def saved_as(self, number: int, count: int) -> "ModelState":
        """Return the state after its first ``count`` changes were saved as version ``number``."""
        return replace(self, history=self.history.saved_as(number, count), version=number)

    def copy(self) -> "ModelState":
        """Return an equal state with a learner of its own; everything else is immutable and shared."""
        parts = replace(self.parts.read(), learner=self.answering.copy())
        return replace(self, answering=AnsweringLearner(parts, self.answering.computed))


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """(n, classes) probabilities by row of a model's graph, computed when they are read."""

    state: ModelState

    @property
    def shape(self) -> tuple[int, int]:
        return self.state.parts.graph.visible.row_count, len(self.state.parts.label_store.classes)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Return (r, classes) probabilities of some rows; each row sums to 1."""
        return class_probabilities(self.state.parts.label_store, self.state.answering.answers_at(rows))

    def with_unknown_scores(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (r, classes) probabilities and (r,) unknown scores of some rows."""
        answers = self.state.answering.answers_at(rows)
        probabilities = class_probabilities(self.state.parts.label_store, answers)
        return probabilities, self.state.calibration().unknown_scores(answers.ood_score)

    def ood_score(self) -> np.ndarray:
        """Return (n,) OOD scores of all rows."""
        blocks = (np.arange(*block) for block in self.state.parts.graph.visible.row_blocks())
        return np.concatenate([self.state.answering.answers_at(rows).ood_score for rows in blocks])

    def unknown_scores(self) -> np.ndarray:
        """Return (n,) unknown scores of all rows: the share of validation nodes with a lower OOD score."""
        return self.state.calibration().unknown_scores(self.ood_score())


# Copies in other processes


@dataclass(frozen=True)
class PackedState:
    """A state that can be sent to another process.

    Attributes:
        parts: Parts as in a folder.
        history: History as JSON.
        version: Version of the folder.
        answers: Scores and readings of all nodes, so that the copy answers exactly the same without a forward pass.
            None for a graph on disk, where they are stored.
        use: Where a graph on disk and its work folder are.
    """

    parts: dict[str, Part]
    history: str
    version: int | None
    answers: tuple[np.ndarray, np.ndarray] | None
    use: FolderUse


def pack(state: ModelState, configuration: Configuration) -> PackedState:
    """Make a state that another process can :func:`unpack`."""
    parts = state.copy().parts
    return PackedState(
        parts=encode_in_memory(replace(parts, configuration=configuration)),
        history=json.dumps(state.history.entries()),
        version=state.version,
        answers=None if state.passes else (state.answering.answers().scores, state.answering.answers().readings),
        use=parts.graph.use(),
    )


def unpack(packed: PackedState, *, device: str) -> ModelState:
    """Restore a packed state; its method must be known in this process."""
    parts = decode(packed.parts.__getitem__, device=device, use=packed.use)
    answers = ModelAnswers(*packed.answers, parts.calibration) if packed.answers else None
    return ModelState(AnsweringLearner(parts, answers), History(json.loads(packed.history)), packed.version)
