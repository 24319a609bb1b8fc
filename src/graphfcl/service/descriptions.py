"""The OpenAPI description: meanings of fields, read from docstrings, and the schema of problems."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel

import graphfcl.client.answers as answers
from graphfcl.client.problems import KINDS, PREFIX

SECTION = "\n\nAttributes:\n"
FIELD = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
ALIAS = "class"  # the JSON name of fields that cannot have this name in Python


class ProblemAnswer(BaseModel):
    """What is wrong, and what to do (RFC 9457).

    Attributes:
        type: Kind of the problem.
        title: Meaning of the kind.
        status: HTTP status.
        detail: What is wrong with this request, and what to do.
        version: Version of the model.
    """

    type: Literal[tuple(f"{PREFIX}{kind}" for kind in KINDS)]  # type: ignore[valid-type]
    title: str
    status: int
    detail: str
    version: int | None = None


def describe(app: FastAPI) -> None:
    """Add meanings of fields and the schema of problems to ``/openapi.json``."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schemas = plain()["components"]["schemas"]
            schemas["Problem"] = ProblemAnswer.model_json_schema()
            kinds: list[type[Any]] = [each for each in vars(answers).values() if inspect.isclass(each)]
            for kind in [*kinds, *_classes(BaseModel)]:
                name = "Problem" if kind is ProblemAnswer else kind.__name__
                if name in schemas and "properties" in schemas[name]:
                    _describe_fields(schemas[name], kind)
        return plain()

    app.openapi = openapi  # type: ignore[method-assign]


def split_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """Split the docstring of a class into its first part and the meanings of its ``Attributes``."""
    lead, _, fields = inspect.cleandoc(text or "").partition(SECTION)
    return lead, {name: " ".join(meaning.split()) for name, meaning in FIELD.findall(fields)}


def _describe_fields(schema: dict[str, Any], kind: type[Any]) -> None:
    """Move the meanings of fields, inherited ones included, from docstrings to the properties of a schema."""
    schema["description"] = split_docstring(kind.__doc__)[0]
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("graphfcl."):
            for field, meaning in split_docstring(base.__dict__.get("__doc__"))[1].items():
                schema["properties"][field if field in schema["properties"] else ALIAS]["description"] = meaning


def _classes(base: type[Any]) -> Iterator[type[Any]]:
    """All subclasses of a class that graphfcl defines."""
    each: type[Any]
    for each in base.__subclasses__():
        if each.__module__.startswith("graphfcl."):
            yield each
        yield from _classes(each)
