"""The settings of LPMC."""

from dataclasses import dataclass, field
from typing import Literal

from graphfcl.methods.bases.settings import EpisodicSettings
from graphfcl.methods.lpmc.contrast import ContrastSettings
from graphfcl.methods.settings import require_choice, require_range
from graphfcl.methods.shared.fine_tuning import STEP_CANDIDATES, Steps, check_steps

STARTS = ("contrastive", "both", "supervised")


@dataclass(frozen=True)
class LpmcSettings(EpisodicSettings):
    """All settings; the defaults are the paper's where it names them."""

    hidden: int = 64
    """Width of the encoder's first layer."""
    size: int = 64
    """Width of an embedding."""
    last_relu: bool = False
    """ReLU on the last encoder layer, which leaves cosines between 0 and 1."""
    start: Literal["contrastive", "both", "supervised"] = "contrastive"
    """What episodes start from: contrastive pre-training, supervised training after it, or supervised alone."""
    contrast: ContrastSettings = field(default_factory=ContrastSettings)
    """Contrastive pre-training."""
    eps: float = 0.5
    """Cosine distance up to which two nodes of a class are neighbours in DBSCAN."""
    min_points: int = 5
    """Neighbours, itself included, that make a node a core point of a micro-cluster."""
    temperature: float = 0.07
    """Cosines are divided by it (T)."""
    unit_length: bool = False
    """Class vectors of unit length; as printed, classes of many micro-clusters have shorter ones."""
    distillation: float = 0.1
    """Weight of how far the class means of before turn in the steps of a session (λ)."""
    base_share: float = 0.5
    """Share of the base classes that an episode has; the others are left out at random."""
    base_supports: int = 20
    """Nodes of a base class that make its micro-clusters in an episode."""
    queries: int = 20
    """Nodes per class that an episode asks about."""
    fine_tuning: tuple[Steps, ...] = STEP_CANDIDATES
    """(steps, rate) candidates of a session, besides (0, 0); validation sessions choose."""
    fine_tuning_steps: int | None = None
    """Steps of a session, instead of choosing them."""
    fine_tuning_rate: float = 0.005
    """Rate of these steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("start", self.start, STARTS)
        require_range("eps", self.eps, above=0)
        require_range("min_points", self.min_points, least=1)
        require_range("temperature", self.temperature, above=0)
        require_range("distillation", self.distillation, least=0)
        require_range("base_share", self.base_share, above=0)
        require_range("base_supports", self.base_supports, least=1)
        check_steps(self.fine_tuning, self.fine_tuning_steps, self.fine_tuning_rate)
