"""Imports on first use: public names of a package, and packages that only an extra installs."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from graphfcl.errors import InputError


def import_extra(module: str, extra: str, user: str) -> ModuleType:
    """A module that an extra of graphfcl installs. user: what needs it, for the message."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"{user} needs a package that is not installed: pip install 'graphfcl[{extra}]'.") from error


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
