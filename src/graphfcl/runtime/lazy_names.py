"""Lazy imports: public names of packages, and optional dependencies."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from graphfcl.errors import InputError


def import_extra(module: str, extra: str, user: str) -> ModuleType:
    """Import a module of an optional dependency; ``user`` names what needs it in the message."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"{user} needs a package that is not installed: pip install 'graphfcl[{extra}]'.") from error


def stub_places(file: Path) -> dict[str, str]:
    """Return the public names in the stub of a package's ``__init__.py``, and the modules that define them."""
    return {
        alias.name: node.module or ""
        for node in ast.parse(file.with_suffix(".pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if not alias.name.startswith("_")
    }


def names_of_stub(package: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` (PEP 562) and ``__dir__`` for a package whose stub lists its public names.

    The stub ``__init__.pyi`` imports each name from the module that defines it. Type checkers and editors read the same
    file.
    """
    places = stub_places(Path(file))

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return sorted(places), find, lambda: sorted({*places, *vars(import_module(package))})
