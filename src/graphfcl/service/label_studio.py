"""Export nodes as tasks of Label Studio, and read the labels of completed tasks.

A task is a JSON object with ``data`` (the id of the node and a text to show), ``predictions`` and ``annotations``. The
class of a node is the choice of the tag ``class`` in the labelling configuration.
"""

from typing import Any, Literal
from xml.sax.saxutils import quoteattr

import numpy as np
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field, StrictStr

import graphfcl.client.answers as answers
import graphfcl.service.bodies as bodies
from graphfcl.errors import quoted
from graphfcl.production.labels.statements import Statement
from graphfcl.service.cards import features_of
from graphfcl.service.listed_labels import label_cards
from graphfcl.service.paging import Cursor, Limit, lost_cursor, make_cursor, read_cursor
from graphfcl.service.problems import Problem
from graphfcl.service.service import Service, answered, refuse_many
from graphfcl.service.snapshots import Snapshot

TAG, SHOWN, NODE = "class", "text", "node"  # names in the labelling configuration and in ``data``
Which = Literal["unlabelled", "labelled", "all"]


# Export


def label_studio_routes(service: Service) -> APIRouter:
    """Make the route that exports tasks."""
    routes = APIRouter(prefix="/v1/export", tags=["read"])

    @routes.get("/label-studio", response_model=answers.LabelStudioTasks)
    def export_label_studio(nodes: Which = "unlabelled", limit: Limit = 100, cursor: Cursor = None) -> Response:
        """Export nodes as tasks for Label Studio, with predictions, and with labels as annotations.

        ``config`` is the labelling configuration for the project.
        """
        refuse_many(limit, service.limits.nodes, "nodes")
        snapshot = service.writer.current
        return answered(task_page(snapshot, nodes, limit, cursor), snapshot.version)

    return routes


