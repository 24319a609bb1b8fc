"""The command line. Each verb parses its options, calls the library and prints; heavy imports are inside the verbs."""

import re
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Never

import typer

from graphfcl.cli.bench import bench, write_report
from graphfcl.cli.changes import grow, learn, merge, rename, retire, shrink, unlearn
from graphfcl.cli.data import data
from graphfcl.cli.help import Interrupted, Terminated, Verb, Verbs, epilog
from graphfcl.cli.methods import check, list_methods
from graphfcl.cli.model import explain, fit, labels, predict, serve
from graphfcl.cli.run import SWITCHES, run_method
from graphfcl.cli.stream import show_stream
from graphfcl.cli.teaching import groups, label_issues, suggest
from graphfcl.cli.versions import erase, history, info, prune, refit, rollback
from graphfcl.errors import GraphfclError, GraphfclWarning, GraphNote, printable, without_secrets
from graphfcl.version import __version__

RESUMABLE = ("run", "fit")
CHANGES = (
    "learn", "grow", "shrink", "unlearn", "rename", "merge", "retire", "rollback", "prune", "groups", "refit", "erase",
)  # fmt: skip

app = typer.Typer(
    name="graphfcl",
    help="Graph few-shot class-incremental learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain text: rich would truncate long lines
    cls=Verbs,
)
EXPERIMENTS, PRODUCTION = "Graphs and experiments", "A model in production"
app.add_typer(data, name="data", rich_help_panel=EXPERIMENTS)
for name, verb in {
    "stream": show_stream,
    "run": run_method,
    "methods": list_methods,
    "check": check,
    "bench": bench,
    "report": write_report,
}.items():
    more = {"context_settings": SWITCHES} if name == "run" else {}
    app.command(name=name, epilog=epilog(name), cls=Verb, rich_help_panel=EXPERIMENTS, **more)(verb)  # type: ignore[arg-type]
for verb in (
    fit, learn, labels, grow, predict, explain, history, rollback, prune, erase, unlearn, rename, merge, retire, shrink,
    suggest, groups, label_issues, info, refit, serve,
):  # fmt: skip
    name = verb.__name__.replace("_", "-")
    app.command(name=name, epilog=epilog(name), cls=Verb, rich_help_panel=PRODUCTION)(verb)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error; allowed anywhere."),  # noqa: ARG001
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Run a command.

    Exit codes: that of a :class:`GraphfclError`, which is printed as one sentence; 130 after Ctrl-C; 143 after SIGTERM;
    0 if the reader of the output has ended.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    warnings.simplefilter("always", GraphfclWarning)
    warnings.simplefilter("ignore", GraphNote)  # verbs print the notes of their graph themselves
    try:
        with _sigterm_interrupts():
            app([word for word in words if word != "--debug"], prog_name="graphfcl")
    except (Interrupted, KeyboardInterrupt) as stop:
        print(f"\n{printable(how_to_go_on(words))}", file=sys.stderr)
        sys.exit((stop if isinstance(stop, Interrupted) else Interrupted(stop)).exit_code)
    except GraphfclError as error:
        if debug:
            raise
        print(f"error: {printable(without_secrets(str(error)))}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # the program that reads our output has ended
        sys.exit(0)


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM, which schedulers and containers send, end the command as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def stop(*_: object) -> Never:
        raise Terminated

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    """Print a warning in one line."""
    kind = "note" if issubclass(category, GraphfclWarning) else "warning"
    print(f"{kind}: {printable(str(message))}", file=sys.stderr)


def _without_database(before: str, word: str) -> str:
    """Replace the query or connection string in a word of a command with ``…``. ``before`` is the preceding word."""
    if before == "--database":
        return "…"
    return without_secrets(re.sub(r"^(--database=).*", r"\1…", word, flags=re.DOTALL))


def how_to_go_on(words: Sequence[str]) -> str:
    """Tell the user how to continue after Ctrl-C, with the exact command. ``words`` is the interrupted command."""
    verb = next((word for word in words if not word.startswith("-")), "")
    if verb in RESUMABLE and "--resume" not in words:
        words = [*words, "--resume"]
    command = shlex.join(["graphfcl", *map(_without_database, ["", *words], words)])
    if verb in (*RESUMABLE, "bench"):
        return f"stopped: continue with `{command}`."
    if verb in CHANGES:
        return f"stopped: `graphfcl history` shows whether the change was made; if not, make it with `{command}`."
    return f"stopped: start again with `{command}`."
