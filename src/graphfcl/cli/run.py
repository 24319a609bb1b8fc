"""``graphfcl run``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphfcl.cli.options import DataDir, Seed, StreamOptions, settings_from_options, strategy_name, with_option_groups
from graphfcl.cli.show import say
from graphfcl.cli.switches import switched_off
from graphfcl.defaults import RUN_METHOD, STRATEGY
from graphfcl.devices import best_device
from graphfcl.errors import InputError

if TYPE_CHECKING:
    from graphfcl.stream import Stream

SWITCHES = {"ignore_unknown_options": True, "allow_extra_args": True}  # --no-NAME is for the method to know


@dataclass(frozen=True)
class RunOptions:
    """Where a run works and what it goes on from."""

    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto"
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the run (default: one under runs/).")] = None
    encoders: Annotated[
        Path | None,
        typer.Option(
            "--encoders", help="Folder of pre-trained encoders, which all methods share (default: beside the run)."
        ),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's checkpoint.")] = False
    data_dir: DataDir = None


@with_option_groups
def run_method(
    context: typer.Context,
    *,
    dataset: Annotated[str, typer.Option("--dataset", help="A name from `data list`, or a path.")] = "debian",
    method: Annotated[
        str, typer.Option("--method", help="A name from `graphfcl methods`, or your own module:Class.")
    ] = RUN_METHOD,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            help="Under --track asked: what names nodes to label (default: auto); your own as module:Class.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    rules: StreamOptions,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the method: key=value; may be repeated.")
    ] = None,
    stream_file: Annotated[Path | None, typer.Option("--stream", help="Run on a saved stream.")] = None,
    options: RunOptions,
) -> None:
    """Train a method on session 0, walk it through all sessions, and measure it.

    --no-NAME switches the setting NAME of the method off, as --no-refit.
    """
    from graphfcl.cli.progress import RunDisplay, print_result
    from graphfcl.experiments import Run, run
    from graphfcl.methods import method_from
    from graphfcl.report import accuracy_figure, matrix_figure

    found = method_from(method)
    declared = [name for parameter in context.command.params for name in parameter.opts]
    chosen = settings_from_options(settings or [])
    chosen |= switched_off(context.args, declared, found.name, found.settings_with({}))
    on = usable_device(options.device)
    stream = _stream(dataset, options.data_dir, seed, rules, stream_file)
    job = Run(stream, found.name, chosen, on, _strategy(strategy, stream))
    folder = options.out or Path("runs") / job.short_name()
    encoders = options.encoders or folder.parent / "encoders"
    with_strategy = f" with {job.strategy}" if job.strategy else ""
    say(f"{found.name}{with_strategy} on {stream!r}, device {on}")
    with RunDisplay() as display:
        result = run(job, folder, resume=options.resume, progress=display, encoders=encoders)
    print_result(result)
    accuracy_figure(result, folder / "accuracy.png")
    matrix_figure(result, folder / "matrix.png")
    say(f"Result, stream, checkpoint and two figures are in {folder}.")


def _strategy(text: str | None, stream: "Stream") -> str:
    """The name of the strategy; none but under the track ``asked``."""
    if stream.protocol.track != "asked":
        if text is not None:
            raise InputError("--strategy belongs to the track 'asked': add --track asked, or leave it out.")
        return ""
    text = text or STRATEGY
    return strategy_name(text, f"--strategy {text}")


def _stream(dataset: str, data_dir: Path | None, seed: int, rules: StreamOptions, saved: Path | None) -> "Stream":
    """The stream that the options describe, or a saved one."""
    from graphfcl.datasets import load_dataset
    from graphfcl.stream import load_stream, make_stream

    changes = rules.changes()
    graph, default = load_dataset(dataset, data_dir=data_dir)
    if saved is None:
        return make_stream(graph, default, seed=seed, **changes)
    if seed or rules.given():
        raise InputError("a stream read with --stream has its own seed and rules: leave the other options out.")
    return load_stream(saved, graph)


def usable_device(wanted: str) -> str:
    """cpu or cuda."""
    return best_device() if asked_device(wanted) == "auto" else wanted


def asked_device(wanted: str) -> str:
    """auto, cpu or cuda; what auto is, is settled when a learner is made, for torch knows it alone."""
    if wanted not in ("auto", "cpu", "cuda"):
        raise InputError(f"--device is {wanted!r}; it must be auto, cpu or cuda.")
    if wanted == "cuda" and best_device() != "cuda":
        raise InputError("--device cuda: this machine has no usable GPU; take cpu.")
    return wanted
