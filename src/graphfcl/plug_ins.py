"""Classes from outside the package: named as ``module:Class`` by a user, or installed with an entry point."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from graphfcl.errors import InputError, did_you_mean, in_one_line
from graphfcl.source_code import reference_of, source_hash

if TYPE_CHECKING:
    from collections.abc import Collection

NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
_hashes: WeakKeyDictionary[type, str] = WeakKeyDictionary()  # of the code in memory: a file may be edited later


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


def refuse_unfit_class(found: Any, where: str, base: type) -> None:
    """Refuse what does not derive from a base class, lacks something that it asks for, or has no usable name.

    where: how the user wrote it, for messages.
    """
    if not derives_from(found, base):
        raise InputError(
            f"{where}: it is no class that derives from graphfcl.{base.__name__}: let it derive from that."
        )
    name = reference_of(found)
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise InputError(f"{where}: {name} lacks {missing}: graphfcl.{base.__name__} says what each must do.")
    if not isinstance(found.name, str) or not NAME.fullmatch(found.name):
        raise InputError(f"{where}: the name of {name} is {found.name!r}: use letters, digits and - . _ +.")


def refuse_taken_name(found: Any, own: Collection[str], there: type | None) -> None:
    """Refuse a class from outside whose name is used. own: names of this package. there: who has the name, if anybody.

    The same class may be registered again, as when a cell of a notebook runs twice.
    """
    reference = reference_of(found)
    if found.name in own:
        taken = "graphfcl itself uses that name"
    elif there is not None and reference_of(there) != reference:
        taken = f"{reference_of(there)} has that name already"
    else:
        return
    raise InputError(f"{reference} is called {found.name!r}, but {taken}: give it another `name`.")


def source_of(found: type) -> str:
    """``module:Class`` and the hash of the code, by which results of classes from outside are kept apart."""
    if found not in _hashes:
        _hashes[found] = source_hash(found)
    return f"{reference_of(found)}@{_hashes[found][:16]}"


def object_at(package: str, place: str) -> Any:
    """What ``module:Name`` names inside a package of graphfcl; it is imported if nobody asked before."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"{package}.{module}"), name)


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
