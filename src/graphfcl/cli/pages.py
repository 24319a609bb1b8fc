"""Help pages: plain text, so that no default, option or example is cut off by the width of a terminal."""

from typing import Any

from typer.core import TyperGroup

from graphfcl.cli.examples import EXAMPLES, JSON_KEYS
from graphfcl.errors import GraphfclError

OTHERS = "Commands"


class Interrupted(GraphfclError):
    """Somebody pressed Ctrl-C."""


class Verbs(TyperGroup):
    """All commands, by panels. Ctrl-C reaches whoever called, who knows how to go on."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, Any]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                panels.setdefault(panel if isinstance(panel, str) else OTHERS, []).append((name, command))
        width = max(len(name) for found in panels.values() for name, _ in found)
        for panel, found in panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(width), _summary(command)) for name, command in found])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted("stopped") from error


def _summary(command: Any) -> str:
    """The first paragraph of a page, whole."""
    return " ".join((command.help or "").split("\n\n")[0].split())


def epilog(verb: str) -> str:
    """What stands at the end of a page: what --json prints, and examples. verb: ``data list``, ``fit``, …"""
    parts = [f"With --json: {JSON_KEYS[verb]}"] if verb in JSON_KEYS else []
    lines = [f"  graphfcl {line}" for line in EXAMPLES.get(verb, ())]
    if lines:
        parts.append("\n".join(["\b", "Examples:", *lines]))
    return "\n\n".join(parts)
