"""Layers of packages, no import cycles, functions of a readable size."""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Generic

import pytest

import graphfcl
from graphfcl import Learner
from graphfcl.methods import LEARNERS, METHODS
from graphfcl.methods.settings import settings_rows

ROOT = Path(graphfcl.__file__).parent
LAYERS = [
    {"errors", "version", "defaults"},
    {"client"},
    {"runtime"},
    {"graph"},
    {"stream", "metrics"},
    {"datasets", "nn"},
    {"methods", "active"},
    {"testing", "production", "evaluation"},
    {"experiments", "service", "trackers"},
    {"report"},
    {"cli"},
]
PRODUCTION = ("store", "labels", "answers", "graph", "model", "changes", "labelling")  # from bottom to top
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}
FILES = sorted(ROOT.rglob("*.py"))
MODULES = {
    ".".join(("graphfcl", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in FILES
}
CLASSES = [method.learner for method in METHODS]
LONGEST, MOST_PARAMETERS = 60, 12


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """The syntax tree of a file, node by node."""
    return list(ast.walk(ast.parse(path.read_text())))


@cache
def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports, wherever in it; ``import x`` inside a function too."""
    names = set()
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def inside() -> dict[str, set[str]]:
    """Each module and those of the package that it imports; the registry imports the methods that it names."""
    found = {name: {other for other in imported(path) if other in MODULES} for name, path in MODULES.items()}
    named = {f"graphfcl.methods.{place.partition(':')[0]}" for place in LEARNERS.values()}
    assert named <= MODULES.keys()
    found["graphfcl.methods.registry"] |= named
    return found


def test_imports_go_down() -> None:
    for path in FILES:
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if package in ("__init__", "__main__"):
            continue
        for other in {name.split(".")[1] for name in imported(path) if name.startswith("graphfcl.")} - {package}:
            assert HEIGHT[other] < HEIGHT[package], f"{path.relative_to(ROOT)} imports graphfcl.{other}"


def test_packages_of_production_go_down() -> None:
    """A module imports its own package and those below it; the modules beside the packages import all of them."""
    root = ROOT / "production"
    assert {path.parent.name for path in root.glob("*/__init__.py")} == set(PRODUCTION)
    for path in root.glob("*/*.py"):
        allowed = PRODUCTION[: PRODUCTION.index(path.parent.name) + 1]
        for name in imported(path):
            if name.startswith("graphfcl.production."):
                assert name.split(".")[2] in allowed, f"{path.relative_to(ROOT)} imports {name}"


def test_no_module_imports_the_package_root() -> None:
    for name, others in inside().items():
        assert "graphfcl" not in others or name == "graphfcl", f"{name} imports the package root"


def test_there_is_no_import_cycle() -> None:
    """Neither between packages nor inside one, nor through an import inside a function or for type checkers."""
    left = {name: others - {name} for name, others in inside().items() if name not in ("graphfcl", "graphfcl.__main__")}
    while left:
        free = {name for name, others in left.items() if not others & left.keys()}
        assert free, f"these import each other: {sorted(left)}"
        left = {name: others for name, others in left.items() if name not in free}


def test_methods_seen_from_above() -> None:
    """The contract and its neighbours, the methods, and three folders of parts."""
    folder = ROOT / "methods"
    names = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    entry = {"__init__", "learner", "progress", "registry", "settings", "state", "testing"}
    methods = {inspect.getmodule(learner).__name__.split(".")[2] for learner in CLASSES}  # type: ignore[union-attr]
    assert names == entry | methods | {"bases", "shared", "blocks"}


@pytest.mark.parametrize("learner", CLASSES, ids=lambda learner: learner.name)
def test_a_learner_has_parts_and_one_line_of_bases(learner: type[Learner]) -> None:
    line = [learner]
    while line[-1] is not Learner:
        bases = [base for base in line[-1].__bases__ if base is not Generic]
        assert len(bases) == 1, f"{line[-1].__name__} has several bases"
        line.append(bases[0])
    assert len(line) - 2 <= 2, [kind.__name__ for kind in line]


def test_code_above_methods_names_no_method() -> None:
    """Defaults, the paper's own grids and the figures it printed name methods, each in one file."""
    allowed = {"defaults.py", "experiments/paper_grids.py"}
    names = {method.name for method in METHODS}
    for path in FILES:
        place = path.relative_to(ROOT).as_posix()
        if place.startswith("methods/") or place in allowed:
            continue
        nodes = nodes_of(path)
        texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        assert not texts & names, f"{place} names {texts & names}"
        single = {name for name in imported(path) if name.startswith("graphfcl.methods.") and name in MODULES}
        single -= {
            f"graphfcl.methods.{part}" for part in ("learner", "progress", "registry", "settings", "state", "testing")
        }
        shared = ("graphfcl.methods.shared", "graphfcl.methods.blocks")  # parts and tables, of no method
        assert all(name.startswith(shared) for name in single), f"{place} imports {single}"


FOLDERS = {
    "VisibleFolder",
    "GraphFolder",
    "GrownFolder",
    "FolderRows",
    "FolderModelGraph",
    "FolderInputs",
    "FolderTables",
}
IN_MEMORY = {"Graph", "VisibleGraph", "GrowingGraph", "GraphInputs", "ResidentTables"}
KNOW_THE_DISK = ("graph/", "methods/blocks/", "production/graph/")
# They make graph folders and open them.
MAY_NAME_FOLDERS = {
    "__init__.py",
    "cli/data.py",
    "datasets/importing.py",
    "datasets/finding.py",
    "experiments/graph_folders.py",
}


def names_in(node: ast.AST) -> set[str]:
    """Names and attributes in a piece of code, texts of annotations included."""
    return (
        {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        | {each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    )


def questions_of_place(nodes: list[ast.AST]) -> Iterator[str]:
    """Code that asks whether a graph is in memory or on the disk."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id == "isinstance" and names_in(node.args[1]) & (FOLDERS | IN_MEMORY):
                yield ast.unparse(node)
            if node.func.id == "hasattr" and names_in(node.args[0]) & {"graph", "visible", "inputs", "growing"}:
                yield ast.unparse(node)
        if isinstance(node, ast.Name | ast.Attribute | ast.FunctionDef):
            name = {ast.Name: "id", ast.Attribute: "attr", ast.FunctionDef: "name"}[type(node)]
            if getattr(node, name) == "is_on_disk":
                yield "is_on_disk"
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            target = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
            if target.rpartition(".")[2] in ("graph", "visible", "visible_graph") and "Any" in names_in(
                node.annotation
            ):
                yield f"{target}: {ast.unparse(node.annotation)}"


def test_few_ask_whether_a_graph_is_on_the_disk() -> None:
    """Algorithms are written against AnyGraph, VisibleNodes and NodeTables, which are in memory or on the disk."""
    for path in FILES:
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(KNOW_THE_DISK):
            continue
        questions = list(questions_of_place(nodes_of(path)))
        assert not questions, f"{place} asks {questions}"
        named = {name.rpartition(".")[2] for name in imported(path)} & FOLDERS
        assert not named or place in MAY_NAME_FOLDERS, f"{place} imports {named}"


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path in FILES:
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.relative_to(ROOT)}:{node.name}", node


def test_functions_are_short_and_take_few_things() -> None:
    for name, node in functions():
        docstring = node.body[0] if ast.get_docstring(node) else None
        documented = (docstring.end_lineno or 0) - docstring.lineno + 1 if docstring else 0
        assert (node.end_lineno or 0) - node.lineno + 1 - documented <= LONGEST, f"{name} is too long"
        arguments = node.args
        count = len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs])
        assert count - (node.name == "__init__") <= MOST_PARAMETERS, f"{name} has {count} parameters"


def test_every_setting_is_explained() -> None:
    for method in METHODS:
        for row in settings_rows(method.learner.settings_type()):
            assert row.explanation.endswith("."), f"{method.name}: {row.name} has no line of explanation"
            assert len(row.explanation) < 120


def test_every_public_name_can_be_imported() -> None:
    assert "GraphClassifier" in graphfcl.__all__
    for name in graphfcl.__all__:
        assert getattr(graphfcl, name) is not None


def test_nothing_is_unpickled() -> None:
    for path in FILES:
        text = path.read_text()
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text
        assert "weights_only=False" not in text
