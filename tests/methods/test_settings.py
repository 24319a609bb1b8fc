"""Limits of settings are stated in the types of their fields."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pytest

from graphfcl import InputError
from graphfcl.methods.settings import CheckedSettings, Count, Fraction, Number, Positive, Share


@dataclass(frozen=True)
class Example(CheckedSettings):
    """One field of each kind."""

    prefix: ClassVar[str] = "inner."
    rank: Count = 3
    rounds: Number = 0
    rate: Positive | None = None
    dropout: Share = 0.5
    share: Fraction = 1.0
    form: Literal["printed", "hard"] | None = "printed"
    penalties: tuple[Positive, ...] = (1.0, 3.0)
    steps: tuple[tuple[Number, Positive], ...] = ((5, 0.1),)
    free: float = -1.0


@dataclass(frozen=True)
class Wider(Example):
    """Another default does not lift a limit."""

    rank: int = 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rank": 0}, "inner.rank is 0; it must be at least 1."),
        ({"rounds": -1}, "inner.rounds is -1; it must be at least 0."),
        ({"rate": 0.0}, "inner.rate is 0.0; it must be above 0."),
        ({"dropout": 1.0}, "inner.dropout is 1.0; it must be below 1."),
        ({"share": 1.5}, "inner.share is 1.5; it must be at most 1."),
        ({"form": "soft"}, "inner.form is 'soft'; it must be one of printed, hard."),
        ({"penalties": ()}, "inner.penalties is empty: give at least one value."),
        ({"penalties": (1.0, -1.0)}, "inner.penalties is -1.0; it must be above 0."),
        ({"steps": ((5, 0.1), (2, 0.0))}, "inner.steps is 0.0; it must be above 0."),
    ],
)
@pytest.mark.parametrize("kind", [Example, Wider])
def test_values_outside_their_limits_are_refused(kind: type[Example], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        kind(**changes)
    assert str(caught.value) == message


def test_values_inside_them_are_taken() -> None:
    Wider(rank=1, rate=None, form=None, dropout=0.0, share=0.0, steps=(), free=-5.0)
