"""``--no-NAME``: switch a setting of the method off. Which settings there are, only the method knows."""

import types
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from graphfcl.errors import InputError, did_you_mean

OFF = "--no-"


def switched_off(words: Sequence[str], options: Sequence[str], method: str, settings: Any) -> dict[str, Any]:
    """What the words that are no declared option change in a method's settings.

    options: the names of all declared options, for a hint.
    settings: an instance of the method's settings.
    """
    changes = {}
    for word in words:
        if not word.startswith("-"):
            raise InputError(f"{word!r} belongs to no option: leave it out, or write its option before it.")
        name = word.removeprefix(OFF)
        if name == word:
            option = word.partition("=")[0]
            hint = did_you_mean(option, options, "see `graphfcl run --help`.").replace("'", "")
            raise InputError(f"there is no option {option}: {hint}")
        changes[name.replace("-", "_")] = _off(name, method, settings)
    return changes


def _off(name: str, method: str, settings: Any) -> Any:
    """False for a boolean, None for a setting that may be None."""
    key = name.replace("-", "_")
    kinds = get_type_hints(type(settings))
    switches = [field.name for field in fields(settings) if _ways_off(kinds[field.name])]
    if key not in kinds:
        known = [one.replace("_", "-") for one in switches]
        hint = did_you_mean(name, known, f"it can do without {', '.join(known)}." if known else "it has no switches.")
        raise InputError(f"{OFF}{name}: {method} has no setting {key!r}: {hint}")
    if key not in switches:
        place = f"{key}.NAME" if is_dataclass(getattr(settings, key)) else key
        raise InputError(
            f"{OFF}{name}: {key} of {method} cannot be switched off: give it a value with --set {place}=VALUE."
        )
    return _ways_off(kinds[key])[0]


def _ways_off(kind: Any) -> list[Any]:
    """The values that switch a setting of this type off."""
    options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    return [value for value, option in ((False, bool), (None, type(None))) if option in options]
