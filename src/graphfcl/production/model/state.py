"""One state of a model: its parts, its learner, and the answers of that learner about all nodes."""

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
    """The learner of a state. One thread at a time uses it, so that a method need not be thread-safe.

    computed: the answers about all nodes, if they were computed; readers of these do not wait. stored: the version that
    the state is, in its folder. keep: called when the answers of a version had to be computed, to store them for the
    next reader. memory: what else was computed from the learner on this graph. lock: held by the thread that uses it.
    restated: the learner as it is used, once it is restated on a changed graph.
    """

    parts: ModelParts
    computed: ModelAnswers | None = None
    stored: StoredVersion | None = None
    keep: Keep | None = None
    memory: Memory = field(default_factory=Memory)
    lock: AbstractContextManager[Any] = field(default_factory=threading.RLock)
    restated: Learner | None = None

    def with_parts(self, parts: ModelParts) -> "AnsweringLearner":
        """The same learner, with the same answers, in a model of which something else changed."""
        return AnsweringLearner(parts, self.computed, self.stored, memory=self.memory, lock=self.lock)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the learner while no other thread uses it; one read from a folder that fails is reported as damaged."""
        with self.lock, self.checked():
            yield

    def checked(self) -> AbstractContextManager[None]:
        """Report failures in the same way, for a copy of the learner that no other thread has."""
        return nullcontext() if self.stored is None else self.stored.using_learner()

    def has_answers(self) -> bool:
        """Whether answers were computed before, by this process or by one that left them on disk."""
        if self.computed is None and self.stored is not None:
            self.computed = self.stored.answers()
        return self.computed is not None

    def answers(self, progress: Progress = SILENT) -> ModelAnswers:
        """The answers about all nodes; computed once."""
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
        """The answers about some rows of the graph; those in a damaged file are computed again."""

        def attempt() -> Answers:
            try:
                return self.answers().of(rows)
            except DamagedFile:
                self.computed = None
                raise

        return computed_again(attempt)

    def using(self, use: Callable[[Learner], Result]) -> Result:
        """Compute something with the learner while no other thread or process computes.

        If the learner is due to be restated on a changed graph, a copy of it is restated first, once.
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
        """An equal learner that may be changed."""
        with self.alone():
            return self.parts.learner.copy(self.parts.graph.visible)


@dataclass(frozen=True, eq=False)
class ModelState:
    """Never changed: a change makes the next state.

    answering: its learner. history: all changes up to here. version: of the folder that the model was last loaded from
    or saved to.
    """

    answering: AnsweringLearner
    history: History = field(default_factory=History)
    version: int | None = None

    @property
    def parts(self) -> ModelParts:
        """What the model consists of."""
        return self.answering.parts

    def catalogue(self) -> LabelStore:
        """The names of the classes: a label store with perhaps no labelled nodes, which are not read for it."""
        stored = self.answering.stored
        return self.parts.label_store if stored is None or "label_store" in vars(self.parts) else stored.names

    @property
    def passes(self) -> bool:
        """Whether answers take passes over a graph folder, and lie on disk."""
        stored = self.answering.stored
        return self.parts.graph.passes if stored is None else stored.graph.passes

    def names(self) -> NodeIndex:
        """The index of its nodes, for which the rest of the graph need not be read."""
        stored = self.answering.stored
        return self.parts.graph if stored is None else stored.node_index()

    def counts(self) -> tuple[int, int]:
        """The numbers of nodes and edges, which are not read from a folder for it."""
        stored = self.answering.stored
        if stored is not None and "graph" not in vars(self.parts):
            return stored.counts()
        return self.parts.graph.node_count, self.parts.graph.edge_count

    def calibration(self) -> Calibration:
        """How scores become answers; computed with the answers if it is stale."""
        calibration = self.parts.calibration
        return self.answering.answers().calibration if calibration.stale else calibration

    def accuracy(self, progress: Progress = SILENT) -> dict[str, Any]:
        """The accuracy as the history keeps it; measured now if the calibration is stale."""
        measured = self.answering.answers(progress).accuracy if self.parts.calibration.stale else None
        return measured or self.history.last_accuracy() or {"validation": None, "leave_one_out": None, "classes": {}}

    def in_blocks(self, nodes: Sequence[Any] | None) -> Iterator[tuple[np.ndarray, Answers]]:
        """Ids of some nodes, or of all, and the answers about them, one block after the other."""
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
        """(m,) ids of some nodes as the graph has them, and the answers about them."""
        stored = self.answering.stored if self.answering.computed is None else None
        cached = None if stored is None else stored.cached_answers(nodes)
        if cached is not None:
            return cached
        names = self.names()
        rows = names.known_rows(nodes)
        return names.ids_at(rows), self.answering.answers_at(rows)

    def saved_as(self, number: int, count: int) -> "ModelState":
        """The same, of which the first ``count`` changes are in a version; a first version holds all of them."""
        return replace(self, history=self.history.saved_as(number, count), version=number)

    def copy(self) -> "ModelState":
        """An equal state with a learner of its own; all else is immutable and shared."""
        parts = replace(self.parts.read(), learner=self.answering.copy())
        return replace(self, answering=AnsweringLearner(parts, self.answering.computed))


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """(n, classes) probabilities of the rows of a model's graph, computed for the rows that are read."""

    state: ModelState

    @property
    def shape(self) -> tuple[int, int]:
        return self.state.parts.graph.visible.row_count, len(self.state.parts.label_store.classes)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """(r, classes) probabilities of some rows; each sums to 1."""
        return class_probabilities(self.state.parts.label_store, self.state.answering.answers_at(rows))

    def with_unknown_scores(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(r, classes) probabilities and (r,) unknown scores of some rows."""
        answers = self.state.answering.answers_at(rows)
        probabilities = class_probabilities(self.state.parts.label_store, answers)
        return probabilities, self.state.calibration().unknown_scores(answers.ood_score)

    def ood_score(self) -> np.ndarray:
        """(n,) of all rows."""
        blocks = (np.arange(*block) for block in self.state.parts.graph.visible.row_blocks())
        return np.concatenate([self.state.answering.answers_at(rows).ood_score for rows in blocks])

    def unknown_scores(self) -> np.ndarray:
        """(n,) of all rows: the share of validation nodes with a lower OOD score."""
        return self.state.calibration().unknown_scores(self.ood_score())


# Copies in other processes


@dataclass(frozen=True)
class PackedState:
    """parts: as a folder has them. history: JSON. answers: scores and readings of all nodes, so that a copy answers the
    same to the digit, without a forward pass; none of a graph on disk, where they lie. use: where such a graph and its
    work folder are.
    """

    parts: dict[str, Part]
    history: str
    version: int | None
    answers: tuple[np.ndarray, np.ndarray] | None
    use: FolderUse


def pack(state: ModelState, configuration: Configuration) -> PackedState:
    """A state that another process can :func:`unpack`."""
    parts = state.copy().parts
    return PackedState(
        parts=encode_in_memory(replace(parts, configuration=configuration)),
        history=json.dumps(state.history.entries()),
        version=state.version,
        answers=None if state.passes else (state.answering.answers().scores, state.answering.answers().readings),
        use=parts.graph.use(),
    )


def unpack(packed: PackedState, *, device: str) -> ModelState:
    """The state again; its method must be known here."""
    parts = decode(packed.parts.__getitem__, device=device, use=packed.use)
    answers = ModelAnswers(*packed.answers, parts.calibration) if packed.answers else None
    return ModelState(AnsweringLearner(parts, answers), History(json.loads(packed.history)), packed.version)