def task_page(snapshot: Snapshot, which: Which, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return a page of tasks, ordered by the rows of their nodes, and the labelling configuration of the project."""
    wanted = {"all": snapshot.labels >= -1, "labelled": snapshot.labels >= 0, "unlabelled": snapshot.labels == -1}
    rows = np.flatnonzero(wanted[which])
    if cursor is not None:
        (last,) = snapshot.graph.rows_of_ids(read_cursor(cursor, str)).tolist()
        if last < 0:
            raise lost_cursor()
        rows = rows[np.searchsorted(rows, last, side="right") :]
    tasks = _tasks(snapshot, rows[:limit])
    more = rows.size > limit
    next_cursor = make_cursor(tasks[-1]["data"][NODE]) if more else None
    return {"config": _config(snapshot), "tasks": tasks, "next_cursor": next_cursor}


def _tasks(snapshot: Snapshot, rows: np.ndarray) -> list[dict[str, Any]]:
    if not rows.size:
        return []
    probabilities = snapshot.predictions(rows).probabilities
    cards = label_cards(snapshot, rows[snapshot.labels[rows] >= 0])
    labelled = {card["id"]: card for card in cards if card["role"] != "accepted"}  # those are predictions
    tasks = []
    for node, row, each in zip(snapshot.ids_at(rows), rows.tolist(), probabilities, strict=True):
        best, label = int(each.argmax()), labelled.get(node)
        prediction = {
            "model_version": str(snapshot.version),
            "score": float(each[best]),
            "result": [_choice(snapshot.classes[best])],
        }
        data = {NODE: node, SHOWN: _text(snapshot, node, row)}
        annotations = [] if label is None else [{"result": [_choice(label["class"])], "was_cancelled": False}]
        tasks.append({"data": data, "predictions": [prediction], "annotations": annotations})
    return tasks


def _choice(name: str | int) -> dict[str, Any]:
    return {"from_name": TAG, "to_name": SHOWN, "type": "choices", "value": {"choices": [str(name)]}}


def _text(snapshot: Snapshot, node: str, row: int) -> str:
    """Return the text that describes a node to a person: its id and its largest features."""
    features = features_of(snapshot, row)
    whole = all(each["value"] == 1 for each in features) or snapshot.graph.columns.text_weights is not None
    words = [each["name"] if whole else f"{each['name']} = {each['value']:.3g}" for each in features]
    return "\n".join(filter(None, (node, ", ".join(words))))


def _config(snapshot: Snapshot) -> str:
    choices = "".join(f"    <Choice value={quoteattr(str(name))}/>\n" for name in snapshot.classes)
    return (
        f'<View>\n  <Text name="{SHOWN}" value="${SHOWN}"/>\n'
        f'  <Choices name="{TAG}" toName="{SHOWN}" choice="single">\n{choices}  </Choices>\n</View>\n'
    )


# Import


class Result(BaseModel):
    """One result of an annotation. Tags other than choices are ignored.

    Attributes:
        from_name: Name of the tag.
        type: Type of the result; only ``choices`` is read.
        value: Object with the list ``choices``.
    """

    from_name: str = ""
    type: str = ""
    value: dict[str, Any] = Field(default_factory=dict)


class Annotation(BaseModel):
    """The annotation of a task by one person.

    Attributes:
        result: Results of the annotation.
        was_cancelled: Whether the person skipped the task; the annotation is then ignored.
        completed_by: Id of the user, or the user as an object.
        created_at: Time at which the annotation was made.
        updated_at: Time at which the annotation was last changed.
    """

    result: list[Result] = Field(default_factory=list)
    was_cancelled: bool = False
    completed_by: int | dict[str, Any] | None = None
    created_at: StrictStr = ""
    updated_at: StrictStr = ""


class CompletedTask(BaseModel):
    """A task as Label Studio exports it. Other fields are ignored.

    Attributes:
        data: Object with the id of the node as ``node``.
        annotations: Annotations of the task; tasks without a finished annotation are ignored.
    """

    data: dict[str, Any]
    annotations: list[Annotation] = Field(default_factory=list)


class TasksToLearn(bodies.Teaching):
    """Completed tasks of Label Studio.

    Attributes:
        tasks: Tasks as Label Studio exports them.
        by: Name of the person who labelled; by default the user of each annotation.
    """

    tasks: list[CompletedTask] = Field(min_length=1)


def read_tasks(body: TasksToLearn) -> tuple[list[bodies.Label], list[Statement]]:
    """Return the label of each finished annotation, and a statement about who gave the label and when."""
    labels, statements = [], []
    for place, task in enumerate(body.tasks):
        where = f"tasks.{place}"
        for annotation in task.annotations:
            choices = _choices(annotation)
            if annotation.was_cancelled or not choices:
                continue
            if len(choices) > 1:
                raise Problem(422, f"{where}: the choices {', '.join(map(quoted, choices))}: a node has one class.")
            labels.append(bodies.label_of(task.data.get(NODE), choices[0], f"{where}.data.{NODE}"))
            by = body.by or _person(annotation.completed_by)
            statements.append(Statement.of(by, annotation.updated_at or annotation.created_at, {}, where))
    if not labels:
        raise Problem(422, "no task has a finished annotation with a choice: label some, then export them as JSON.")
    return labels, statements


def _choices(annotation: Annotation) -> list[str]:
    """Return the chosen classes. Without the tag of the exported configuration, any tag with choices counts."""
    results = [each for each in annotation.result if each.type == "choices"]
    results = [each for each in results if each.from_name == TAG] or results
    listed = [each.value.get("choices") or [] for each in results]
    if not all(isinstance(part, list) and all(isinstance(one, str | int) for one in part) for part in listed):
        raise Problem(422, "the choices of an annotation are not a list of texts: export the project as JSON.")
    return list(dict.fromkeys(str(one) for part in listed for one in part))


def _person(user: int | dict[str, Any] | None) -> str:
    """Return the name of the person who completed an annotation, or "" if it is unknown."""
    if isinstance(user, dict):
        name = f"{user.get('first_name') or ''} {user.get('last_name') or ''}".strip()
        return str(user.get("email") or user.get("username") or name or user.get("id") or "")
    return "" if user is None else f"user {user}"
