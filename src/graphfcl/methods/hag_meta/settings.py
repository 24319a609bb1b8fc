"""The settings of HAG-Meta."""

from dataclasses import dataclass
from typing import Literal

from graphfcl.errors import InputError
from graphfcl.methods.hag_meta.network import LOSSES
from graphfcl.methods.settings import STEP_CANDIDATES, EpisodicSettings, Steps, check_steps
from graphfcl.methods.shared.training_state import require_range
from graphfcl.nn import TASK_ATTENTIONS


@dataclass(frozen=True)
class HagMetaSettings(EpisodicSettings):
    """All settings; the defaults are the paper's where it names them.

    gpil, nla: whether to meta-train, and to weight supports. tla: the form of task-level attention, or none.
    task_weighting: ``printed``, or ``hard``, which teaches the attention the tasks with the larger loss.
    loss: ``softmax``, or the ``binary`` form as printed.
    base_supports: nodes of a base class that make its mean in an episode.
    fine_tuning: (steps, rate) candidates of an incremental session, besides (0, 0); validation sessions choose.
    fine_tuning_steps, fine_tuning_rate: fix the steps instead of choosing them.
    """

    gpil: bool = True
    nla: bool = True
    tla: Literal["printed", "invariant"] | None = "printed"
    task_weighting: Literal["printed", "hard"] = "printed"
    loss: Literal["softmax", "binary"] = "softmax"
    base_supports: int = 20
    fine_tuning: tuple[Steps, ...] = STEP_CANDIDATES
    fine_tuning_steps: int | None = None
    fine_tuning_rate: float = 0.005

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss not in LOSSES:
            raise InputError(f"loss is {self.loss!r}; there are {', '.join(LOSSES)}.")
        if self.tla is not None and self.tla not in TASK_ATTENTIONS:
            raise InputError(f"tla is {self.tla!r}; there are {', '.join(TASK_ATTENTIONS)}.")
        if self.task_weighting not in ("printed", "hard"):
            raise InputError(f"task_weighting is {self.task_weighting!r}; there are printed, hard.")
        require_range("base_supports", self.base_supports, least=1)
        check_steps(self.fine_tuning, self.fine_tuning_steps, self.fine_tuning_rate)
