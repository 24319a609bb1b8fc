"""Printing. Ids and names are the user's: nothing in them that a terminal would obey is printed as it is."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from graphfcl.printing import printable, printable_json


def say(text: str = "") -> None:
    """One line."""
    print(printable(text))


def say_json(values: Any, *, ascii_only: bool = True) -> None:
    """Values as JSON in several lines."""
    print(printable_json(json.dumps(values, indent=1, ensure_ascii=ascii_only)))


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
