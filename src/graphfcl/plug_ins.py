"""Classes from outside the package: named as ``module:Class`` by a user, or installed with an entry point."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from graphfcl.errors import InputError, did_you_mean, in_one_line


def import_class(reference: str, where: str, base: type) -> Any:
    """What ``module:Class`` names; the current folder is on the path then.

    where: how the user wrote it, for messages. base: what the class should derive from, for a hint.
    """
    module_name, _, class_name = reference.partition(":")
    if not module_name or not class_name:
        raise InputError(f"{where}: write it as module:Class.")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise InputError(f"{where}: name the module, not its file: {dotted}:{class_name}.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever a module of somebody else does when it is imported
        missing = isinstance(error, ModuleNotFoundError) and error.name == module_name.split(".")[0]
        mend = "run from the folder that holds it, or install it" if missing else "mend it, or what it needs"
        raise InputError(f"{where}: {module_name} cannot be imported ({in_one_line(error)}): {mend}.") from error
    found: Any = module
    for part in class_name.split("."):
        found = getattr(found, part, None)
    if found is None:
        kinds = [name for name, each in vars(module).items() if derives_from(each, base) and each is not base]
        hint = did_you_mean(class_name, kinds) if kinds else f"it has no {base.__name__.lower()}."
        raise InputError(f"{where}: {module_name} has no {class_name}: {hint}")
    return found


def derives_from(found: Any, base: type) -> bool:
    return isinstance(found, type) and issubclass(found, base)


def installed_plug_ins(group: str) -> list[EntryPoint]:
    """The entry points of a group, by name."""
    return sorted(entry_points(group=group), key=lambda point: (point.name, point.value))


def described(point: EntryPoint) -> str:
    """How a plug-in is called in messages."""
    return f"the plug-in {point.name} ({point.value})"


def loaded_plug_in(point: EntryPoint) -> Any:
    """What an entry point names; a broken plug-in breaks nothing else."""
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{described(point)} cannot be imported ({in_one_line(error)}): mend or remove its package."
        ) from error
