"""The hash of the code behind a class, and the commit of the package."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from graphfcl import InputError, register_method
from graphfcl.methods import import_method, registry
from graphfcl.runtime import source_code
from graphfcl.runtime.source_code import source_hash
from tests.methods.test_registry import START, Constant
from tests.outside.samples import nearest_mean


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.REGISTRY, "registered", {})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's current folder; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def package(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").write_text("")
    (folder / "mine" / "far.py").write_text("FAR = 1\n")
    (folder / "mine" / "near.py").write_text("def near():\n    from . import far\n    return far.FAR\n")
    (folder / "mine" / "unused.py").write_text("A = 1\n")
    (folder / "mine" / "base.py").write_text(f"{START}class Base(Constant):\n    pass\n")
    text = "import mine.near\nfrom .base import Base\nimport numpy\nclass X(Base):\n    name = 'x'\n"
    (folder / "mine" / "learner.py").write_text(text)


@pytest.mark.parametrize(
    ("edited", "noticed"),
    [("learner", True), ("base", True), ("near", True), ("far", True), ("__init__", True), ("unused", False)],
)
def test_the_hash_is_that_of_the_class_and_of_all_it_imports_beside_it(
    folder: Path, edited: str, noticed: bool
) -> None:
    package(folder)
    learner = import_method("mine.learner:X").learner
    before = source_hash(learner)
    assert source_hash(learner) == before
    path = folder / "mine" / f"{edited}.py"
    path.write_text(path.read_text() + "# another line\n")
    assert (source_hash(learner) != before) == noticed


def test_the_hash_does_not_depend_on_where_the_folder_is(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("elsewhere")
    hashes = []
    for place in (folder, other):
        sys.path.insert(0, str(place))
        nearest_mean(place, "moved")
        hashes.append(import_method("moved:NearestMean").source)
        del sys.modules["moved"]
        sys.path.remove(str(place))
    assert hashes[0] == hashes[1]


def test_a_class_without_source_is_refused() -> None:
    made: dict[str, Any] = {"__name__": "nowhere", "Constant": Constant}
    exec("class Typed(Constant):\n    pass\n", made)
    with pytest.raises(InputError, match="define it in a file"):
        register_method(made["Typed"])


def test_installed_packages_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    plain = source_code._files

    def files(module: str, file: Path) -> Any:
        read.append(module)
        return plain(module, file)

    class Network(Constant, torch.nn.Module):
        pass

    monkeypatch.setattr(source_code, "_files", files)
    source_hash(Network)
    assert set(read) == {__name__, "tests.methods.test_registry"}


def test_the_hash_is_that_of_the_code_in_memory(folder: Path) -> None:
    path = nearest_mean(folder, "edited_later")
    before = import_method("edited_later:NearestMean").source
    path.write_text(path.read_text() + "# edited\n")
    learner = sys.modules["edited_later"].NearestMean
    register_method(learner)
    assert registry.find_method("nearest-mean").source == before, "the process still runs the old code"


def commit_of(source: Path, **variables: str) -> str:
    """What a process says that imports the package from a folder."""
    code = "from graphfcl.runtime.source_code import package_commit; print(package_commit())"
    environment = {key: value for key, value in os.environ.items() if key != source_code.COMMIT_VARIABLE}
    environment |= {"PYTHONPATH": str(source), **variables}
    asked = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return asked.stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="Git is not installed")
def test_the_commit_is_that_of_the_checkout_the_package_is_run_from(tmp_path: Path) -> None:
    package = Path(source_code.__file__).parents[1]
    unneeded = shutil.ignore_patterns("__pycache__", "*.npz")
    shutil.copytree(package, tmp_path / "src" / "graphfcl", ignore=unneeded)
    assert commit_of(tmp_path / "src") == "None"
    assert commit_of(tmp_path / "src", GRAPHFCL_COMMIT="0123abc") == "0123abc"

    def git(*words: str) -> str:
        named = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
        done = subprocess.run(["git", *named, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / ".gitignore").write_text("venv\n__pycache__\n")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    commit = git("rev-parse", "--short=10", "HEAD")
    assert commit_of(tmp_path / "src", GRAPHFCL_COMMIT="0123abc") == commit
    (tmp_path / "notes.txt").write_text("not of the package")
    assert commit_of(tmp_path / "src") == commit
    with open(tmp_path / "src" / "graphfcl" / "version.py", "a") as file:
        file.write("# edited\n")
    assert commit_of(tmp_path / "src") == f"{commit}+changes"
    shutil.copytree(tmp_path / "src", tmp_path / "venv")  # installed below a checkout, and no part of it
    assert commit_of(tmp_path / "venv") == "None"


def test_runs_import_nothing_that_their_hash_leaves_out() -> None:
    """Otherwise an edit could change results and not the code they name."""
    code = (
        "import sys, pkgutil, importlib, graphfcl.experiments as package, graphfcl.methods as methods\n"
        "for each in pkgutil.walk_packages(package.__path__, 'graphfcl.experiments.'):\n"
        "    importlib.import_module(each.name)\n"
        "for group in methods.GROUPS.values(): [methods.find_method(name).learner for name in group]\n"
        "print(*(name for name in sys.modules if name.startswith('graphfcl.')))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "graphfcl.methods.hag_meta" in loaded
    assert not {name.split(".")[1] for name in loaded} & set(source_code.NO_PART_OF_RUNS)


def test_editing_the_report_leaves_the_hash_of_runs_alone(tmp_path: Path) -> None:
    package = Path(source_code.__file__).parents[1]
    shutil.copytree(package, tmp_path / "graphfcl", ignore=shutil.ignore_patterns("__pycache__", "*.npz"))
    code = "from graphfcl.runtime.source_code import run_digest; print(run_digest())"

    def digest() -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.check_output([sys.executable, "-c", code], env=environment, text=True).strip()

    assert digest() == source_code.run_digest()
    with open(tmp_path / "graphfcl" / "report" / "page.py", "a") as file:
        file.write("# edited\n")
    assert digest() == source_code.run_digest()
    with open(tmp_path / "graphfcl" / "metrics" / "__init__.py", "a") as file:
        file.write("# edited\n")
    assert digest() != source_code.run_digest()
