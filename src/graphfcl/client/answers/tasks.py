"""Tasks of Label Studio."""

from dataclasses import dataclass
from typing import Literal

from graphfcl.client.answers.common import Answer


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The chosen or predicted class, as a list of one."""

    choices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """A choice for a tag of the labelling configuration."""

    from_name: str
    to_name: str
    type: Literal["choices"]
    value: Choices


@dataclass(frozen=True, kw_only=True)
class TaskPrediction:
    """What the model predicts."""

    model_version: str
    score: float
    result: tuple[TaskResult, ...]


@dataclass(frozen=True, kw_only=True)
class TaskAnnotation:
    """The label of a node."""

    result: tuple[TaskResult, ...]
    was_cancelled: bool


@dataclass(frozen=True, kw_only=True)
class TaskData:
    """A node and the text that is shown for it."""

    node: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """A node to be labelled in Label Studio; ``dataclasses.asdict`` makes what it imports."""

    data: TaskData
    predictions: tuple[TaskPrediction, ...]
    annotations: tuple[TaskAnnotation, ...]


@dataclass(frozen=True, kw_only=True)
class LabelStudioTasks(Answer):
    """Tasks for Label Studio. config: the labelling configuration of their project."""

    config: str
    tasks: tuple[Task, ...]
    next_cursor: str | None
