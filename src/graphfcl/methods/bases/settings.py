"""Settings of the bases. A method's own settings add to one of these."""

from dataclasses import dataclass, field

from graphfcl.errors import InputError
from graphfcl.methods.settings import require_choice, require_range
from graphfcl.methods.shared.fine_tuning import STEP_CANDIDATES, Steps, check_steps
from graphfcl.methods.shared.supervised_training import SupervisedSettings
from graphfcl.nn import ENCODERS


@dataclass(frozen=True)
class EncoderSettings:
    """The encoder and its pre-training, the same for all methods."""

    encoder: str = "gcn"
    """Kind of graph encoder: gcn or gat."""
    hidden: int = 32
    """Width of the encoder's first layer."""
    size: int = 16
    """Width of an embedding."""
    last_relu: bool = True
    """ReLU on the last encoder layer, which the authors' code does not have."""
    dropout: float = 0.5
    """Share of hidden values dropped in training."""
    pretraining: SupervisedSettings = field(default_factory=SupervisedSettings)
    """Training on session 0 before anything else."""

    def __post_init__(self) -> None:
        require_choice("encoder", self.encoder, tuple(ENCODERS))
        require_range("hidden", self.hidden, least=1)
        require_range("size", self.size, least=1)
        require_range("dropout", self.dropout, least=0, below=1)
        if self.encoder == "gat" and self.hidden % 4:
            raise InputError(f"hidden is {self.hidden}; with the encoder gat it must be a multiple of its 4 heads.")


@dataclass(frozen=True)
class EpisodicSettings(EncoderSettings):
    """Meta-training in episodes."""

    learning_rate: float = 0.005
    """Adam's rate in meta-training."""
    weight_decay: float = 0.0005
    """Adam's weight decay in meta-training, and in the fine-tuning of sessions."""
    episodes: int = 1000
    """Episodes of meta-training at most."""
    validate_every: int = 20
    """Episodes between two validations."""
    patience: int = 10
    """Validations in a row without a better score that end meta-training."""
    validation_window: int = 5
    """Validations whose mean counts as the score."""
    validation_draws: int = 3
    """Times that a fifth of the pseudo-novel classes is held out anew; with refit off it is once."""
    refit: bool = True
    """Repeat meta-training on all pseudo-novel classes, the held-out ones included."""
    queries: int = 10
    """Nodes per class that an episode asks about."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("validate_every", "patience", "validation_window", "validation_draws", "queries"):
            require_range(name, getattr(self, name), least=1)
        require_range("episodes", self.episodes, least=0)
        require_range("learning_rate", self.learning_rate, above=0)
        require_range("weight_decay", self.weight_decay, least=0)


@dataclass(frozen=True)
class HeadSettings(EncoderSettings):
    """A head that grows; ``pretraining`` holds for the training of session 0 too."""

    weight_decay: float = 0.0005
    """Adam's weight decay in the steps of a session."""
    fine_tuning: tuple[Steps, ...] = STEP_CANDIDATES
    """(steps, rate) candidates of a session, besides (0, 0); validation sessions choose."""
    fine_tuning_steps: int | None = None
    """Steps of a session, instead of choosing them."""
    fine_tuning_rate: float = 0.005
    """Rate of these steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range("weight_decay", self.weight_decay, least=0)
        check_steps(self.fine_tuning, self.fine_tuning_steps, self.fine_tuning_rate)


@dataclass(frozen=True)
class LogitHeadSettings(HeadSettings):
    """A head that grows, whose logits are the scores."""

    adjustments: tuple[float, ...] = (0.0,)
    """Candidates for τ of the logit adjustment τ log(n_c/Σn); validation sessions choose."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.adjustments:
            raise InputError("adjustments is empty: give at least one value, 0 to adjust nothing.")
