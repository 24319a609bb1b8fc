"""What ANCHOR stores, in the few bits to which session 0 rounded it, and how much memory it takes to compute it."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch

from graphfcl.methods.anchor.choosing import held_by_choice
from graphfcl.methods.anchor.class_sums import Anchors, Shrinkage
from graphfcl.methods.anchor.head import LabelledPoints, retrained_head, trained_head
from graphfcl.methods.anchor.hop_encoder import HOPS
from graphfcl.methods.anchor.ridge import RidgeFrame, RidgeSums
from graphfcl.methods.anchor.rounds import answer_tensors
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.blocks import Held, NodeTables, Table
from graphfcl.methods.blocks.interface import count_of_each_class, some_of_each_class
from graphfcl.methods.learner import Labelled, Progress, Tensors, join_labelled, select_labelled
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.untrained_features import in_steps, upper_triangle
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS
from graphfcl.nn import tensor_of
from graphfcl.stream import BaseSession

MAX_FRAME_BYTES = 18_000_000  # storage budget for basis, whitening, encoder and products
BYTES_OF_HOP = 16  # of a number that the encoder reads, as it is gathered and with that of the other rows
BYTES_OF_POINT = 12  # of a number of x that the head reads
READ_BY_ENCODER = 1 + len(HOPS)  # times the columns of the basis
FIRST_LAYER = "network.encoder.first.weight"
HEAD = "head.weight"
HEAD_COUNTS = "head.counts"


class AnchorKnowledge(Part):
    """What ANCHOR knows besides its encoder.

    frame: what session 0 fixed: basis, centres, middle, whitening and its shift. head: (M, D) weights of the head on
    session 0, in 16 bits. head_steps: those of its training. head_counts: (M,) labels of each class that it was trained
    on. anchors: class sums. ridge: what ridge regression keeps beside them; None before session 0. neighbourhood: what
    validation sessions chose.
    first_layer: answers the encoder's first weights, which are stored in 8 bits once the frame is fixed.
    encoder_input: what the encoder reads.
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
        """To the 8 bits in which it is stored."""
        steps, scales = in_steps(self._first_layer())
        self._first_layer().copy_(steps * scales)
        self.frame["first.scales"] = scales

    @property
    def kind(self) -> str:
        """The type of f and x: 32 bits wherever a graph may be on disk, so that it answers as one in memory does.

        Rounding to 16 bits turns last digits, which follow from the order of sums, into steps of 0.0005.
        """
        return "<f2" if self.encoder_input == "graph" else "<f4"

    def train_head(
        self, tables: NodeTables, x: Table, train: Labelled, validation: Labelled, progress: Progress
    ) -> None:
        """Train the head on session 0; ``anchors`` must hold its class sums. x: of all nodes."""
        settings = self.settings
        shown = self._some(train, settings.most_for_head(tables.node_count))
        validated = self._some(validation, settings.most_validated(tables.node_count))
        both = _labelled_points(tables, x, join_labelled(shown, validated))  # one pass over a table on disk
        sizes = [len(shown[0]), len(validated[0])]
        parts = list(zip(*(part.split(sizes) for part in both), strict=True))
        start = settings.temperature * self.anchors.directions(settings)  # the rule of the means
        trained = trained_head(start, parts[0], parts[1], settings.head_steps, settings.head_rate, progress)
        self.head, self.head_steps = trained
        self.head_counts = _label_counts(train[1], len(self.head))

    def restate_head(self, tables: NodeTables, x: Table, train: Labelled) -> None:
        """Train the head again if labels of session 0 were taken back or merged; it uses no later ones.

        Labels of session 0 only ever go, or move to another column as a whole class, so their counts tell.
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
        """Labelled nodes of a session, of ``count`` classes in all."""
        assert self.ridge is not None
        self.anchors, self.ridge = self.anchors.plus(x, labels, count), self.ridge.plus(x, labels)

    def restate(self, tables: NodeTables, x: Table, train: Labelled, supports: Labelled, count: int) -> None:
        """Compute again all that follows from labels. x: of all nodes."""
        assert self.ridge is not None
        labelled = join_labelled(train, supports)
        self.anchors = Anchors.of(tables, x, labelled, count, self.anchors.shrinkage)
        self.ridge = RidgeSums.of(tables, x, labelled, self.ridge.frame)
        self.restate_head(tables, x, train)

    def answer_tensors(self) -> Tensors:
        """What :func:`~graphfcl.methods.anchor.rounds.answers` reads beside posteriors and x."""
        assert self.ridge is not None
        return answer_tensors(self.anchors, self.ridge, self.head, self.settings)

    def _some(self, labelled: Labelled, most: int | None) -> Labelled:
        return labelled if most is None else some_of_each_class(labelled, most, self.seed)

    @property
    def is_fixed(self) -> bool:
        """Whether session 0 is over."""
        return "whitening" in self.frame

    def _stored_frame(self) -> Tensors:
        """The basis in 8 bits, and of the root, which is triangular, the upper half in 16."""
        frame = {name: tensor.cpu() for name, tensor in self.frame.items()}
        root = frame.pop("whitening")
        rows, columns = torch.triu_indices(*root.shape)
        frame["root"] = root[rows, columns].half()
        return {**frame, "basis": (frame["basis"] / frame["basis.scales"]).round().to(torch.int8)}

    def chosen(self) -> dict[str, Any]:
        return {**self.neighbourhood._asdict(), **self._input_values()}

    def _input_values(self) -> dict[str, Any]:
        """Said where it is not the graph."""
        return {} if self.encoder_input == "graph" else {"encoder_input": self.encoder_input}

    @property
    def weights(self) -> tuple[float, float, float]:
        """a₀, a₂ and a_z."""
        return self.settings.raw_weight, self.neighbourhood.hop_weight, self.settings.encoder_weight

    def _sums(self) -> Tensors:
        return self.anchors.tensors() | ({} if self.ridge is None else self.ridge.tensors())

    def stored(self) -> dict[str, int]:
        embeddings = sum(tensor.nbytes for tensor in self._sums().values())
        if not self.is_fixed:
            return {"embeddings": embeddings}
        spared = 3 * self._first_layer().nbytes // 4  # of the network's 32 bits
        frame = sum(tensor.nbytes for tensor in self._stored_frame().values())
        return {"embeddings": embeddings, "weights": frame - spared + self.head.nbytes}

    @property
    def _many(self) -> int:
        """Classes of session 0."""
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
        head = {HEAD: self.head.cpu(), HEAD_COUNTS: self.head_counts} if len(self.head) else {}  # labels change it
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
            raise ValueError("class sums have another width than the frame")
        self.head, self.head_steps = tensors.get(HEAD, self.head[:0]).to(device), values["head_steps"]
        self.head_counts = tensors[HEAD_COUNTS].cpu() if len(self.head) else self.head_counts[:0]
        self.encoder_input = values.get("encoder_input", "graph")

    def require_room(self, tables: NodeTables, base: BaseSession, rank: int, size: int) -> None:
        """Refuse a limit of memory that is too small for a phase of session 0, or for scores of all classes.

        rank: columns of the basis at most. size: of the encoder's output. The limit that is named is enough for all
        phases.
        """
        settings = self.settings
        rank = min(rank, tables.node_count, tables.feature_count)
        sampled, classes = settings.samples(tables.node_count), max(len(base.classes), tables.class_count)
        draws = STEP_DRAWS if sampled else 1
        by_encoder = READ_BY_ENCODER * rank if self.encoder_input == "hops" else 0
        vector = 2 * rank + size
        # Of features; of what the encoder reads; of vectors with posteriors; of posteriors with those of neighbours.
        widest = max(tables.feature_count, by_encoder, vector + classes, 2 * draws * classes + 2)
        labels, held = (base.train_labels, base.validation_labels), []
        if by_encoder:
            taken = sum(count_of_each_class(part, settings.encoder_nodes) for part in labels)
            held.append(Held.of_rows("the encoder's training", taken, by_encoder, BYTES_OF_HOP))
        if settings.head_share > 0:
            most = (settings.most_for_head(tables.node_count), settings.most_validated(tables.node_count))
            rows = sum(map(count_of_each_class, labels, most))
            held.append(_held_by_head(rows, vector))
        if sampled:
            held.append(held_by_choice(base, tables, rank, settings, self.seed))
        tables.require(*held, columns=widest, slice_copies=3)

    def require_scores(self, tables: NodeTables, size: int, *, rounds: bool = False) -> None:
        """Refuse a limit of memory that is too small for scores of all nodes.

        size: of the encoder's output. rounds: if x is known, and only what follows it is computed.
        """
        rank, classes, how = self.frame["basis"].shape[1], len(self.anchors.counts), self.neighbourhood
        vector = 2 * rank + size
        widest = max(vector + max(1, classes), 2 * classes + 2)  # with posteriors; posteriors with those of neighbours
        copies = (3 if how.smoothing > 0 else 2) if how.uses_posteriors else 0
        if not rounds:
            by_encoder = READ_BY_ENCODER * rank if self.encoder_input == "hops" else 0
            widest, copies = max(widest, tables.feature_count, by_encoder), max(copies, 2)
        tables.require(columns=widest, slice_copies=copies)

    def become(self, other: Self, device: torch.device) -> None:  # noqa: ARG002
        # Nothing of it is written to after session 0.
        self.frame, self.neighbourhood = dict(other.frame), other.neighbourhood
        self.encoder_input = other.encoder_input
        self.head, self.head_steps, self.anchors, self.ridge = other.head, other.head_steps, other.anchors, other.ridge
        self.head_counts = other.head_counts


def _labelled_points(tables: NodeTables, x: Table, labelled: Labelled) -> LabelledPoints:
    """x of some labelled nodes, and their columns."""
    tables.require(_held_by_head(labelled[0].size, x.columns))
    return x.rows_at(tables.visible.rows(labelled[0])), tensor_of(labelled[1], tables.device)


def _label_counts(columns: np.ndarray, count: int) -> torch.Tensor:
    """(count,) how many labels each of the first columns has."""
    return torch.from_numpy(np.bincount(columns[columns < count], minlength=count)).double()


def _held_by_head(rows: int, columns: int) -> Held:
    """What the head's training holds."""
    return Held.of_rows("the head's training", rows, columns, BYTES_OF_POINT)


