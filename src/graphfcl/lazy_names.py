"""Public names of a package that are imported when they are first asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """What a package assigns to ``__getattr__`` (PEP 562). places: the module below the package of each public name.

    The package imports the same names under ``TYPE_CHECKING``, for type checkers and editors.
    """

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{places[name]}"), name)

    return find
