"""Option groups for graph folders and model folders: their paths, and the resources to compute on them."""

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import graphfcl.cli.options as opts
import graphfcl.graph as graphs
import graphfcl.graph.folder as graph_folders
import graphfcl.methods as methods
import graphfcl.production as production
import graphfcl.stream as streams
from graphfcl.cli.options import option
from graphfcl.cli.output import print_line, print_message
from graphfcl.errors import InputError
from graphfcl.runtime.cores import usable_cores
from graphfcl.runtime.files import need_folder
from graphfcl.runtime.memory import format_bytes, parse_bytes
from graphfcl.runtime.resources import Resources
from graphfcl.runtime.tasks import find_backend


@dataclass(frozen=True)
class FolderOptions(opts.BackendOptions):
    """Resources to compute on a graph folder. A model remembers all of them except the backend."""

    memory: Annotated[
        str | None,
        option("Memory to use for a graph folder, such as 4GB (default: 3/4 of all; for a model, its last value)."),
    ] = None
    work: Annotated[
        Path | None, option("Folder for intermediate files. With run and fit it keeps a graph folder on disk.")
    ] = None
    workers: Annotated[
        int | None, option("Number of parallel tasks (default: number of cores; for a model, its last value).", min=1)
    ] = None

    def load_graph(
        self, source: opts.GraphOptions, method: str, stack: ExitStack, work: Path | None = None
    ) -> "tuple[graphs.AnyGraph, streams.Protocol | None]":
        """Load a graph with its default rules. A graph folder is loaded into memory or used on disk.

        Workers run until ``stack`` is closed. ``work`` is the work folder if the user names none.
        """
        find_backend(self.backend)  # refuse an unknown one first
        source.check()
        if source.graph is not None and graph_folders.is_graph_folder(source.graph):
            return self._open(Path(source.graph), method, stack, work), None
        if flags := self.used_flags():
            raise InputError(f"{flags[0]} applies only to graph folders: make one with `data import`, or leave it out.")
        return source.load()

    def _open(self, path: Path, method: str, stack: ExitStack, work: Path | None) -> "graphs.AnyGraph":
        from graphfcl.experiments.graph_folders import graph_of_folder, usual_memory

        memory = usual_memory() if self.memory is None else parse_bytes(self.memory, "--memory")
        work = self.work or work or path.resolve().with_name(f"{path.resolve().name}.work")
        tasks = self.tasks(self.workers or usable_cores(), folder=work / "tasks")
        graph = graph_of_folder(path, method, Resources(work, memory, tasks), stay=self.work is not None)
        self.refuse_unusable_work()
        if graph.work is not None:
            print_message(f"note: {path} stays on disk: --work {work}, --memory {format_bytes(memory)}.")
            workers: AbstractContextManager[graphs.AnyGraph] = graph.with_workers()
            return stack.enter_context(workers)
        if flags := replace(self, memory=None, workers=None).used_flags():
            raise InputError(
                f"{flags[0]} applies only to graph folders that stay on disk, and this one fits into memory: give "
                "--work, or leave it out."
            )
        hint = "; give --work to keep it on disk" * methods.find_method(method).learner.works_on_disk
        print_message(f"note: {path} fits into memory and is loaded{hint}.")
        return graph

    def refuse_unusable_work(self) -> None:
        """Refuse a work folder that cannot be created, before anything else is written."""
        opts.refuse_file(self.work, "--work")
        if self.work is not None:
            need_folder(self.work, "--work")

    def use(self, graph: Path | None) -> "production.FolderUse":
        """The resources that the options change for a model. ``graph`` is the new path of a moved graph folder."""
        memory = None if self.memory is None else parse_bytes(self.memory, "--memory")
        return production.FolderUse(graph, self.work, memory, self.workers, self.tasks(1))


@dataclass(frozen=True)
class ModelOptions(opts.OptionGroup):
    """A model folder."""

    panel: ClassVar[str] = "Model"
    model: opts.Model
    method: opts.OwnMethod = None
    graph: opts.GraphPlace = None

    def folder_use(self) -> "production.FolderUse":
        """The path and resources of the model's graph folder, as far as the options change them."""
        return production.FolderUse(self.graph)

    def folder(self) -> "production.ModelFolder":
        """Open the model folder. The user's own method is imported first, because the model may need it."""
        import_method(self.method, self.model)
        return production.ModelFolder(self.model, self.folder_use())

    def load(self, version: int | None = None, device: str = "cpu") -> "production.GraphClassifier":
        """Load a version of the model, the newest by default."""
        return self.folder().load(version, device=opts.requested_device(device))


@dataclass(frozen=True)
class ComputeOptions(FolderOptions, ModelOptions):
    """A model folder, and the resources to compute on its graph folder."""

    def folder_use(self) -> "production.FolderUse":
        return self.use(self.graph)


def import_method(method: str | None, model: Path) -> None:
    """Import the method that the user named, and check that the model uses it."""
    if method is None:
        return
    name, folder = methods.method_from(method).name, production.ModelFolder(model)
    own = folder.manifest(folder.current())["values"]["method"] if folder.exists() else name
    if own != name:
        raise InputError(f"{model} uses the method {own!r}, not {name!r}: leave --method out, or name {own!r}.")


def compute_scores(classifier: "production.GraphClassifier") -> "production.GraphClassifier":
    """Compute the scores of all nodes of a version, unless they are stored, and print its accuracy."""
    if classifier.has_answers:
        return classifier
    version = classifier.version
    print_line(f"First prediction for version {version}: computing scores for all nodes (this can take a while).")
    with methods.ProgressBars() as bars:
        result = classifier.calibrate(progress=bars)
    if result is not None:
        where = {"validation": "on validation nodes", "leave_one_out": "on supports of learned classes (leave-one-out)"}
        shown = [
            f"{100 * result.accuracy[key]:.1f} % {text}" for key, text in where.items() if result.accuracy.get(key)
        ]
        print_line(f"Balanced accuracy: {', '.join(shown) or 'not measured'}.")
        if result.warning:
            print_line(f"warning: {result.warning}.")
    return classifier
