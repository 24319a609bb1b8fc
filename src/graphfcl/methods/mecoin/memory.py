"""The structured memory of Mecoin: fixed keys, trained values, and the student that they are distilled from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import torch
from torch import nn

from graphfcl.errors import InputError
from graphfcl.methods.bases.encoder_learner import EncoderSettings
from graphfcl.methods.settings import Count, Limits, Positive, Share
from graphfcl.methods.shared.fine_tuning import Steps, StepSettings
from graphfcl.methods.shared.heads import AdjustmentSettings, grown, head_of
from graphfcl.methods.shared.supervised_training import balanced_mean
from graphfcl.methods.shared.training_state import check_finite, make_adam
from graphfcl.nn import Linear
from graphfcl.nn.encoders import dropout

HEADS = 2  # heads of the attention across books


@dataclass(frozen=True)
class MecoinSettings(StepSettings, AdjustmentSettings, EncoderSettings):
    """Settings of Mecoin. Symbols in brackets refer to the formulas in ``learner.py``."""

    last_relu: bool = False
    answer: Literal["memory", "student"] = "memory"
    """Source of predictions: the memory, as published, or the student."""
    books: Count = 32
    """Number of codebooks (B)."""
    keys: Count = 32
    """Number of keys per codebook (J)."""
    key_size: Annotated[int, Limits(least=2)] = 14
    """Width of a key; must be even for two attention heads."""
    map_dropout: Share = 0.5
    """Dropout rate of the fixed blocks while the memory is trained."""
    student_hidden: Count = 64
    """Width of the student's hidden layer."""
    student_dropout: Share = 0.5
    """Dropout rate of the student's input in training."""
    smoothing: Share = 0.1
    """Label smoothing of the student's cross-entropy."""
    kept: Count = 50
    """Number of nodes stored per class for replay."""
    value_pace: Positive = 5.0
    """Learning rate of the values relative to the student's; 1 in the released code."""
    draws: Count = 16
    """Maximum number of noisy lookups per node that the steps of a session sample from."""
    batch: Count = 512
    """Maximum number of nodes per step; if there are more, classes are sampled with equal expected numbers."""
    first_steps: Count = 1000
    """Maximum number of steps at session 0; validation nodes stop the training."""
    first_rate: Positive = 0.01
    """Learning rate of Adam at session 0."""
    fine_tuning: tuple[Steps, ...] = ((20, 0.002), (50, 0.002), (50, 0.01), (200, 0.01))
    """Candidate (steps, learning rate) pairs of a session, in addition to no steps; validation sessions choose one."""
    adjustments: tuple[float, ...] = (0.0, -0.25, -0.5, 0.25)
    """Candidates for the factor τ of the logit adjustment τ log(n_c/Σn); validation sessions choose one."""
    fine_tuning_rate: float = 0.01
    """Learning rate of a fixed number of steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.key_size % HEADS:
            raise InputError(f"key_size is {self.key_size}; it must be even.")


WIDER = 4  # width of a block's hidden layer relative to its input
CHUNK = 2**22  # maximum number of elements of a tensor in a lookup


class FixedBlock(nn.Module):
    """A pre-norm transformer block with fixed random weights.

    ::

        u = x + drop(att(ln(x)) W_o),   block(x) = u + drop(gelu(ln(u) W_1) W_2)

    With ``across``, attention is over the second to last axis with two heads. Otherwise a vector only attends to
    itself, and att(ln(x)) is its value ln(x) W_v.
    """

    def __init__(self, width: int, share: float, generator: torch.Generator, *, across: bool) -> None:
        super().__init__()
        self.share, self.across = share, across
        self.query, self.key = (Linear(width, width, generator) if across else None for _ in range(2))
        self.value, self.output = (Linear(width, width, generator) for _ in range(2))
        self.inner, self.outer = Linear(width, WIDER * width, generator), Linear(WIDER * width, width, generator)

    def forward(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Map (…, width) to (…, width). Without a generator, dropout is off."""
        points = points + dropout(self.output(self._attended(_normed(points))), self.share, generator)
        hidden = nn.functional.gelu(self.inner(_normed(points)))
        return points + dropout(self.outer(hidden), self.share, generator)

    def _attended(self, points: torch.Tensor) -> torch.Tensor:
        values = self.value(points)
        if self.query is None or self.key is None:
            return values
        query, key, value = (
            each.unflatten(-1, (HEADS, -1)).transpose(-2, -3) for each in (self.query(points), self.key(points), values)
        )
        attended = nn.functional.scaled_dot_product_attention(query, key, value)
        return attended.transpose(-2, -3).flatten(-2)


