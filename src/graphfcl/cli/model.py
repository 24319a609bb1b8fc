"""Verbs of a model in production: fit, learn, grow, predict, history, rollback, and undoing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphfcl.cli.erased import print_erased
from graphfcl.cli.history import print_entries, print_hint
from graphfcl.cli.on_disk import OnDiskOptions, graph_to_fit, settle_first
from graphfcl.cli.options import BackendOptions, DataDir, Seed, settings_from_options, with_option_groups
from graphfcl.cli.run import FolderOptions
from graphfcl.cli.show import say, say_json
from graphfcl.errors import InputError

if TYPE_CHECKING:
    from graphfcl.production import GraphClassifier

Model = Annotated[Path, typer.Option("--model", help="Folder of the model.")]
Wait = Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait while another process writes.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]
OwnMethod = Annotated[
    str | None,
    typer.Option("--method", help="The model's method, if it is one of your own: module:Class.", show_default=False),
]
SETTINGS_HELP = "A setting of the method: key=value; may be repeated."


@dataclass(frozen=True)
class FitOptions:
    """What a model is told besides its method, before it is fitted."""

    way: Annotated[int, typer.Option("--way", min=1, help="New classes at a time that training rehearses.")] = 2
    shot: Annotated[int, typer.Option("--shot", min=1, help="Supports per class that training rehearses.")] = 5
    seed: Seed = 0
    max_loss: Annotated[
        float, typer.Option("--max-loss", help="Warn when older classes lose more balanced accuracy than this.")
    ] = 0.05
    standardise: Annotated[
        bool,
        typer.Option("--standardise/--no-standardise", help="Dense features: mean 0 and deviation 1, or as they are."),
    ] = True


@with_option_groups
def fit(
    graph: Annotated[str, typer.Option("--graph", help="A name from `data list`, or a path.")],
    model: Model,
    hide_classes: Annotated[
        str | None, typer.Option("--hide-classes", help="Treat these classes as not labelled: a,b.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", help="A name from `graphfcl methods`, or your own module:Class (default: the best one)."
        ),
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help=SETTINGS_HELP)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a fit that was stopped.")] = False,
    *,
    options: FitOptions,
    device: Device = "auto",
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait while another process makes a model there.")
    ] = 0.0,
    data_dir: DataDir = None,
    large: FolderOptions,
    engine: BackendOptions,
) -> None:
    """Train on all labelled nodes of a graph and make a model folder."""
    from graphfcl.cli.progress import RunDisplay
    from graphfcl.cli.run import asked_device
    from graphfcl.defaults import MODEL_METHOD
    from graphfcl.methods import method_from
    from graphfcl.production import GraphClassifier, ModelFolder

    found = method_from(method or MODEL_METHOD)
    hidden = [name.strip() for name in (hide_classes or "").split(",") if name.strip()]
    folder = ModelFolder(model)
    with folder.creating(wait, write_cache=False) as keep:
        loaded = graph_to_fit(graph, data_dir, found.name, large, engine, model)
        classifier = GraphClassifier(
            found.name,
            settings_from_options(settings or []),
            way=options.way,
            shot=options.shot,
            seed=options.seed,
            max_loss=options.max_loss,
            standardise=options.standardise,
            device=asked_device(device),
        )
        checkpoints = folder.fit_checkpoints(resume=resume)
        with RunDisplay() as display:
            classifier.fit(loaded, hide_classes=hidden, progress=display, checkpoints=checkpoints)
        keep(classifier)
        checkpoints.clear()
    say(f"{classifier!r} is version 1 of {model}.")
    print_entries(classifier.history)


@with_option_groups
def learn(
    supports: Annotated[
        Path, typer.Argument(help="A table with the columns node,class; by, when and others are kept.")
    ],
    model: Model,
    on_conflict: Annotated[
        str,
        typer.Option("--on-conflict", help="A node has another label: refuse all, keep that label, or replace it."),
    ] = "refuse",
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> None:
    """Learn new classes, or more supports of known ones."""
    from graphfcl.production.user_tables import read_supports

    listed = read_supports(supports)
    with changing(model, wait, device, method, on_disk) as classifier:
        classifier.learn_listed(listed, on_conflict=on_conflict)


def labels(
    model: Model,
    out: Annotated[Path, typer.Option("--out", help="Write labels here: .parquet or .csv.")],
    nodes: Annotated[
        Path | None, typer.Option("--nodes", help="Only these: a table with the column node (default: all).")
    ] = None,
    version: Annotated[int | None, typer.Option("--version", help="Of an older version (default: the newest).")] = None,
    method: OwnMethod = None,
) -> None:
    """Which node is labelled with which class, by whom and when: node, class, part, by, when, and columns kept."""
    from graphfcl.production import GraphClassifier
    from graphfcl.production.user_tables import read_ids, write_table

    bring(method, model)
    asked = None if nodes is None else read_ids(nodes)
    found = GraphClassifier.load(model, version=version).labels(asked)
    write_table(out, found, "labels")
    say(f"{len(set(found['node'].tolist())):,} labelled nodes, {len(found['node']):,} rows. Wrote {out}.")


@with_option_groups
def grow(
    model: Model,
    nodes: Annotated[Path | None, typer.Option("--nodes", help="New nodes: node, and text or feature columns.")] = None,
    edges: Annotated[Path | None, typer.Option("--edges", help="New edges: source,target[,weight].")] = None,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> None:
    """Add nodes and edges to the graph the model lives on."""
    from graphfcl.production.user_tables import read_edges, read_nodes

    if nodes is None and edges is None:
        raise InputError("there is nothing to add: give --nodes, --edges or both.")
    with changing(model, wait, device, method, on_disk) as classifier:
        classifier.grow(
            nodes=None if nodes is None else read_nodes(nodes, classifier.graph_),
            edges=None if edges is None else read_edges(edges),
        )


def shrink(
    model: Model,
    nodes: Annotated[
        Path | None, typer.Option("--nodes", help="Nodes to remove: a table with the column node.")
    ] = None,
    edges: Annotated[Path | None, typer.Option("--edges", help="Edges to remove: source,target.")] = None,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
) -> None:
    """Remove nodes and edges; what was learned from the nodes goes with them, as far as the method can."""
    from graphfcl.production.user_tables import read_edges, read_ids

    if nodes is None and edges is None:
        raise InputError("there is nothing to remove: give --nodes, --edges or both.")
    with changing(model, wait, device, method) as classifier:
        classifier.shrink(
            nodes=None if nodes is None else read_ids(nodes), edges=None if edges is None else read_edges(edges)[:2]
        )


@with_option_groups
def predict(
    model: Model,
    out: Annotated[Path, typer.Option("--out", help="Write predictions here: .parquet or .csv.")],
    nodes: Annotated[
        Path | None, typer.Option("--nodes", help="Only these: a table with the column node (default: all).")
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option("--coverage", help="Also write sets of classes that hold the true one with this probability."),
    ] = None,
    version: Annotated[int | None, typer.Option("--version", help="Of an older version (default: the newest).")] = None,
    method: OwnMethod = None,
    device: Device = "auto",
    *,
    on_disk: OnDiskOptions,
) -> None:
    """Ask for the classes of nodes: node, class, probability, unknown_score, unknown, and set on request."""
    from graphfcl.cli.run import asked_device
    from graphfcl.production import GraphClassifier
    from graphfcl.production.user_tables import read_ids, refuse_unwritable, write_blocks

    refuse_unwritable(out, "predictions")
    bring(method, model)
    asked = None if nodes is None else read_ids(nodes)
    classifier = GraphClassifier.load(model, version=version, device=asked_device(device), use=on_disk.use())
    settle_first(classifier)
    counts = write_blocks(out, classifier.predictions_in_blocks(asked, coverage=coverage), "predictions", "unknown")
    say(
        f"{counts[0]:,} nodes, {len(classifier.classes_)} classes, version {classifier.version}; "
        f"{counts[1]:,} look like none of them. Wrote {out}."
    )


def explain(
    node: Annotated[str, typer.Argument(help="The id of a node.")],
    model: Model,
    top: Annotated[int, typer.Option("--top", min=1, help="Classes, features and neighbours to name.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    method: OwnMethod = None,
) -> None:
    """Why a node gets its class: classes in competition, and the features, hops and neighbours that decide."""
    from graphfcl.cli.show import print_table
    from graphfcl.production import GraphClassifier

    bring(method, model)
    found = GraphClassifier.load(model).explain(node, top=top)
    if as_json:
        say_json(found)
        return
    rows = [(c["class"], f"{c['probability']:.3f}", f"{c['by_itself']:.3f}") for c in found["classes"]]
    print_table(("class", "probability", "by itself"), rows, numbers=("probability", "by itself"))
    first, second = found["classes"][0]["class"], found["classes"][-1]["class"]
    if len(found["classes"]) > 1:
        second = found["classes"][1]["class"]
    say(f"What speaks for {first} (+) and for {second} (-):")
    for title, key in (("block", "blocks"), ("own feature", "features"), ("node around", "around")):
        print_table((title, "adds"), [(name, f"{value:+.2f}") for name, value in found[key].items()], numbers=("adds",))
    titles = ["neighbour", "share", f"its own probability of {first}"]
    near = [[n["node"], f"{n['share']:.3f}", f"{n['probability']:.3f}"] for n in found["neighbours"]]
    if any(n["adds"] for n in found["neighbours"]):  # the model hears whom classes link to
        titles.append("its link adds")
        near = [[*row, f"{n['adds']:+.2f}"] for row, n in zip(near, found["neighbours"], strict=True)]
    print_table(titles, near, numbers=("share", "its link adds"))


def history(
    model: Model,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
) -> None:
    """What each version added, when, from which supports, and its accuracy on validation nodes."""
    from graphfcl.production import ModelFolder

    folder = ModelFolder(model)
    entries = folder.history()
    if as_json:
        say_json(entries)
        return
    print_entries(entries)
    print_hint(folder, entries)


@with_option_groups
def rollback(
    version: Annotated[int, typer.Argument(help="The version to go back to.")],
    model: Model,
    method: OwnMethod = None,
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> None:
    """Write a new version equal to an old one."""
    from graphfcl.production import ModelFolder

    bring(method, model)
    number = ModelFolder(model, on_disk.use()).rollback(version, wait=wait)
    say(f"Version {number} of {model} equals version {version}.")


def prune(
    model: Model,
    keep: Annotated[int, typer.Option("--keep", min=1, help="How many of the newest versions stay.")],
    wait: Wait = 60.0,
) -> None:
    """Remove old versions and the files that no kept version needs."""
    from graphfcl.production import ModelFolder

    done = ModelFolder(model).prune(keep, wait=wait)
    say(
        f"Removed {len(done.versions):,} versions of {model} and {done.freed / 1e6:,.1f} MB; "
        f"versions {done.kept[0]} to {done.kept[-1]} are kept."
    )


def erase(
    nodes: Annotated[Path, typer.Argument(help="A table with the column node.")],
    model: Model,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
) -> None:
    """Remove nodes and all that is kept of them from every version, for good."""
    from graphfcl.cli.run import usable_device
    from graphfcl.production import ModelFolder
    from graphfcl.production.user_tables import read_ids

    listed = read_ids(nodes)
    bring(method, model)
    print_erased(ModelFolder(model).erase(listed, wait=wait, device=usable_device(device)), model)


def unlearn(
    nodes: Annotated[Path, typer.Argument(help="A table with the column node.")],
    model: Model,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
) -> None:
    """Take back the labels of some nodes."""
    from graphfcl.production.user_tables import read_ids

    listed = read_ids(nodes)
    with changing(model, wait, device, method) as classifier:
        classifier.unlearn(listed)


def rename(old: str, new: str, model: Model, method: OwnMethod = None, wait: Wait = 60.0) -> None:
    """Call a class otherwise."""
    with changing(model, wait, "cpu", method) as classifier:
        classifier.rename(old, new)


def merge(
    source: str, into: str, model: Model, method: OwnMethod = None, device: Device = "auto", wait: Wait = 60.0
) -> None:
    """Make all nodes of one class another's."""
    with changing(model, wait, device, method) as classifier:
        classifier.merge(source, into)


