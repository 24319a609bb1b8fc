"""Methods of the package are known by name before they are imported."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import graphfcl
from graphfcl.methods import LEARNERS, METHODS, is_own, registry
from graphfcl.runtime.source_code import reference_of

METHOD = '''"""Always the first class."""

import numpy as np

from graphfcl.methods.learner import Learner


class First(Learner):
    """Always the first class."""

    def fit(self, base, *_):
        self.classes_ = base.classes

    def learn(self, session):
        self.classes_ += session.new_classes

    def scores(self, visible, nodes):
        return np.eye(1, len(self.classes_)).repeat(nodes.size, axis=0)
'''


def python(*arguments: str, path: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(path)}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, timeout=60, check=True
    )
    return done.stdout


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_name_in_the_table_is_the_name_of_the_class(method: registry.Method) -> None:
    assert method.learner.name == method.name
    assert reference_of(method.learner) == f"graphfcl.methods.{LEARNERS[method.name]}"
    assert is_own(method.learner)


def test_a_class_that_takes_the_name_of_a_method_is_not_ours() -> None:
    class Anchor(METHODS[0].learner):  # type: ignore[misc]
        """Somebody's own."""

    assert Anchor.name == METHODS[0].name
    assert not is_own(Anchor)


@pytest.mark.long
def test_a_method_is_added_by_one_file_and_one_line(tmp_path: Path) -> None:
    package = tmp_path / "graphfcl"
    shutil.copytree(Path(graphfcl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "files"))
    (package / "methods" / "first.py").write_text(METHOD)
    table = package / "methods" / "registry.py"
    table.write_text(table.read_text().replace('    "anchor": ', '    "first": "first:First",\n    "anchor": ', 1))
    assert "Always the first class." in python("-m", "graphfcl", "methods", path=tmp_path)
    asked = "import sys; from graphfcl import find_method; method = find_method('first'); print(method.name, end=' ');"
    unread = "print('graphfcl.methods.first' in sys.modules, end=' ');"
    said = python("-c", f"{asked}{unread} print(type(method.make()).__name__)", path=tmp_path)
    assert said.split() == ["first", "False", "First"]
