"""JSON from a file that somebody else may have written."""

import json
import math
from typing import Any

from graphfcl.production.storage.damage import Damaged

DEEPEST = 40  # levels of lists and dictionaries in one another
INFINITE = "max_loss"  # the one value that may be Infinity, as folders of format 1 have it


def read_json(content: bytes) -> Any:
    """Its values; :class:`Damaged` if it is no JSON, holds a number that is not finite, or is nested too deeply."""
    try:
        values = json.loads(content, parse_constant=_constant, parse_float=_finite)
    except RecursionError as error:
        raise Damaged("it is nested too deeply") from error
    except ValueError as error:  # that of the encoding among them
        raise error if isinstance(error, Damaged) else Damaged("it is no JSON") from error
    level = [values]
    for _ in range(DEEPEST):
        if any(isinstance(each, float) and math.isinf(each) for each in level):
            _refused("Infinity")
        level = [inner for each in level for inner in _inner(each)]
        if not level:
            return values
    raise Damaged("it is nested too deeply")


def whole_number(value: Any, what: str, least: int = 0, most: int = 2**62) -> int:
    """A value that must be a whole number in a range; true and false are none."""
    if type(value) is not int or not least <= value <= most:
        raise Damaged(f"{what} is no whole number from {least} to {most}")
    return value


def _inner(value: Any) -> Any:
    if isinstance(value, dict):
        return [inner for name, inner in value.items() if name != INFINITE or isinstance(inner, dict | list)]
    return value if isinstance(value, list) else ()


def _constant(text: str) -> float:
    return math.inf if text == "Infinity" else _refused(text)


def _refused(text: str) -> float:
    raise Damaged(f"it holds the number {text}")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refused(text[:20])
