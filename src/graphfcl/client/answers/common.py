"""Parts that several answers share."""

from dataclasses import dataclass
from typing import Literal

ClassName = str | int
Status = Literal["computing", "ready"]
LabelRole = Literal["train", "validation", "support", "accepted"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The fields of all answers.

    Attributes:
        version: Version of the model that the answer describes.
    """

    version: int


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A node of a batch that was left out.

    Attributes:
        id: Id of the node.
        kind: Kind of the problem.
        why: The reason in words.
    """

    id: str
    kind: Literal["unknown-node"]
    why: str


@dataclass(frozen=True, kw_only=True)
class ClassProbability:
    """A class and its probability.

    Attributes:
        name: Name of the class.
        probability: Probability that the node is of this class, from 0 to 1.
    """

    name: ClassName
    probability: float


@dataclass(frozen=True, kw_only=True)
class ClassShare:
    """A class and its share of some nodes or edges.

    Attributes:
        name: Name of the class.
        share: Share of the class, from 0 to 1.
    """

    name: ClassName
    share: float


@dataclass(frozen=True, kw_only=True)
class Recall:
    """A recall as counts, with its 95 % interval (Wilson).

    Attributes:
        right: Number of measured nodes of the class that the model predicts correctly.
        of: Number of measured nodes of the class.
        low: Lower end of the interval of the recall, from 0 to 1.
        high: Upper end of the interval of the recall, from 0 to 1.
    """

    right: int
    of: int
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ExpectedErrors:
    """The expected number of wrong predictions, computed from their probabilities.

    Attributes:
        mean: Expected number of errors, the sum of 1 − p.
        low: Lower end of the 95 % range of the number of errors.
        high: Upper end of the 95 % range of the number of errors.
    """

    mean: float
    low: int
    high: int
