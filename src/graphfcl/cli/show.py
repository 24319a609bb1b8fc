"""Printing. Ids and names are the user's: nothing in them that a terminal would obey is printed as it is."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from graphfcl.errors import printable

if TYPE_CHECKING:
    from graphfcl.graph import AnyGraph


def say(text: str = "") -> None:
    """One line."""
    print(printable(text))


def say_notes(graph: "AnyGraph") -> None:
    """The notes of a graph that a command was given."""
    for note in graph.notes:
        say(f"note: {note}")


def tell(text: str) -> None:
    """One line on standard error: what is no part of the answer."""
    print(printable(text), file=sys.stderr, flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Sequence[str] = ()) -> None:
    """A plain table; the columns named in ``numbers`` are aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column in numbers
        table.add_column(printable(column), justify="right" if right else "left", no_wrap=right, overflow="fold")
    for row in rows:
        table.add_row(*(printable(str(cell)) for cell in row))
    # A cell is printed as it is: a class may be called "[draft]".
    console = Console(markup=False, emoji=False, highlight=False)
    # Into a file or a pipe a table keeps its full width: nothing there is as narrow as a terminal.
    if not console.is_terminal:
        console.width = 160
    console.print(table)
