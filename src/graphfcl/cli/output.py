"""The output of verbs: lines and tables for people, or one JSON document with ``--json``.

Ids and names come from users, so control characters in them are printed as escapes.
"""

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, TextIO

import typer

import graphfcl.graph as graphs
from graphfcl.cli.options import KEYWORD, declare, option, with_option_groups
from graphfcl.errors import printable, printable_json

AsJson = Annotated[bool, option("Print one JSON document; messages go to standard error.", flag="--json")]


@dataclass(frozen=True)
class Rows:
    """A list that may be too long for memory, as successive blocks of plain dictionaries."""

    blocks: Iterable[list[dict[str, Any]]]


@dataclass(frozen=True)
class Output:
    """The output of a verb.

    Attributes:
        values: Plain values that ``--json`` prints. One value of a mapping may be :class:`Rows`.
        show: Function that prints the same for people.
        code: Exit code of the command.
    """

    values: Any
    show: Callable[[], None]
    code: int = 0


def with_json(verb: Callable[..., Output]) -> Callable[..., None]:
    """Turn a verb that returns an :class:`Output` into a command with ``--json`` and flat options.

    With ``--json``, everything else is printed to standard error. A verb with a parameter ``as_json`` receives its
    value.
    """
    flat = with_option_groups(verb)
    parameters = dict(inspect.signature(flat).parameters)
    takes_json = "as_json" in parameters

    @wraps(flat)
    def call(*, as_json: bool = False, **values: Any) -> None:
        out = sys.stdout
        with redirect_stdout(sys.stderr) if as_json else nullcontext():
            result: Any = flat(**values, **({"as_json": as_json} if takes_json else {}))
            if as_json:
                write_json(result.values, out)
        if not as_json:
            result.show()
        if result.code:
            raise typer.Exit(result.code)

    parameters["as_json"] = inspect.Parameter("as_json", KEYWORD, annotation=AsJson, default=False)
    return declare(call, list(parameters.values()))


def write_json(values: Any, out: TextIO) -> None:
    """Write one indented JSON document in ASCII. :class:`Rows` are written block by block."""
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


def print_line(text: str = "") -> None:
    """Print a line to standard output."""
    print(printable(text))


def print_sentence(text: str) -> None:
    """Print a clause as a sentence: a capital letter first, a full stop last."""
    print_line(f"{text[0].upper()}{text[1:]}.")


def print_notes(graph: "graphs.AnyGraph") -> None:
    """Print the notes of a graph."""
    for note in graph.notes:
        print_line(f"note: {note}")


def print_message(text: str) -> None:
    """Print a line to standard error, so that it is not part of the output."""
    print(printable(text), file=sys.stderr, flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Sequence[str] = ()) -> None:
    """Print a plain table; the columns named in ``numbers`` are aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    for place, column in enumerate(columns):
        right = column in numbers
        # In a narrow terminal headings may be wrapped, but numbers must not be.
        width = max((len(word) for row in cells for word in row[place].split()), default=0) if right else None
        table.add_column(printable(column), justify="right" if right else "left", min_width=width, overflow="fold")
    for row in cells:
        table.add_row(*row)
    # No markup: a class may be called "[draft]".
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:  # a file or a pipe has no width
        console.width = 160
    console.print(table)
