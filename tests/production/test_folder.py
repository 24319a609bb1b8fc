"""Who may write to a folder: two writers, and models that were not loaded from it."""

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from graphfcl.errors import InputError
from graphfcl.production import GraphClassifier, ModelFolder
from tests.production.models import members


def test_a_model_is_not_saved_over_what_it_does_not_know(folder: Path) -> None:
    one, two = GraphClassifier.load(folder), GraphClassifier.load(folder)
    one.learn({"nine": members("class-09")[:5]}).save(folder)
    two.learn({"other": members("class-09")[5:9]})
    with pytest.raises(InputError, match="was not loaded from"):
        two.save(folder)
    assert GraphClassifier.load(folder).classes_[-1] == "nine"
    assert one.save(folder) == one.save(folder), "nothing changed, nothing written"


def _learn_in_another_process(folder: str, name: str, nodes: list[Any], ready: Any) -> None:
    ready.wait()
    with ModelFolder(folder).editing(wait=60) as model:
        model.learn({name: nodes})


def test_two_processes_that_learn_at_once_both_succeed(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    nodes = members("class-09")
    workers = [
        context.Process(target=_learn_in_another_process, args=(str(folder), name, part, ready))
        for name, part in (("nine", nodes[:4]), ("ten", nodes[4:8]))
    ]
    for worker in workers:
        worker.start()
    ready.set()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    model = GraphClassifier.load(folder)
    assert model.version == 5
    assert {"nine", "ten"} <= set(model.classes_)


def test_a_writer_that_waits_too_long_is_refused(folder: Path) -> None:
    busy = ModelFolder(folder)
    with busy.writing(), pytest.raises(InputError, match="changed by another process"), busy.editing(wait=0.1):
        pass
