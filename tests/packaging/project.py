"""The repository as tests of packaging read it: its metadata and what the package imports."""

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IMPORT_NAMES = {"scikit-learn": "sklearn"}


def distribution(requirement: str) -> str:
    """The name of a requirement in the spelling of an index: ``Torch_Geometric>=2`` → torch-geometric."""
    found = re.match(r"[A-Za-z0-9._-]*[A-Za-z0-9]", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def import_names(requirements: list[str]) -> set[str]:
    """What the distributions are called when they are imported."""
    names = map(distribution, requirements)
    return {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names}


def lower_bounds(requirements: list[str]) -> dict[str, str]:
    """Each distribution and the oldest version that is allowed."""
    return {distribution(each): each.partition(">=")[2] for each in requirements}


def foreign_imports(source: str) -> set[str]:
    """The packages outside the standard library and this package that a file imports, wherever in it."""
    found: set[Any] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_extra":
            module = node.args[0]
            found |= {str(module.value).partition(".")[0]} if isinstance(module, ast.Constant) else set()
    return found - sys.stdlib_module_names - {"graphfcl"}
