"""The settings of ANCHOR."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from graphfcl.errors import InputError
from graphfcl.methods.bases.encoder_learner import EncoderSettings
from graphfcl.methods.settings import Count, Limits, Number, Positive, Share, Weight
from graphfcl.methods.shared.supervised_training import SupervisedSettings

EncoderInput = Literal["graph", "hops", "none"]
Candidate = tuple[float, int, float, int, float]
HEAD_NODES = 500  # per class, on a graph with more than ``whole_up_to`` nodes
MOST_STEPS = 100  # limit of hops, smoothing steps and rounds; each is a pass over the graph
Steps = Annotated[int, Limits(least=1, below=MOST_STEPS + 1)]


class Neighbourhood(NamedTuple):
    """How a node's neighbourhood affects its prediction.

    Args:
        hop_weight: Weight a₂ of the propagated features.
        hops: Number of hops over which features are propagated.
        smoothing: Share s of the neighbours' posteriors in a smoothing step.
        smoothing_steps: Number of smoothing steps.
        links: Weight β of the link profile of classes.
    """

    hop_weight: float
    hops: int
    smoothing: float
    smoothing_steps: int
    links: float

    @property
    def uses_posteriors(self) -> bool:
        """Whether neighbours' posteriors change the posterior of a node."""
        return self.smoothing > 0 or self.links > 0

    @property
    def without_posteriors(self) -> "Neighbourhood":
        """The same propagated features, without neighbours' posteriors."""
        return self._replace(smoothing=0.0, links=0.0)

    def check(self) -> "Neighbourhood":
        """Return this neighbourhood, or raise an :class:`InputError` if a value is out of range."""
        for name, steps in (("hops", self.hops), ("smoothing_steps", self.smoothing_steps)):
            if type(steps) is not int or not 0 <= steps <= MOST_STEPS:
                raise InputError(f"{name} is {steps!r}; it must be a whole number up to {MOST_STEPS}.")
        for name, weight in (("hop_weight", self.hop_weight), ("smoothing", self.smoothing), ("links", self.links)):
            if type(weight) not in (int, float) or not 0 <= weight < 1e6:
                raise InputError(f"{name} is {weight!r}; it must be a number from 0 up.")
        return self


@dataclass(frozen=True)
class AnchorSettings(EncoderSettings):
    """Settings of ANCHOR. Symbols in brackets refer to the formulas in the docstring of ``anchor/learner.py``."""

    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of the encoder's output."""
    last_relu: bool = False
    """Apply a ReLU to the last encoder layer."""
    pretraining: SupervisedSettings = field(
        default_factory=lambda: SupervisedSettings(epochs=15, patience=5, learning_rate=0.01)
    )
    """Training of the encoder on all classes of session 0."""
    encoder_input: EncoderInput = "graph"
    """Input of the encoder: the graph, propagated features (hops), or no encoder. A graph on disk implies hops."""
    encoder_nodes: Count = 500
    """Maximum number of nodes per class that an encoder of hops is trained on, drawn by the seed."""
    whole_up_to: Number = 200_000
    """Graphs with more nodes than this choose the neighbourhood and train the head on a sample of the nodes."""
    rank: Count = 1024
    """Maximum number of columns of the basis B."""
    raw_weight: Weight = 1.0
    """Weight of a node's own features (a₀)."""
    encoder_weight: Weight = 0.35
    """Weight of the encoder's output (a_z)."""
    unit_rows: bool | None = None
    """Scale feature rows to unit length. By default, bag-of-words rows are scaled and numeric rows are not."""
    head_share: Share = 0.5
    """Weight of the head within the classes of session 0 (γ); 0 trains no head."""
    head_steps: Number = 300
    """Maximum number of training steps of the head."""
    head_rate: Positive = 0.01
    """Learning rate of Adam in the training of the head."""
    head_nodes: Count | None = None
    """Maximum number of train nodes per class for the head, drawn by the seed; none means all."""
    ridge_share: Share = 0.5
    """Weight of ridge regression in the final probability of a class with many labels (g)."""
    ridge_penalty: Positive = 0.25
    """Penalty of ridge regression, relative to the mean eigenvalue of the inverted matrix (λ)."""
    covariance_prior: Positive = 20.0
    """Weight of the covariance of session 0 against later classes, as a number of labels (κ)."""
    covariance_columns: Count = 256
    """Maximum block size of the block-diagonal covariance of later classes, in columns of x."""
    shrinkage: Positive = 0.4
    """Shrinkage of the covariance towards a multiple of the identity (ρ)."""
    temperature: Positive = 30.0
    """Factor of the cosines in the softmax (T)."""
    length_prior: Weight = 20.0
    """Weight of the usual length of a class mean, as a number of nodes."""
    rounds: Annotated[int, Limits(least=0, below=MOST_STEPS + 1)] = 2
    """Number of rounds in which means are estimated from the visible nodes."""
    unlabelled_weight: Positive = 200.0
    """Maximum weight of the unlabelled nodes of a class, as a number of labels (τ)."""
    candidates: tuple[Candidate, ...] = (
        (2.0, 2, 0.7, 3, 0.0),
        (2.0, 2, 0.0, 3, 0.5),
        (2.0, 4, 0.9, 10, 0.0),
        (0.5, 2, 0.3, 3, 0.0),
        (0.1, 2, 0.0, 3, 0.0),
    )
    """Candidates (hop_weight, hops, smoothing, smoothing_steps, links); validation sessions choose one."""
    trial_rank: Count = 512
    """Number of leading basis columns on which candidates are compared."""
    margin: Weight = 0.01
    """Score gain that a candidate needs over the first one to replace it."""
    hop_weight: Weight | None = None
    """Fixed weight of the propagated features (a₂); none lets validation choose."""
    hops: Steps | None = None
    """Fixed number of hops of the propagated features; none lets validation choose."""
    smoothing: Share | None = None
    """Fixed share of the neighbours' posteriors (s); none lets validation choose."""
    smoothing_steps: Steps | None = None
    """Fixed number of smoothing steps; none lets validation choose."""
    links: Weight | None = None
    """Fixed weight of the link profile of classes (β); none lets validation choose."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(len(candidate) not in (4, 5) for candidate in self.candidates):
            raise InputError("candidates: each is five numbers, (hop_weight, hops, smoothing, smoothing_steps, links).")
        if not self.candidates:
            raise InputError(
                "candidates is empty: give at least one of (hop_weight, hops, smoothing, smoothing_steps, links)."
            )

    def samples(self, nodes: int) -> bool:
        """Whether a graph with this number of nodes uses a sample to choose the neighbourhood and train the head."""
        return nodes > self.whole_up_to

    def most_for_head(self, nodes: int) -> int | None:
        """Maximum number of train nodes per class for the head; None means all."""
        return min(self.head_nodes or HEAD_NODES, HEAD_NODES) if self.samples(nodes) else self.head_nodes

    def most_validated(self, nodes: int) -> int | None:
        """Maximum number of validation nodes per class for the head; None means all."""
        return HEAD_NODES if self.samples(nodes) else None

    def neighbourhoods(self) -> list[Neighbourhood]:
        """List the distinct candidates after fixed values replace theirs."""
        fixed = (self.hop_weight, self.hops, self.smoothing, self.smoothing_steps, self.links)
        neighbourhoods: dict[Neighbourhood, None] = {}
        for candidate in self.candidates:
            five = (*candidate, 0.0)[:5]  # a candidate with four numbers uses no links
            values: list[Any] = [own if value is None else value for own, value in zip(five, fixed, strict=True)]
            neighbourhoods[Neighbourhood(*values)] = None
        return list(neighbourhoods)
