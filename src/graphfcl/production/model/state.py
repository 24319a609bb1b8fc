"""One state of a model: what everybody reads while the next one is being made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from graphfcl.graph.ids import text_array
from graphfcl.methods import SILENT, Progress
from graphfcl.production.answers.answers import Answers, ModelAnswers
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.graph.node_names import AT_A_TIME
from graphfcl.production.labels.history import History
from graphfcl.production.model.computed_answers import AnsweringLearner, Keep
from graphfcl.production.model.parts import ModelParts
from graphfcl.production.model.stored_version import StoredVersion

if TYPE_CHECKING:
    from graphfcl.production.graph import NodeIndex


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
