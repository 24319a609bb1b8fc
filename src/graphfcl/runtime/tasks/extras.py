"""What engines from outside share: they may be missing, and their workers must find the same modules."""

import os
import sys
from importlib import import_module
from types import ModuleType

from graphfcl.errors import InputError


def import_extra(name: str) -> ModuleType:
    """An engine that is installed only where it was asked for."""
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            f"the backend {name} needs a package that is not installed: pip install 'graphfcl[{name}]'."
        ) from error


def search_path() -> str:
    """Where this process finds modules, as the variable PYTHONPATH of another one."""
    return os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
