"""The contract between a method and everything that runs it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch

from graphfcl.graph import VisibleGraph
from graphfcl.stream import BaseSession, Session


@dataclass(frozen=True, eq=False)
class LearnerState:
    """Everything a learner knows: plain tensors, and values that JSON can hold."""

    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Explanation:
    """All in units of the logit difference between the first and the second class, except probabilities.

    classes: (column, probability) of the likeliest classes. before_smoothing: their probabilities by the node's own
        vector, without what neighbours look like.
    blocks: what each block adds. features: (column of the feature, what it adds) of the node's own features; none if
        columns were folded together. around: (node number, what it adds).
    neighbours: (node number, share in the smoothing, its own probability of the first class, what the link to it adds
        where links are listened to), direct neighbours.
    """

    classes: tuple[tuple[int, float], ...]
    before_smoothing: tuple[float, ...]
    blocks: dict[str, float]
    features: tuple[tuple[int, float], ...]
    around: tuple[tuple[int, float], ...]
    neighbours: tuple[tuple[int, float, float, float], ...]


class Progress:
    """What a learner tells while it works. This one listens to nothing; a run shows it and saves checkpoints."""

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        """``step`` of at most ``total`` of a stage is done; ``score`` is a validation accuracy."""

    def checkpoint(self, learner: "Learner") -> None:
        """The learner's state is complete now: saved and loaded, ``fit`` would go on from here."""


SILENT = Progress()

Tensors = dict[str, torch.Tensor]
Labelled = tuple[np.ndarray, np.ndarray]  # node numbers and columns


class EncoderStore:
    """Where pre-trained encoders are found and left. This one remembers nothing."""

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:  # noqa: ARG002
        """The tensors of ``key``; computed if nobody has done so before."""
        return compute()


class GivenEncoder(EncoderStore):
    """One encoder that is already there."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:  # noqa: ARG002
        return self.tensors


NO_STORE = EncoderStore()


class Learner(ABC):
    """A classifier that learns classes session by session.

    Scores are a function of the learner's state and of the graph visible now: a node's scores do not depend on which
    other nodes are asked about, and asking changes nothing. Classes are append-only: a class keeps its column.
    """

    trains_on_query_labels: ClassVar[bool] = False  # under the protocol `paper`
    uses_pool_labels: ClassVar[bool] = False  # wants sessions with the labels of the pool
    production_settings: ClassVar[dict[str, Any]] = {}  # of a model in production, where they differ from the defaults
    lasting_tensors: ClassVar[tuple[str, ...]] = ()  # prefixes of state tensors that rarely change after session 0
    settings: Any
    classes_: tuple[str, ...] = ()

    @abstractmethod
    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:
        """Learn session 0. If a state from the middle of a fit was loaded, go on from there.

        encoders: where a learner with a pre-trained encoder asks for it before it computes it.
        """

    @abstractmethod
    def learn(self, session: Session) -> None:
        """Learn from the supports of a session: new classes, or more supports for known ones."""

    @abstractmethod
    def scores(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray:
        """(nodes, classes seen) float: higher is likelier. ``nodes`` are node numbers of the visible graph."""

    @property
    def reach(self) -> int:
        """Hops: how far a changed edge changes what :meth:`embed_rows` answers."""
        return 2

    def embedding_table(self, visible: VisibleGraph) -> np.ndarray:
        """(n, width) all that scores need to know of every node: one forward pass, if none was made before.

        A learner that answers no table (width 0) computes its scores anew for every graph.
        """
        return np.zeros((visible.node_count, 0), dtype=np.float32)

    def embed_rows(self, visible: VisibleGraph, rows: np.ndarray) -> np.ndarray:  # noqa: ARG002
        """Some rows of that table, computed from their neighbourhood alone."""
        return np.zeros((rows.size, 0), dtype=np.float32)

    def use_table(self, visible: VisibleGraph, table: np.ndarray) -> None:  # noqa: B027
        """Take the table of a graph as given: scores of it need no forward pass until a session changes weights."""

    def restate(self, visible: VisibleGraph, train: Labelled, supports: Labelled) -> bool:  # noqa: ARG002
        """Know the classes by these labelled nodes alone, on this graph; False if the method cannot.

        train: (nodes, columns) of the classes of session 0. supports: those of the others. A column without a node
        stays, and has scores without meaning. What training made of nodes that are gone remains in the weights.
        """
        return False

    @property
    def forgets_exactly(self) -> bool:
        """Whether a restated learner knows nothing else of what it learned after session 0."""
        return False

    def scores_without(
        self, visible: VisibleGraph, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        """(nodes, classes) scores of labelled nodes if they had not been learned; None if the method cannot say.

        train, supports: all labelled nodes, those to leave out among them. The learner is the same afterwards.
        """
        remaining = [
            (nodes[kept], columns[kept])
            for nodes, columns in (train, supports)
            for kept in (~np.isin(nodes, left_out[0]),)
        ]
        if not self.restate(visible, remaining[0], remaining[1]):
            return None
        found = self.scores(visible, left_out[0])
        self.restate(visible, train, supports)
        return found

    def drop_nodes(self, nodes: np.ndarray) -> None:  # noqa: B027
        """These nodes leave the graph for good: keep none of them."""

    def explain(self, visible: VisibleGraph, node: int, top: int = 5) -> Explanation | None:  # noqa: ARG002
        """Why a node gets its class; None if the method cannot say."""
        return None

    def settings_as_json(self) -> dict[str, Any]:
        """All settings as plain values, nested as they are."""
        return self.settings.as_json()

    @abstractmethod
    def state(self) -> LearnerState:
        """All that :meth:`load_state` needs to make an equal learner in another process."""

    @abstractmethod
    def load_state(self, state: LearnerState) -> None:
        """Become the learner that ``state`` was taken from; its settings must be those of this one."""

    def chosen(self) -> dict[str, Any]:
        """What a run settled on, as plain values: chosen by validation where settings or protocol do not fix it."""
        return {}

    @abstractmethod
    def stored(self) -> dict[str, int]:
        """Bytes kept between sessions, by kind: ``nodes`` (numbers and labels), ``features``, ``embeddings``,
        ``weights``. All but the weights are kept of the data."""
