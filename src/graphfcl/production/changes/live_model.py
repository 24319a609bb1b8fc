"""What a model holds, and how it changes: one state that everybody reads, replaced as a whole by one writer at a time.

A reader takes the state once and works on it; it never waits for a writer. A writer makes a draft on a copy of the
learner, and the state is exchanged by one assignment when all is settled. So every change is all or nothing.
"""

import io
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import list_of_nodes
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.graph.tables.frames import is_frame
from graphfcl.methods import Learner, Progress, find_method
from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.answers.calibration import Calibration, Readings
from graphfcl.production.answers.version_cache import CacheThread
from graphfcl.production.graph.place import FolderUse
from graphfcl.production.labels.history import History
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.codec import decode, encode
from graphfcl.production.model.parts import Configuration, ModelParts, name_of_method
from graphfcl.production.model.state import ModelState
from graphfcl.production.model.versions import Versions
from graphfcl.production.store.block_arrays import BlockArrays
from graphfcl.production.store.objects import MemoryObjects

if TYPE_CHECKING:
    from graphfcl.production.changes.draft import Draft
    from graphfcl.production.changes.graph_changes import GraphChange
    from graphfcl.production.graph import ModelGraph, NodeIndex

NOT_FITTED = "this classifier is not fitted: call fit with a graph first."


