"""Tasks of Label Studio: what is exported, and what a completed export teaches."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from graphfcl import GraphClassifier
from graphfcl.client import ServiceError
from tests.service.servers import Client


def annotation(*choices: str, **more: Any) -> dict[str, Any]:
    result = {"from_name": "class", "to_name": "text", "type": "choices", "id": "x", "value": {"choices": [*choices]}}
    return {"id": 7, "result": [result], "lead_time": 3.2, "ground_truth": False, **more}


def test_tasks_hold_every_node_with_its_prediction(shared: Client, folder: Path) -> None:
    client = shared.typed()
    pages = list(client.pages(client.export_label_studio, nodes="all", limit=120))
    tasks = {task.data.node: task for page in pages for task in page.tasks}
    model = GraphClassifier.load(folder)
    predicted = model.prediction_columns([*tasks])
    assert sorted(tasks) == sorted(map(str, model.node_ids_.tolist()))
    for task, name, probability in zip(tasks.values(), predicted["class"], predicted["probability"], strict=True):
        (prediction,) = task.predictions
        assert prediction.result[0].value.choices == (str(name),)
        assert prediction.score == pytest.approx(float(probability))
        assert task.data.text.startswith(task.data.node)
    labels = {each.id: each.label for page in client.pages(client.list_labels) for each in page.labels}
    chosen = {node: task.annotations[0].result[0].value.choices[0] for node, task in tasks.items() if task.annotations}
    assert chosen == labels
    for nodes, expected in (("labelled", set(labels)), ("unlabelled", tasks.keys() - labels.keys())):
        listed = [task.data.node for page in client.pages(client.export_label_studio, nodes) for task in page.tasks]
        assert (len(listed), set(listed)) == (len(expected), expected)
    view = ElementTree.fromstring(pages[0].config)
    assert [each.get("value") for each in view.iter("Choice")] == [str(name) for name in model.classes_]
    (text,), (choices,) = view.iter("Text"), view.iter("Choices")
    assert (text.get("value"), choices.get("toName")) == ("$text", text.get("name"))


def test_completed_tasks_teach(server: Client, free: list[str]) -> None:
    client = server.typed()
    exported = {task.data.node: task for page in client.pages(client.export_label_studio) for task in page.tasks}
    tasks: list[Any] = [json.loads(json.dumps(asdict(exported[node]))) for node in free[:5]]
    for number, task in enumerate(tasks):
        task |= {"id": number, "project": 3, "created_at": "2026-01-01T00:00:00Z"}
    user = {"id": 4, "email": "ann@example.org", "first_name": "Ann"}
    tasks[0]["annotations"] = [annotation("new", completed_by=user, updated_at="2026-02-03T04:05:06Z")]
    tasks[1]["annotations"] = [annotation("new", completed_by=9), annotation("new", completed_by=10)]
    tasks[2]["annotations"] = [annotation("class-00", was_cancelled=True)]
    tasks[3]["annotations"] = [annotation()]
    done = client.import_label_studio(tasks, key="k")
    assert (done.learned, done.new_classes, done.version) == (2, ("new",), 2)
    assert client.import_label_studio(tasks, key="k") == done
    stored = {each.id: each.statements for each in client.list_labels("new").labels}
    assert [(each.by, each.when[:10]) for each in stored[free[0]]] == [("ann@example.org", "2026-02-03")]
    assert [each.by for each in stored[free[1]]] == ["user 9", "user 10"]
    assert client.import_label_studio(tasks).version == 2, "all of it is known"
    tasks[4]["annotations"] = [annotation("new", completed_by=9), annotation("class-01", completed_by=10)]
    with pytest.raises(ServiceError, match="user 10"):
        client.import_label_studio(tasks)
    client.import_label_studio(tasks, on_conflict="keep")
    disputed = {each.id: each.disagreement for each in client.list_label_issues().issues}
    assert [(each.by, each.label) for each in disputed[free[4]]] == [("user 9", "new"), ("user 10", "class-01")]
    assert client.get_node(free[4]).label == "new"
    labelled = client.export_label_studio("labelled", limit=150).tasks
    assert client.import_label_studio([asdict(task) for task in labelled]).learned == 0


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ({"data": {"node": "n20"}}, "no task has a finished annotation"),
        ({"data": {}, "annotations": [annotation("x")]}, "tasks.0.data.node is None"),
        (
            {"data": {"node": "n20"}, "annotations": [annotation("x", "y")]},
            "the choices 'x', 'y': a node has one class",
        ),
        ({"data": {"node": "nobody"}, "annotations": [annotation("x")]}, "'nobody' is not in the graph"),
        ({"annotations": [annotation("x")]}, "tasks.0.data: Field required."),
        ({"data": {"node": "n20"}, "annotations": [{"result": 7}]}, "tasks.0.annotations.0.result"),
        ({"data": {"node": "n21"}, "annotations": [annotation("x"), annotation("y")]}, "n21"),
    ],
)
def test_tasks_that_teach_nothing_are_refused(shared: Client, task: dict[str, Any], text: str) -> None:
    with pytest.raises(ServiceError) as refused:
        shared.typed().import_label_studio([task])
    assert text in str(refused.value)
    assert refused.value.status in (404, 409, 422)
    assert shared.get("/v1/model").json["version"] == 1
