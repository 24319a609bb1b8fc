"""Options and lines of verbs that meet a model whose graph is a graph folder."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphfcl.cli.options import BackendOption, BackendOptions, RayAddress, SubmititOption
from graphfcl.cli.run import FolderOptions
from graphfcl.cli.show import say
from graphfcl.errors import InputError
from graphfcl.runtime.memory import parse_bytes

if TYPE_CHECKING:
    from graphfcl.graph import AnyGraph
    from graphfcl.production import GraphClassifier
    from graphfcl.production.graph.place import FolderUse
    from graphfcl.production.model.fit_checkpoints import FitCheckpoints


IN_MEMORY = ""  # in place of the work folder of a fit


@dataclass(frozen=True)
class OnDiskResources:
    """What may be used to compute on the graph folder of a model; all but the engine is remembered with the model."""

    memory: Annotated[
        str | None,
        typer.Option("--memory", help="Memory to use for a graph folder, such as 4GB (default: the last value used)."),
    ] = None
    work: Annotated[
        Path | None,
        typer.Option("--work", help="Folder for intermediate files of a graph folder (default: the last value used)."),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, help="Number of parallel tasks on a graph folder (default: the last value used)."
        ),
    ] = None

    backend: BackendOption = "local"
    ray_address: RayAddress = None
    submitit_option: SubmititOption = None

    def use_at(self, graph: Path | None) -> "FolderUse":
        """What they say. graph: where the graph folder is, if it was moved."""
        from graphfcl.production.graph.place import FolderUse

        memory = None if self.memory is None else parse_bytes(self.memory, "--memory")
        engine = BackendOptions(self.backend, self.ray_address, self.submitit_option).tasks(1)
        return FolderUse(graph, self.work, memory, self.workers, engine)


@dataclass(frozen=True)
class OnDiskOptions(OnDiskResources):
    """The same, and where the graph folder of a model is."""

    graph: Annotated[
        Path | None, typer.Option("--graph", help="New place of the model's graph folder, if it was moved.")
    ] = None

    def use(self) -> "FolderUse":
        """What they say."""
        return self.use_at(self.graph)


def settle_first(classifier: "GraphClassifier") -> None:
    """Compute the scores of all nodes of a version on a graph folder, unless they are stored; print the accuracy."""
    if classifier.has_answers:
        return
    from graphfcl.methods.progress import ProgressBars

    say(f"First prediction for version {classifier.version}: computing scores for all nodes (this can take a while).")
    with ProgressBars() as bars:
        found = classifier.calibrate(progress=bars)
    if found is None:
        return
    shown = {"validation": "on validation nodes", "leave_one_out": "on supports of learned classes, each left out"}
    said = [f"{100 * found.accuracy[key]:.1f} % {where}" for key, where in shown.items() if found.accuracy.get(key)]
    say(f"Balanced accuracy: {', '.join(said) or 'not measured'}.")
    if found.warning:
        say(f"warning: {found.warning}.")


def graph_to_fit(
    name: str,
    data_dir: Path | None,
    method: str,
    large: FolderOptions,
    engine: BackendOptions,
    model: Path,
    checkpoints: "FitCheckpoints",
    stack: ExitStack,
) -> "AnyGraph":
    """The graph of a name or a path; a graph folder that is to stay on the disk works in the folder of the model.

    checkpoints: of the fit; one that goes on keeps the graph where it was. stack: workers are started once, and end
    with it.
    """
    from graphfcl.datasets import load_dataset
    from graphfcl.graph.folder import is_graph_folder
    from graphfcl.production.graph.place import WORK

    if is_graph_folder(name):
        found = _as_before(large, checkpoints).graph(Path(name), method, engine, stack=stack, work=model / WORK)
        checkpoints.work = IN_MEMORY if found.work is None else str(found.work.absolute())
        return found
    large.refuse(engine)
    return load_dataset(name, data_dir=data_dir)[0]


def _as_before(large: FolderOptions, checkpoints: "FitCheckpoints") -> FolderOptions:
    """The options, with the work folder of a fit that was stopped if this one goes on with it."""
    before = checkpoints.work_before()
    if before is None or (before == IN_MEMORY and large.work is None):
        return large
    if before == IN_MEMORY:
        raise InputError(
            f"the interrupted fit has its graph in memory: leave --work out, or delete {checkpoints.folder} to start "
            "again."
        )
    return large if large.work is not None else replace(large, work=Path(before))
