"""The settings of Geometer."""

from dataclasses import dataclass
from typing import Literal

from graphfcl.errors import InputError
from graphfcl.methods.bases.settings import EpisodicSettings
from graphfcl.methods.settings import require_choice, require_range
from graphfcl.methods.shared.fine_tuning import STEP_CANDIDATES, Steps, check_steps


@dataclass(frozen=True)
class GeometerSettings(EpisodicSettings):
    """All settings; weights of losses are those of the released code."""

    hidden: int = 64
    """Width of the first layer of the encoder."""
    size: int = 64
    """Width of an embedding."""
    learning_rate: float = 0.001
    """Adam's rate on session 0."""
    pretrained: bool = True
    """Start from the pre-trained encoder that all methods share; off: from random weights, as released."""
    heads: int = 2
    """Heads of the attention that makes prototypes; they divide the width of an embedding."""
    most_supports: int = 19
    """An episode on session 0 draws 1 to so many supports of each class."""
    least_episodes: int = 200
    """Episodes on session 0 that are taken before validation may stop them; released: 200 in all."""
    base_uniformity: float = 0.1
    """Weight of L_U on session 0, beside L_P."""
    proximity: float = 1.5
    """Weight of L_P in a session."""
    distillation: float = 2.0
    """Weight of L_M in a session."""
    separability: float = 2.0
    """Weight of L_S in a session."""
    uniformity: float = 1.0
    """Weight of L_U in a session."""
    distil: Literal["chosen", "far", "near"] = "chosen"
    """What L_M keeps: which classes are far from a query (released), which are near, or what validation chooses."""
    replay: Literal["balanced", "released"] = "balanced"
    """Queries of a step: some of every class, each class counting the same; or the new supports and as many others."""
    session_queries: int = 10
    """Queries of each class in a step with balanced replay."""
    leave_out: bool = True
    """Leave a query that is also a support out of its own prototype, which the released code does not."""
    encoder_rate: float = 1.0
    """Rate of the encoder in the steps of a session, as a share of the rate of the attention; released: 0.1."""
    fine_tuning: tuple[Steps, ...] = STEP_CANDIDATES
    """(steps, rate) candidates of a session, besides (0, 0); validation sessions choose."""
    fine_tuning_steps: int | None = None
    """Steps of a session, instead of choosing them."""
    fine_tuning_rate: float = 0.001
    """Rate of these steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range("heads", self.heads, least=1)
        if self.size % self.heads:
            raise InputError(f"size is {self.size}; it must be a multiple of heads, which is {self.heads}.")
        require_range("most_supports", self.most_supports, least=1)
        require_range("least_episodes", self.least_episodes, least=0)
        for name in ("base_uniformity", "proximity", "distillation", "separability", "uniformity"):
            require_range(name, getattr(self, name), least=0)
        require_choice("distil", self.distil, ("chosen", "far", "near"))
        require_range("session_queries", self.session_queries, least=1)
        require_choice("replay", self.replay, ("balanced", "released"))
        require_range("encoder_rate", self.encoder_rate, least=0)
        check_steps(self.fine_tuning, self.fine_tuning_steps, self.fine_tuning_rate)
