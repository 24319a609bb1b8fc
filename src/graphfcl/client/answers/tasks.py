"""Tasks of Label Studio."""

from dataclasses import dataclass
from typing import Literal

from graphfcl.client.answers.common import Answer


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The chosen or predicted class.

    Attributes:
        choices: List with the name of the class.
    """

    choices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """The choice for a tag of the labelling configuration.

    Attributes:
        from_name: Name of the tag with the choices.
        to_name: Name of the tag that shows the node.
        type: Type of the result.
        value: The chosen class.
    """

    from_name: str
    to_name: str
    type: Literal["choices"]
    value: Choices


@dataclass(frozen=True, kw_only=True)
class TaskPrediction:
    """The prediction of the model for a node.

    Attributes:
        model_version: Version of the model as a string.
        score: Probability of the predicted class, from 0 to 1.
        result: The predicted class, as a list of one.
    """

    model_version: str
    score: float
    result: tuple[TaskResult, ...]


@dataclass(frozen=True, kw_only=True)
class TaskAnnotation:
    """The label of a node.

    Attributes:
        result: The class of the label, as a list of one.
        was_cancelled: Always false: only existing labels are exported.
    """

    result: tuple[TaskResult, ...]
    was_cancelled: bool


@dataclass(frozen=True, kw_only=True)
class TaskData:
    """A node and the text that is shown for it.

    Attributes:
        node: Id of the node.
        text: Id and largest features of the node.
    """

    node: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """A node to be labelled in Label Studio. ``dataclasses.asdict`` makes the JSON that Label Studio imports.

    Attributes:
        data: The node and the text that is shown for it.
        predictions: The prediction of the model, as a list of one.
        annotations: The label of the node, as a list of one; empty if it has none.
    """

    data: TaskData
    predictions: tuple[TaskPrediction, ...]
    annotations: tuple[TaskAnnotation, ...]


@dataclass(frozen=True, kw_only=True)
class LabelStudioTasks(Answer):
    """A page of tasks for Label Studio.

    Attributes:
        config: Labelling configuration for the project, in XML.
        tasks: Tasks of this page.
        next_cursor: Cursor of the next page; None on the last page.
    """

    config: str
    tasks: tuple[Task, ...]
    next_cursor: str | None
