"""The contract between a method and everything that runs it.

A learner of your own derives from :class:`Learner` and implements :meth:`~Learner.fit`, :meth:`~Learner.learn` and
:meth:`~Learner.scores`; everything else has a default. ``docs/your-method.md`` shows one in 40 lines, and
``graphfcl check my_module:MyLearner`` checks every rule written here.
"""

from __future__ import annotations

import json
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods.settings import NoSettings, settings_as_json
from graphfcl.runtime.registry import Described

if TYPE_CHECKING:  # a command that asks no learner need not wait for torch
    import torch

    from graphfcl.graph.interfaces import VisibleNodes
    from graphfcl.stream.sessions import BaseSession, Session

Tensors = dict[str, "torch.Tensor"]
Labelled = tuple[np.ndarray, np.ndarray]  # node numbers and columns
TABLE_NAME = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}")  # of a table's folder, and of nothing outside the work folder


def no_labels() -> Labelled:
    """No labelled node."""
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def join_labelled(*labelled: Labelled) -> Labelled:
    """All of these labelled nodes, one after the other."""
    nodes, columns = (np.concatenate(parts) for parts in zip(*labelled, strict=True))
    return nodes, columns


def select_labelled(labelled: Labelled, which: np.ndarray) -> Labelled:
    """Some of these labelled nodes: a mask, or their places."""
    return labelled[0][which], labelled[1][which]


@dataclass(frozen=True, eq=False)
class LearnerState:
    """Everything a learner knows: plain tensors, and values that JSON can hold."""

    tensors: Tensors = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


class Progress:
    """Receives the progress of a learner. This base class ignores it; a run displays it and saves checkpoints."""

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        """Report that ``step`` of at most ``total`` steps of a stage are done; ``score`` is a validation accuracy.

        A stage that ends early, because validation no longer improves, passes ``total=step`` in its last call.
        """

    def checkpoint(self, learner: Learner) -> None:
        """Report that the learner's state is complete: once it is saved and loaded, ``fit`` continues from here."""


SILENT = Progress()


class EncoderStore:
    """A store of pre-trained encoders. This base class stores nothing."""

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:  # noqa: ARG002
        """Return the tensors of ``key``; compute them if they are not stored."""
        return compute()


NO_STORE = EncoderStore()


@dataclass(frozen=True)
class Explanation:
    """Why a node got its class. All in units of the difference between the scores of the first and the second class,
    except probabilities.

    classes: (column, probability) of the likeliest classes. before_smoothing: the probabilities of all columns by the
        node's own vector, without what neighbours look like.
    blocks: what each block adds. features: (column of the feature, what it adds) of the node's own features; none if
        columns were folded together. around: (node number, what it adds).
    neighbours: (node number, share in the smoothing or propagation, its own probability of the first class, what the
        link to it adds where links are listened to), direct neighbours. None in place of the probability: that of the
        model's answer for the neighbour.
    """

    classes: tuple[tuple[int, float], ...]
    before_smoothing: tuple[float, ...]
    blocks: dict[str, float]
    features: tuple[tuple[int, float], ...]
    around: tuple[tuple[int, float], ...]
    neighbours: tuple[tuple[int, float, float | None, float], ...]


class LastTables:
    """Removes the tables of scores when those of the next ones are complete, so that a run keeps one session on disk.

    Only what this learner was asked for is removed. A copy of the learner begins with none; a run that goes on after
    it was stopped says which there were (:meth:`recall`).
    """

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()

    def recall(self, names: Iterable[str]) -> None:
        """What ``names`` was in the process that a run goes on from; what is no name of a table is passed over."""
        self.names = tuple(name for name in names if TABLE_NAME.fullmatch(name))

    def replace_by(self, folders: Sequence[Path]) -> None:
        """Remove the last tables that are not among these, which are complete. All lie in one work folder."""
        kept = tuple(folder.name for folder in folders)
        for name in set(self.names) - set(kept) if folders else ():
            shutil.rmtree(folders[0].parent / name, ignore_errors=True)
        self.names = kept


