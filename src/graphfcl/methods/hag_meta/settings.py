"""The settings of HAG-Meta."""

from dataclasses import dataclass
from typing import Literal

from graphfcl.methods.bases.settings import EpisodicSettings
from graphfcl.methods.hag_meta.network import LOSSES, TASK_ATTENTIONS
from graphfcl.methods.settings import require_choice, require_range
from graphfcl.methods.shared.fine_tuning import STEP_CANDIDATES, Steps, check_steps


@dataclass(frozen=True)
class HagMetaSettings(EpisodicSettings):
    """All settings; the defaults are the paper's where it names them."""

    gpil: bool = True
    """Meta-train in pseudo-incremental episodes."""
    nla: bool = True
    """Weigh supports by node-level attention."""
    tla: Literal["printed", "invariant"] | None = "printed"
    """Form of task-level attention, or none."""
    task_weighting: Literal["printed", "hard"] = "printed"
    """hard teaches the attention the tasks with the larger loss."""
    loss: Literal["softmax", "binary"] = "softmax"
    """Cross-entropy, or the binary form as printed."""
    base_supports: int = 20
    """Nodes of a base class that make its mean in an episode."""
    fine_tuning: tuple[Steps, ...] = STEP_CANDIDATES
    """(steps, rate) candidates of a session, besides (0, 0); validation sessions choose."""
    fine_tuning_steps: int | None = None
    """Steps of a session, instead of choosing them."""
    fine_tuning_rate: float = 0.005
    """Rate of these steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("loss", self.loss, tuple(LOSSES))
        if self.tla is not None:
            require_choice("tla", self.tla, tuple(TASK_ATTENTIONS))
        require_choice("task_weighting", self.task_weighting, ("printed", "hard"))
        require_range("base_supports", self.base_supports, least=1)
        check_steps(self.fine_tuning, self.fine_tuning_steps, self.fine_tuning_rate)
