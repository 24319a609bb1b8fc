"""``graphfcl run``."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphfcl.byte_sizes import bytes_from
from graphfcl.cli.options import (
    BackendOptions,
    DataDir,
    Seed,
    StreamOptions,
    settings_from_options,
    strategy_name,
    with_option_groups,
)
from graphfcl.cli.show import say
from graphfcl.cli.switches import switched_off
from graphfcl.cores import usable_cores
from graphfcl.defaults import RUN_METHOD, STRATEGY
from graphfcl.devices import best_device
from graphfcl.errors import InputError

if TYPE_CHECKING:
    from graphfcl.graph.folder_graph import AnyGraph
    from graphfcl.stream import Protocol, Stream

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


@dataclass(frozen=True)
class FolderOptions:
    """How a run or a fit works on a graph folder."""

    memory: Annotated[
        str | None,
        typer.Option("--memory", help="What may be used on a graph folder, as 4GB (default: 3/4 of the machine's)."),
    ] = None
    work: Annotated[
        Path | None,
        typer.Option("--work", help="Folder of slices and blocks; given, a graph folder stays on the disk."),
    ] = None
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Tasks at a time on a graph folder (default: the cores).")
    ] = None

    def graph(
        self,
        path: Path,
        method: str,
        engine: BackendOptions,
        *,
        stack: ExitStack | None = None,
        work: Path | None = None,
    ) -> "AnyGraph":
        """The graph of a folder, in memory or on the disk.

        stack: workers are started once, and end with it. work: the work folder if no other is named.
        """
        from graphfcl.experiments.graph_folders import graph_of_folder, usual_memory
        from graphfcl.graph.folder_graph import FolderGraph
        from graphfcl.graph.visible_folder import Means

        memory = usual_memory() if self.memory is None else bytes_from(self.memory, "--memory")
        work = self.work or work or path.resolve().with_name(f"{path.resolve().name}.work")
        tasks = engine.tasks(self.workers or usable_cores(), folder=work / "tasks")
        found = graph_of_folder(path, method, Means(work, memory, tasks), stay=self.work is not None)
        if stack is not None and isinstance(found, FolderGraph):
            return replace(found, means=stack.enter_context(found.means.at_work()))
        return found

    def refuse(self) -> None:
        """They are for graph folders alone."""
        for name in ("memory", "work", "workers"):
            if getattr(self, name) is not None:
                raise InputError(f"--{name} is for graph folders: make one with `data import`, or leave it out.")


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
    large: FolderOptions,
    engine: BackendOptions,
) -> None:
    """Train a method on session 0, walk it through all sessions, and measure it.

    --no-NAME switches the setting NAME of the method off, as --no-refit.
    """
    from graphfcl.cli.progress import RunDisplay, print_result
    from graphfcl.experiments import Run, run
    from graphfcl.graph import Graph
    from graphfcl.methods import method_from
    from graphfcl.report import accuracy_figure, matrix_figure

    found = method_from(method)
    declared = [name for parameter in context.command.params for name in parameter.opts]
    chosen = settings_from_options(settings or [])
    chosen |= switched_off(context.args, declared, found.name, found.settings_with({}))
    with ExitStack() as stack:
        graph = _graph(dataset, options.data_dir, found.name, large, engine, stack)
        stream = _stream(graph, seed, rules, stream_file)
        on = usable_device(options.device) if isinstance(stream.graph, Graph) else on_disk_device(options.device)
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


def _graph(
    dataset: str,
    data_dir: Path | None,
    method: str,
    large: FolderOptions,
    engine: BackendOptions,
    stack: ExitStack,
) -> "tuple[AnyGraph, Protocol | None]":
    """The graph and its default rules."""
    from graphfcl.datasets import load_dataset
    from graphfcl.graph.folder import is_graph_folder

    if is_graph_folder(dataset):
        return large.graph(Path(dataset), method, engine, stack=stack), None
    large.refuse()
    return load_dataset(dataset, data_dir=data_dir)


def _stream(given: "tuple[AnyGraph, Protocol | None]", seed: int, rules: StreamOptions, saved: Path | None) -> "Stream":
    """The stream that the options describe, or a saved one."""
    from graphfcl.stream import load_stream, make_stream

    changes, (graph, default) = rules.changes(), given
    if saved is None:
        return make_stream(graph, default, seed=seed, **changes)
    if seed or rules.given():
        raise InputError("a stream read with --stream has its own seed and rules: leave the other options out.")
    return load_stream(saved, graph)


def usable_device(wanted: str) -> str:
    """cpu or cuda."""
    return best_device() if asked_device(wanted) == "auto" else wanted


def on_disk_device(wanted: str) -> str:
    """The one that works on a graph that stays on the disk."""
    if asked_device(wanted) == "cuda":
        raise InputError("--device cuda: a graph that stays on the disk is computed on the CPU: leave it out.")
    return "cpu"


def asked_device(wanted: str) -> str:
    """auto, cpu or cuda; what auto is, is settled when a learner is made, for torch knows it alone."""
    if wanted not in ("auto", "cpu", "cuda"):
        raise InputError(f"--device is {wanted!r}; it must be auto, cpu or cuda.")
    if wanted == "cuda" and best_device() != "cuda":
        raise InputError("--device cuda: this machine has no usable GPU; take cpu.")
    return wanted
