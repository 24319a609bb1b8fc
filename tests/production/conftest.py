"""Models that several tests start from; no test changes them."""

import shutil
from pathlib import Path

import pytest

from graphfcl import GraphClassifier
from tests.production.models import copy_of, fitted, members


@pytest.fixture(scope="session")
def start() -> GraphClassifier:
    return fitted()


@pytest.fixture
def model(start: GraphClassifier) -> GraphClassifier:
    return copy_of(start)


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three versions."""
    folder = tmp_path_factory.mktemp("models") / "model"
    model = fitted("anchor")
    model.save(folder)
    model.learn({"eight": members("class-08")[:5]}).save(folder)
    model.add_edges(members("class-08")[:3], members("class-08")[3:6]).save(folder)
    model.wait()
    return folder


@pytest.fixture
def folder(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "model"))
