"""The settings of ANCHOR."""

from dataclasses import dataclass, field

from graphfcl.errors import InputError
from graphfcl.methods.settings import MethodSettings
from graphfcl.methods.shared.supervised_training import SupervisedSettings
from graphfcl.methods.shared.training_state import require_range

# Weight of the surroundings, hops, share and steps of smoothing, weight of links.
Hops = tuple[float, int, float, int, float]


@dataclass(frozen=True)
class AnchorSettings(MethodSettings):
    """rank: columns of the basis B at most. raw_weight, encoder_weight: a₀ and a_z. shrinkage: ρ. temperature: T.

    length_prior: nodes that the usual length of a mean counts for. rounds: how often means are estimated anew.
    candidates: (a₂, hops, s, steps of smoothing, β) that validation sessions choose from; another than the first must
    be better by ``margin``. hop_weight, hops, smoothing, smoothing_steps, links: fix them instead. ``pretraining`` is
    the encoder's training.
    """

    hidden: int = 256
    size: int = 128
    last_relu: bool = False
    pretraining: SupervisedSettings = field(
        default_factory=lambda: SupervisedSettings(epochs=15, patience=5, learning_rate=0.01)
    )
    rank: int = 1024
    raw_weight: float = 1.0
    encoder_weight: float = 0.7
    shrinkage: float = 0.3
    temperature: float = 30.0
    length_prior: float = 20.0
    rounds: int = 2
    candidates: tuple[Hops, ...] = (
        (2.0, 2, 0.7, 3, 0.0),
        (2.0, 2, 0.0, 3, 0.5),
        (2.0, 4, 0.9, 10, 0.0),
        (0.5, 2, 0.3, 3, 0.0),
        (0.1, 2, 0.0, 3, 0.0),
    )
    margin: float = 0.01
    hop_weight: float | None = None
    hops: int | None = None
    smoothing: float | None = None
    smoothing_steps: int | None = None
    links: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("rank", "smoothing_steps", "hops"):
            require_range(name, getattr(self, name), least=1)
        for name in ("raw_weight", "encoder_weight", "hop_weight", "rounds", "margin", "length_prior", "links"):
            require_range(name, getattr(self, name), least=0)
        for name in ("shrinkage", "temperature"):
            require_range(name, getattr(self, name), above=0)
        require_range("smoothing", self.smoothing, least=0, below=1)
        if any(len(candidate) not in (4, 5) for candidate in self.candidates):
            raise InputError("candidates: each is five numbers, (hop_weight, hops, smoothing, smoothing_steps, links).")
        if not self.candidates:
            raise InputError(
                "candidates is empty: give at least one of (hop_weight, hops, smoothing, smoothing_steps, links)."
            )
