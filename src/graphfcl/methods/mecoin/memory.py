"""The structured memory of Mecoin: fixed keys, values, and the student that the values are distilled from."""

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

HEADS = 2  # of the attention across books


@dataclass(frozen=True)
class MecoinSettings(StepSettings, AdjustmentSettings, EncoderSettings):
    """The names of formulas are those of ``learner.py``."""

    last_relu: bool = False
    answer: Literal["memory", "student"] = "memory"
    """Who answers: the memory, as published, or the student that it learns from."""
    books: Count = 32
    """Codebooks of the memory (B)."""
    keys: Count = 32
    """Keys of a codebook (J)."""
    key_size: Annotated[int, Limits(least=2)] = 14
    """Numbers in a key; even, for two heads of attention."""
    map_dropout: Share = 0.5
    """Share of values dropped in the fixed blocks while the memory is taught."""
    student_hidden: Count = 64
    """Width of the student's hidden layer."""
    student_dropout: Share = 0.5
    """Share of the student's input dropped in training."""
    smoothing: Share = 0.1
    """Label smoothing of the student's cross-entropy."""
    kept: Count = 50
    """Nodes kept of each class to teach again at every session."""
    value_pace: Positive = 5.0
    """Rate of the values in units of the student's; as released 1."""
    draws: Count = 16
    """Noisy lookups of a node, at most, that a session draws its steps from."""
    batch: Count = 512
    """Nodes of a step at most; of more, every class gives the same number in the mean."""
    first_steps: Count = 1000
    """Steps at session 0 at most; its validation nodes stop them."""
    first_rate: Positive = 0.01
    """Adam's rate at session 0."""
    fine_tuning: tuple[Steps, ...] = ((20, 0.002), (50, 0.002), (50, 0.01), (200, 0.01))
    """(steps, rate) candidates of a session, besides (0, 0); validation sessions choose."""
    adjustments: tuple[float, ...] = (0.0, -0.25, -0.5, 0.25)
    """Candidates for τ of the logit adjustment τ log(n_c/Σn); validation sessions choose."""
    fine_tuning_rate: float = 0.01
    """Rate of these steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.key_size % HEADS:
            raise InputError(f"key_size is {self.key_size}; it must be even.")


WIDER = 4  # times its input is the hidden layer of a block
CHUNK = 2**22  # numbers of the largest tensor of a lookup


class FixedBlock(nn.Module):
    """A pre-norm transformer block with the weights it was drawn with.

    ::

        u = x + drop(att(ln(x)) W_o),   block(x) = u + drop(gelu(ln(u) W_1) W_2)

    across: attention over the last axis but one, with two heads. Without it a vector attends to itself alone, which is
    its value ln(x) W_v.
    """

    def __init__(self, width: int, share: float, generator: torch.Generator, *, across: bool) -> None:
        super().__init__()
        self.share, self.across = share, across
        self.query, self.key = (Linear(width, width, generator) if across else None for _ in range(2))
        self.value, self.output = (Linear(width, width, generator) for _ in range(2))
        self.inner, self.outer = Linear(width, WIDER * width, generator), Linear(WIDER * width, width, generator)

    def forward(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """(…, width) → (…, width); dropout is drawn from ``generator`` and off without one."""
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
    """B codebooks: fixed maps x'_b of an embedding, and the J keys that each book compares it with.

    ::

        s = block(z) W_s,   x_b = [ s_b , R_bᵀ z ],   x' = block'(x_1 … x_B),   j_b = argmin_j ‖x'_b − key_{b,j}‖²

    R_b: Gaussian with columns of unit length. block' attends across the books of one node.
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
        """(n, B, width) x' of (n, h) embeddings; with a generator as noisy as in training."""
        summary = self.summary(self.own(points, generator))[:, :, None]
        projected = torch.einsum("nh,hbk->nbk", points, self.directions)
        return self.across(torch.cat([summary, projected], dim=2), generator)

    @torch.no_grad()
    def draw_keys(self, points: torch.Tensor, generator: torch.Generator) -> None:
        """Each book takes the codes of J of these (n, h) embeddings at random; some twice if there are fewer."""
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
        """(n, B) numbers b·J + j_b of the nearest keys, a few nodes at a time."""
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
        """Slices of so many nodes that ``each`` numbers a node make a tensor of bounded size."""
        rows = max(1, CHUNK // each)
        return (slice(start, start + rows) for start in range(0, count, rows))


def _normed(points: torch.Tensor) -> torch.Tensor:
    return nn.functional.layer_norm(points, points.shape[-1:])


Points = tuple[torch.Tensor, torch.Tensor]  # (n, h) embeddings and (n,) columns
LOUDNESS = 3.0  # of the mean of values; the released code adds three equal copies up
LARGEST_GRADIENT = 1.0
LOOKUPS = 50_000  # noisy lookups that one session draws at most, beside one for each node


class Table(nn.Module):
    """The values (B·J, classes) and the student, an MLP h → s → classes. Both grow by the classes of a session.

    centre: (s,) mean of the student's hidden layer over the nodes of session 0, from which new classes start.
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
        """Values of zeros and a student with the weights that the generator draws."""
        values = torch.zeros(settings.books * settings.keys, classes)
        inner = Linear(settings.size, settings.student_hidden, generator)
        outer = Linear(settings.student_hidden, classes, generator)
        return cls(values, inner, outer, torch.zeros(settings.student_hidden), settings.student_dropout)

    def memory(self, places: torch.Tensor) -> torch.Tensor:
        """(n, classes) 3 · mean_b value_{b, j_b}; places: (n, B)."""
        return LOUDNESS * nn.functional.embedding_bag(places, self.values, mode="mean")

    def hidden(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        return torch.relu(self.inner(dropout(points, self.student_dropout, generator)))

    def student(self, points: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
        """(n, classes) logits of (n, h) embeddings."""
        return self.outer(self.hidden(points, generator))

    @torch.no_grad()
    def with_classes(self, points: torch.Tensor, labels: torch.Tensor, count: int) -> Self:
        """Another table with columns for ``count`` classes: zeros among the values, and a student that knows a new
        class by the mean of its supports, as every head of this package does.

        points: (s, h) embeddings of the supports, labels: (s,) their columns. Nothing is shared with this one.
        """
        values = nn.functional.pad(self.values.detach(), (0, count - self.values.shape[1])).clone()
        outer = grown(self.outer, self.hidden(points), labels, count, self.centre)
        inner, outer = (head_of(each.weight, each.bias) for each in (self.inner, outer))
        return type(self)(values, inner, outer, self.centre.clone(), self.student_dropout)


@dataclass(frozen=True, eq=False)
class Batches:
    """Nodes to teach: (m, h) embeddings, (m,) columns, and (T, m, B) lookups, each under another noise."""

    points: torch.Tensor
    labels: torch.Tensor
    places: torch.Tensor

    @classmethod
    def draw(
        cls, books: Books, points: torch.Tensor, labels: torch.Tensor, draws: int, generator: torch.Generator
    ) -> "Batches":
        """With T noisy lookups of each node: ``draws``, or fewer where there are many nodes."""
        count = min(draws, 1 + LOOKUPS // max(1, len(points)))
        return cls(points, labels, torch.stack([books.look_up(points, generator) for _ in range(count)]))

    def some(self, rows: torch.Tensor) -> "Batches":
        """Of some nodes alone."""
        return Batches(self.points[rows], self.labels[rows], self.places[:, rows])

    def batch(self, size: int, generator: torch.Generator) -> "Batches":
        """One lookup of every node; of more than ``size``, of some, each class drawn equally often in the mean."""
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
    """(n,) ½ KL(p ‖ q) + ½ KL(q ‖ p) + ce(p, y), p the student's and q the memory's softmax.

    Sums of log-softmax: the logarithm of a softmax is −∞ where it rounds to 0.
    """
    log_p, log_q = (torch.log_softmax(logits, dim=1) for logits in (student, memory))
    apart = 0.5 * ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(dim=1)
    cross = nn.functional.cross_entropy(student, labels, label_smoothing=smoothing, reduction="none")
    return apart + cross


class Teacher:
    """Takes Adam steps on a table; every class counts the same."""

    def __init__(self, table: Table, settings: MecoinSettings, rate: float, generator: torch.Generator) -> None:
        self.table, self.settings, self.generator = table, settings, generator
        student = (*table.inner.parameters(), *table.outer.parameters())
        self.optimiser = make_adam(student, rate, 0.0)
        self.optimiser.add_param_group({"params": [table.values], "lr": rate * settings.value_pace})

    def teach(self, batches: Batches, steps: int, stage: str) -> float | None:
        """So many steps; the last loss."""
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


def taught(
    table: Table,
    supports: Points,
    batches: Batches,
    class_count: int,
    how: tuple[Any, ...],
    settings: MecoinSettings,
    generator: torch.Generator,
) -> Table:
    """Another table that has learned a session: its supports, and batches of all nodes kept. how: steps and rate."""
    table = table.with_classes(supports[0], supports[1], class_count)
    steps, rate = how
    if steps:
        Teacher(table, settings, rate, generator).teach(batches, steps, "fine-tuning")
    return table


@torch.no_grad()
def both_logits(table: Table, points: torch.Tensor, places: torch.Tensor) -> dict[str, torch.Tensor]:
    """(n, classes) of memory and student, for embeddings and their lookups."""
    return {"memory": table.memory(places), "student": table.student(points)}
