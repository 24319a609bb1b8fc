"""The command line: verbs that parse, call and print. Heavy imports stand inside the verbs."""

import sys
import warnings

import typer

from graphfcl.cli.ageing import VERBS as AGEING_VERBS
from graphfcl.cli.bench import bench, write_report
from graphfcl.cli.data import data
from graphfcl.cli.methods import check, list_methods
from graphfcl.cli.model import VERBS
from graphfcl.cli.run import SWITCHES, run_method
from graphfcl.cli.serve import serve
from graphfcl.cli.stream import show_stream
from graphfcl.cli.teaching import VERBS as TEACHING_VERBS
from graphfcl.errors import GraphfclError, GraphfclWarning, InputError
from graphfcl.printing import printable
from graphfcl.version import __version__

app = typer.Typer(
    name="graphfcl",
    help="Graph few-shot class-incremental learning.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data, name="data")
app.command(name="stream")(show_stream)
app.command(name="run", context_settings=SWITCHES)(run_method)
app.command(name="methods")(list_methods)
app.command(name="check")(check)
app.command(name="bench")(bench)
app.command(name="report")(write_report)
for verb in (*VERBS, *TEACHING_VERBS, *AGEING_VERBS, serve):
    app.command(name=verb.__name__, rich_help_panel="A model in production")(verb)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error; may stand anywhere."),  # noqa: ARG001
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def main(arguments: list[str] | None = None) -> None:
    """Run a command; bad input ends in one sentence on standard error and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    warnings.simplefilter("always", GraphfclWarning)
    try:
        app([word for word in words if word != "--debug"], prog_name="graphfcl")
    except GraphfclError as error:
        if debug:
            raise
        print(f"error: {printable(str(error))}", file=sys.stderr)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; there is nobody to tell
        sys.exit(0)


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    kind = "note" if issubclass(category, GraphfclWarning) else "warning"
    print(f"{kind}: {printable(str(message))}", file=sys.stderr)
