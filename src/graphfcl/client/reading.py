"""Convert JSON values to dataclasses."""

import types
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from graphfcl.errors import GraphfclError, shown

Kind = TypeVar("Kind")


class UnreadableError(GraphfclError):
    """An answer does not have the expected type. Service and client may be of different releases."""


def read_as(kind: type[Kind], values: Any) -> Kind:
    """Make a dataclass from a JSON value. Unknown fields, which a newer service may send, are ignored."""
    return _read(kind, values, kind.__name__)


def json_name(each: "Field[Any]") -> str:
    """Return the JSON name of a field."""
    return each.metadata.get("alias", each.name)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, value: Any, place: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if kind is float and type(value) is int:
        return float(value)
    if kind is None or kind in (str, int, float, bool, type(None)):
        return _checked(type(value) is (type(None) if kind is None else kind), value, place)
    if origin is Literal:
        return _checked(value in inner, value, place)
    if origin in (Union, types.UnionType):
        return _read_one_of(inner, value, place)
    if origin is tuple:
        _checked(isinstance(value, list), value, place)
        each = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        _checked(len(each) == len(value), value, place)
        return tuple(_read(one, item, f"{place}[]") for one, item in zip(each, value, strict=True))
    _checked(isinstance(value, dict), value, place)
    if origin is dict:
        return {name: _read(inner[1], item, f"{place}.{name}") for name, item in value.items()}
    return _read_dataclass(kind, value, place)


def _read_one_of(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    for kind in kinds:
        try:
            return _read(kind, value, place)
        except UnreadableError:
            continue
    return _checked(False, value, place)


def _read_dataclass(kind: Any, values: dict[str, Any], place: str) -> Any:
    read: dict[str, Any] = {}
    for each in fields(kind):
        name = json_name(each)
        if name in values:
            read[each.name] = _read(_hints(kind)[each.name], values[name], f"{place}.{name}")
        else:
            _checked(each.default is not MISSING, None, f"{place}.{name}")
    return kind(**read)


def _checked(fits: bool, value: Any, place: str) -> Any:
    if not fits:
        raise UnreadableError(
            f"the service answered {shown(value)} as {place}, which this client cannot read: "
            "use the client of the same release as the service."
        )
    return value
