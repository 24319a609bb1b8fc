"""Checks of what somebody hands to a model in Python: what is no number or no list is refused in one sentence."""

from collections.abc import Iterable, Sized
from numbers import Integral
from typing import Any

from graphfcl.errors import InputError

SHOWN = 60  # characters of a value that a message shows


def shown(value: Any) -> str:
    """A value as Python writes it, cut short: '3' is a text, 3 a number."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def whole_number(value: Any, what: str, example: int) -> int:
    """A whole number of any type that has them. what: what it is, for the message."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{what} is {shown(value)}: give a whole number, such as {example}.")
    return int(value)


def seed_of(value: Any) -> int:
    """A number that a generator can be made from."""
    seed = whole_number(value, "the seed", 0)
    if seed < 0:
        raise InputError(f"the seed is {seed}: give 0 or a larger whole number.")
    return seed


def list_of_names(value: Any, what: str) -> tuple[Any, ...]:
    """Names of classes. what: what they are, for the message."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        example = f", such as [{shown(value)}]" if isinstance(value, str) else " of names"
        raise InputError(f"{what} are {shown(value)}: give a list{example}.")
    return tuple(value)


def list_of_nodes(value: Any, what: str = "the nodes") -> Any:
    """Something that holds ids, and can be gone through again and again. what: what they are, for the message."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        example = f", such as [{shown(value)}]" if isinstance(value, str | Integral) else ""
        raise InputError(f"{what} are {shown(value)}: give a list of ids{example}.")
    shape = tuple(getattr(value, "shape", (1,)))
    if len(shape) != 1:
        raise InputError(f"{what} are an array of shape {shape}: give a list of ids, such as its ravel().")
    return value if isinstance(value, Sized) else list(value)
