"""The effect of a version, the members of a class, and disputed labels."""

from dataclasses import dataclass
from typing import Literal

from graphfcl.client.answers.common import Answer, ClassName, ClassProbability, ExpectedErrors, Recall
from graphfcl.client.answers.labels import NodeLabel


@dataclass(frozen=True, kw_only=True)
class Move:
    """The nodes that moved from one predicted class to another.

    Attributes:
        number: Number of the move in its list, from 1.
        before: Predicted class before the change; None if the nodes looked unknown.
        after: Predicted class after the change; None if the nodes look unknown.
        nodes: Number of nodes.
        labelled: Number of these nodes that have a label.
    """

    number: int
    before: ClassName | None
    after: ClassName | None
    nodes: int
    labelled: int


@dataclass(frozen=True, kw_only=True)
class ClassRecalls:
    """The recall of a class before and after a change.

    Attributes:
        name: Name of the class.
        before: Recall before the change; None if it was not measured.
        after: Recall after the change; None if it was not measured.
        worse: Whether the recall fell by more than chance explains.
    """

    name: ClassName
    before: Recall | None
    after: Recall | None
    worse: bool


@dataclass(frozen=True, kw_only=True)
class EffectAccuracy:
    """Pooled recalls before and after a change; None where no node was measured.

    Attributes:
        fit_before: Recall of the classes of the fit before the change.
        fit_after: Recall of the classes of the fit after the change.
        later_before: Recall of the classes learned later before the change.
        later_after: Recall of the classes learned later after the change.
    """

    fit_before: Recall | None
    fit_after: Recall | None
    later_before: Recall | None
    later_after: Recall | None


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A new label that looks wrong to this version of the model or the version before.

    Attributes:
        id: Id of the node.
        label: Class of the label.
        guess: Class that the model predicts instead.
        probability: Probability of the predicted class, from 0 to 1.
    """

    id: str
    label: ClassName
    guess: ClassName
    probability: float


@dataclass(frozen=True, kw_only=True)
class Effect(Answer):
    """What a version changed.

    Attributes:
        status: ``ready``, ``computing``, or ``none`` if there is nothing to compare with.
        effect_of: Version that is compared with the version before.
        why: Reason why there is nothing to compare with.
        nodes: Number of nodes that both versions have.
        changed: Number of nodes whose prediction changed.
        moves: Moves between classes, the largest first.
        classes: Recalls of the classes.
        accuracy: Pooled recalls of the classes of the fit and of the classes learned later.
        doubts: New labels that look wrong, at most 20.
        warnings: Sentences about what may have gone wrong.
    """

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
    """A page of the nodes of one move.

    Attributes:
        before: Predicted class before the change; None if the nodes looked unknown.
        after: Predicted class after the change; None if the nodes look unknown.
        total: Number of nodes on all pages.
        ids: Ids of the nodes of this page.
        next_cursor: Cursor of the next page; None on the last page.
    """

    before: ClassName | None
    after: ClassName | None
    total: int
    ids: tuple[str, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True)
class Member:
    """A node without a label that is predicted as a class.

    Attributes:
        id: Id of the node.
        probability: Probability of the class, from 0 to 1.
        unknown_score: How much the node looks like none of the known classes.
        second: Second most likely class; None if the model has only one class.
    """

    id: str
    probability: float
    unknown_score: float
    second: ClassProbability | None


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """What accepting all members above a threshold would do.

    Attributes:
        threshold: Smallest probability that is accepted.
        nodes: Number of members that reach the threshold.
        expected_errors: Expected number of wrong predictions among them.
    """

    threshold: float
    nodes: int
    expected_errors: ExpectedErrors


@dataclass(frozen=True, kw_only=True)
class Members(Answer):
    """A page of the predicted members of a class, the most doubtful first.

    Attributes:
        name: Name of the class.
        total: Number of members on all pages.
        members: Members of this page.
        next_cursor: Cursor of the next page; None on the last page.
        choices: Thresholds to choose from, with the number of members and of expected errors.
    """

    name: ClassName
    total: int
    members: tuple[Member, ...]
    next_cursor: str | None
    choices: tuple[Acceptance, ...]


@dataclass(frozen=True, kw_only=True)
class Vote:
    """The class that a person gave to a node.

    Attributes:
        label: Name of the class.
        by: Name of the person.
        when: Time at which the label was given.
    """

    label: ClassName
    by: str
    when: str


@dataclass(frozen=True, kw_only=True)
class Dispute:
    """The evidence that a label is wrong, from models that were trained without it.

    Attributes:
        confidence: Confidence that the label is wrong, from 0 to 1.
        guess: Class that the models predict.
        probability: Probability of the predicted class, from 0 to 1.
    """

    confidence: float
    guess: ClassName
    probability: float


@dataclass(frozen=True, kw_only=True)
class LabelIssue(NodeLabel):
    """A label that needs a second look.

    Attributes:
        disagreement: Newest vote of each person if people disagree; otherwise empty.
        dispute: Evidence of the model that the label is wrong; None if the model does not dispute it.
    """

    disagreement: tuple[Vote, ...]
    dispute: Dispute | None


@dataclass(frozen=True, kw_only=True)
class LabelIssues(Answer):
    """A page of the labels that need a second look.

    Attributes:
        status: Whether the disputes of this version are ready.
        disputes_version: Version for which the disputes were computed; None if they are not computed yet.
        why: Reason why the disputes cannot be computed; None if they can.
        total: Number of labels on all pages.
        issues: Labels of this page.
        next_cursor: Cursor of the next page; None on the last page.
    """

    status: Literal["computing", "ready"]
    disputes_version: int | None
    why: str | None
    total: int
    issues: tuple[LabelIssue, ...]
    next_cursor: str | None
