"""All commands of the command line."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from graphfcl.cli import app


def _commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*before, name))
        else:
            yield " ".join((*before, name)), command


COMMANDS: dict[str, Any] = dict(_commands(get_command(app)))  # by name, as ``fit`` or ``data list``