def first_layer_shape(
    settings: AnchorSettings, encoder_input: str, features: int, nodes: int, classes: int, *, rank: int | None = None
) -> tuple[int, int]:
    """(inputs, hidden) of the encoder. features, nodes: of the graph of session 0. rank: of a basis that is known."""
    if encoder_input == "none":
        return 1, 0
    if encoder_input == "hops":
        columns = min(frame_rank(settings, encoder_input, features, classes), nodes, features) if rank is None else rank
        return READ_BY_ENCODER * columns, settings.hidden
    return features, min(settings.hidden, max(16, MAX_FRAME_BYTES // (4 * features)))


def frame_rank(settings: AnchorSettings, encoder_input: str, width: int, classes: int, first: int = 0) -> int:
    """Columns of the basis: as many as the settings want, or as the bytes allow.

    width: feature columns. first: numbers of the encoder's first layer, if it reads the graph; one that reads hops has
    as many inputs as the basis has columns, three times.
    """
    rank, size = settings.rank, 0 if encoder_input == "none" else settings.size
    each = width + (READ_BY_ENCODER * settings.hidden if encoder_input == "hops" else 0)
    each += 16 * min(settings.covariance_columns, 2 * rank + size)  # of two products, in 64 bits, the upper half
    each += 4 * classes  # of the head
    while rank > 16 and each * rank + (2 * rank + size) ** 2 > MAX_FRAME_BYTES - first:
        rank -= 16
    return rank