class LiveModel:
    """What :class:`GraphClassifier` rests on: the state of a model, and the rules of a change.

    Learned state ends in ``_`` and is missing until the model is fitted.
    """

    def __init__(self, configuration: Configuration, *, device: str) -> None:
        self.method, self.settings = configuration.method, dict(configuration.settings)
        self.way, self.shot, self.seed = configuration.way, configuration.shot, configuration.seed
        self.max_loss, self.device = configuration.max_loss, device
        self.standardise = configuration.standardise
        self._hold(None)

    def _hold(self, state: ModelState | None, versions: Versions | None = None) -> None:
        """Be in this state. versions: the folder that the model was last loaded from or saved to."""
        self._state, self._versions = state, versions
        self._cache_thread = CacheThread()
        self._changing = threading.Lock()  # held by whoever makes a change, from its start to its end
        self._swapping = threading.Lock()  # held while the state is exchanged

    # State

    @property
    def graph_(self) -> "ModelGraph":
        """The graph that it lives on."""
        return self._learned().parts.graph

    @property
    def learner_(self) -> Learner:
        """What answers. Do not change it: others may be asking it."""
        return self._learned().parts.learner

    @property
    def label_store_(self) -> LabelStore:
        """Who is labelled with what."""
        return self._learned().parts.label_store

    @property
    def calibration_(self) -> Calibration:
        """From scores to probabilities."""
        return self._learned().calibration()

    @property
    def history(self) -> History:
        """All changes, oldest first; those of a folder are read when they are looked at."""
        return History() if self._state is None else self._state.history

    @property
    def version(self) -> int | None:
        """That of the folder it was last loaded from or saved to."""
        return None if self._state is None else self._state.version

    @property
    def configuration(self) -> Configuration:
        """What the user chose, as it is now."""
        chosen = (self.method, self.settings, self.way, self.shot, self.seed, self.max_loss, self.standardise)
        return Configuration(*chosen, None if self._state is None else self._state.parts.configuration.columns)

    def parts(self) -> ModelParts:
        """Everything that the model consists of now."""
        return self._current().parts.configured(self.configuration)

    def all_scores(self) -> np.ndarray:
        """(n, columns) the learner's scores of every node, in the order of ``node_ids_``, in memory.

        They are computed once for a state of the model.
        """
        state = self._current()
        scores = state.asked.answers().scores
        return np.concatenate([scores[rows] for rows in state.names().row_parts(row_bytes=64)])

    @property
    def has_graph_folder(self) -> bool:
        """Whether its graph is a graph folder, which is not copied into the model."""
        return self._current().passes

    def _node_index(self) -> "NodeIndex":
        """How its nodes are found by the user's ids."""
        return self._current().names()

    def numbers_of(self, nodes: Sequence[Any]) -> np.ndarray:
        """Node numbers of the user's ids."""
        return self._current().parts.graph.numbers_of(self._ids(nodes))

    def _columns(self) -> ReadColumns | None:
        """The columns of the tables of the fit."""
        return self._current().parts.configuration.columns

    def _ids(self, nodes: Any) -> Any:
        """The ids that somebody hands in: a list, an array, or a DataFrame that has them; None stays None."""
        if nodes is None:
            return None
        if is_frame(nodes):
            from graphfcl.production.changes.user_tables import read_ids

            return read_ids(nodes, self._columns())
        return list_of_nodes(nodes)

    def _current(self) -> ModelState:
        """The state as it is now; an error if the model is not fitted yet."""
        state = self._state
        if state is None:
            raise InputError(NOT_FITTED)
        return state

    def _learned(self) -> ModelState:
        """The same for attributes: one that is missing is an AttributeError."""
        state = self._state
        if state is None:
            raise AttributeError(NOT_FITTED)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return self._state is not None

    # Changes

    @contextmanager
    def _change(self) -> Iterator["Draft"]:
        """Make a change: all of it, or if anything goes wrong inside, nothing. Others wait until it is done.

        A draft without an entry was given up.
        """
        from graphfcl.production.changes.draft import Draft

        with self._changing:
            draft = Draft(self._current(), self.configuration)
            yield draft
            if draft.entries:
                with self._swapping:
                    self._state = draft.finished(self._current())

    def _begin(self, parts: ModelParts, change: dict[str, Any], progress: Progress) -> None:
        """Be a new model of these parts; whoever calls holds the lock of changes."""
        from graphfcl.production.changes.draft import Draft

        first = ModelState.of(parts)
        draft = Draft(first, replace(self.configuration, columns=parts.configuration.columns), parts.learner)
        draft.settle(change, self.max_loss, at_once=True, progress=progress)
        self._state = draft.finished(first)

    def _settle(self, draft: "Draft", change: dict[str, Any]) -> None:
        """The end of every change."""
        draft.settle(change, self.max_loss)

    def _move(self, draft: "Draft", change: "GraphChange") -> Self:
        """Go on with a changed graph."""
        self._settle(draft, draft.move(change))
        return self

    def _saved(self, state: ModelState, number: int, versions: Versions) -> None:
        """A state was written as a version; the model may have gone on meanwhile."""
        with self._swapping:
            self._state, self._versions = self._current().saved_as(number, len(state.history)), versions

    def leave_history(self) -> None:
        """Leave the entries of the history to the folder, which has them all; they are read when somebody looks."""
        with self._swapping:
            state, versions = self._current(), self._versions
            if versions is not None and state.version is not None and not state.history.unsaved():
                history = versions.stored_history(versions.manifest(state.version))
                self._state = replace(state, history=history)

    # Copies, also in other processes

    def snapshot(self) -> Self:
        """A model in the state of this moment: what is done to one of them does not touch the other.

        It shares the state itself, which nobody changes, and costs next to nothing.
        """
        other = type(self).__new__(type(self))
        vars(other).update(deepcopy(self._plain()))
        other._hold(self._current(), self._versions)
        return other

    def _plain(self) -> dict[str, Any]:
        """All attributes but the state, the locks and the folder."""
        apart = ("_state", "_changing", "_swapping", "_cache_thread", "_versions")
        return {name: value for name, value in vars(self).items() if name not in apart}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = memo[id(self)] = type(self).__new__(type(self))
        vars(other).update(deepcopy(self._plain(), memo))
        other._hold(None if self._state is None else self._state.copy())
        return other

    def __getstate__(self) -> dict[str, Any]:
        """The learner's class goes by its name, the state as the bytes of its files."""
        state = self._state
        packed = None if state is None else pack(state, self.configuration)
        return {"learner": find_method(self.method).learner, "plain": self._plain(), "state": packed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        name_of_method(state["learner"])
        vars(self).update(state["plain"])
        self._hold(None if state["state"] is None else unpack(state["state"], device=self.device))


@dataclass(frozen=True)
class PackedState:
    """objects, trees: as a folder has them, the trees as JSON. history: JSON. answers: those of all nodes as ``.npy``,
    so that a copy answers the same to the digit, without a forward pass; none of a graph on disk, where they lie.
    use: where such a graph and its work folder are.
    """

    objects: dict[str, bytes]
    trees: str
    history: str
    version: int | None
    answers: tuple[bytes, ...]
    use: FolderUse


def pack(state: ModelState, configuration: Configuration) -> PackedState:
    """A state that another process can :func:`unpack`."""
    arrays, parts = BlockArrays(MemoryObjects()), state.copy().parts
    trees = encode(replace(parts, configuration=configuration), arrays)
    assert isinstance(arrays.objects, MemoryObjects)
    return PackedState(
        objects=arrays.objects.content,
        trees=json.dumps(trees),
        history=json.dumps(state.history.entries()),
        version=state.version,
        answers=() if state.passes else _packed(state.asked.answers()),
        use=parts.graph.use(),
    )


def unpack(packed: PackedState, *, device: str) -> ModelState:
    """The state again; its method must be known here."""
    objects = MemoryObjects()
    objects.content = packed.objects
    parts = decode(json.loads(packed.trees), BlockArrays(objects), device=device, use=packed.use)
    answers = None
    if packed.answers:
        scores, *readings = (np.load(io.BytesIO(each), allow_pickle=False) for each in packed.answers)
        answers = ModelAnswers.in_memory(scores, Readings(*readings), parts.calibration)
    state = ModelState.of(parts, answers)
    return replace(state, history=History(json.loads(packed.history)), version=packed.version)


def _packed(answers: ModelAnswers) -> tuple[bytes, ...]:
    return tuple(_npy(each) for each in (answers.scores, answers.ood_score, answers.temperatures))


def _npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()
