"""Verbs that change a model in production: learn, grow, shrink, undo; and what several verbs of a model share."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphfcl.cli.answer import Answer, answers
from graphfcl.cli.completion import choices, methods, models
from graphfcl.cli.erased import print_erased, remains
from graphfcl.cli.history import print_entries
from graphfcl.cli.on_disk import OnDiskOptions
from graphfcl.cli.options import Device
from graphfcl.cli.show import say, tell
from graphfcl.errors import InputError

if TYPE_CHECKING:
    from graphfcl.production import GraphClassifier

Model = Annotated[Path, typer.Option("--model", help="Model folder.", autocompletion=models)]
ModelArgument = Annotated[
    Path | None,
    typer.Argument(metavar="MODEL", help="Model folder.", show_default=False, autocompletion=models),
]
ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model", help="Model folder; same as the argument MODEL.", show_default=False, autocompletion=models
    ),
]
Wait = Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait while another process changes the model.")]
OwnMethod = Annotated[
    str | None,
    typer.Option(
        "--method",
        help="The model's method as module:Class, if it is your own.",
        show_default=False,
        autocompletion=methods,
    ),
]


GraphPlace = Annotated[
    Path | None, typer.Option("--graph", help="New place of the model's graph folder, if it was moved.")
]


def _note(text: str) -> None:
    tell(f"note: {text}")


def one_model(folder: Path | None, model: Path | None, verb: str) -> Path:
    """The model of a verb that takes it with or without --model."""
    named = [path for path in (folder, model) if path is not None]
    if len(named) != 1:
        fix = "leave --model out" if named else f"as in `graphfcl {verb} my_model`"
        raise InputError(f"name one model, {fix}.")
    return named[0]


@answers
def learn(
    supports: Annotated[
        Path,
        typer.Argument(
            help="Table with the columns node and class; by, when and other columns are stored with the labels."
        ),
    ],
    model: Model,
    on_conflict: Annotated[
        str,
        typer.Option(
            "--on-conflict",
            help="If a node already has another label: refuse the whole table, keep the old label, or replace it.",
            autocompletion=choices("refuse", "keep", "replace"),
        ),
    ] = "refuse",
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> Answer:
    """Learn new classes, or more labelled nodes of known classes."""
    from graphfcl.production.changes.user_tables import read_supports

    with changing(model, wait, device, method, on_disk) as classifier:
        columns, graph = classifier.configuration.columns, classifier.graph_
        listed = read_supports(supports, columns, graph=graph, known=classifier.classes_, tell=_note)
        classifier.learn_listed(listed, on_conflict=on_conflict)
    return changed(classifier, model)


@answers
def grow(
    model: Model,
    nodes: Annotated[
        Path | None, typer.Option("--nodes", help="Table of new nodes: the column node, and text or feature columns.")
    ] = None,
    edges: Annotated[
        Path | None,
        typer.Option("--edges", help="Table of new edges: the columns source and target, optionally weight."),
    ] = None,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> Answer:
    """Add nodes and edges to the model's graph."""
    from graphfcl.production.changes.new_nodes import read_nodes
    from graphfcl.production.changes.user_tables import read_edges

    if nodes is None and edges is None:
        raise InputError("there is nothing to add: give --nodes, --edges or both.")
    with changing(model, wait, device, method, on_disk) as classifier:
        columns = classifier.configuration.columns
        new = None if nodes is None else read_nodes(nodes, classifier.graph_, columns, _note)
        classifier.grow(nodes=new, edges=None if edges is None else read_edges(edges, columns))
    return changed(classifier, model)


