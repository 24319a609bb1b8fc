"""The stored state of ANCHOR, rounded to few bits after session 0, and the memory that its computation takes."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch

from graphfcl.methods.anchor.choosing import memory_of_choice
from graphfcl.methods.anchor.class_sums import Anchors, Shrinkage
from graphfcl.methods.anchor.head import LabelledPoints, retrained_head, trained_head
from graphfcl.methods.anchor.hop_encoder import HOPS
from graphfcl.methods.anchor.ridge import RidgeFrame, RidgeSums
from graphfcl.methods.anchor.rounds import answer_tensors
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.blocks import MemoryNeed, NodeTables, Table
from graphfcl.methods.blocks.interface import count_of_each_class, some_of_each_class
from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.untrained_features import in_steps, upper_triangle
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS
from graphfcl.methods.state import (
    Labelled,
    Tensors,
    join_labelled,
    select_labelled,
)
from graphfcl.nn import tensor_of
from graphfcl.stream import BaseSession

MAX_FRAME_BYTES = 18_000_000  # storage budget for basis, whitening, encoder and products
BYTES_OF_HOP = 16  # memory per number that the encoder reads, including copies while rows are gathered
BYTES_OF_POINT = 12  # memory per number of x that the head reads
READ_BY_ENCODER = 1 + len(HOPS)  # blocks that the encoder reads, each as wide as the basis
FIRST_LAYER = "network.encoder.first.weight"
HEAD = "head.weight"
HEAD_COUNTS = "head.counts"


class AnchorKnowledge(Part):
    """The learned state of ANCHOR besides its encoder.

    Args:
        settings: Settings of ANCHOR.
        seed: Seed of the learner.
        neighbourhood: The first candidate; validation sessions may replace it.
        first_layer: Returns the encoder's first weights, which are stored in 8 bits once session 0 is learned.

    Attributes:
        frame: What session 0 fixes: basis, centres, middle, whitening and its shift.
        head: (M, D) weights of the head on session 0, in 16 bits.
        head_steps: Number of training steps of the head.
        head_counts: (M,) number of labels of each class that the head was trained on.
        anchors: Class sums.
        ridge: Sums of the ridge regression; None before session 0.
        encoder_input: What the encoder reads.
    """

    def __init__(
        self, settings: AnchorSettings, seed: int, neighbourhood: Neighbourhood, first_layer: Callable[[], torch.Tensor]
    ) -> None:
        self.settings, self.seed = settings, seed
        self.frame: Tensors = {}
        self.head = torch.zeros(0, 0, dtype=torch.float16)
        self.head_steps = 0
        self.head_counts = torch.zeros(0, dtype=torch.float64)
        self.anchors = Anchors.empty()
        self.ridge: RidgeSums | None = None
        self.neighbourhood = neighbourhood
        self._first_layer = first_layer
        self.encoder_input = "graph"

    def round_first_layer(self) -> None:
        """Round the encoder's first weights to the 8 bits in which they are stored."""
        steps, scales = in_steps(self._first_layer())
        self._first_layer().copy_(steps * scales)
        self.frame["first.scales"] = scales

    @property
    def kind(self) -> str:
        """Number type of f and x: 32 bits if the graph may be on disk, so that results match those in memory.

        Sums on disk have another order and differ in the last digits. Rounding to 16 bits would turn these differences
        into steps of 0.0005.
        """
        return "<f2" if self.encoder_input == "graph" else "<f4"

    def train_head(
        self, tables: NodeTables, x: Table, train: Labelled, validation: Labelled, progress: Progress
    ) -> None:
        """Train the head on session 0. ``anchors`` must contain the class sums; ``x`` is the table of all nodes."""
        settings = self.settings
        shown = self._some(train, settings.most_for_head(tables.node_count))
        validated = self._some(validation, settings.most_validated(tables.node_count))
        both = _labelled_points(tables, x, join_labelled(shown, validated))  # a single pass over a table on disk
        sizes = [len(shown[0]), len(validated[0])]
        parts = list(zip(*(part.split(sizes) for part in both), strict=True))
        start = settings.temperature * self.anchors.directions(settings)  # the classifier of means
        trained = trained_head(start, parts[0], parts[1], settings.head_steps, settings.head_rate, progress)
        self.head, self.head_steps = trained
        self.head_counts = _label_counts(train[1], len(self.head))

    def restate_head(self, tables: NodeTables, x: Table, train: Labelled) -> None:
        """Train the head again if labels of session 0 were removed or merged. Later labels do not affect it.

        Labels of session 0 can only be removed, or moved to another column as a whole class. Comparing label counts
        per class therefore detects every change.
        """
        of_head, counts = train[1] < len(self.head), _label_counts(train[1], len(self.head))
        if torch.equal(counts, self.head_counts):
            return
        self.head_counts = counts
        if of_head.any():
            shown = select_labelled(train, np.flatnonzero(of_head))
            some = _labelled_points(tables, x, self._some(shown, self.settings.most_for_head(tables.node_count)))
            base = Anchors.of(tables, x, shown, len(self.head))
            start = self.settings.temperature * base.directions(self.settings)
            self.head = retrained_head(start, some, self.head_steps, self.settings.head_rate)

    def add(self, x: torch.Tensor, labels: torch.Tensor, count: int) -> None:
        """Add the labelled nodes of a session; there are then ``count`` classes."""
        assert self.ridge is not None
        self.anchors, self.ridge = self.anchors.plus(x, labels, count), self.ridge.plus(x, labels)

    def restate(self, tables: NodeTables, x: Table, train: Labelled, supports: Labelled, count: int) -> None:
        """Compute everything that depends on labels again. ``x`` is the table of all nodes."""
        assert self.ridge is not None
        labelled = join_labelled(train, supports)
        self.anchors = Anchors.of(tables, x, labelled, count, self.anchors.shrinkage)
        self.ridge = RidgeSums.of(tables, x, labelled, self.ridge.frame)
        self.restate_head(tables, x, train)

    def answer_tensors(self) -> Tensors:
        """Return the tensors for :func:`~graphfcl.methods.anchor.rounds.answers`."""
        assert self.ridge is not None
        return answer_tensors(self.anchors, self.ridge, self.head, self.settings)

    def _some(self, labelled: Labelled, most: int | None) -> Labelled:
        return labelled if most is None else some_of_each_class(labelled, most, self.seed)

    @property
    def is_fixed(self) -> bool:
        """Whether session 0 is learned."""
        return "whitening" in self.frame

    def _stored_frame(self) -> Tensors:
        """Return the stored form of the frame: the basis in 8 bits, and the triangular root's upper half in 16 bits."""
        frame = {name: tensor.cpu() for name, tensor in self.frame.items()}
        root = frame.pop("whitening")
        rows, columns = torch.triu_indices(*root.shape)
        frame["root"] = root[rows, columns].half()
        return {**frame, "basis": (frame["basis"] / frame["basis.scales"]).round().to(torch.int8)}

    def chosen(self) -> dict[str, Any]:
        return {**self.neighbourhood._asdict(), **self._input_values()}

    def _input_values(self) -> dict[str, Any]:
        """The encoder input, if it is not the default."""
        return {} if self.encoder_input == "graph" else {"encoder_input": self.encoder_input}

    @property
    def weights(self) -> tuple[float, float, float]:
        """Block weights a₀, a₂ and a_z."""
        return self.settings.raw_weight, self.neighbourhood.hop_weight, self.settings.encoder_weight

    def _sums(self) -> Tensors:
        return self.anchors.tensors() | ({} if self.ridge is None else self.ridge.tensors())

    def stored(self) -> dict[str, int]:
        embeddings = sum(tensor.nbytes for tensor in self._sums().values())
        if not self.is_fixed:
            return {"embeddings": embeddings}
        spared = 3 * self._first_layer().nbytes // 4  # the first layer is stored in 8 bits instead of 32
        frame = sum(tensor.nbytes for tensor in self._stored_frame().values())
        return {"embeddings": embeddings, "weights": frame - spared + self.head.nbytes}

    @property
    def _many(self) -> int:
        """Number of classes of session 0."""
        return 0 if self.anchors.shrinkage is None else self.anchors.shrinkage.many

    def values(self) -> dict[str, Any]:
        fixed = {"many": self._many, "head_steps": self.head_steps}
        return {"hop": list(self.neighbourhood), **fixed, **self._input_values()}

    def tensors(self) -> Tensors:
        kept: Tensors = {}
        if self.is_fixed:
            steps = (self._first_layer() / self.frame["first.scales"]).round().to(torch.int8)
            kept = {FIRST_LAYER: steps.cpu()}
            kept |= {f"frame.{name}": tensor for name, tensor in self._stored_frame().items()}
        head = {HEAD: self.head.cpu(), HEAD_COUNTS: self.head_counts} if len(self.head) else {}
        return {**kept, **head, **self._sums()}

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        self.neighbourhood = Neighbourhood(*values["hop"]).check()
        self.frame = {
            name.removeprefix("frame."): tensor.to(device)
            for name, tensor in tensors.items()
            if name.startswith("frame.")
        }
        if self.frame:
            self._first_layer().mul_(self.frame["first.scales"])
            self.frame["basis"] = self.frame["basis"].float() * self.frame["basis.scales"]
            self.frame["whitening"] = upper_triangle(self.frame.pop("root").float())
        shrinkage = Shrinkage.of(values["many"], self.frame, self.settings) if self.frame else None
        self.anchors = Anchors.load(tensors, device, shrinkage)
        frame = RidgeFrame.of(values["many"], self.frame, self.settings) if self.frame else None
        self.ridge = None if frame is None else RidgeSums.load(tensors, frame)
        if frame is not None and self.anchors.sums.shape[1] != len(frame.root):
            raise ValueError("class sums and the frame have different widths")
        self.head, self.head_steps = tensors.get(HEAD, self.head[:0]).to(device), values["head_steps"]
        self.head_counts = tensors[HEAD_COUNTS].cpu() if len(self.head) else self.head_counts[:0]
        self.encoder_input = values.get("encoder_input", "graph")

    def require_room(self, tables: NodeTables, base: BaseSession, rank: int, size: int) -> None:
        """Raise an error if the memory limit is too small for a phase of session 0 or for scores of all classes.

        The limit that the error suggests is enough for all phases. ``rank`` is the maximum number of basis columns, and
        ``size`` the width of the encoder's output.
        """
        settings = self.settings
        rank = min(rank, tables.node_count, tables.feature_count)
        sampled, classes = settings.samples(tables.node_count), max(len(base.classes), tables.class_count)
        draws = STEP_DRAWS if sampled else 1
        by_encoder = READ_BY_ENCODER * rank if self.encoder_input == "hops" else 0
        vector = 2 * rank + size
        # Widths of: features; encoder input; vectors with posteriors; posteriors with those of neighbours.
        widest = max(tables.feature_count, by_encoder, vector + classes, 2 * draws * classes + 2)
        labels, held = (base.train_labels, base.validation_labels), []
        if by_encoder:
            taken = sum(count_of_each_class(part, settings.encoder_nodes) for part in labels)
            held.append(MemoryNeed.of_rows("the encoder's training", taken, by_encoder, BYTES_OF_HOP))
        if settings.head_share > 0:
            most = (settings.most_for_head(tables.node_count), settings.most_validated(tables.node_count))
            rows = sum(map(count_of_each_class, labels, most))
            held.append(_memory_of_head(rows, vector))
        if sampled:
            held.append(memory_of_choice(base, tables, rank, settings, self.seed))
        tables.require(*held, columns=widest, slice_copies=3)

    def require_scores(self, tables: NodeTables, size: int, *, rounds: bool = False) -> None:
        """Raise an error if the memory limit is too small for scores of all nodes.

        ``size`` is the width of the encoder's output. With ``rounds``, x is known and only later phases are checked.
        """
        rank, classes, how = self.frame["basis"].shape[1], len(self.anchors.counts), self.neighbourhood
        vector = 2 * rank + size
        widest = max(vector + max(1, classes), 2 * classes + 2)  # with posteriors; posteriors with those of neighbours
        copies = (3 if how.smoothing > 0 else 2) if how.uses_posteriors else 0
        if not rounds:
            by_encoder = READ_BY_ENCODER * rank if self.encoder_input == "hops" else 0
            widest, copies = max(widest, tables.feature_count, by_encoder), max(copies, 2)
        tables.require(columns=widest, slice_copies=copies)

    def copy_from(self, other: Self, device: torch.device) -> None:  # noqa: ARG002
        # After session 0 these are replaced and never written in place, so copies can share them.
        self.frame, self.neighbourhood = dict(other.frame), other.neighbourhood
        self.encoder_input = other.encoder_input
        self.head, self.head_steps, self.anchors, self.ridge = other.head, other.head_steps, other.anchors, other.ridge
        self.head_counts = other.head_counts


