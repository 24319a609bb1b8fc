"""The effect of a version, the members of a class, and disputed labels."""

from dataclasses import dataclass
from typing import Literal

from graphfcl.client.answers.common import Answer, ClassName, ClassProbability, ExpectedErrors, Recall
from graphfcl.client.answers.labels import NodeLabel


@dataclass(frozen=True, kw_only=True)
class Move:
    """The number of nodes that moved between two classes; None: they look unknown. labelled: how many have a label."""

    number: int
    before: ClassName | None
    after: ClassName | None
    nodes: int
    labelled: int


@dataclass(frozen=True, kw_only=True)
class ClassRecalls:
    """Recall of a class before and after, None if not measured. worse: by more than chance explains."""

    name: ClassName
    before: Recall | None
    after: Recall | None
    worse: bool


@dataclass(frozen=True, kw_only=True)
class EffectAccuracy:
    """Pooled recall of the classes of the fit, and of those learned later; None if no node was measured."""

    fit_before: Recall | None
    fit_after: Recall | None
    later_before: Recall | None
    later_after: Recall | None


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A new label that looks wrong: the model predicts ``guess`` with ``probability``, or did before."""

    id: str
    label: ClassName
    guess: ClassName
    probability: float


@dataclass(frozen=True, kw_only=True)
class Effect(Answer):
    """What the version ``effect_of`` changed, once ``status`` is ``ready``. ``none``: nothing to compare with."""

    status: Literal["computing", "ready", "none"]
    effect_of: int
    why: str | None = None
    nodes: int | None = None
    changed: int | None = None
    moves: tuple[Move, ...] = ()
    classes: tuple[ClassRecalls, ...] = ()
    accuracy: EffectAccuracy | None = None
    doubts: tuple[Doubt, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MovedNodes(Answer):
    """A page of the nodes of one move. total: of all pages."""

    before: ClassName | None
    after: ClassName | None
    total: int
    ids: tuple[str, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Member:
    """A node without a label that is predicted as a class. second: the second likeliest class."""

    id: str
    probability: float
    unknown_score: float
    second: ClassProbability | None


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """How many members have at least a probability, and how many errors are expected among them."""

    threshold: float
    nodes: int
    expected_errors: ExpectedErrors


@dataclass(frozen=True, kw_only=True)
class Members(Answer):
    """A page of the predicted members of a class, the most doubtful first. total: of all pages."""

    name: ClassName
    total: int
    members: tuple[Member, ...]
    next_cursor: str | None
    choices: tuple[Acceptance, ...]


@dataclass(frozen=True, kw_only=True)
class Vote:
    """The class that a person gave to a node."""

    label: ClassName
    by: str
    when: str


@dataclass(frozen=True, kw_only=True)
class Dispute:
    """How confident the model is that a label is wrong, the class that it predicts, and its probability."""

    confidence: float
    guess: ClassName
    probability: float


@dataclass(frozen=True, kw_only=True)
class LabelIssue(NodeLabel):
    """A label that needs a second look. disagreement: the votes, if people disagree. dispute: by the model."""

    disagreement: tuple[Vote, ...]
    dispute: Dispute | None


@dataclass(frozen=True, kw_only=True)
class LabelIssues(Answer):
    """Labels that need a second look. total: of all pages. disputes_version: for which disputes were computed.

    why: the reason if they are not computed.
    """

    status: Literal["computing", "ready"]
    disputes_version: int | None
    why: str | None
    total: int
    issues: tuple[LabelIssue, ...]
    next_cursor: str | None