@answers
def shrink(
    model: Model,
    nodes: Annotated[
        Path | None, typer.Option("--nodes", help="Table of nodes to remove, with the column node.")
    ] = None,
    edges: Annotated[
        Path | None, typer.Option("--edges", help="Table of edges to remove, with the columns source and target.")
    ] = None,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> Answer:
    """Remove nodes and edges, and what was learned from them as far as the method allows."""
    from graphfcl.production.changes.user_tables import read_edges, read_ids

    if nodes is None and edges is None:
        raise InputError("there is nothing to remove: give --nodes, --edges or both.")
    with changing(model, wait, device, method, on_disk) as classifier:
        columns = classifier.configuration.columns
        classifier.shrink(
            nodes=None if nodes is None else read_ids(nodes, columns),
            edges=None if edges is None else read_edges(edges, columns)[:2],
        )
    return changed(classifier, model)


@answers
def rollback(
    version: Annotated[int, typer.Argument(help="Version to restore.")],
    model: Model,
    method: OwnMethod = None,
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> Answer:
    """Restore an old version as the newest one."""
    from graphfcl.production import ModelFolder

    bring(method, model)
    folder = ModelFolder(model, on_disk.use())
    number = folder.rollback(version, wait=wait)
    values = {
        "model": str(model),
        "version": number,
        "classes": list(folder.load(number).classes_),
        "changes": _of_version(folder.history(), number),
    }
    return Answer(values, lambda: say(f"Version {number} of {model} equals version {version}."))


@answers
def prune(
    model: Model,
    keep: Annotated[int, typer.Option("--keep", min=1, help="Number of newest versions to keep.")],
    wait: Wait = 60.0,
) -> Answer:
    """Delete old versions and the files that only they need."""
    from graphfcl.production import ModelFolder

    done = ModelFolder(model).prune(keep, wait=wait)
    values = {
        "model": str(model),
        "removed": list(done.versions),
        "kept": list(done.kept),
        "bytes_freed": done.freed,
    }
    line = (
        f"Removed {len(done.versions):,} versions of {model} and {done.freed / 1e6:,.1f} MB; "
        f"versions {done.kept[0]} to {done.kept[-1]} are kept."
    )
    return Answer(values, lambda: say(line))


@answers
def erase(
    nodes: Annotated[Path, typer.Argument(help="Table with the column node.")],
    model: Model,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    graph: GraphPlace = None,
) -> Answer:
    """Delete nodes and everything stored about them from every version, irrevocably."""
    from dataclasses import asdict

    from graphfcl.cli.run import usable_device
    from graphfcl.production import ModelFolder
    from graphfcl.production.changes.user_tables import read_ids

    bring(method, model)
    folder = ModelFolder(model, OnDiskOptions(graph=graph).use())
    columns = None
    with suppress(InputError):  # whatever is wrong with the folder, erasing says so
        columns = folder.load().configuration.columns
    listed = read_ids(nodes, columns)
    done = folder.erase(listed, wait=wait, device=usable_device(device))
    return Answer({"model": str(model), **asdict(done), "remains": remains(done)}, lambda: print_erased(done, model))


@answers
def unlearn(
    nodes: Annotated[Path, typer.Argument(help="Table with the column node.")],
    model: Model,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> Answer:
    """Remove the labels of some nodes."""
    from graphfcl.production.changes.user_tables import read_ids

    with changing(model, wait, device, method, on_disk) as classifier:
        classifier.unlearn(read_ids(nodes, classifier.configuration.columns))
    return changed(classifier, model)


@answers
def rename(
    old: Annotated[str, typer.Argument(help="Class to rename.")],
    new: Annotated[str, typer.Argument(help="Its new name.")],
    model: Model,
    method: OwnMethod = None,
    wait: Wait = 60.0,
    graph: GraphPlace = None,
) -> Answer:
    """Rename a class."""
    with changing(model, wait, "cpu", method, OnDiskOptions(graph=graph)) as classifier:
        classifier.rename(old, new)
    return changed(classifier, model)


@answers
def merge(
    source: Annotated[str, typer.Argument(help="Class that disappears.")],
    into: Annotated[str, typer.Argument(help="Class that gets its nodes.")],
    model: Model,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> Answer:
    """Merge one class into another."""
    with changing(model, wait, device, method, on_disk) as classifier:
        classifier.merge(source, into)
    return changed(classifier, model)


@answers
def retire(
    name: Annotated[str, typer.Argument(help="Class to retire; its nodes lose their label.")],
    model: Model,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> Answer:
    """Stop predicting a class."""
    with changing(model, wait, device, method, on_disk) as classifier:
        classifier.retire(name)
    return changed(classifier, model)


@contextmanager
def changing(
    model: Path, wait: float, device: str, method: str | None, on_disk: OnDiskOptions | None = None
) -> Iterator["GraphClassifier"]:
    """The newest version, changed into the next one; it is safe on the disk when this ends."""
    bring(method, model)
    from graphfcl.cli.run import requested_device
    from graphfcl.production import ModelFolder

    folder = ModelFolder(model, (on_disk or OnDiskOptions()).use())
    with folder.editing(wait, device=requested_device(device), write_cache=False) as classifier:
        yield classifier


def changed(classifier: "GraphClassifier", model: Path) -> Answer:
    """What a model became."""
    entries = _of_version(classifier.history, classifier.version)

    def show() -> None:
        say(f"{classifier!r} is version {classifier.version} of {model}.")
        print_entries(entries)

    values = {
        "model": str(model),
        "version": classifier.version,
        "classes": list(classifier.classes_),
        "changes": entries,
    }
    return Answer(values, show)


def _of_version(entries: Any, version: int | None) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["version"] == version]


def bring(method: str | None, model: Path) -> None:
    """Import the method that the user named, so that the model may name it too; it must be the model's."""
    if method is not None:
        from graphfcl.methods import method_from
        from graphfcl.production import ModelFolder

        given, folder = method_from(method).name, ModelFolder(model)
        has = folder.manifest(folder.current())["values"]["method"] if folder.exists() else given
        if has != given:
            raise InputError(f"{model} is a model of {has!r}, not of {given!r}: leave --method out, or name its own.")
