"""Settings of Mecoin."""

from dataclasses import dataclass
from typing import Literal

from graphfcl.errors import InputError
from graphfcl.methods.bases.settings import EncoderSettings
from graphfcl.methods.settings import require_choice, require_range
from graphfcl.methods.shared.fine_tuning import Steps, check_steps

ANSWERS = ("memory", "student")
HEADS = 2  # of the attention across books


@dataclass(frozen=True)
class MecoinSettings(EncoderSettings):
    """The names of formulas are those of ``learner.py``."""

    hidden: int = 256
    size: int = 128
    last_relu: bool = False
    answer: Literal["memory", "student"] = "memory"
    """Who answers: the memory, as published, or the student that it learns from."""
    books: int = 32
    """Codebooks of the memory (B)."""
    keys: int = 32
    """Keys of a codebook (J)."""
    key_size: int = 14
    """Numbers in a key; even, for two heads of attention."""
    map_dropout: float = 0.5
    """Share of values dropped in the fixed blocks while the memory is taught."""
    student_hidden: int = 64
    """Width of the student's hidden layer."""
    student_dropout: float = 0.5
    """Share of the student's input dropped in training."""
    smoothing: float = 0.1
    """Label smoothing of the student's cross-entropy."""
    kept: int = 50
    """Nodes kept of each class to teach again at every session."""
    value_pace: float = 5.0
    """Rate of the values in units of the student's; as released 1."""
    draws: int = 16
    """Noisy lookups of a node, at most, that a session draws its steps from."""
    batch: int = 512
    """Nodes of a step at most; of more, every class gives the same number in the mean."""
    first_steps: int = 1000
    """Steps at session 0 at most; its validation nodes stop them."""
    first_rate: float = 0.01
    """Adam's rate at session 0."""
    fine_tuning: tuple[Steps, ...] = ((20, 0.002), (50, 0.002), (50, 0.01), (200, 0.01))
    """(steps, rate) candidates of a session, besides (0, 0); validation sessions choose."""
    adjustments: tuple[float, ...] = (0.0, -0.25, -0.5, 0.25)
    """Candidates for τ of the logit adjustment τ log(n_c/Σn); validation sessions choose."""
    fine_tuning_steps: int | None = None
    """Steps of a session, instead of choosing them."""
    fine_tuning_rate: float = 0.01
    """Rate of these steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("answer", self.answer, ANSWERS)
        for name in ("books", "keys", "student_hidden", "kept", "draws", "batch", "first_steps"):
            require_range(name, getattr(self, name), least=1)
        require_range("key_size", self.key_size, least=2)
        if self.key_size % HEADS:
            raise InputError(f"key_size is {self.key_size}; it must be even.")
        for name in ("map_dropout", "student_dropout", "smoothing"):
            require_range(name, getattr(self, name), least=0, below=1)
        for name in ("first_rate", "value_pace"):
            require_range(name, getattr(self, name), above=0)
        if not self.adjustments:
            raise InputError("adjustments is empty: give at least one value, 0 to adjust nothing.")
        check_steps(self.fine_tuning, self.fine_tuning_steps, self.fine_tuning_rate)
