"""Model folders and graph folders as option groups: which model, where its graph is, and with what to compute on it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from graphfcl.cli.options import (
    BackendOptions,
    Device,
    GraphPlace,
    Model,
    OwnMethod,
    Wait,
    option,
    refuse_file,
    requested_device,
)
from graphfcl.cli.output import say, tell
from graphfcl.errors import InputError
from graphfcl.runtime.cores import usable_cores
from graphfcl.runtime.files import need_folder
from graphfcl.runtime.memory import format_bytes, parse_bytes

if TYPE_CHECKING:
    from graphfcl.graph import AnyGraph
    from graphfcl.production import GraphClassifier, ModelFolder
    from graphfcl.production.graph.place import FolderUse
    from graphfcl.production.model.fit_checkpoints import FitCheckpoints
    from graphfcl.stream import Protocol

IN_MEMORY = ""  # in place of the work folder of a fit


@dataclass(frozen=True)
class FolderOptions:
    """How a run or a fit works on a graph folder."""

    memory: Annotated[
        str | None,
        option("--memory", "Memory to use for a graph folder, such as 4GB (default: 3/4 of the machine's memory)."),
    ] = None
    work: Annotated[
        Path | None,
        option("--work", "Folder for intermediate files; if set, a graph folder is not loaded into memory."),
    ] = None
    workers: Annotated[
        int | None,
        option("--workers", "Number of parallel tasks on a graph folder (default: number of cores).", min=1),
    ] = None

    def load(
        self,
        graph: str,
        data_dir: Path | None,
        method: str,
        engine: BackendOptions,
        stack: ExitStack,
        work: Path | None = None,
    ) -> "tuple[AnyGraph, Protocol | None]":
        """A graph by name or path, with its default rules; a graph folder is opened in memory or on the disk.

        stack: workers are started once, and end with it. work: the work folder if no other is named.
        """
        from graphfcl.datasets import load_dataset
        from graphfcl.graph.folder import is_graph_folder

        if is_graph_folder(graph):
            return self._open(Path(graph), method, engine, stack, work), None
        engine.refuse("make one with `data import`, or leave it out")
        for name in ("memory", "work", "workers"):
            if getattr(self, name) is not None:
                raise InputError(f"--{name} is for graph folders: make one with `data import`, or leave it out.")
        return load_dataset(graph, data_dir=data_dir)

    def _open(self, path: Path, method: str, engine: BackendOptions, stack: ExitStack, work: Path | None) -> "AnyGraph":
        from graphfcl.experiments.graph_folders import graph_of_folder, usual_memory
        from graphfcl.methods import find_method
        from graphfcl.runtime.resources import Resources

        memory = usual_memory() if self.memory is None else parse_bytes(self.memory, "--memory")
        work = self.work or work or path.resolve().with_name(f"{path.resolve().name}.work")
        tasks = engine.tasks(self.workers or usable_cores(), folder=work / "tasks")
        graph = graph_of_folder(path, method, Resources(work, memory, tasks), stay=self.work is not None)
        self.refuse_unusable_work()
        if graph.work is None:
            engine.refuse("this one fits into memory; give --work, or leave it out")
            hint = "; give --work to keep it on the disk" * find_method(method).learner.works_on_disk
            tell(f"note: {path} fits into memory and is loaded{hint}.")
            return graph
        tell(f"note: {path} stays on the disk: --work {work}, --memory {format_bytes(memory)}.")
        workers: AbstractContextManager[AnyGraph] = graph.with_workers()
        return stack.enter_context(workers)

    def refuse_unusable_work(self) -> None:
        """Refuse a work folder that cannot be made, before anything else is written."""
        refuse_file(self.work, "--work")
        if self.work is not None:
            need_folder(self.work, "--work")

    def load_to_fit(
        self,
        graph: str,
        data_dir: Path | None,
        method: str,
        engine: BackendOptions,
        stack: ExitStack,
        model: Path,
        checkpoints: "FitCheckpoints",
    ) -> "AnyGraph":
        """:meth:`load` for a fit, which works in the model folder; one that continues keeps its graph where it was."""
        from graphfcl.graph.folder import is_graph_folder
        from graphfcl.production.graph.place import WORK

        if not is_graph_folder(graph):
            return self.load(graph, data_dir, method, engine, stack)[0]
        loaded, _ = self._as_before(checkpoints).load(graph, data_dir, method, engine, stack, model / WORK)
        checkpoints.work = IN_MEMORY if loaded.work is None else str(loaded.work.absolute())
        return loaded

    def _as_before(self, checkpoints: "FitCheckpoints") -> "FolderOptions":
        """The options, with the work folder of an interrupted fit if this one continues it."""
        before = checkpoints.work_before()
        if before is None or (before == IN_MEMORY and self.work is None):
            return self
        if before == IN_MEMORY:
            raise InputError(
                f"the interrupted fit has its graph in memory: leave --work out, or delete {checkpoints.folder} to "
                "start again."
            )
        return self if self.work is not None else replace(self, work=Path(before))


@dataclass(frozen=True)
class FolderResources(BackendOptions):
    """Resources for the graph folder of a model; all but the backend are stored with the model."""

    memory: Annotated[
        str | None,
        option("--memory", "Memory to use for a graph folder, such as 4GB (default: the last value used)."),
    ] = None
    work: Annotated[
        Path | None,
        option("--work", "Folder for intermediate files of a graph folder (default: the last value used)."),
    ] = None
    workers: Annotated[
        int | None,
        option("--workers", "Number of parallel tasks on a graph folder (default: the last value used).", min=1),
    ] = None

    def use_at(self, graph: Path | None) -> "FolderUse":
        """What they change. graph: where the graph folder is, if it was moved."""
        from graphfcl.production.graph.place import FolderUse

        memory = None if self.memory is None else parse_bytes(self.memory, "--memory")
        return FolderUse(graph, self.work, memory, self.workers, self.tasks(1))


@dataclass(frozen=True)
class ModelOptions:
    """A model folder."""

    model: Model
    method: OwnMethod = None
    graph: GraphPlace = None

    def use(self) -> "FolderUse":
        """Where the graph folder of the model is and what may be used to compute on it, if it changed."""
        from graphfcl.production.graph.place import FolderUse

        return FolderUse(self.graph)

    def folder(self) -> "ModelFolder":
        """The folder; the user's own method is imported first, so that the model may name it."""
        import_method(self.method, self.model)
        from graphfcl.production import ModelFolder

        return ModelFolder(self.model, self.use())

    def load(self, *, version: int | None = None, device: str = "cpu") -> "GraphClassifier":
        """A version of the model, the newest by default."""
        import_method(self.method, self.model)
        from graphfcl.production import GraphClassifier

        return GraphClassifier.load(self.model, version=version, device=requested_device(device), use=self.use())


