"""The settings of ANCHOR."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from graphfcl.errors import InputError
from graphfcl.methods.bases.encoder_learner import EncoderSettings
from graphfcl.methods.settings import Count, Limits, Number, Positive, Share, Weight
from graphfcl.methods.shared.supervised_training import SupervisedSettings

EncoderInput = Literal["graph", "hops", "none"]
Candidate = tuple[float, int, float, int, float]
HEAD_NODES = 500  # of a class, on a graph above ``whole_up_to``
MOST_STEPS = 100  # of hops, smoothing and rounds: each is a pass over the graph
Steps = Annotated[int, Limits(least=1, below=MOST_STEPS + 1)]


class Neighbourhood(NamedTuple):
    """How the surroundings of a node count.

    hop_weight: a₂, weight of the features around. hops: how far they reach. smoothing: s, the share that neighbours'
    posteriors have. smoothing_steps: how often they are mixed in. links: β, the weight of whom classes link to.
    """

    hop_weight: float
    hops: int
    smoothing: float
    smoothing_steps: int
    links: float

    @property
    def uses_posteriors(self) -> bool:
        """Whether neighbours' posteriors change those of a node."""
        return self.smoothing > 0 or self.links > 0

    @property
    def without_posteriors(self) -> "Neighbourhood":
        """The same features around, without neighbours' posteriors."""
        return self._replace(smoothing=0.0, links=0.0)

    def check(self) -> "Neighbourhood":
        """This one; values out of range are an error."""
        for name, steps in (("hops", self.hops), ("smoothing_steps", self.smoothing_steps)):
            if type(steps) is not int or not 0 <= steps <= MOST_STEPS:
                raise InputError(f"{name} is {steps!r}; it must be a whole number up to {MOST_STEPS}.")
        for name, weight in (("hop_weight", self.hop_weight), ("smoothing", self.smoothing), ("links", self.links)):
            if type(weight) not in (int, float) or not 0 <= weight < 1e6:
                raise InputError(f"{name} is {weight!r}; it must be a number from 0 up.")
        return self


@dataclass(frozen=True)
class AnchorSettings(EncoderSettings):
    """The names of formulas are those of the module docstring of ``anchor/learner.py``."""

    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of the encoder's output."""
    last_relu: bool = False
    """ReLU on the last encoder layer."""
    pretraining: SupervisedSettings = field(
        default_factory=lambda: SupervisedSettings(epochs=15, patience=5, learning_rate=0.01)
    )
    """Training of the encoder on all classes of session 0."""
    encoder_input: EncoderInput = "graph"
    """What the encoder reads: the graph (of one on disk: hops), hops of the features, or nothing (no encoder)."""
    encoder_nodes: Count = 500
    """Nodes of a class that an encoder of hops is trained on at most, drawn by the seed."""
    whole_up_to: Number = 200_000
    """Nodes of a graph up to which all of them choose the neighbourhood and train the head; above, a sample does."""
    rank: Count = 1024
    """Columns of the basis B at most."""
    raw_weight: Weight = 1.0
    """Weight of a node's own features (a₀)."""
    encoder_weight: Weight = 0.35
    """Weight of the encoder's output (a_z)."""
    unit_rows: bool | None = None
    """Rows of features have unit length; by default words have it, and numbers keep the length of theirs."""
    head_share: Share = 0.5
    """Weight of the head that is trained on session 0 among the classes of session 0 (γ); 0 trains none."""
    head_steps: Number = 300
    """Steps of its training at most."""
    head_rate: Positive = 0.01
    """Adam's rate in its training."""
    head_nodes: Count | None = None
    """Train nodes of a class that it is trained on at most, drawn by the seed; all if it is not given."""
    ridge_share: Share = 0.5
    """Weight of ridge regression in the answer, for a class with many labels (g)."""
    ridge_penalty: Positive = 0.25
    """Its penalty, relative to the mean eigenvalue of the matrix that is inverted (λ)."""
    covariance_prior: Positive = 20.0
    """Labels that the covariance of session 0 counts for beside that of later classes (κ)."""
    covariance_columns: Count = 256
    """Columns of x whose products are summed together for it, at most."""
    shrinkage: Positive = 0.4
    """How far the covariance is drawn to a multiple of the identity (ρ)."""
    temperature: Positive = 30.0
    """Factor of the cosines (T)."""
    length_prior: Weight = 20.0
    """Nodes that the usual length of a mean counts for."""
    rounds: Annotated[int, Limits(least=0, below=MOST_STEPS + 1)] = 2
    """How often the means are estimated from the visible nodes."""
    unlabelled_weight: Positive = 200.0
    """Labels that the unlabelled nodes of a class count for at most (τ)."""
    candidates: tuple[Candidate, ...] = (
        (2.0, 2, 0.7, 3, 0.0),
        (2.0, 2, 0.0, 3, 0.5),
        (2.0, 4, 0.9, 10, 0.0),
        (0.5, 2, 0.3, 3, 0.0),
        (0.1, 2, 0.0, 3, 0.0),
    )
    """(hop_weight, hops, smoothing, smoothing_steps, links) that validation sessions choose from."""
    trial_rank: Count = 512
    """Columns of the basis, the leading ones, on which candidates are tried."""
    margin: Weight = 0.01
    """By how much another candidate than the first must be better."""
    hop_weight: Weight | None = None
    """Weight of the features around (a₂), instead of choosing it."""
    hops: Steps | None = None
    """How far the features around reach, instead of choosing it."""
    smoothing: Share | None = None
    """Share of the neighbours' posteriors (s), instead of choosing it."""
    smoothing_steps: Steps | None = None
    """How often neighbours' posteriors are mixed in, instead of choosing it."""
    links: Weight | None = None
    """Weight of whom classes link to (β), instead of choosing it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(len(candidate) not in (4, 5) for candidate in self.candidates):
            raise InputError("candidates: each is five numbers, (hop_weight, hops, smoothing, smoothing_steps, links).")
        if not self.candidates:
            raise InputError(
                "candidates is empty: give at least one of (hop_weight, hops, smoothing, smoothing_steps, links)."
            )

    def samples(self, nodes: int) -> bool:
        """Whether a graph of so many nodes is so large that a sample chooses the neighbourhood and trains the head."""
        return nodes > self.whole_up_to

    def most_for_head(self, nodes: int) -> int | None:
        """Train nodes of a class that the head is trained on at most; None: all."""
        return min(self.head_nodes or HEAD_NODES, HEAD_NODES) if self.samples(nodes) else self.head_nodes

    def most_validated(self, nodes: int) -> int | None:
        """Validation nodes of a class that the head is validated on at most; None: all."""
        return HEAD_NODES if self.samples(nodes) else None

    def neighbourhoods(self) -> list[Neighbourhood]:
        """The candidates with what is fixed put in; each once."""
        fixed = (self.hop_weight, self.hops, self.smoothing, self.smoothing_steps, self.links)
        neighbourhoods: dict[Neighbourhood, None] = {}
        for candidate in self.candidates:
            five = (*candidate, 0.0)[:5]  # a candidate of four has no links
            values: list[Any] = [own if value is None else value for own, value in zip(five, fixed, strict=True)]
            neighbourhoods[Neighbourhood(*values)] = None
        return list(neighbourhoods)
