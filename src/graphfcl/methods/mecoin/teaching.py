"""The side of the memory that is trained: the values behind the keys, and the student that they are distilled from."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import nn

from graphfcl.methods.mecoin.books import Books
from graphfcl.methods.mecoin.settings import MecoinSettings
from graphfcl.methods.shared.fine_tuning import Steps
from graphfcl.methods.shared.heads import grown, head_of
from graphfcl.methods.shared.training_state import check_finite, make_adam
from graphfcl.nn import Linear
from graphfcl.nn.encoders import dropout

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
class Lessons:
    """Nodes to teach: (m, h) embeddings, (m,) columns, and (T, m, B) lookups, each under another noise."""

    points: torch.Tensor
    labels: torch.Tensor
    places: torch.Tensor

    @classmethod
    def draw(
        cls, books: Books, points: torch.Tensor, labels: torch.Tensor, draws: int, generator: torch.Generator
    ) -> "Lessons":
        """With T noisy lookups of each node: ``draws``, or fewer where there are many nodes."""
        count = min(draws, 1 + LOOKUPS // max(1, len(points)))
        return cls(points, labels, torch.stack([books.look_up(points, generator) for _ in range(count)]))

    def some(self, rows: torch.Tensor) -> "Lessons":
        """Of some nodes alone."""
        return Lessons(self.points[rows], self.labels[rows], self.places[:, rows])

    def batch(self, size: int, generator: torch.Generator) -> "Lessons":
        """One lookup of every node; of more than ``size``, of some, each class drawn equally often in the mean."""
        device = self.points.device
        lookup = torch.randint(len(self.places), (1,), generator=generator, device=device)
        if len(self.points) <= size:
            return Lessons(self.points, self.labels, self.places[lookup])
        weights = torch.bincount(self.labels).to(torch.float64).reciprocal()[self.labels]
        ends = weights.cumsum(dim=0)
        drawn = torch.rand(size, generator=generator, device=device, dtype=torch.float64) * ends[-1]
        rows = torch.searchsorted(ends, drawn).clamp(max=len(ends) - 1)
        return Lessons(self.points[rows], self.labels[rows], self.places[lookup][:, rows])


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

    def teach(self, lessons: Lessons, steps: int, stage: str) -> float | None:
        """So many steps; the last loss."""
        table, loss = self.table, None
        for _ in range(steps):
            part = lessons.batch(self.settings.batch, self.generator)
            memory = table.memory(part.places[0])
            student = table.student(part.points, self.generator)
            losses = node_losses(memory, student, part.labels, self.settings.smoothing)
            loss = balanced_mean(losses, part.labels)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(table.parameters(), LARGEST_GRADIENT)
            self.optimiser.step()
        return None if loss is None else check_finite(loss, stage, steps)


def balanced_mean(losses: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean over classes of the mean loss of their nodes."""
    counts = torch.bincount(labels)
    return (losses / counts[labels]).sum() / (counts > 0).sum()


def taught(
    table: Table,
    supports: Points,
    lessons: Lessons,
    class_count: int,
    how: Steps,
    settings: MecoinSettings,
    generator: torch.Generator,
) -> Table:
    """Another table that has learned a session: its supports, and lessons of all nodes kept. how: steps and rate."""
    table = table.with_classes(supports[0], supports[1], class_count)
    steps, rate = how
    if steps:
        Teacher(table, settings, rate, generator).teach(lessons, steps, "fine-tuning")
    return table


@torch.no_grad()
def both_logits(table: Table, points: torch.Tensor, places: torch.Tensor) -> dict[str, torch.Tensor]:
    """(n, classes) of memory and student, for embeddings and their lookups."""
    return {"memory": table.memory(places), "student": table.student(points)}
