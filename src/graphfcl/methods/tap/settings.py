"""Settings of TAP."""

from dataclasses import dataclass, field

from graphfcl.errors import InputError
from graphfcl.methods.bases.settings import HeadSettings
from graphfcl.methods.settings import require_range
from graphfcl.methods.shared.supervised_training import SupervisedSettings


@dataclass(frozen=True)
class TapSettings(HeadSettings):
    """Three topologies at session 0, steps and calibration at a session; ``pretraining`` holds for all of session 0."""

    last_relu: bool = False
    """ReLU on the last encoder layer."""
    pretraining: SupervisedSettings = field(default_factory=lambda: SupervisedSettings(learning_rate=0.01))
    """Training on session 0, on the base classes alone and then on all."""
    scale: float = 15.0
    """Factor of every cosine (s)."""
    margin: float = 0.1
    """What is taken off the cosine to the own class in the loss (m)."""
    group_weight: float = 0.15
    """Share of the graph of class groups in the loss of session 0; the visible graph has what is left."""
    edgeless_weight: float = 0.15
    """Share of the graph without edges in the loss of session 0."""
    random_edges: float = 0.3
    """Random edges added to the graph of class groups, as a share of its edges."""
    fine_tuning_rate: float = 0.01
    """Rate of these steps."""
    weight_decay: float = 0.0
    """Decay of these steps. Adam makes of any decay a full step towards zero for weights that no support touches."""
    step_share: float = 0.05
    """Share of the way that the steps of a session went, that the weights go."""
    drift_width: float = 1.0
    """Distance within which a support tells how an old prototype drifted (σ)."""
    hops: int = 2
    """How far from the supports unlabelled nodes refine new prototypes."""
    rounds: int = 2
    """Times that new prototypes are refined."""
    temperature: float = 0.1
    """What cosines are divided by when unlabelled nodes are assigned to classes."""
    refined_share: float = 0.7
    """Share of the refined prototype in the next one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("scale", "drift_width", "temperature"):
            require_range(name, getattr(self, name), above=0)
        for name in ("margin", "group_weight", "edgeless_weight", "random_edges", "hops", "rounds"):
            require_range(name, getattr(self, name), least=0)
        for name in ("step_share", "refined_share"):
            require_range(name, getattr(self, name), least=0)
            if getattr(self, name) > 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at most 1.")
        if self.group_weight + self.edgeless_weight >= 1:
            raise InputError(
                "group_weight and edgeless_weight must sum to less than 1: the visible graph has what is left."
            )
