"""Settings that methods share. A method's own settings class adds to one of these."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from graphfcl.errors import InputError
from graphfcl.methods.shared.supervised_training import SupervisedSettings
from graphfcl.methods.shared.training_state import require_range
from graphfcl.nn import ENCODERS

Steps = tuple[int, float]
STEP_CANDIDATES: tuple[Steps, ...] = ((5, 0.001), (20, 0.001), (5, 0.005), (20, 0.005))


@dataclass(frozen=True)
class MethodSettings:
    """The encoder and its pre-training, the same for all methods.

    last_relu: ReLU on the last encoder layer, which the authors' code does not have.
    """

    encoder: str = "gcn"
    hidden: int = 32
    size: int = 16
    last_relu: bool = True
    dropout: float = 0.5
    pretraining: SupervisedSettings = field(default_factory=SupervisedSettings)

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS:
            raise InputError(f"encoder is {self.encoder!r}; there are {', '.join(ENCODERS)}.")
        require_range("hidden", self.hidden, least=1)
        require_range("size", self.size, least=1)
        require_range("dropout", self.dropout, least=0, below=1)
        if self.encoder == "gat" and self.hidden % 4:
            raise InputError(f"hidden is {self.hidden}; with the encoder gat it must be a multiple of its 4 heads.")

    def as_json(self) -> dict[str, Any]:
        """Plain values, the same whether or not they have been through a file."""
        return json.loads(json.dumps(asdict(self)))


@dataclass(frozen=True)
class EpisodicSettings(MethodSettings):
    """Meta-training in episodes.

    learning_rate, weight_decay: of meta-training; the decay is that of fine-tuning too.
    episodes, validate_every, patience: a validation counts as the mean of the last ``validation_window``.
    refit: repeat meta-training on all pseudo-novel classes, the held-out ones included.
    queries: nodes a class that are asked about in an episode.
    """

    learning_rate: float = 0.005
    weight_decay: float = 0.0005
    episodes: int = 1000
    validate_every: int = 20
    patience: int = 10
    validation_window: int = 5
    refit: bool = True
    queries: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("validate_every", "patience", "validation_window", "queries"):
            require_range(name, getattr(self, name), least=1)
        require_range("episodes", self.episodes, least=0)
        require_range("learning_rate", self.learning_rate, above=0)
        require_range("weight_decay", self.weight_decay, least=0)


def check_steps(candidates: tuple[Steps, ...], steps: int | None, rate: float) -> None:
    """Refuse impossible steps of an incremental session."""
    require_range("fine_tuning_steps", steps, least=0)
    require_range("fine_tuning_rate", rate, above=0)
    for count, each in candidates:
        require_range("fine_tuning, steps", count, least=0)
        require_range("fine_tuning, rate", each, above=0)