@dataclass(frozen=True)
class ComputeOptions(FolderResources, ModelOptions):
    """A model folder, and the resources to compute on its graph folder."""

    def use(self) -> "FolderUse":
        return self.use_at(self.graph)


@dataclass(frozen=True)
class ChangeOptions(ComputeOptions):
    """A model folder that is to be changed."""

    device: Device = "auto"
    wait: Wait = 60.0

    @contextmanager
    def edit(self) -> Iterator["GraphClassifier"]:
        """The newest version, changed into the next one, which is durable when the context ends."""
        with self.folder().editing(self.wait, device=requested_device(self.device), write_cache=False) as classifier:
            yield classifier


def import_method(method: str | None, model: Path) -> None:
    """Import the method that the user named; it must be the model's."""
    if method is None:
        return
    from graphfcl.methods import method_from
    from graphfcl.production import ModelFolder

    name, folder = method_from(method).name, ModelFolder(model)
    own = folder.manifest(folder.current())["values"]["method"] if folder.exists() else name
    if own != name:
        raise InputError(f"{model} is a model of {own!r}, not of {name!r}: leave --method out, or name its own.")


def compute_scores(classifier: "GraphClassifier") -> "GraphClassifier":
    """Compute the scores of all nodes of a version on a graph folder unless they are stored; print the accuracy."""
    if classifier.has_answers:
        return classifier
    from graphfcl.methods.progress import ProgressBars

    say(f"First prediction for version {classifier.version}: computing scores for all nodes (this can take a while).")
    with ProgressBars() as bars:
        result = classifier.calibrate(progress=bars)
    if result is not None:
        where = {"validation": "on validation nodes", "leave_one_out": "on supports of learned classes, each left out"}
        shown = [
            f"{100 * result.accuracy[key]:.1f} % {text}" for key, text in where.items() if result.accuracy.get(key)
        ]
        say(f"Balanced accuracy: {', '.join(shown) or 'not measured'}.")
        if result.warning:
            say(f"warning: {result.warning}.")
    return classifier
