"""What a verb answers: lines for people, or one JSON document with ``--json``."""

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, TextIO

import typer

from graphfcl.cli.options import with_option_groups
from graphfcl.errors import printable_json

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to standard output and all messages to standard error.")
]


@dataclass(frozen=True)
class Rows:
    """A list that may be too long for memory: blocks of plain dictionaries, one after the other."""

    blocks: Iterable[list[dict[str, Any]]]


@dataclass(frozen=True)
class Answer:
    """values: what ``--json`` prints; one may be :class:`Rows`. show: prints it for people. code: of the exit."""

    values: Any
    show: Callable[[], None]
    code: int = 0


def answers(verb: Callable[..., Answer]) -> Callable[..., None]:
    """Let a verb that returns an :class:`Answer` be a command with ``--json``; options may come in groups.

    With it, whatever else prints goes to standard error. A verb that has a parameter ``as_json`` is told.
    """
    flat = with_option_groups(verb)
    parameters = [each for each in inspect.signature(flat).parameters.values() if each.name != "as_json"]
    told = len(parameters) < len(inspect.signature(flat).parameters)

    @wraps(flat)
    def call(*, as_json: bool = False, **given: Any) -> None:
        out = sys.stdout
        aside: AbstractContextManager[Any] = redirect_stdout(sys.stderr) if as_json else nullcontext()
        with aside:
            answer: Any = flat(**given, **({"as_json": as_json} if told else {}))
            if as_json:
                write_json(answer.values, out)
        if not as_json:
            answer.show()
        if answer.code:
            raise typer.Exit(answer.code)

    option = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, annotation=AsJson, default=False)
    call.__signature__ = inspect.Signature([*parameters, option])  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in (*parameters, option)}
    return call


def write_json(values: Any, out: TextIO) -> None:
    """One document in several lines, of ASCII characters alone. Long lists are written as they come."""
    long = [key for key, value in values.items() if isinstance(value, Rows)] if isinstance(values, Mapping) else []
    if not long:
        out.write(printable_json(json.dumps(values, indent=1)) + "\n")
        return
    short = json.dumps({key: value for key, value in values.items() if key not in long}, indent=1)
    out.write(printable_json(short.removesuffix("\n}")) + f',\n "{long[0]}": [')
    comma = ""
    for block in values[long[0]].blocks:
        for row in block:
            out.write(f"{comma}\n  {printable_json(json.dumps(row))}")
            comma = ","
    out.write("\n ]\n}\n")
