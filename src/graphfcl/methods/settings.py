"""Settings of methods: frozen dataclasses with a docstring under each field, and their conversion from strings."""

import ast
import inspect
import json
import operator
import textwrap
import types
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from graphfcl.errors import InputError, did_you_mean, shown


class Limits(NamedTuple):
    """The range of a number, used as ``rank: Annotated[int, Limits(least=1)] = 512``."""

    least: float | None = None
    above: float | None = None
    below: float | None = None
    most: float | None = None


Count = Annotated[int, Limits(least=1)]
Number = Annotated[int, Limits(least=0)]
Weight = Annotated[float, Limits(least=0)]
Positive = Annotated[float, Limits(above=0)]
Share = Annotated[float, Limits(least=0, below=1)]
Fraction = Annotated[float, Limits(least=0, most=1)]


@dataclass(frozen=True)
class CheckedSettings:
    """Settings whose values are checked against the limits and allowed words in the types of their fields.

    A tuple of numbers must not be empty, and each number is checked. A subclass that changes a default need not repeat
    the limits. ``prefix`` is prepended to names in error messages.
    """

    prefix: ClassVar[str] = ""

    def __post_init__(self) -> None:
        kind: type = type(self)
        for name, hint in _checked_hints(kind).items():
            _check(f"{self.prefix}{name}", getattr(self, name), hint)


@cache  # every change of a setting checks all settings again
def _checked_hints(kind: type) -> dict[str, Any]:
    """Collect the types of all fields that limit their values."""
    owners = [owner for owner in reversed(kind.__mro__) if is_dataclass(owner)]
    hints = [item for owner in owners for item in inspect.get_annotations(owner, eval_str=True).items()]
    return {name: hint for name, hint in hints if _limits(hint)}


def _limits(hint: Any) -> bool:
    """Whether a type, or a type inside a union or tuple, limits its values."""
    return get_origin(hint) in (Annotated, Literal) or any(_limits(inner) for inner in get_args(hint))


def _check(name: str, value: Any, hint: Any) -> None:
    if get_origin(hint) is Annotated:
        _require_range(name, value, hint.__metadata__[0])
    elif get_origin(hint) is Literal and value is not None:
        require_choice(name, value, get_args(hint))
    elif isinstance(value, tuple):
        first, *others = get_args(hint)
        if not value and get_origin(first) is not tuple:
            raise InputError(f"{name} is empty: give at least one value.")
        for each, inner in zip(value, [first] * len(value) if others == [...] else [first, *others], strict=True):
            _check(name, each, inner)
    else:
        for option in get_args(hint):
            _check(name, value, option)


@dataclass(frozen=True)
class NoSettings:
    """Settings of a method without settings."""


class SettingRow(NamedTuple):
    """A setting: its name for ``--set``, its default, its allowed values in words, and its explanation."""

    name: str
    default: str
    kind: str
    explanation: str


def settings_as_json(settings: Any) -> dict[str, Any]:
    """Convert settings to JSON values, which do not change when they are written to a file and read again."""
    return json.loads(json.dumps(asdict(settings)))


def flat_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested settings: {"pretraining": {"epochs": 5}} becomes {"pretraining.epochs": 5}."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{inner}": each for inner, each in flat_settings(value).items()}
        else:
            flat[key] = as_tuples(value)
    return flat


def settings_rows(settings: Any) -> list[SettingRow]:
    """List all settings; nested ones have a dot in their name."""
    return _rows(settings, "")


def with_changes(settings: Any, changes: dict[str, Any], where: str) -> Any:
    """Return settings with some changes; strings are converted to the types of the fields.

    ``where`` names the owner of the settings in error messages.
    """
    for key, value in changes.items():
        settings = _changed(settings, key.split("."), value, where)
    return settings


def explanations(kind: type) -> dict[str, str]:
    """Read the docstring under each field of a settings class; those of a subclass take precedence."""
    texts: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        if not is_dataclass(owner):
            continue
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        except (OSError, TypeError, SyntaxError):
            continue  # a class without a source file, as in a notebook
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
                value = text.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    texts[field.target.id] = " ".join(value.value.split())
    return texts


