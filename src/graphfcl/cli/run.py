"""``graphfcl run``."""

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphfcl.cli.answer import Answer, answers
from graphfcl.cli.completion import choices, graphs, methods
from graphfcl.cli.options import (
    GRAPH_HELP,
    BackendOptions,
    DataDir,
    Device,
    Seed,
    StreamOptions,
    settings_from_options,
    strategy_name,
)
from graphfcl.cli.show import say, say_notes, tell
from graphfcl.cli.switches import switched_off
from graphfcl.defaults import MODEL_METHOD, RUN_METHOD, STRATEGY
from graphfcl.errors import InputError
from graphfcl.runtime.cores import usable_cores
from graphfcl.runtime.devices import best_device, checked_device
from graphfcl.runtime.files import need_folder
from graphfcl.runtime.memory import format_bytes, parse_bytes

if TYPE_CHECKING:
    from graphfcl.graph import AnyGraph
    from graphfcl.stream import Protocol, Stream

MethodOption = Annotated[
    str,
    typer.Option(
        "--method",
        help="Method: a name from `graphfcl methods`, or your own as module:Class. The default is the paper's method; "
        f"for your own data use {MODEL_METHOD}.",
        autocompletion=methods,
    ),
]
StrategyOption = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        help="With --track active: strategy that selects the nodes to label; write your own as module:Class "
        "(default: auto).",
        show_default=False,
        autocompletion=choices("auto", "typical", "uncertain", "unknown", "random"),
    ),
]
SWITCHES = {"ignore_unknown_options": True, "allow_extra_args": True}  # --no-NAME is for the method to know


@dataclass(frozen=True)
class RunOptions:
    """Where a run works and what it goes on from."""

    device: Device = "auto"
    out: Annotated[Path | None, typer.Option("--out", help="Folder for results (default: a new folder in runs/).")] = (
        None
    )
    encoders: Annotated[
        Path | None,
        typer.Option(
            "--encoders", help="Folder for pre-trained encoders, shared by all methods (default: next to the results)."
        ),
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint in the folder.")] = False
    data_dir: DataDir = None


@dataclass(frozen=True)
class FolderOptions:
    """How a run or a fit works on a graph folder."""

    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", help="Memory to use for a graph folder, such as 4GB (default: 3/4 of the machine's memory)."
        ),
    ] = None
    work: Annotated[
        Path | None,
        typer.Option("--work", help="Folder for intermediate files; if set, a graph folder is not loaded into memory."),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Number of parallel tasks on a graph folder (default: number of cores)."),
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
        from graphfcl.methods import find_method
        from graphfcl.runtime.resources import Resources

        memory = usual_memory() if self.memory is None else parse_bytes(self.memory, "--memory")
        work = self.work or work or path.resolve().with_name(f"{path.resolve().name}.work")
        tasks = engine.tasks(self.workers or usable_cores(), folder=work / "tasks")
        found = graph_of_folder(path, method, Resources(work, memory, tasks), stay=self.work is not None)
        self.refuse_unusable_work()
        if found.work is None:
            engine.refuse("this one fits into memory; give --work, or leave it out")
            able = "; give --work to keep it on the disk" * find_method(method).learner.works_on_disk
            tell(f"note: {path} fits into memory and is loaded{able}.")
            return found
        tell(f"note: {path} stays on the disk: --work {work}, --memory {format_bytes(memory)}.")
        return found if stack is None else stack.enter_context(found.with_workers())

    def refuse(self, engine: BackendOptions) -> None:
        """They are for graph folders alone, and so is an engine."""
        engine.refuse("make one with `data import`, or leave it out")
        for name in ("memory", "work", "workers"):
            if getattr(self, name) is not None:
                raise InputError(f"--{name} is for graph folders: make one with `data import`, or leave it out.")

    def refuse_unusable_work(self) -> None:
        """Refuse a work folder that cannot be made, before anything else is written."""
        refuse_file(self.work, "--work")
        if self.work is not None:
            need_folder(self.work, "--work")


@answers
def run_method(
    context: typer.Context,
    *,
    graph: Annotated[str, typer.Option("--graph", help=f"{GRAPH_HELP}.", autocompletion=graphs)] = "debian",
    method: MethodOption = RUN_METHOD,
    strategy: StrategyOption = None,
    seed: Seed = 0,
    rules: StreamOptions,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the method; repeatable."),
    ] = None,
    stream_file: Annotated[
        Path | None, typer.Option("--stream", help="Use a saved stream instead of drawing one.")
    ] = None,
    options: RunOptions,
    large: FolderOptions,
    engine: BackendOptions,
) -> Answer:
    """Train a method on session 0 and evaluate it on all sessions.

    --no-NAME switches the setting NAME of the method off, as --no-refit.
    """
    from graphfcl.cli.results import print_result
    from graphfcl.experiments import Run, run
    from graphfcl.methods import method_from
    from graphfcl.methods.progress import ProgressBars
    from graphfcl.report import accuracy_figure, matrix_figure

    refuse_file(options.out, "--out")
    found = method_from(method)
    declared = [name for parameter in context.command.params for name in parameter.opts]
    chosen = settings_from_options(settings or [])
    chosen |= switched_off(context.args, declared, found.name, found.settings_with({}))
    with ExitStack() as stack:
        given = _graph(graph, options.data_dir, found.name, large, engine, stack)
        say_notes(given[0])
        stream = _stream(given, seed, rules, stream_file)
        on = usable_device(stream.graph.device_for(requested_device(options.device)))
        job = Run(stream, found.name, chosen, on, _strategy(strategy, stream))
        folder = options.out or Path("runs") / job.short_name()
        encoders = options.encoders or folder.parent / "encoders"
        with_strategy = f" with {job.strategy}" if job.strategy else ""
        say(f"{found.name}{with_strategy} on {stream!r}, device {on}")
        with ProgressBars() as bars:
            result = run(job, folder, resume=options.resume, progress=bars, encoders=encoders)
    accuracy_figure(result, folder / "accuracy.png")
    matrix_figure(result, folder / "matrix.png")

    def show() -> None:
        if options.resume and not bars.stage:
            say(f"This run was finished before: nothing was computed, {folder} holds the result below.")
        print_result(result)
        say(f"Result, stream, checkpoint and two figures are in {folder}; look at {folder / 'accuracy.png'} first.")

    return Answer({"folder": str(folder), **result}, show)


def refuse_file(path: Path | None, option: str, *, is_folder: bool = True) -> None:
    """Refuse a folder that is a file, or a place inside one, before anything is computed.

    is_folder: whether a folder is to be written there, or a file.
    """
    if path is None:
        return
    above = path.absolute() if is_folder else path.absolute().parent
    there = next(each for each in (above, *above.parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        what = "is a file" if not there.is_dir() else "is not yours to write to"
        raise InputError(f"{option} {path} cannot be written ({there} {what}): choose another; nothing was computed.")


def _strategy(text: str | None, stream: "Stream") -> str:
    """The name of the strategy; none but under the track ``active``."""
    if stream.protocol.track != "active":
        if text is not None:
            raise InputError("--strategy belongs to the track 'active': add --track active, or leave it out.")
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
    large.refuse(engine)
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
    """cpu, cuda or cuda:1."""
    return best_device() if requested_device(wanted) == "auto" else wanted


def requested_device(wanted: str) -> str:
    """auto, cpu, cuda or cuda:1; what auto is, is settled when a learner is made, for torch knows it alone."""
    return checked_device(wanted, "--device")
