"""The wheel and the sdist, built and used as a stranger would: with what they declare and nothing else."""

import email
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import graphfcl
from tests.docs.blocks import read_page
from tests.packaging.project import PROJECT, ROOT, distribution

pytestmark = pytest.mark.long
LEFT_OUT = {".git", ".venv", "runs", "models", "dist", "build"}
GRAPH = "synthetic:nodes=300,edges=1200,classes=8,features=60,signal=0.6,skew=0.5"
IMPORT_ALL = """
import importlib, pkgutil, graphfcl
for module in pkgutil.walk_packages(graphfcl.__path__, "graphfcl."):
    if not module.name.startswith("graphfcl.service") and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(graphfcl.__file__)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was made of it."""
    pytest.importorskip("build", reason="the package `build` is not installed: make setup")
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, folder / "tree", ignore=_left_out)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "tree"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return folder / "dist"


@pytest.fixture(scope="module")
def described(built: Path) -> Message:
    """The metadata of the wheel."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(wheel.read(name))


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What a clean clone does not have, and the measured cells."""
    place = Path(folder).relative_to(ROOT)
    found = {name for name in names if name == "__pycache__" or name.endswith(("_cache", ".egg-info", ".hypothesis"))}
    return found | (LEFT_OUT if place == Path() else {"cells"} if place.parts[0] == "results" else set())


def closure(requirements: list[str]) -> set[str]:
    """The installed distributions that these need, and those need, without extras."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    left = [Requirement(text) for text in requirements]
    while left:
        wanted = left.pop()
        name = distribution(wanted.name)
        if name in found or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
            continue
        try:
            needed = metadata.distribution(name).requires or []
        except metadata.PackageNotFoundError:
            continue  # torch for a CPU declares libraries of GPUs that it does without
        found.add(name)
        left.extend(Requirement(text) for text in needed)
    return found


@pytest.fixture(scope="module")
def python(built: Path, described: Message, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and the distributions that it declares, linked from that of the tests."""
    folder = tmp_path_factory.mktemp("fresh") / "environment"
    venv.create(folder, with_pip=False)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    for name in closure(described.get_all("Requires-Dist", [])):
        there = metadata.distribution(name)
        tops = {file.parts[0] for file in there.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            place = Path(str(there.locate_file(top)))
            if place.suffix != ".pth" and not (site / top).exists():
                (site / top).symlink_to(place)
    return folder / "bin" / "python"


def in_environment(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-I", *words], cwd=python.parent, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("package", ["pytest", "pandas", "fastapi", "hypothesis", "ray", "selenium"])
def test_the_environment_has_nothing_of_development(python: Path, package: str) -> None:
    done = in_environment(python, "-c", f"import {package}")
    assert f"No module named '{package}'" in done.stderr


def test_the_wheel_runs_without_extras(python: Path, tmp_path: Path) -> None:
    every = in_environment(python, "-c", IMPORT_ALL)
    assert every.returncode == 0, every.stderr
    assert Path(every.stdout.strip()).is_relative_to(python.parents[1])
    words = ["-m", "graphfcl", "run", "--graph", GRAPH, "--method", "anchor", "--device", "cpu", "--base", "3"]
    words += ["--pseudo-novel", "2", "--way", "1", "--set", "pretraining.epochs=3", "--out", str(tmp_path / "out")]
    done = in_environment(python, *words)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "result.json").read_text())["sessions"]
    assert (tmp_path / "out" / "accuracy.png").read_bytes().startswith(b"\x89PNG")


def test_what_an_extra_brings_is_asked_for_in_one_sentence(python: Path, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label\n1,a\n")
    (tmp_path / "edges.csv").write_text("source,target\n")
    for extra, words in (
        ("serve", ["serve", "--model", tmp_path]),
        ("duckdb", ["data", "import", "--graph", tmp_path, "--out", tmp_path / "out"]),
    ):
        done = in_environment(python, "-m", "graphfcl", *map(str, words))
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.splitlines()) == 1
        assert f"graphfcl[{extra}]" in done.stderr