def _require_range(name: str, value: float | None, limits: Limits) -> None:
    """Raise an error if a setting is outside its range. None is always allowed."""
    tests = (("at least", operator.ge), ("above", operator.gt), ("below", operator.lt), ("at most", operator.le))
    for bound, (words, holds) in zip(limits, tests, strict=True):
        if value is not None and bound is not None and not holds(value, bound):
            raise InputError(f"{name} is {value}; it must be {words} {bound}.")


def require_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Raise an error if a word is not among the allowed ones."""
    if value not in allowed:
        raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")


def as_tuples(value: Any) -> Any:
    """Convert lists at any depth to tuples, and numpy values to Python values."""
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    return tuple(as_tuples(each) for each in value) if isinstance(value, list | tuple) else value


def _rows(settings: Any, prefix: str) -> list[SettingRow]:
    hints, texts = get_type_hints(type(settings)), explanations(type(settings))
    rows = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            rows += _rows(value, f"{prefix}{field.name}.")
        else:
            kind, text = _kind(_options(hints[field.name]), ""), texts.get(field.name, "")
            rows.append(SettingRow(f"{prefix}{field.name}", str(value).lower(), kind, text))
    return rows


def _changed(settings: Any, path: list[str], value: Any, where: str) -> Any:
    names = [field.name for field in fields(settings)]
    if path[0] not in names:
        hint = did_you_mean(path[0], names) if names else "it has none."
        raise InputError(f"{where} has no setting {path[0]!r}: {hint}")
    inner = getattr(settings, path[0])
    if len(path) > 1:
        if not is_dataclass(inner):
            raise InputError(f"{where}.{path[0]} is a single setting: write {path[0]}=value.")
        return replace(settings, **{path[0]: _changed(inner, path[1:], value, f"{where}.{path[0]}")})
    hint, name = get_type_hints(type(settings))[path[0]], f"{where}.{path[0]}"
    if is_dataclass(inner) and not isinstance(value, type(inner)):
        raise InputError(f"{name} is a group of settings: write {name.partition('.')[2]}.NAME=value for one of them.")
    if isinstance(value, str):
        value = _converted(value, hint, name)
    elif not _fits(value, hint):
        raise InputError(f"{name} is {shown(value)}; it must be {_kind(_options(hint))}.")
    return replace(settings, **{path[0]: value})


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value that is not a string has a type. Elements of tuples are checked too."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is tuple:
        first, *others = get_args(hint)
        if not isinstance(value, tuple) or (others != [...] and len(value) != 1 + len(others)):
            return False
        return all(map(_fits, value, [first] * len(value) if others == [...] else [first, *others]))
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    return not isinstance(hint, type) or isinstance(value, hint)


def _converted(value: str, hint: Any, where: str) -> Any:
    """Convert a string to the type of a field: bool, int, float, an allowed word, or None."""
    options = _options(hint)
    for option in options:
        if option is type(None) and value.lower() == "none":
            return None
        if option is bool and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if get_origin(option) is Literal and value in get_args(option):
            return value
        if option in (int, float):
            try:
                return option(value)
            except ValueError:
                continue
        if option is str:
            return value
    if any(get_origin(option) is tuple for option in options):
        raise InputError(f"{where} is a list, which can only be set in Python or in the TOML file of a grid.")
    raise InputError(f"{where} is {value!r}; it must be {_kind(options)}.")


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _kind(options: tuple[Any, ...], article: str = "a ") -> str:
    """Describe the allowed values of a type in words, with an article for use in a sentence."""
    words: list[str] = []
    for option in options:
        if get_origin(option) is Literal:
            words += [str(word) for word in get_args(option)]
        elif option is type(None):
            words.append("none")
        elif option is bool:
            words += ["true", "false"]
        else:
            words.append(article + {int: "whole number", float: "number", str: "word"}.get(option, "list"))
    return " or ".join(words)
