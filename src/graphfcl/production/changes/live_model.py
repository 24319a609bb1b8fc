"""The state of a model and how it changes.

Readers share one immutable state, which one writer at a time replaces as a whole. A reader takes the state once and
works on it, without waiting for a writer. A writer makes a draft with a copy of the learner; when the draft is
complete, one assignment replaces the state. So every change is all or nothing.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import list_of_nodes
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.graph.tables.frames import is_table
from graphfcl.methods import SILENT, Learner, Progress, find_method
from graphfcl.methods.progress import progress_of
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.labels.history import History
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.parts import Configuration, ModelParts, name_of_method
from graphfcl.production.model.state import AnsweringLearner, ModelState, pack, unpack
from graphfcl.production.model.versions import Versions

if TYPE_CHECKING:  # predictions do not import what only a change needs
    from graphfcl.production.changes.draft import Draft
    from graphfcl.production.graph import ModelGraph, NodeIndex


class NotFitted(InputError, AttributeError):
    """A classifier was used before it was fitted. Learned attributes do not exist then."""


class LiveModel:
    """Base of :class:`GraphClassifier`: holds the state of a model and makes its changes.

    Learned attributes end in ``_`` and do not exist before the model is fitted.
    """

    def __init__(self, configuration: Configuration, *, device: str) -> None:
        self.method, self.settings = configuration.method, dict(configuration.settings)
        self.way, self.shot, self.seed = configuration.way, configuration.shot, configuration.seed
        self.max_loss, self.device = configuration.max_loss, device
        self.standardise = configuration.standardise
        self._hold(None)

    def _hold(self, state: ModelState | None, versions: Versions | None = None) -> None:
        """Set the state, and the folder (``versions``) that the model was last loaded from or saved to."""
        self._state, self._versions = state, versions
        self._changing = threading.Lock()  # held from the start of a change to its end
        self._swapping = threading.Lock()  # held while the state is exchanged
        self._guards = threading.local()  # ``current``: the guard of this thread's changes

    # State

    @property
    def graph_(self) -> "ModelGraph":
        """The graph of the model."""
        return self._current().parts.graph

    @property
    def learner_(self) -> Learner:
        """The learner. Do not change it: other threads may use it."""
        return self._current().parts.learner

    @property
    def label_store_(self) -> LabelStore:
        """Labelled nodes and their classes."""
        return self._current().parts.label_store

    @property
    def calibration_(self) -> Calibration:
        """How scores become probabilities, prediction sets and unknown scores."""
        return self._current().calibration()

    @property
    def history(self) -> History:
        """All changes, oldest first. Changes stored in a folder are read on first use."""
        return History() if self._state is None else self._state.history

    @property
    def version(self) -> int | None:
        """Version of the folder that the model was last loaded from or saved to; None before that."""
        return None if self._state is None else self._state.version

    @property
    def configuration(self) -> Configuration:
        """The current parameters."""
        chosen = (self.method, self.settings, self.way, self.shot, self.seed, self.max_loss, self.standardise)
        return Configuration(*chosen, None if self._state is None else self._state.parts.configuration.columns)

    def parts(self) -> ModelParts:
        """Return all current parts of the model."""
        return replace(self._current().parts, configuration=self.configuration)

    def all_scores(self) -> np.ndarray:
        """Return the learner's scores of every node.

        Scores are computed once for each state of the model.

        Returns:
            (n, columns) scores in the order of ``node_ids_``, in memory.
        """
        state = self._current()
        scores = state.answering.answers().scores
        return np.concatenate([scores[rows] for rows in state.names().row_parts(row_bytes=64)])

    @property
    def has_graph_folder(self) -> bool:
        """Whether the graph is a graph folder, which stays on disk and is not copied into the model."""
        return self._current().passes

    def _node_index(self) -> "NodeIndex":
        """Return the index of the nodes by the user's ids."""
        return self._current().names()

    def numbers_of(self, nodes: Sequence[Any]) -> np.ndarray:
        """Translate the user's ids into node numbers.

        Args:
            nodes: Ids in a list or an array, or a DataFrame with the column ``node``.

        Returns:
            (n,) node numbers.

        Raises:
            InputError: If a node does not exist.
        """
        return self._current().parts.graph.numbers_of(self._ids(nodes))

    def _columns(self) -> ReadColumns | None:
        """Return the columns of the tables of the fit."""
        return self._current().parts.configuration.columns

    def _ids(self, nodes: Any) -> Any:
        """Return the ids in a list, an array or a DataFrame; None stays None."""
        if nodes is None:
            return None
        if is_table(nodes):
            from graphfcl.production.changes.user_tables import read_ids

            return read_ids(nodes, self._columns())
        return list_of_nodes(nodes)

    def _current(self) -> ModelState:
        """Return the current state; raise an error if the model is not fitted."""
        state = self._state
        if state is None:
            raise NotFitted("this classifier is not fitted: call fit with a graph first.")
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    # Changes

    @contextmanager
    def _change(self) -> Iterator["Draft"]:
        """Make a change completely, or not at all if an error occurs inside. Other writers wait until it is done.

        A draft without an entry changes nothing.
        """
        from graphfcl.production.changes.draft import Draft

        with self._changing:
            draft = Draft(self._current(), self.configuration, guard=getattr(self._guards, "current", None))
            yield draft
            if draft.entries:
                with self._swapping:
                    self._state = draft.finished(self._current())
                self._guards.current = draft.guard

    @contextmanager
    def guarded(self, max_loss: float, *, progress: bool | Progress = SILENT) -> Iterator[None]:
        """Refuse changes that cost known classes too much accuracy (context manager).

        The guard applies to changes that this thread makes inside the ``with`` block. Guards of surrounding blocks
        apply, too. Accuracy is balanced accuracy as in the history: recall on validation nodes, and for classes learned
        later recall on left-out supports. For a model on a graph folder, each change computes the scores at once.

        Args:
            max_loss: Share of balanced accuracy, such as 0.02, that all changes inside may cost together. Only classes
                that are known at the start count.
            progress: True prints the progress; a :class:`Progress` receives it.

        Returns:
            A context manager.

        Raises:
            AccuracyLossError: If a change costs more. The change is not made.
            InputError: If ``max_loss`` is not between 0 and 1, or no class has a validation node.
        """
        from graphfcl.production.changes.guards import LossGuard

        outer = getattr(self._guards, "current", None)
        with progress_of(progress) as watching:
            self._guards.current = LossGuard.of(max_loss, self._current().accuracy(watching), watching, outer)
            try:
                yield
            finally:
                # Not the local ``outer``: a change inside may have renamed classes in the guards.
                self._guards.current = self._guards.current.outer

    def _begin(self, parts: ModelParts, change: dict[str, Any], progress: Progress) -> None:
        """Become a new model of these parts; the caller holds the lock of changes."""
        from graphfcl.production.changes.draft import Draft

        first = ModelState(AnsweringLearner(parts))
        draft = Draft(first, replace(self.configuration, columns=parts.configuration.columns), parts.learner)
        draft.finalise(change, at_once=True, progress=progress)
        self._state = draft.finished(first)

    def _saved(self, state: ModelState, number: int, versions: Versions) -> None:
        """Note that ``state`` was written as version ``number``; the model may have changed since."""
        with self._swapping:
            self._state, self._versions = self._current().saved_as(number, len(state.history)), versions

    def leave_history(self) -> None:
        """Drop the history from memory if a folder has it; it is read again when needed."""
        with self._swapping:
            state, versions = self._current(), self._versions
            if versions is not None and state.version is not None and not state.history.unsaved():
                history = versions.stored_history(versions.manifest(state.version))
                self._state = replace(state, history=history)

    # Copies, also in other processes

    def snapshot(self) -> Self:
        """Return an independent copy of the model in its current state.

        The copy shares the immutable state, so it takes almost no time or memory.
        """
        other = type(self).__new__(type(self))
        vars(other).update(deepcopy(self._plain()))
        other._hold(self._current(), self._versions)
        return other

    def _plain(self) -> dict[str, Any]:
        """Return all attributes except the state, the locks and the folder."""
        apart = ("_state", "_changing", "_swapping", "_guards", "_versions")
        return {name: value for name, value in vars(self).items() if name not in apart}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = memo[id(self)] = type(self).__new__(type(self))
        vars(other).update(deepcopy(self._plain(), memo))
        other._hold(None if self._state is None else self._state.copy())
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the learner's class by name and the state as the bytes of its files."""
        state = self._state
        packed = None if state is None else pack(state, self.configuration)
        return {"learner": find_method(self.method).learner, "plain": self._plain(), "state": packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        name_of_method(state["learner"])
        vars(self).update(state["plain"])
        self._hold(None if state["state"] is None else unpack(state["state"], device=self.device))
