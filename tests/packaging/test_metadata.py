"""What pyproject.toml promises, against the code and the files beside it."""

import re
from pathlib import Path

import pytest

import graphfcl
from tests.packaging.project import PROJECT, ROOT, distribution, foreign_imports, import_names, lower_bounds

EXTRAS = PROJECT["optional-dependencies"]
# Where the package may import what an extra brings; everywhere else it lives on its dependencies alone.
PLACES = {
    "networkx": ("graph/networks.py",),
    "pyg": ("graph/convert.py",),
    "ray": ("runtime/tasks/ray_backend.py",),
    "submitit": ("runtime/tasks/submitit_backend.py",),
    "serve": ("service/", "cli/"),
    "mlflow": ("trackers.py",),
    "pandas": ("evaluation/evaluate.py",),
    "duckdb": ("graph/folder/sources/tables.py", "graph/tables/queries.py"),
}
SOURCES = ROOT / "src" / "graphfcl"


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Each file of the package and what it imports from elsewhere."""
    return {
        path.relative_to(SOURCES).as_posix(): foreign_imports(path.read_text())
        for path in sorted(SOURCES.rglob("*.py"))
    }


def undeclared(name: str, imported: set[str]) -> set[str]:
    """What a file of the package imports although no dependency or extra allowed there brings it."""
    allowed = import_names(PROJECT["dependencies"])
    for extra, places in PLACES.items():
        if name.startswith(places):
            allowed |= import_names(EXTRAS[extra])
    return imported - allowed


def pins(name: str) -> dict[str, str]:
    """The versions of a constraints file."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if line and not line.startswith("#")]
    return {distribution(line): line.partition("==")[2] for line in lines}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def test_the_package_imports_only_what_it_declares(imports: dict[str, set[str]]) -> None:
    for name, imported in imports.items():
        assert not undeclared(name, imported), name


@pytest.mark.parametrize("line", ["import pandas", "def f():\n    from joblib import dump", "import networkx as nx"])
def test_an_undeclared_import_is_noticed(line: str) -> None:
    assert undeclared("graph/tables/reader.py", foreign_imports(line))
    assert not undeclared("graph/networks.py", foreign_imports("import networkx, numpy, os"))


def test_every_dependency_is_imported(imports: dict[str, set[str]]) -> None:
    imported = set().union(*imports.values())
    assert import_names(PROJECT["dependencies"]) <= imported
    for extra in PLACES:
        assert import_names(EXTRAS[extra]) <= imported, extra


def test_the_minimum_versions_are_the_lower_bounds() -> None:
    bounds = lower_bounds(PROJECT["dependencies"])
    assert all(bounds.values()), "every dependency has a lower bound"
    minimum = pins("constraints-minimum.txt")
    assert minimum.keys() == bounds.keys()
    for name, bound in bounds.items():
        short, whole = numbers(bound), numbers(minimum[name])
        assert whole[: len(short)] == short, name
        assert not any(whole[len(short) :]), name


def test_the_versions_of_development_are_allowed() -> None:
    tested = pins("constraints.txt")
    for name, bound in lower_bounds(PROJECT["dependencies"]).items():
        assert numbers(tested[name]) >= numbers(bound), name


def test_the_version_is_one_number_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {graphfcl.__version__}\n" in citation
    assert re.search(rf"^## {re.escape(graphfcl.__version__)}( |$)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_authors_are_the_same_and_no_address_is_invented() -> None:
    assert PROJECT["authors"] == [{"name": "The graphfcl developers"}]
    citation = (ROOT / "CITATION.cff").read_text()
    assert 'authors:\n  - name: "The graphfcl developers"\n' in citation
    assert "urls" not in PROJECT  # they come from the repository that a release is built from
    for name in ("CITATION.cff", "pyproject.toml", "setup.py", "README.md", "CONTRIBUTING.md"):
        assert "://" not in (ROOT / name).read_text(), name


def test_pythons_are_those_of_the_classifiers() -> None:
    versions = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)]
    assert versions == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_changes_are_one_chapter_for_each_version_newest_first() -> None:
    heads = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heads
    for head in heads:
        assert re.fullmatch(r"\d+\.\d+\.\d+ \((unreleased|\d{4}-\d\d-\d\d)\)", head), head
    versions = [numbers(head.split()[0]) for head in heads]
    assert versions == sorted(versions, reverse=True)


def test_links_of_the_readme_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text()):
        assert Path(ROOT / target).exists(), target
