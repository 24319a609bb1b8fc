"""Docstrings for the site: roles such as ``:meth:`~Learner.scores``` become code, what they say of arguments a list."""

import importlib
import re
from typing import Any

ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`~?([^`]+)`")
EXTENSION: Any = importlib.import_module("griffe").Extension  # part of the extra docs


class Roles(EXTENSION):
    """Changes every docstring that is read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            text = ROLE.sub(lambda found: f"`{found[1].removeprefix('graphfcl.')}`", obj.docstring.value)
            obj.docstring.value = as_list(text, names_of(obj))


def names_of(obj: Any) -> list[str]:
    """The arguments of a function, or the arguments and attributes of a class."""
    if obj.is_function:
        return [parameter.name for parameter in obj.parameters]
    if obj.is_class:
        first = obj.members.get("__init__")
        return [*obj.members, *([parameter.name for parameter in first.parameters] if first is not None else [])]
    return []


def as_list(text: str, names: list[str]) -> str:
    """A docstring in which ``name: what it is`` begins an item of a list, for each of some names."""
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    if not known:
        return text
    item = re.compile(rf"(?:^|(?<=[.;] ))(?P<names>(?:{known})(?:, (?:{known}))*): ", re.MULTILINE)
    paragraphs = []
    for paragraph in text.split("\n\n"):
        found = [match.start() for match in item.finditer(paragraph)]
        if not found:
            paragraphs.append(paragraph)
            continue
        pieces = [paragraph[start:end] for start, end in zip(found, [*found[1:], None], strict=True)]
        lead = [paragraph[: found[0]].strip()] if found[0] else []
        items = [item.sub(lambda match: f"`{match['names']}`: ", " ".join(piece.split()), count=1) for piece in pieces]
        paragraphs += [*lead, "\n".join(f"- {each}" for each in items)]
    return "\n\n".join(paragraphs)
