"""The settings of HAG-Meta."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from graphfcl.errors import InputError
from graphfcl.methods.losses import LOSSES
from graphfcl.methods.pretraining import PretrainingSettings
from graphfcl.methods.training import require_range
from graphfcl.nn import ENCODERS, TASK_ATTENTIONS


@dataclass(frozen=True)
class HagMetaSettings:
    """All settings; the defaults are the paper's where it names them.

    gpil, nla: whether to meta-train, and to weight supports. tla: the form of task-level attention, or none.
    task_weighting: ``printed``, or ``hard``, which teaches the attention the tasks with the larger loss.
    loss: ``softmax``, or the ``binary`` form as printed.
    last_relu: ReLU on the last encoder layer, which the authors' code does not have.
    episodes, validate_every, patience: of meta-training; a validation counts as the mean of the last
        ``validation_window``. refit: repeat meta-training on all pseudo-novel classes.
    base_supports, queries: nodes a class in an episode.
    fine_tuning: (steps, rate) candidates of an incremental session, besides (0, 0); validation sessions choose.
    fine_tuning_steps, fine_tuning_rate: fix the steps instead of choosing them.
    """

    gpil: bool = True
    nla: bool = True
    tla: Literal["printed", "invariant"] | None = "printed"
    task_weighting: Literal["printed", "hard"] = "printed"
    loss: Literal["softmax", "binary"] = "softmax"
    encoder: str = "gcn"
    hidden: int = 32
    size: int = 16
    last_relu: bool = True
    dropout: float = 0.5
    learning_rate: float = 0.005
    weight_decay: float = 0.0005
    pretraining: PretrainingSettings = field(default_factory=PretrainingSettings)
    episodes: int = 1000
    validate_every: int = 20
    patience: int = 10
    validation_window: int = 5
    refit: bool = True
    base_supports: int = 20
    queries: int = 10
    fine_tuning: tuple[tuple[int, float], ...] = ((5, 0.001), (20, 0.001), (5, 0.005), (20, 0.005))
    fine_tuning_steps: int | None = None
    fine_tuning_rate: float = 0.005

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS:
            raise InputError(f"encoder is {self.encoder!r}; there are {', '.join(ENCODERS)}.")
        if self.loss not in LOSSES:
            raise InputError(f"loss is {self.loss!r}; there are {', '.join(LOSSES)}.")
        if self.tla is not None and self.tla not in TASK_ATTENTIONS:
            raise InputError(f"tla is {self.tla!r}; there are {', '.join(TASK_ATTENTIONS)}.")
        if self.task_weighting not in ("printed", "hard"):
            raise InputError(f"task_weighting is {self.task_weighting!r}; there are printed, hard.")
        for name in ("hidden", "size", "validate_every", "patience", "validation_window", "base_supports", "queries"):
            require_range(name, getattr(self, name), least=1)
        for name in ("episodes", "weight_decay", "fine_tuning_steps"):
            require_range(name, getattr(self, name), least=0)
        require_range("dropout", self.dropout, least=0, below=1)
        for name in ("learning_rate", "fine_tuning_rate"):
            require_range(name, getattr(self, name), above=0)
        if self.encoder == "gat" and self.hidden % 4:
            raise InputError(f"hidden is {self.hidden}; with the encoder gat it must be a multiple of its 4 heads.")

    def as_json(self) -> dict[str, Any]:
        """Plain values, the same whether or not they have been through a file."""
        return json.loads(json.dumps(asdict(self)))
