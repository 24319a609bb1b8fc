"""A graph folder and a model of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphfcl.methods.blocks.column_phases as column_phases
import graphfcl.methods.blocks.row_tasks as row_tasks
from graphfcl import GraphClassifier, GraphFolder
from tests.production.graph.folder_models import fit, folder_graph


@pytest.fixture
def graph(tmp_path: Path) -> GraphFolder:
    return folder_graph(tmp_path / "graph", tmp_path / "work")


@pytest.fixture
def model(graph: GraphFolder) -> GraphClassifier:
    return fit(graph)


@pytest.fixture
def no_passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it makes every phase over the graph fail."""

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a pass over the graph folder")

    def forbid() -> None:
        monkeypatch.setattr(row_tasks, "run_tasks", fail)
        monkeypatch.setattr(column_phases, "run_tasks", fail)

    return forbid
