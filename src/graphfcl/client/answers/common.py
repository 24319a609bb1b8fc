"""Parts that several answers share."""

from dataclasses import dataclass
from typing import Literal

ClassName = str | int
Status = Literal["computing", "ready"]
LabelRole = Literal["train", "validation", "support", "accepted"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The fields of all answers."""

    version: int


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A node of a batch that was left out, the kind of its problem, and why."""

    id: str
    kind: Literal["unknown-node"]
    why: str


@dataclass(frozen=True, kw_only=True)
class ClassProbability:
    """A class and how probable it is."""

    name: ClassName
    probability: float


@dataclass(frozen=True, kw_only=True)
class ClassShare:
    """A class and its share of some nodes."""

    name: ClassName
    share: float


@dataclass(frozen=True, kw_only=True)
class Recall:
    """``right`` of ``of`` measured nodes, and the 95 % interval of their share."""

    right: int
    of: int
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ExpectedErrors:
    """The expected number of wrong predictions, from their probabilities, with its 95 % range."""

    mean: float
    low: int
    high: int
