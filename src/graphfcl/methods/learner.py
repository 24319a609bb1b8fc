"""The contract between a method and the code that runs it.

Your own learner derives from :class:`Learner` and implements :meth:`~Learner.fit`, :meth:`~Learner.learn` and
:meth:`~Learner.scores`; everything else has a default. ``docs/your-method.md`` shows one in 40 lines, and
``graphfcl check my_module:MyLearner`` checks every rule stated here.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods.settings import NoSettings, settings_as_json
from graphfcl.methods.state import (
    NO_STORE,
    EncoderStore,
    Labelled,
    LastTables,
    LearnerState,
    select_labelled,
)
from graphfcl.runtime.registry import Described

if TYPE_CHECKING:  # commands that use no learner must not wait for the import of torch
    import torch

    from graphfcl.graph.interfaces import VisibleNodes
    from graphfcl.stream.sessions import BaseSession, Session


class Progress:
    """A receiver of progress reports from a learner.

    This base class ignores all reports. Override :meth:`step` to display them, and :meth:`checkpoint` to save the
    state of a long fit.

    Examples:
        >>> from graphfcl import Progress, evaluate, load_dataset, make_stream
        >>> class Log(Progress):
        ...     def step(self, stage, step, total, *, loss=None, score=None):
        ...         print(stage, step, "of", total)
        >>> graph, protocol = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> _ = evaluate("sgc-ridge", make_stream(graph, protocol, seed=0), progress=Log())
        choosing 1 of 3
        choosing 2 of 3
        choosing 3 of 3
        sessions 0 of 2
        sessions 1 of 2
        sessions 2 of 2
    """

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        """Report that some steps of a stage are done.

        A stage that stops early because validation no longer improves passes ``total=step`` in its last call.

        Args:
            stage: Name of the stage, for example ``pre-training``.
            step: Number of steps done.
            total: Largest number of steps that the stage may take.
            loss: Training loss of the last step, if there is one.
            score: Validation accuracy between 0 and 1, if there is one.
        """

    def checkpoint(self, learner: Learner) -> None:
        """Report that the state of the learner is complete.

        If this state is saved and later loaded into a new learner, ``fit`` continues from this point.

        Args:
            learner: The learner that is being fitted.
        """


SILENT = Progress()


@dataclass(frozen=True)
class Explanation:
    """Why a node got its class.

    Contributions are additive parts of the score difference between the first two ``classes``: a positive contribution
    speaks for the first one. A column is the position of a class in ``classes_``.

    Args:
        classes: (column, probability) of the most likely classes, best first.
        before_smoothing: Probability of each class before the method uses predictions of neighbours. A method that only
            propagates features leaves these out.
        blocks: Contribution of each part of the node's vector, by name.
        features: (feature column, contribution) of the node's own features. Empty if feature columns were hashed.
        around: (node number, contribution) of the nodes whose features are propagated to this node.
        neighbours: (node number, weight, probability, link contribution) of direct neighbours. The weight is the
            neighbour's share in smoothing or propagation. The probability is that of the most likely class from the
            neighbour's own vector; if it is None, use the model's prediction for the neighbour. The link contribution
            is 0 for methods that do not model links.

    Examples:
        >>> from graphfcl import find_method, load_dataset, make_stream
        >>> graph, protocol = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> base = make_stream(graph, protocol, seed=0).base
        >>> learner = find_method("sgc-ridge").make()
        >>> learner.fit(base)
        >>> explanation = learner.explain(base.visible_graph, int(base.train[0]), top=2)
        >>> len(explanation.classes), sorted(explanation.blocks)
        (2, ['features around', 'own features'])
    """

    classes: tuple[tuple[int, float], ...]
    before_smoothing: tuple[float, ...]
    blocks: dict[str, float]
    features: tuple[tuple[int, float], ...]
    around: tuple[tuple[int, float], ...]
    neighbours: tuple[tuple[int, float, float | None, float], ...]


class Learner(Described, ABC):
    """A classifier that learns classes session by session.

    A class is identified by its column, its position in ``classes_``. New classes are appended, and a class never
    changes its column. Scores depend only on the learner's state and on the graph that is visible now: a node's scores
    do not depend on which other nodes are scored, and scoring does not change the state. Sessions and visible graphs
    are read-only. ``visible.loaded()`` returns the visible graph in memory, with ``adjacency``, ``normalised`` and
    ``features``.

    Attributes whose names end in ``_`` hold what the learner has learned: arrays, tensors, numpy generators, and values
    that JSON can represent. By default :meth:`state` saves exactly these.

    Args:
        settings: An instance of ``settings_type``; by default the default settings.
        seed: Seed of all random numbers.
        device: PyTorch device for tensors.

    Examples:
        A classifier that predicts the most frequent class:

        >>> import numpy as np
        >>> from graphfcl import Learner, evaluate, load_dataset, make_stream
        >>> class MostFrequent(Learner):
        ...     def fit(self, base, progress=None, encoders=None):
        ...         self.classes_ = base.classes
        ...         self.counts_ = np.bincount(base.train_labels, minlength=len(base.classes)).astype(float)
        ...     def learn(self, session):
        ...         self.classes_ += session.new_classes
        ...         self.counts_ = np.pad(self.counts_, (0, len(session.new_classes)))
        ...         np.add.at(self.counts_, session.support_labels, 1)
        ...     def scores(self, visible, nodes):
        ...         return np.tile(self.counts_, (len(nodes), 1))
        >>> graph, protocol = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> evaluation = evaluate(MostFrequent(), make_stream(graph, protocol, seed=0))
        >>> [round(session.values["balanced_accuracy"], 2) for session in evaluation.metrics.sessions]
        [0.25, 0.2, 0.17]
    """

    name: ClassVar[str] = "learner"
    """Name on the command line and in tables. By default it is derived from the class: NearestMean is nearest-mean."""
    title: ClassVar[str] = ""
    """One line for ``graphfcl methods``. By default it is the first line of the docstring."""
    reference: ClassVar[str] = ""
    """Paper that describes the method."""
    settings_type: ClassVar[type[Any]] = NoSettings
    """A frozen dataclass whose fields all have defaults. ``--set key=value`` sets them."""
    production_settings: ClassVar[dict[str, Any]] = {}
    """Settings with other defaults for a model in production."""
    lasting_tensors: ClassVar[tuple[str, ...]] = ()
    """Name prefixes of tensors that sessions do not change. All versions of a model share them in one file."""
    trains_on_query_labels: ClassVar[bool] = False
    """Whether the method trains on the query labels that sessions of the protocol ``paper`` contain."""
    uses_pool_labels: ClassVar[bool] = False
    """Whether the method receives the labels of the pool. Such a method is an upper reference."""
    control: ClassVar[bool] = False
    """Whether the method only measures what a protocol leaks. Reports exclude it from ranks and significance tests."""

    randomness: ClassVar[tuple[str, ...]] = ()
    """What random numbers are drawn for: ``nodes`` (dropout, episodes, samples), feature ``columns`` (initial weights,
    projections), or both. If nodes are renumbered or columns reordered, scores may change as they do with another seed.
    Scores of a method without randomness must not change."""

    works_on_disk: ClassVar[bool] = False
    """Whether the method accepts a visible graph that stays on disk (``VisibleFolder``)."""
    last_tables: LastTables | None = None
    """Tables on disk behind the latest scores; None for a method that does not work on disk."""

    classes_: tuple[str, ...] = ()
    """Names of the classes seen, in the order of their columns. :meth:`fit` and :meth:`learn` update it."""
    pretraining_seconds_: float = 0.0
    """Seconds that the pre-training of the encoder took, in this run or in the run that stored it."""
    pretraining_reused_: bool = False
    """Whether the pre-trained encoder came from an encoder store."""

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        import torch

        self.settings: Any = self.settings_type() if settings is None else settings
        self.seed = seed
        self.device = torch.device(device)

    # Training and prediction

    @abstractmethod
    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:
        """Learn session 0 and set ``classes_``.

        If the state of an unfinished fit was loaded before, training continues from it.

        Args:
            base: Session 0, with the base classes and the pseudo-novel classes.
            progress: Receives the steps of a long fit.
            encoders: Store in which a pre-trained encoder is looked up before it is computed.

        Raises:
            DivergenceError: If training produces a loss that is not finite.
        """

    @abstractmethod
    def learn(self, session: Session) -> None:
        """Learn the supports of a session.

        New classes are appended to ``classes_``; supports of known classes are added to these classes. Classes may
        have different numbers of supports, one being the minimum. In a session of a model in production,
        ``session.earlier`` lists all earlier labels of known classes.

        Args:
            session: The session, with the graph that is visible now.

        Raises:
            DivergenceError: If fine-tuning produces a loss that is not finite.
        """

    @abstractmethod
    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        """Score nodes against all classes seen.

        Args:
            visible: The graph that is visible now.
            nodes: Node numbers of the visible graph.

        Returns:
            (nodes, classes seen) floats. A higher score means a more likely class.
        """

    def all_scores(self, visible: VisibleNodes) -> Any:
        """Score all visible nodes.

        Args:
            visible: The graph that is visible now.

        Returns:
            (n, classes seen) scores: an array, or a table on disk if the graph is a graph folder.
        """
        return self.scores(visible, visible.nodes)

    def watch(self, visible: VisibleNodes, progress: Progress) -> None:
        """Report the passes over a graph folder that scores need.

        Args:
            visible: The graph that is visible now.
            progress: Receives a report for each pass.
        """

    def explain(
        self,
        visible: VisibleNodes,  # noqa: ARG002
        node: int,  # noqa: ARG002
        top: int = 5,  # noqa: ARG002
        columns: Sequence[int] | None = None,  # noqa: ARG002
    ) -> Explanation | None:
        """Explain why a node got its class.

        Args:
            visible: The graph that is visible now.
            node: Node number.
            top: Number of classes, features and neighbours to list.
            columns: Columns to explain, best first; the first two are compared. None: those with the highest scores.

        Returns:
            The explanation, or None if the method has none.
        """
        return None

    def chosen(self) -> dict[str, Any]:
        """Return what validation chose, as plain values.

        Values that settings or the protocol fix are not included.
        """
        return {}

    # State

    def settings_as_json(self) -> dict[str, Any]:
        """Return the settings as values that JSON can represent."""
        return settings_as_json(self.settings)

    def state(self) -> LearnerState:
        """Return everything that :meth:`load_state` needs to restore the learner in another process.

        By default this is the method, the settings, the seed, and every attribute whose name ends in ``_``.
        """
        from graphfcl.methods.shared.learned_attributes import write_learned

        tensors, learned = write_learned(self)
        identity = {"method": self.name, "settings": self.settings_as_json(), "seed": self.seed}
        return LearnerState(tensors, {**identity, "classes": list(self.classes_), "learned": learned})

    def load_state(self, state: LearnerState) -> None:
        """Restore the learner that a state was taken from.

        Args:
            state: A state of a learner with the same method, settings and seed.

        Raises:
            InputError: If the method, the settings or the seed differ.
        """
        from graphfcl.methods.shared.learned_attributes import read_learned

        self.refuse_another(state.values)
        self.classes_ = tuple(state.values["classes"])
        read_learned(self, state.tensors, state.values["learned"])

    def refuse_another(self, saved: dict[str, Any]) -> None:
        """Check that a state belongs to the same method, settings and seed.

        Args:
            saved: The values of a state.

        Raises:
            InputError: If the method, the settings or the seed differ.
        """
        identity = (saved.get("method"), saved.get("settings"), saved.get("seed"))
        if identity != (self.name, self.settings_as_json(), self.seed):
            raise InputError("the saved learner has another method, seed or settings than this one: use the same ones.")

    def stored(self) -> dict[str, int]:
        """Count the bytes that are kept between sessions, by kind.

        The kinds are ``nodes`` (node numbers and labels), ``features``, ``embeddings`` and ``weights``. The first three
        are data. By default integer tensors of the state count as nodes, and all others as weights.
        """
        sizes = {"nodes": 0, "features": 0, "embeddings": 0, "weights": 0}
        for tensor in self.state().tensors.values():
            sizes["weights" if tensor.is_floating_point() else "nodes"] += tensor.nbytes
        return sizes

    # Methods that a model in production also calls; the defaults are correct but slow

    def copy(self, visible: VisibleNodes) -> Self:
        """Return an independent copy, including the embeddings of a graph.

        What one of the two learns later must not affect the other, even if another thread scores nodes meanwhile. They
        may share only what neither changes in place. By default they share nothing.

        Args:
            visible: The graph whose embeddings are copied.

        Returns:
            The copy.
        """
        other = type(self)(self.settings, seed=self.seed, device=self.device)
        state = self.state()
        tensors = {name: tensor.clone() for name, tensor in state.tensors.items()}
        other.load_state(LearnerState(tensors, json.loads(json.dumps(state.values))))
        other.use_embeddings(visible, self.embeddings(visible))
        return other

    @property
    def reach(self) -> int:
        """Distance in hops up to which a changed edge changes embeddings."""
        return 2

    def embeddings(self, visible: VisibleNodes) -> np.ndarray:
        """Return the embeddings of all visible nodes.

        Embeddings contain everything that scores need to know about a node. They take one forward pass, which is
        skipped if they are cached. A learner without embeddings computes its scores again for every graph.

        Args:
            visible: The graph that is visible now.

        Returns:
            (n, width) floats; the width is 0 for a learner without embeddings.
        """
        return np.zeros((visible.node_count, 0), dtype=np.float32)

    def embeddings_of_rows(self, visible: VisibleNodes, rows: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Compute the embeddings of some nodes from their neighbourhoods alone.

        Args:
            visible: The graph that is visible now.
            rows: Rows of the visible graph.

        Returns:
            (rows, width) floats, the same as these rows of :meth:`embeddings`.
        """
        return np.zeros((rows.size, 0), dtype=np.float32)

    def use_embeddings(self, visible: VisibleNodes, embeddings: np.ndarray) -> None:
        """Put embeddings into the cache.

        Scores of this graph then need no forward pass until a session changes the weights.

        Args:
            visible: The graph that is visible now.
            embeddings: (n, width) embeddings of its nodes.
        """

    def vectors_to_draw(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray | None:
        """Return the vectors of nodes for a map of the classes.

        Args:
            visible: The graph that is visible now.
            nodes: Node numbers.

        Returns:
            (nodes, width) floats, or None if the learner has no embeddings.
        """
        embeddings = self.embeddings(visible)
        return embeddings[visible.rows(nodes)] if embeddings.shape[1] else None

    def restate(self, visible: VisibleNodes, train: Labelled, supports: Labelled) -> bool:  # noqa: ARG002
        """Rebuild the class memory from exactly these labelled nodes.

        Weights are not trained again, so the influence of removed nodes on the weights remains. A class without a
        labelled node keeps its column, and its scores have no meaning.

        Args:
            visible: The graph that is visible now.
            train: (nodes, columns) of the labels that :meth:`fit` trained on.
            supports: (nodes, columns) of the labels learned later, of any class.

        Returns:
            Whether the method supports this.
        """
        return False

    @property
    def forgets_exactly(self) -> bool:
        """Whether the learned state after session 0 is a function of the labels alone.

        If it is, :meth:`restate` removes every trace of labels learned after session 0. On one graph, :meth:`learn`
        then gives the same state in whatever order and portions the labels arrive.
        """
        return False

    def calibration_learner(self) -> Learner | None:
        """Make the learner of the calibration run, which is fitted to base classes alone.

        The choices of this fitted learner are fixed in the new one, and parts that depend on no label may be shared.

        Returns:
            The learner, or None if the method needs further classes to train on. The calibration run then uses a
            learner with the same settings.
        """
        return None

    def scores_without(
        self, visible: VisibleNodes, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        """Score labelled nodes as if they had not been learned.

        The state of the learner is the same afterwards.

        Args:
            visible: The graph that is visible now.
            left_out: (nodes, columns) of the labels to leave out.
            train: (nodes, columns) of the labels that :meth:`fit` trained on, including those to leave out.
            supports: (nodes, columns) of the labels learned later, including those to leave out.

        Returns:
            (left-out nodes, classes) scores, or None if the method does not support :meth:`restate`.
        """
        remaining = (select_labelled(part, ~np.isin(part[0], left_out[0])) for part in (train, supports))
        if not self.restate(visible, *remaining):
            return None
        scores = self.scores(visible, left_out[0])
        self.restate(visible, train, supports)
        return scores

    def drop_nodes(self, nodes: np.ndarray) -> None:
        """Forget nodes that leave the graph for good.

        Args:
            nodes: Node numbers, which must not be kept.
        """


@dataclass(frozen=True)
class DeclaredFlags:
    """The flags that a learner declares, read once when a run starts.

    A run acts on these values and records them. A result therefore states what the learner received, even if a flag is
    a property whose value changes.
    """

    uses_pool_labels: bool = False
    trains_on_query_labels: bool = False
    works_on_disk: bool = False
    control: bool = False

    @classmethod
    def of(cls, learner: Learner) -> DeclaredFlags:
        """Read every flag of a learner once."""
        return cls(**{flag.name: bool(getattr(learner, flag.name)) for flag in fields(cls)})