def _labelled_points(tables: NodeTables, x: Table, labelled: Labelled) -> LabelledPoints:
    """Read x of some labelled nodes, and their class columns."""
    tables.require(_memory_of_head(labelled[0].size, x.columns))
    return x.rows_at(tables.visible.rows(labelled[0])), tensor_of(labelled[1], tables.device)


def _label_counts(columns: np.ndarray, count: int) -> torch.Tensor:
    """Count the labels of each of the first ``count`` columns."""
    return torch.from_numpy(np.bincount(columns[columns < count], minlength=count)).double()


def _memory_of_head(rows: int, columns: int) -> MemoryNeed:
    """State the memory that the training of the head takes."""
    return MemoryNeed.of_rows("the head's training", rows, columns, BYTES_OF_POINT)


def first_layer_shape(
    settings: AnchorSettings, encoder_input: str, features: int, nodes: int, classes: int, *, rank: int | None = None
) -> tuple[int, int]:
    """Return (inputs, hidden) of the encoder's first layer.

    ``features`` and ``nodes`` are sizes of the graph of session 0. ``rank`` is the width of the basis if it is known.
    """
    if encoder_input == "none":
        return 1, 0
    if encoder_input == "hops":
        columns = min(frame_rank(settings, encoder_input, features, classes), nodes, features) if rank is None else rank
        return READ_BY_ENCODER * columns, settings.hidden
    return features, min(settings.hidden, max(16, MAX_FRAME_BYTES // (4 * features)))


def frame_rank(settings: AnchorSettings, encoder_input: str, width: int, classes: int, first: int = 0) -> int:
    """Number of columns of the basis: the setting ``rank``, or fewer to stay within ``MAX_FRAME_BYTES``.

    ``width`` is the number of feature columns. ``first`` is the number of weights in the first layer of an encoder that
    reads the graph. The first layer of an encoder that reads hops is included here: its input is three times the basis.
    """
    rank, size = settings.rank, 0 if encoder_input == "none" else settings.size
    each = width + (READ_BY_ENCODER * settings.hidden if encoder_input == "hops" else 0)
    each += 16 * min(settings.covariance_columns, 2 * rank + size)  # the upper halves of two products, in 64 bits
    each += 4 * classes  # the head
    while rank > 16 and each * rank + (2 * rank + size) ** 2 > MAX_FRAME_BYTES - first:
        rank -= 16
    return rank