def test_the_sdist_has_what_make_test_needs_and_no_cells(built: Path) -> None:
    path = next(built.glob("*.tar.gz"))
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    for name in ("Makefile", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "constraints.txt", "setup.py"):
        assert name in names
    assert "constraints-minimum.txt" in names
    for folder in ("tests", "docs", "scripts", "benchmarks", "src", ".ci", ".github"):
        files = {
            file.relative_to(ROOT).as_posix()
            for file in (ROOT / folder).rglob("*")
            if file.is_file() and "egg-info" not in str(file) and file.suffix != ".pyc"
        }
        assert files <= names, sorted(files - names)[:5]
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text()):
        assert target in names, f"README.md leads to {target}"
    assert not [name for name in names if name.startswith("results/") and name.endswith(".parquet")]
    assert path.stat().st_size < 15e6


def test_the_wheel_has_the_stubs(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    stubs = {file.relative_to(ROOT / "src").as_posix() for file in (ROOT / "src").rglob("*.pyi")}
    assert {"graphfcl/__init__.pyi", "graphfcl/py.typed"} <= stubs | {"graphfcl/py.typed"} <= names


def test_the_long_description_needs_no_repository(described: Message) -> None:
    payload = described.get_payload(decode=True)
    assert isinstance(payload, bytes)
    text = payload.decode()
    assert described["Description-Content-Type"] == "text/markdown"
    assert described["Author"] == "The graphfcl developers"
    assert described.get_all("Project-URL") is None
    assert "source distribution" in text
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"\]\((?!https?:)[^)]*\)", prose)
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```.*?^```$", readme, re.MULTILINE | re.DOTALL)
    assert blocks
    assert all(block in text for block in blocks), "code is not touched"


def test_the_wheel_declares_what_pyproject_does(described: Message) -> None:
    declared = [text for text in described.get_all("Requires-Dist", []) if "extra ==" not in text]
    assert {distribution(text) for text in declared} == {distribution(text) for text in PROJECT["dependencies"]}


def test_a_newcomer_runs_what_the_readme_shows(python: Path, tmp_path: Path) -> None:
    """With the wheel alone, in an empty folder: its Python as it stands, and all commands but those that install."""
    environment = {"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "MPLBACKEND": "Agg"}
    command = python.parent / "graphfcl"
    command.write_text(f"#!{python}\nfrom graphfcl.cli import main\nmain()\n")
    command.chmod(0o755)
    printed = []
    for block in read_page(ROOT / "README.md").blocks:
        if not block.runs or block.values("skip"):
            continue
        words = [str(python), "-I", "-c"] if block.runs == "python" else ["bash", "-ec"]
        text = re.sub(r"^graphfcl bench .*$", "", block.text, flags=re.MULTILINE)  # takes hours; tests/docs runs a part
        done = subprocess.run(
            [*words, text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        printed += done.stdout.splitlines()
    assert printed[:2] == ["['bicycles' 'bicycles' 'lamps']", "['bicycles']"]
    assert (tmp_path / "models" / "shop").is_dir()
    assert (tmp_path / "answers.csv").read_text().count("\n") == 401


def test_a_release_names_the_repository_that_it_is_built_from() -> None:
    setup = (ROOT / "setup.py").read_text().partition("if __name__")[0]
    names: dict[str, Any] = {"__file__": str(ROOT / "setup.py")}
    exec(compile(setup, "setup.py", "exec"), names)
    at = "https://forge.example/graphfcl"
    assert names["addresses"]("") == {}
    version = names["VERSION"]
    assert version == graphfcl.__version__
    assert names["addresses"](at)["Changelog"] == f"{at}/blob/v{version}/CHANGELOG.md"
    text = "[the tutorial](docs/tutorial.md), ![a picture](docs/a.png), [out](https://x.example)\n```\n[a](b)\n```\n"
    shown = names["long_description"](text, at)
    assert f"[the tutorial]({at}/blob/v{version}/docs/tutorial.md)" in shown
    assert f"![a picture]({at}/raw/v{version}/docs/a.png)" in shown
    assert "[out](https://x.example)\n```\n[a](b)\n```" in shown