def retire(name: str, model: Model, method: OwnMethod = None, device: Device = "auto", wait: Wait = 60.0) -> None:
    """Never answer a class again."""
    with changing(model, wait, device, method) as classifier:
        classifier.retire(name)


VERBS = (
    fit, learn, labels, grow, predict, explain, history, rollback, prune, erase, unlearn, rename, merge, retire, shrink,
)  # fmt: skip


@contextmanager
def changing(
    model: Path, wait: float, device: str, method: str | None, on_disk: OnDiskOptions | None = None
) -> Iterator["GraphClassifier"]:
    """The newest version, changed into the next one; says what it is when it is safe on the disk."""
    bring(method, model)
    from graphfcl.cli.run import asked_device
    from graphfcl.production import ModelFolder

    folder = ModelFolder(model, (on_disk or OnDiskOptions()).use())
    with folder.editing(wait, device=asked_device(device), write_cache=False) as classifier:
        yield classifier
    say(f"{classifier!r} is version {classifier.version} of {model}.")
    print_entries([entry for entry in classifier.history if entry["version"] == classifier.version])


def bring(method: str | None, model: Path) -> None:
    """Import the method that the user named, so that the model may name it too; it must be the model's."""
    if method is not None:
        from graphfcl.methods import method_from
        from graphfcl.production import ModelFolder

        given, folder = method_from(method).name, ModelFolder(model)
        has = folder.manifest(folder.current())["values"]["method"] if folder.exists() else given
        if has != given:
            raise InputError(f"{model} is a model of {has!r}, not of {given!r}: leave --method out, or name its own.")
