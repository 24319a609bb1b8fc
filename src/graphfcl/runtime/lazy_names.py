"""Public names of a package that are imported when they are first used."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def stub_places(file: Path) -> dict[str, str]:
    """The public names that the stub beside a package's ``__init__.py`` imports, and the modules they come from."""
    return {
        alias.name: node.module or ""
        for node in ast.parse(file.with_suffix(".pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if not alias.name.startswith("_")
    }


def names_of_stub(package: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` (PEP 562) and ``__dir__`` of a package whose stub lists its public names.

    The stub ``__init__.pyi`` imports each name from the module that has it; type checkers and editors read the same
    list.
    """
    places = stub_places(Path(file))

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return sorted(places), find, lambda: sorted({*places, *vars(import_module(package))})
