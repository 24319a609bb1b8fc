"""Type checkers of users see the public names with their types, and the wheel has the stubs that list them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import graphfcl
from graphfcl.runtime.lazy_names import stub_places

ROOT = Path(graphfcl.__file__).parent
USE = """
import graphfcl
from graphfcl import Graph, GraphClassifier, load_dataset

model: GraphClassifier = graphfcl.GraphClassifier("anchor")
graph, rules = load_dataset("debian")
reveal_type(graph)
reveal_type(model.fit(graph))
number: int = graph
graphfcl.no_such_name
"""


@pytest.mark.long
def test_mypy_of_users_sees_the_types(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "--follow-imports", "silent", "use.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT.parent), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 'Revealed type is "graphfcl.graph.graph.Graph"' in done.stdout, done.stdout + done.stderr
    assert 'Revealed type is "graphfcl.production.classifier.GraphClassifier"' in done.stdout
    assert 'Incompatible types in assignment (expression has type "Graph", variable has type "int")' in done.stdout
    assert 'Module has no attribute "no_such_name"' in done.stdout
    assert "Found 2 errors" in done.stdout


def test_every_stub_lists_names_that_exist() -> None:
    stubs = sorted(ROOT.rglob("__init__.pyi"))
    assert ROOT / "__init__.pyi" in stubs
    for stub in stubs:
        name = ".".join(stub.parent.relative_to(ROOT.parent).parts)
        package = __import__(name, fromlist=["_"])
        assert package.__all__ == sorted(stub_places(stub))
        assert set(package.__all__) <= set(dir(package))
        for each in package.__all__:
            assert getattr(package, each) is not None


def test_stubs_export_what_they_import() -> None:
    for stub in ROOT.rglob("__init__.pyi"):
        for node in ast.parse(stub.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                assert all(alias.asname == alias.name for alias in node.names), stub
