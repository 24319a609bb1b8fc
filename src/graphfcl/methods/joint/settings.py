"""The settings of joint training."""

from dataclasses import dataclass, field

from graphfcl.errors import InputError
from graphfcl.methods.bases.settings import EncoderSettings
from graphfcl.methods.settings import require_choice, require_range
from graphfcl.methods.shared.supervised_training import SupervisedSettings

TRUNKS = ("gcn", "wide-gcn", "features", "ridge")


@dataclass(frozen=True)
class JointSettings(EncoderSettings):
    """``hidden``, ``size`` and ``pretraining`` are those of the trunk gcn."""

    trunks: tuple[str, ...] = TRUNKS
    """Trunks that are tried on session 0: gcn, wide-gcn, features, ridge; with one name that one is taken."""
    wide_hidden: int = 256
    """Width of the first layer of the wide GCN."""
    wide_size: int = 128
    """Width of its output, which has no ReLU."""
    wide_training: SupervisedSettings = field(
        default_factory=lambda: SupervisedSettings(epochs=15, patience=5, learning_rate=0.01)
    )
    """Training of the wide GCN and its head."""
    rank: int = 1024
    """Columns of the basis of features and ridge at most."""
    head_training: SupervisedSettings = field(
        default_factory=lambda: SupervisedSettings(epochs=30, patience=5, learning_rate=0.05, weight_decay=0.0001)
    )
    """Training of the head of the trunk features."""
    penalties: tuple[float, ...] = (1.0, 0.1, 0.01, 10.0)
    """Candidates of the ridge's penalty; the validation nodes of session 0 choose."""
    hop_weights: tuple[float, ...] = (2.0, 4.0, 1.0, 0.5)
    """Candidates of the weight of the features around in the ridge; they choose it too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.trunks:
            require_choice("trunks", name, TRUNKS)
        for name in ("wide_hidden", "wide_size", "rank"):
            require_range(name, getattr(self, name), least=1)
        for name in ("trunks", "penalties", "hop_weights"):
            if not getattr(self, name):
                raise InputError(f"{name} is empty: give at least one.")
        for value in self.penalties:
            require_range("penalties", value, above=0)
        for value in self.hop_weights:
            require_range("hop_weights", value, least=0)
