"""The learner of a model on a graph folder: its answers lie on the disk, and are computed when somebody asks."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphfcl.asking.memory import Memory
from graphfcl.errors import InputError
from graphfcl.methods import SILENT, Learner, Progress
from graphfcl.methods.blocks.damaged_files import DamagedFile, computed_again
from graphfcl.methods.blocks.retried_learner import computed_with
from graphfcl.methods.blocks.tile_files import BLOCK
from graphfcl.production.answers import Answers
from graphfcl.production.answers_on_disk import AnswersOnDisk
from graphfcl.production.calibration import Readings
from graphfcl.production.model_parts import ModelParts
from graphfcl.production.version_cache import CacheKeys

if TYPE_CHECKING:
    from graphfcl.production.stored_version import StoredVersion


Result = TypeVar("Result")


class AskedOnDisk:
    """One thread at a time computes. found: the answers, if they were computed. stored: the version of a folder."""

    known, readings = None, None

    def __init__(
        self,
        parts: ModelParts,
        found: AnswersOnDisk | None = None,
        stored: "StoredVersion | None" = None,
        lock: AbstractContextManager[Any] | None = None,
    ) -> None:
        self.stored, self.memory, self.found = stored, Memory(), found
        self._parts = parts
        self._lock: AbstractContextManager[Any] = lock or threading.RLock()

    def with_parts(self, parts: ModelParts) -> "AskedOnDisk":
        """The same learner, which answers the same, in a model of which something else changed."""
        self.is_at_hand()
        return AskedOnDisk(parts, self.found, None, self._lock)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other thread uses it; a learner of a folder that cannot do its work is damaged."""
        with self._lock, self.checked():
            yield

    def checked(self) -> AbstractContextManager[None]:
        """The same for a copy of it, which no other thread has."""
        return nullcontext() if self.stored is None else self.stored.using_learner()

    def on_disk(self, progress: Progress = SILENT) -> AnswersOnDisk:
        """What the model says of every node; computed once, in passes over the graph folder."""
        with self.alone():
            if not self.is_at_hand():
                graph: Any = self._parts.graph
                with graph.in_use():
                    if not self.is_at_hand():  # nor did another process compute them while this one waited
                        parts = self._parts.read()
                        self.found = computed_with(
                            parts.learner, lambda learner: compute_answers(replace(parts, learner=learner), progress)
                        )
                        if self.stored is not None:
                            self.keep_for(self.stored.keys)
            assert self.found is not None
            return self.found

    def read(self, read: Callable[[AnswersOnDisk], Result], progress: Progress = SILENT) -> Result:
        """What is read of the answers; what of them turns out to be damaged is computed again."""

        def attempt() -> Result:
            found = self.on_disk(progress)
            try:
                return read(found)
            except DamagedFile:
                self.found = None
                raise

        return computed_again(attempt)

    def in_blocks(self, progress: Progress = SILENT) -> Iterator[tuple[np.ndarray, Answers]]:
        """Rows in the order of the user and what the model says of them, one block after the other."""
        graph: Any = self._parts.graph
        for start, stop in self.on_disk(progress).parts(graph.means.memory):
            rows = graph.rows_in_order(start, stop)
            gathered = self.read(lambda found, rows=rows: found.of(rows), progress)  # type: ignore[misc]
            for low in range(0, rows.size, BLOCK):
                part = np.arange(low, min(low + BLOCK, rows.size))
                yield rows[part], gathered.of(part)

    def keep_for(self, keys: CacheKeys) -> None:
        """Let whoever loads a version find answers that were computed. keys: those of the version."""
        with suppress(OSError, InputError):  # they can be computed again
            if self.found is not None:
                graph: Any = self._parts.graph
                self.found.keep(graph.means.work, keys.readings)

    def is_at_hand(self) -> bool:
        """Whether answers need no pass over the graph folder."""
        if self.found is None and self.stored is not None:
            self.found = self.stored.answers_on_disk()
        return self.found is not None

    def answers(self) -> Answers:
        """Those of all nodes at once, in memory."""
        graph: Any = self._parts.graph
        return self.read(lambda found: found.of(graph.rows_in_order(0, found.scores.rows)))

    def scores(self) -> np.ndarray:
        """(n, columns) the same of scores."""
        return self.answers().scores

    def answers_of(self, nodes: Any) -> None:  # noqa: ARG002
        """The cache of a folder has none of them."""
        return

    def readings_at_hand(self) -> Readings | None:
        return None

    def copy(self) -> Learner:
        """A learner that knows the same and goes on by itself."""
        with self.alone():
            return self._parts.learner.copy(self._parts.graph.visible)


def compute_answers(parts: ModelParts, progress: Progress = SILENT) -> AnswersOnDisk:
    """Passes over the graph folder: scores, then what they make of calibration and accuracy.

    Sums that are of nodes as they were before the graph grew are summed up again first, in a copy of the learner.
    """
    graph: Any = parts.graph
    with graph.in_use(), _at_work(parts) as at_work:
        return _computed(at_work, progress)


@contextmanager
def _at_work(parts: ModelParts) -> Iterator[ModelParts]:
    """The same parts, with workers that are started once for all phases; the learner of a model that goes on never
    meets them."""
    graph: Any = parts.graph
    if not graph.means.starts_workers:
        yield parts
        return
    with graph.means.at_work() as means:
        moved = replace(graph, means=means)
        yield replace(parts.read(), graph=moved, learner=parts.learner.copy(moved.visible))


def _computed(parts: ModelParts, progress: Progress) -> AnswersOnDisk:
    from graphfcl.production.settling import settle

    graph: Any = parts.graph
    learner, visible = parts.learner, graph.visible
    if graph.restate_due:
        learner = learner.copy(visible)
        learner.watch(visible, progress)
        learner.restate(visible, *parts.ledger.knowledge())
    learner.watch(visible, progress)
    scores = learner.all_scores(visible)
    settled = settle(replace(parts.read(), learner=learner), scores)
    return AnswersOnDisk.write(graph, scores, settled.readings, settled.calibration, settled.accuracy)
