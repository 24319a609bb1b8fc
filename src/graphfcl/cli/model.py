"""Verbs of a model in production that make it or ask it: fit, predict, labels, explain, history."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from graphfcl.cli.answer import Answer, Rows, answers
from graphfcl.cli.changes import (
    GraphPlace,
    Model,
    ModelArgument,
    ModelOption,
    OwnMethod,
    bring,
    changed,
    erase,
    grow,
    learn,
    merge,
    one_model,
    prune,
    rename,
    retire,
    rollback,
    shrink,
    unlearn,
)
from graphfcl.cli.completion import graphs, methods
from graphfcl.cli.history import print_entries, print_hint
from graphfcl.cli.on_disk import OnDiskOptions, graph_to_fit, settle_first
from graphfcl.cli.options import GRAPH_HELP, BackendOptions, DataDir, Device, Seed, settings_from_options
from graphfcl.cli.run import FolderOptions
from graphfcl.cli.show import print_table, say, say_notes, tell
from graphfcl.defaults import MODEL_METHOD
from graphfcl.errors import InputError, counted

HERE = Path("-")  # standard output
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Output file, .parquet or .csv; - writes CSV to standard output.", allow_dash=True),
]


@dataclass(frozen=True)
class FitOptions:
    """What a model is told besides its method, before it is fitted."""

    way: Annotated[
        int,
        typer.Option(
            "--way", min=1, help="Number of new classes to expect at a time; training simulates such sessions."
        ),
    ] = 2
    shot: Annotated[
        int,
        typer.Option(
            "--shot", min=1, help="Number of labelled nodes to expect per new class; training simulates such sessions."
        ),
    ] = 5
    seed: Seed = 0
    max_loss: Annotated[
        float, typer.Option("--max-loss", help="Warn if a change costs older classes more balanced accuracy than this.")
    ] = 0.05
    standardise: Annotated[
        bool,
        typer.Option("--standardise/--no-standardise", help="Scale dense features to mean 0 and standard deviation 1."),
    ] = True


@answers
def fit(
    graph: Annotated[str, typer.Option("--graph", help=f"{GRAPH_HELP}.", autocompletion=graphs)],
    model: Annotated[Path, typer.Option("--model", help="Model folder to create.")],
    hide_classes: Annotated[
        str | None,
        typer.Option(
            "--hide-classes", help="Treat the nodes of these classes as unlabelled; separate names by commas."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            help="Method: a name from `graphfcl methods`, or your own as module:Class.",
            autocompletion=methods,
        ),
    ] = MODEL_METHOD,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the method; repeatable."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a fit that was interrupted.")] = False,
    *,
    options: FitOptions,
    device: Device = "auto",
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait while another process creates a model there.")
    ] = 0.0,
    data_dir: DataDir = None,
    large: FolderOptions,
    engine: BackendOptions,
) -> Answer:
    """Train a model on all labelled nodes of a graph and save it as a model folder."""
    from graphfcl.cli.run import requested_device
    from graphfcl.methods import method_from
    from graphfcl.methods.progress import ProgressBars
    from graphfcl.production import GraphClassifier, ModelFolder
    from graphfcl.production.graph.work_files import tidy_work

    found = method_from(method)
    hidden = [name.strip() for name in (hide_classes or "").split(",") if name.strip()]
    folder = ModelFolder(model)
    if resume and folder.was_just_fitted():
        folder.fit_checkpoints(resume=True).clear()
        say("The fit was done when it was stopped.")
        return changed(folder.load(), model)
    with ExitStack() as stack:
        stack.enter_context(tidy_work(large.work, folder.has_fit))
        keep = stack.enter_context(folder.creating(wait, write_cache=False))
        large.refuse_unusable_work()
        checkpoints = folder.fit_checkpoints(resume=resume)
        loaded = graph_to_fit(graph, data_dir, found.name, large, engine, model, checkpoints, stack)
        say_notes(loaded)
        given = settings_from_options(settings or [])
        classifier = GraphClassifier(found.name, given, **asdict(options), device=requested_device(device))
        with ProgressBars() as bars:
            classifier.fit(loaded, hide_classes=hidden, progress=bars, checkpoints=checkpoints)
        keep(classifier)
        checkpoints.clear()
    return changed(classifier, model)


@answers
def labels(
    model: Model,
    out: Out = None,
    nodes: Annotated[
        Path | None, typer.Option("--nodes", help="Table with the column node: only these nodes (default: all).")
    ] = None,
    version: Annotated[int | None, typer.Option("--version", help="Version to read (default: the newest).")] = None,
    method: OwnMethod = None,
    graph: GraphPlace = None,
    as_json: bool = False,
) -> Answer:
    """List the labels: node, class, part, who gave the label and when, and further columns stored with it."""
    from graphfcl.production import GraphClassifier
    from graphfcl.production.changes.user_tables import read_ids
    from graphfcl.production.changes.written_tables import write_table

    _refuse_nowhere(out, "labels", as_json=as_json)
    bring(method, model)
    classifier = GraphClassifier.load(model, version=version, use=OnDiskOptions(graph=graph).use())
    found = classifier.label_columns(None if nodes is None else read_ids(nodes, classifier.configuration.columns))
    counts = {"version": classifier.version, "nodes": len(set(found["node"].tolist())), "rows": len(found["node"])}
    if out is None:
        return Answer({**counts, "labels": Rows([_rows(found)])}, lambda: None)
    if out == HERE:
        _print_csv(iter([found]))
    else:
        write_table(out, found, "labels")
    line = f"{counts['nodes']:,} labelled nodes, {counts['rows']:,} rows."
    return Answer({**counts, "out": str(out)}, lambda: _say_written(line, out))


@answers
def predict(
    model: Model,
    out: Out = None,
    nodes: Annotated[
        Path | None, typer.Option("--nodes", help="Table with the column node: only these nodes (default: all).")
    ] = None,
    top: Annotated[
        int,
        typer.Option("--top", min=1, help="Number of top classes to output."),
    ] = 1,
    coverage: Annotated[
        float | None,
        typer.Option(
            "--coverage",
            help="Also output a set of classes that contains the true class with this probability, such as 0.9.",
        ),
    ] = None,
    version: Annotated[int | None, typer.Option("--version", help="Version to read (default: the newest).")] = None,
    method: OwnMethod = None,
    device: Device = "auto",
    *,
    on_disk: OnDiskOptions,
    as_json: bool = False,
) -> Answer:
    """Predict the classes of nodes: node, class, probability, unknown_score, unknown."""
    from graphfcl.cli.run import requested_device
    from graphfcl.production import GraphClassifier
    from graphfcl.production.changes.user_tables import read_ids
    from graphfcl.production.changes.written_tables import write_blocks

    _refuse_nowhere(out, "predictions", as_json=as_json)
    bring(method, model)
    classifier = GraphClassifier.load(model, version=version, device=requested_device(device), use=on_disk.use())
    asked = None if nodes is None else read_ids(nodes, classifier.configuration.columns)
    with redirect_stdout(sys.stderr) if out == HERE else nullcontext():
        settle_first(classifier)
    blocks = classifier.predictions_in_blocks(asked, coverage=coverage, top=top)
    known: dict[str, Any] = {"version": classifier.version, "classes": list(classifier.classes_)}
    if out is None:
        return Answer({**known, "predictions": Rows(_rows(block) for block in blocks)}, lambda: None)
    if out == HERE:
        counts = _print_csv(blocks, counted="unknown")
    else:
        counts = write_blocks(out, blocks, "predictions", "unknown")
    line = (
        f"{counted(counts[0], 'node')}, {counted(len(known['classes']), 'class')}, version {classifier.version}; "
        f"{counts[1]:,} {'looks' if counts[1] == 1 else 'look'} like none of them."
    )
    values = {**known, "nodes": counts[0], "unknown": counts[1], "out": str(out)}
    return Answer(values, lambda: _say_written(line, out))


@answers
def explain(
    node: Annotated[str, typer.Argument(help="Id of the node.")],
    model: Model,
    top: Annotated[int, typer.Option("--top", min=1, help="Number of classes, features and neighbours to show.")] = 5,
    method: OwnMethod = None,
    *,
    on_disk: OnDiskOptions,
) -> Answer:
    """Explain the prediction for a node: competing classes, and the features, hops and neighbours that decide."""
    from graphfcl.production import GraphClassifier

    bring(method, model)
    classifier = GraphClassifier.load(model, use=on_disk.use())
    settle_first(classifier)
    found = classifier.explain(node, top=top)
    return Answer(found, lambda: _print_explanation(found))


@answers
def history(folder: ModelArgument = None, model: ModelOption = None) -> Answer:
    """List all versions: what changed, when, from which nodes, and the accuracy on validation nodes."""
    from graphfcl.production import ModelFolder

    found = ModelFolder(one_model(folder, model, "history"))
    entries = found.history()

    def show() -> None:
        print_entries(entries)
        print_hint(found, entries)

    return Answer(entries, show)


VERBS = (
    fit, learn, labels, grow, predict, explain, history, rollback, prune, erase, unlearn, rename, merge, retire, shrink,
)  # fmt: skip


def _refuse_nowhere(out: Path | None, what: str, *, as_json: bool) -> None:
    """Refuse a place that cannot be written, or none at all, before a model is loaded."""
    from graphfcl.production.changes.written_tables import refuse_unwritable

    if out is None and not as_json:
        raise InputError(f"say where {what} go: --out FILE, --out - for CSV on standard output, or --json.")
    if out == HERE and as_json:
        raise InputError("--out - and --json both write to standard output: keep one of them.")
    if out != HERE:
        refuse_unwritable(out, what)


def _say_written(line: str, out: Path) -> None:
    tell(line) if out == HERE else say(f"{line} Wrote {out}.")


def _print_csv(blocks: Iterator[Mapping[str, Any]], counted: str | None = None) -> tuple[int, int]:
    """CSV on standard output; how many rows it has, and in how many the column ``counted`` is true."""
    from graphfcl.production.changes.written_tables import csv_texts

    rows = true = 0
    first = True
    for block in blocks:
        text = csv_texts(block)
        sys.stdout.write(text if first else text.partition("\n")[2])
        first = False
        rows += len(next(iter(block.values())))
        true += 0 if counted is None else int(block[counted].sum())
    sys.stdout.flush()
    return rows, true


def _rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns as rows of plain values."""
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*(v.tolist() for v in columns.values()), strict=True)]


def _print_explanation(found: dict[str, Any]) -> None:
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
    if any(n["adds"] for n in found["neighbours"]):  # the method uses which classes link to each other
        titles.append("its link adds")
        near = [[*row, f"{n['adds']:+.2f}"] for row, n in zip(near, found["neighbours"], strict=True)]
    print_table(titles, near, numbers=("share", "its link adds"))
