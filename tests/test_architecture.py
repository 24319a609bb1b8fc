"""Each floor imports the floors below it and nothing above or beside it."""

import ast
from pathlib import Path

import graphfcl

ROOT = Path(graphfcl.__file__).parent
FLOORS = [
    {"errors", "version", "arrays", "defaults"},
    {"files"},
    {"graph"},
    {"stream", "measures"},
    {"datasets", "nn"},
    {"methods"},
    {"production", "evaluation"},
    {"experiments"},
    {"report"},
    {"cli"},
]
HEIGHT = {name: height for height, floor in enumerate(FLOORS) for name in floor}


def imported(path: Path) -> set[str]:
    """The folders of the package that a file imports from."""
    modules = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules.append(node.module)
        elif isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
    return {module.split(".")[1] for module in modules if module.startswith("graphfcl.")}


def test_imports_go_down() -> None:
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).parts
        floor = parts[0].removesuffix(".py")
        if floor in ("__init__", "__main__"):
            continue
        for other in imported(path) - {floor}:
            assert HEIGHT[other] < HEIGHT[floor], f"{path.relative_to(ROOT)} imports graphfcl.{other}"


def test_every_public_name_can_be_imported() -> None:
    assert set(graphfcl.__all__) == set(graphfcl._PLACES)
    for name in graphfcl.__all__:
        assert getattr(graphfcl, name) is not None


def test_nothing_is_unpickled() -> None:
    for path in ROOT.rglob("*.py"):
        text = path.read_text()
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text
        assert "weights_only=False" not in text