class Learner(Described, ABC):
    """A classifier that learns classes session by session.

    Scores are a function of the learner's state and of the graph visible now: a node's scores do not depend on which
    other nodes are asked about, and asking changes nothing. Classes are append-only: a class keeps its column. Sessions
    and visible graphs are read-only. ``visible.loaded()`` is the visible graph in memory, with ``adjacency``,
    ``normalised`` and ``features``; of a graph in memory it is ``visible`` itself.

    What a learner has learned are attributes whose names end in ``_``: arrays, tensors, generators of numpy, and
    values that JSON can hold. :meth:`state` saves them, unless a learner says it in another way.
    """

    name: ClassVar[str] = "learner"
    """Name on the command line and in tables, by default derived from the class: NearestMean is nearest-mean."""
    title: ClassVar[str] = ""
    """One line for ``graphfcl methods``; by default the first line of the docstring."""
    reference: ClassVar[str] = ""
    """The paper it comes from."""
    settings_type: ClassVar[type[Any]] = NoSettings
    """A frozen dataclass whose fields all have defaults; ``--set key=value`` sets them."""
    production_settings: ClassVar[dict[str, Any]] = {}
    """Settings of a model in production that differ from the defaults."""
    lasting_tensors: ClassVar[tuple[str, ...]] = ()
    """Prefixes of tensors that sessions do not change: versions of a model share them in one file."""
    trains_on_query_labels: ClassVar[bool] = False
    """Whether it uses the query labels that sessions of the protocol ``paper`` carry."""
    uses_pool_labels: ClassVar[bool] = False
    """Whether its sessions have the labels of the pool: an upper reference."""
    control: ClassVar[bool] = False
    """Whether it measures what a protocol leaks: reports show it and leave it out of ranks and tests."""

    randomness: ClassVar[tuple[str, ...]] = ()
    """What it draws random values for: ``nodes`` (dropout, episodes, samples), feature ``columns`` (initial weights,
    projections), or both. Another numbering of the nodes, or another order of the columns, may then change its answers
    as another seed does. Without randomness it must not change them."""

    works_on_disk: ClassVar[bool] = False
    """Whether it accepts a visible graph that stays on disk (``VisibleFolder``)."""
    last_tables: LastTables | None = None
    """Of one that does: the tables on the disk that its latest scores rest on."""

    classes_: tuple[str, ...] = ()
    """Names of the classes seen, in the order of their columns; :meth:`fit` and :meth:`learn` keep it."""
    pretraining_seconds_: float = 0.0
    """What the pre-training of the encoder took, in whichever run it was done."""
    pretraining_reused_: bool = False
    """Whether another run had done it before."""

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        import torch

        self.settings: Any = self.settings_type() if settings is None else settings
        self.seed = seed
        self.device = torch.device(device)

    # Learning and answering

    @abstractmethod
    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:
        """Learn session 0, and set ``classes_``. If a state from the middle of a fit was loaded, go on from there.

        progress: receives the steps of a long fit. encoders: where a learner with a pre-trained encoder looks for it
        before computing it.
        """

    @abstractmethod
    def learn(self, session: Session) -> None:
        """Learn from the supports of a session: new classes, which join ``classes_``, or more supports for known ones.

        Supports may be of unequal number, and may be one. ``session.visible_graph`` is what exists now. Of known
        classes a session of a model in production names all earlier labels too.
        """

    @abstractmethod
    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        """(nodes, classes seen) float: higher is likelier. ``nodes`` are node numbers of the visible graph."""

    def all_scores(self, visible: VisibleNodes) -> Any:
        """(n, classes seen) scores of every node: an array, or of a graph folder a table of which rows are read."""
        return self.scores(visible, visible.nodes)

    def watch(self, visible: VisibleNodes, progress: Progress) -> None:
        """Report the passes over a graph folder that scores need to ``progress``."""

    def explain(self, visible: VisibleNodes, node: int, top: int = 5) -> Explanation | None:  # noqa: ARG002
        """Why a node got its class; None if the method cannot say."""
        return None

    def chosen(self) -> dict[str, Any]:
        """What validation chose where settings and protocol do not fix it, as plain values."""
        return {}

    # State

    def settings_as_json(self) -> dict[str, Any]:
        """The settings as plain values."""
        return settings_as_json(self.settings)

    def state(self) -> LearnerState:
        """All that :meth:`load_state` needs to make an equal learner in another process.

        By default: method, settings, seed, and every attribute whose name ends in ``_``.
        """
        from graphfcl.methods.shared.learned_attributes import write_learned

        tensors, learned = write_learned(self)
        identity = {"method": self.name, "settings": self.settings_as_json(), "seed": self.seed}
        return LearnerState(tensors, {**identity, "classes": list(self.classes_), "learned": learned})

    def load_state(self, state: LearnerState) -> None:
        """Become the learner that ``state`` was taken from; its method, settings and seed must be those of this one."""
        from graphfcl.methods.shared.learned_attributes import read_learned

        self.refuse_another(state.values)
        self.classes_ = tuple(state.values["classes"])
        read_learned(self, state.tensors, state.values["learned"])

    def refuse_another(self, saved: dict[str, Any]) -> None:
        """Refuse the values of a state of another method, seed or settings."""
        identity = (saved.get("method"), saved.get("settings"), saved.get("seed"))
        if identity != (self.name, self.settings_as_json(), self.seed):
            raise InputError("the saved learner has another method, seed or settings than this one: use the same ones.")

    def stored(self) -> dict[str, int]:
        """Bytes kept between sessions, by kind: ``nodes`` (numbers and labels), ``features``, ``embeddings``,
        ``weights``. All but the weights are kept of the data.

        By default whole numbers of the state count as nodes and all else as weights.
        """
        sizes = {"nodes": 0, "features": 0, "embeddings": 0, "weights": 0}
        for tensor in self.state().tensors.values():
            sizes["weights" if tensor.is_floating_point() else "nodes"] += tensor.nbytes
        return sizes

    # What a model in production needs besides; the defaults are right and slow

    def copy(self, visible: VisibleNodes) -> Self:
        """A learner that knows the same, the embeddings of a graph included, and goes on by itself.

        What either of the two learns later, the other must not see, also if another thread asks it meanwhile: they may
        share what neither ever changes in place. By default nothing is shared.
        """
        other = type(self)(self.settings, seed=self.seed, device=self.device)
        state = self.state()
        tensors = {name: tensor.clone() for name, tensor in state.tensors.items()}
        other.load_state(LearnerState(tensors, json.loads(json.dumps(state.values))))
        other.use_embeddings(visible, self.embeddings(visible))
        return other

    @property
    def reach(self) -> int:
        """Hops: how far a changed edge changes what :meth:`embeddings_of_rows` answers."""
        return 2

    def embeddings(self, visible: VisibleNodes) -> np.ndarray:
        """(n, width) all that scores need to know of every node: one forward pass, if none was made before.

        A learner without embeddings (width 0) computes its scores again for every graph.
        """
        return np.zeros((visible.node_count, 0), dtype=np.float32)

    def embeddings_of_rows(self, visible: VisibleNodes, rows: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Some rows of :meth:`embeddings`, computed from their neighbourhood alone."""
        return np.zeros((rows.size, 0), dtype=np.float32)

    def use_embeddings(self, visible: VisibleNodes, embeddings: np.ndarray) -> None:
        """Take the embeddings of a graph as given: scores need no forward pass until a session changes weights."""

    def vectors_to_draw(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray | None:
        """(nodes, h) vectors for a picture of the classes; None if the learner has no embeddings."""
        embeddings = self.embeddings(visible)
        return embeddings[visible.rows(nodes)] if embeddings.shape[1] else None

    def restate(self, visible: VisibleNodes, train: Labelled, supports: Labelled) -> bool:  # noqa: ARG002
        """Rebuild class memory from exactly these labelled nodes; False if unsupported.

        train: (nodes, columns) of the labels that :meth:`fit` trained on. supports: those learned later, of whichever
        class. A column without a node stays, and has scores without meaning. What training made of nodes that are gone
        remains in the weights.
        """
        return False

    @property
    def forgets_exactly(self) -> bool:
        """True if what it knows is a function of the labels: :meth:`restate` removes every trace of labels learned
        after session 0, and on one graph :meth:`learn` comes to the same in whatever pieces and order they arrive.
        """
        return False

    def calibration_learner(self) -> Learner | None:
        """Make the learner of the calibration run, which is fitted to base classes alone.

        What this fitted learner chose is fixed in it, and what depends on no label may be shared with it. None if the
        method needs further classes to train on: the calibration run then takes a learner with the same settings.
        """
        return None

    def scores_without(
        self, visible: VisibleNodes, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        """(nodes, classes) scores of labelled nodes if they had not been learned; None if the method cannot say.

        train, supports: all labelled nodes as in :meth:`restate`, those to leave out among them. The learner is the
        same afterwards.
        """
        remaining = (select_labelled(part, ~np.isin(part[0], left_out[0])) for part in (train, supports))
        if not self.restate(visible, *remaining):
            return None
        scores = self.scores(visible, left_out[0])
        self.restate(visible, train, supports)
        return scores

    def drop_nodes(self, nodes: np.ndarray) -> None:
        """These nodes leave the graph for good: keep none of them."""


@dataclass(frozen=True)
class DeclaredFlags:
    """The flags that a learner declares, read once when a run starts.

    A run acts on these values and records them, so that what a result says of its learner is what the learner received,
    also if a flag is a property whose value changes.
    """

    uses_pool_labels: bool = False
    trains_on_query_labels: bool = False
    works_on_disk: bool = False
    control: bool = False

    @classmethod
    def of(cls, learner: Learner) -> DeclaredFlags:
        """Read every flag of a learner, each one time."""
        return cls(**{flag.name: bool(getattr(learner, flag.name)) for flag in fields(cls)})