class Books(nn.Module):
    """B codebooks, each with a fixed map of an embedding to x'_b and J keys.

    ::

        s = block(z) W_s,   x_b = [ s_b , R_bᵀ z ],   x' = block'(x_1 … x_B),   j_b = argmin_j ‖x'_b − key_{b,j}‖²

    R_b is Gaussian with columns of unit length. block' attends across the books of a node.
    """

    keys: torch.Tensor

    def __init__(self, size: int, settings: MecoinSettings, generator: torch.Generator) -> None:
        super().__init__()
        books, width, share = settings.books, settings.key_size, settings.map_dropout
        self.books = books
        self.own = FixedBlock(size, share, generator, across=False)
        self.summary = Linear(size, books, generator)
        directions = torch.randn(size, books, width - 1, generator=generator)
        self.directions = nn.Parameter(directions / directions.norm(dim=0, keepdim=True))
        self.across = FixedBlock(width, share, generator, across=True)
        self.register_buffer("keys", torch.zeros(books, settings.keys, width))
        self.requires_grad_(False)

    def codes(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Compute (n, B, width) x' of (n, h) embeddings. With a generator, dropout is applied as in training."""
        summary = self.summary(self.own(points, generator))[:, :, None]
        projected = torch.einsum("nh,hbk->nbk", points, self.directions)
        return self.across(torch.cat([summary, projected], dim=2), generator)

    @torch.no_grad()
    def draw_keys(self, points: torch.Tensor, generator: torch.Generator) -> None:
        """Set the keys of each book to the codes of J random embeddings; some are repeated if there are fewer."""
        count, keys = self.keys.shape[:2]
        chosen = torch.rand(count, max(keys, len(points)), generator=generator, device=points.device).argsort(dim=1)
        chosen = chosen[:, :keys] % len(points)
        needed, places = torch.unique(chosen, return_inverse=True)
        codes = self.keys.new_empty(len(needed), *self.keys.shape[::2])
        for part in self._parts(len(needed), self.books * max(self.books, self.keys.shape[2]) * HEADS):
            codes[part] = self.codes(points[needed[part]])
        every = torch.arange(count, device=points.device)[:, None]
        self.keys = codes[places, every.expand_as(places)]

    @torch.no_grad()
    def look_up(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Find the (n, B) numbers b·J + j_b of the nearest keys, in chunks of nodes."""
        books, keys = self.keys.shape[:2]
        squares, turned = (self.keys**2).sum(dim=2)[:, None], self.keys.transpose(1, 2)
        first = torch.arange(books, device=points.device) * keys
        places = torch.empty(len(points), books, dtype=torch.int32, device=points.device)
        for part in self._parts(len(points), books * max(keys, HEADS * books)):
            codes = self.codes(points[part], generator).transpose(0, 1)  # (B, n, width)
            nearest = torch.baddbmm(squares, codes, turned, alpha=-2).argmin(dim=2)
            places[part] = (nearest.T + first).to(torch.int32)
        return places

    @staticmethod
    def _parts(count: int, each: int) -> Iterator[slice]:
        """Split ``count`` nodes into slices of at most ``CHUNK`` elements, with ``each`` elements per node."""
        rows = max(1, CHUNK // each)
        return (slice(start, start + rows) for start in range(0, count, rows))


def _normed(points: torch.Tensor) -> torch.Tensor:
    return nn.functional.layer_norm(points, points.shape[-1:])


Points = tuple[torch.Tensor, torch.Tensor]  # (n, h) embeddings and (n,) columns
VALUE_FACTOR = 3.0  # factor of the mean of values; the released code sums three equal copies
LARGEST_GRADIENT = 1.0
LOOKUPS = 50_000  # maximum number of noisy lookups of a session, in addition to one per node


class Table(nn.Module):
    """The trained part of the memory, which grows by the classes of a session.

    It consists of the values (B·J, classes) and the student, an MLP h → s → classes. ``centre`` is the (s,) mean of the
    student's hidden layer over the nodes of session 0, from which columns of new classes are initialised.
    """

    centre: torch.Tensor

    def __init__(
        self, values: torch.Tensor, inner: Linear, outer: Linear, centre: torch.Tensor, student_dropout: float
    ) -> None:
        super().__init__()
        self.values, self.inner, self.outer = nn.Parameter(values), inner, outer
        self.register_buffer("centre", centre)
        self.student_dropout = student_dropout

    @classmethod
    def empty(cls, settings: MecoinSettings, classes: int, generator: torch.Generator) -> Self:
        """Make a table with zero values and a student with random weights."""
        values = torch.zeros(settings.books * settings.keys, classes)
        inner = Linear(settings.size, settings.student_hidden, generator)
        outer = Linear(settings.student_hidden, classes, generator)
        return cls(values, inner, outer, torch.zeros(settings.student_hidden), settings.student_dropout)

    def memory(self, places: torch.Tensor) -> torch.Tensor:
        """Compute (n, classes) logits 3 · mean_b value_{b, j_b} from (n, B) lookups."""
        return VALUE_FACTOR * nn.functional.embedding_bag(places, self.values, mode="mean")

    def hidden(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        return torch.relu(self.inner(dropout(points, self.student_dropout, generator)))

    def student(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """Compute (n, classes) logits of (n, h) embeddings."""
        return self.outer(self.hidden(points, generator))

    @torch.no_grad()
    def with_classes(self, points: torch.Tensor, labels: torch.Tensor, count: int) -> Self:
        """Copy the table and add columns for ``count`` classes.

        New columns of the values are zero. New columns of the student are initialised with the mean of the supports,
        which have (s, h) embeddings ``points`` and (s,) columns ``labels``.
        """
        values = nn.functional.pad(self.values.detach(), (0, count - self.values.shape[1])).clone()
        outer = grown(self.outer, self.hidden(points), labels, count, self.centre)
        inner, outer = (head_of(each.weight, each.bias) for each in (self.inner, outer))
        return type(self)(values, inner, outer, self.centre.clone(), self.student_dropout)


@dataclass(frozen=True, eq=False)
class Batches:
    """Training nodes: (m, h) embeddings, (m,) columns, and (T, m, B) lookups under T draws of dropout."""

    points: torch.Tensor
    labels: torch.Tensor
    places: torch.Tensor

    @classmethod
    def draw(
        cls, books: Books, points: torch.Tensor, labels: torch.Tensor, draws: int, generator: torch.Generator
    ) -> "Batches":
        """Draw T noisy lookups of each node: ``draws``, or fewer if there are many nodes."""
        count = min(draws, 1 + LOOKUPS // max(1, len(points)))
        return cls(points, labels, torch.stack([books.look_up(points, generator) for _ in range(count)]))

    def some(self, rows: torch.Tensor) -> "Batches":
        """Select some nodes."""
        return Batches(self.points[rows], self.labels[rows], self.places[:, rows])

    def batch(self, size: int, generator: torch.Generator) -> "Batches":
        """Draw one lookup, and at most ``size`` nodes, with equal expected numbers per class."""
        device = self.points.device
        lookup = torch.randint(len(self.places), (1,), generator=generator, device=device)
        if len(self.points) <= size:
            return Batches(self.points, self.labels, self.places[lookup])
        weights = torch.bincount(self.labels).to(torch.float64).reciprocal()[self.labels]
        ends = weights.cumsum(dim=0)
        drawn = torch.rand(size, generator=generator, device=device, dtype=torch.float64) * ends[-1]
        rows = torch.searchsorted(ends, drawn).clamp(max=len(ends) - 1)
        return Batches(self.points[rows], self.labels[rows], self.places[lookup][:, rows])


def node_losses(memory: torch.Tensor, student: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
    """Compute (n,) ½ KL(p ‖ q) + ½ KL(q ‖ p) + ce(p, y), with p the student's and q the memory's softmax.

    Log-softmax is used because the logarithm of a softmax value that rounds to 0 is −∞.
    """
    log_p, log_q = (torch.log_softmax(logits, dim=1) for logits in (student, memory))
    apart = 0.5 * ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(dim=1)
    cross = nn.functional.cross_entropy(student, labels, label_smoothing=smoothing, reduction="none")
    return apart + cross


class Teacher:
    """Adam training of a table with equal class weights."""

    def __init__(self, table: Table, settings: MecoinSettings, rate: float, generator: torch.Generator) -> None:
        self.table, self.settings, self.generator = table, settings, generator
        student = (*table.inner.parameters(), *table.outer.parameters())
        self.optimiser = make_adam(student, rate, 0.0)
        self.optimiser.add_param_group({"params": [table.values], "lr": rate * settings.value_pace})

    def teach(self, batches: Batches, steps: int, stage: str) -> float | None:
        """Take a number of steps, and return the last loss."""
        table, loss = self.table, None
        for _ in range(steps):
            part = batches.batch(self.settings.batch, self.generator)
            memory = table.memory(part.places[0])
            student = table.student(part.points, self.generator)
            losses = node_losses(memory, student, part.labels, self.settings.smoothing)
            loss = balanced_mean(losses, part.labels)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(table.parameters(), LARGEST_GRADIENT)
            self.optimiser.step()
        return None if loss is None else check_finite(loss, stage, steps)


def trained_copy(
    table: Table,
    supports: Points,
    batches: Batches,
    class_count: int,
    how: tuple[Any, ...],
    settings: MecoinSettings,
    generator: torch.Generator,
) -> Table:
    """Return a copy of the table trained on a session: its supports, and batches of all stored nodes.

    ``how`` is (steps, learning rate).
    """
    table = table.with_classes(supports[0], supports[1], class_count)
    steps, rate = how
    if steps:
        Teacher(table, settings, rate, generator).teach(batches, steps, "fine-tuning")
    return table


@torch.no_grad()
def both_logits(table: Table, points: torch.Tensor, places: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute the (n, classes) logits of memory and student from embeddings and their lookups."""
    return {"memory": table.memory(places), "student": table.student(points)}
