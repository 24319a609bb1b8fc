"""Models that several tests start from; no test changes them."""

import shutil
from pathlib import Path

import pytest

from graphfcl import GraphClassifier
from tests.production.crafting import CraftedFolder
from tests.production.erasures import EIGHT, GONE, NINE, people
from tests.production.models import HIDDEN, copy_of, fitted, members, quick


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


@pytest.fixture
def crafted(kept: Path, tmp_path: Path) -> CraftedFolder:
    return CraftedFolder(kept, tmp_path / "crafted")


@pytest.fixture(scope="session")
def six(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with six versions; the newest has no node GONE any more."""
    folder = tmp_path_factory.mktemp("six") / "model"
    model = GraphClassifier("anchor", quick("anchor")).fit(people(), hide_classes=HIDDEN)
    model.save(folder)
    model.learn({"eight": EIGHT[:5]}, by="ann", when="2026-01-02").save(folder)
    model.learn({"nine": [*NINE[:4], GONE]}, by="bob", on_conflict="replace").save(folder)
    model.rename("nine", "neun").save(folder)
    model.unlearn([NINE[0]]).save(folder)
    model.remove_nodes([GONE]).save(folder)
    model.wait()
    return folder
