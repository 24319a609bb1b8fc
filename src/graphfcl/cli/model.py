"""Verbs that create or read a model: fit, labels, predict, explain, serve."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext, redirect_stdout
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

import graphfcl.cli.options as opts
import graphfcl.graph.folder as graph_folders
import graphfcl.methods as methods
import graphfcl.production as production
from graphfcl.cli.changes import changed, listed_ids
from graphfcl.cli.completion import method_names
from graphfcl.cli.on_disk import ComputeOptions, FolderOptions, ModelOptions, compute_scores
from graphfcl.cli.options import argument, option
from graphfcl.cli.output import Output, Rows, print_line, print_message, print_notes, print_table, with_json
from graphfcl.defaults import MODEL_METHOD
from graphfcl.errors import InputError, counted

STDOUT = Path("-")
IN_MEMORY = ""  # stands for the work folder of a fit in memory
Out = Annotated[Path | None, option("Output file, .parquet or .csv; - prints CSV.", allow_dash=True)]
OnlyNodes = Annotated[
    str | None, option("Table with the column node, a file or 'sql:SELECT ...', to select nodes (default: all).")
]
Version = Annotated[int | None, option("Version to read (default: the newest).")]


@dataclass(frozen=True)
class FitOptions:
    """Parameters of a model besides its method."""

    panel: ClassVar[str] = "Training"
    way: Annotated[
        int, option("Expected number of new classes at a time; training simulates such sessions.", min=1)
    ] = 2
    shot: Annotated[
        int, option("Expected number of labels per new class; training simulates such sessions.", min=1)
    ] = 5
    seed: opts.Seed = 0
    max_loss: Annotated[
        float,
        option("Warn if a change lowers the balanced accuracy of older classes by more than this share."),
    ] = 0.05
    standardise: Annotated[bool, option("Scale dense features to mean 0 and standard deviation 1.")] = True


@with_json
def fit(
    source: opts.GraphOptions,
    *,
    model: Annotated[Path, option("Model folder to create.")],
    hide_classes: Annotated[str | None, option("Classes to treat as unlabelled, separated by commas.")] = None,
    method: Annotated[
        str, option("Method: a name from `graphfcl methods`, or your own as module:Class.", method_names)
    ] = MODEL_METHOD,
    settings: opts.Settings = None,
    resume: Annotated[bool, option("Continue a fit that was interrupted.", flag="--resume")] = False,
    options: FitOptions,
    device: opts.Device = "auto",
    wait: Annotated[float, option("Seconds to wait while another process creates the model.", min=0)] = 0.0,
    large: FolderOptions,
) -> Output:
    """Train and validate a model on the labelled nodes of a graph, and save it as a model folder."""
    source.check()
    name = methods.method_from(method).name
    hidden = [each.strip() for each in (hide_classes or "").split(",") if each.strip()]
    folder = production.ModelFolder(model)
    if resume and folder.was_just_fitted():
        folder.fit_checkpoints(resume=True).clear()
        print_line("The model was already saved: there is nothing to resume.")
        return changed(folder.load(), model)
    with ExitStack() as stack:
        stack.enter_context(production.tidy_work(large.work, folder.has_fit))
        keep = stack.enter_context(folder.creating(wait, write_cache=False))
        large.refuse_unusable_work()
        checkpoints = folder.fit_checkpoints(resume=resume)
        in_folder = source.graph is not None and graph_folders.is_graph_folder(source.graph)
        at = _resumed(large, checkpoints) if in_folder else large
        loaded, _ = at.load_graph(source, name, stack, model / production.WORK)
        if in_folder:
            checkpoints.work = IN_MEMORY if loaded.work is None else str(loaded.work.absolute())
        print_notes(loaded)
        parameters = opts.settings_from_options(settings)
        classifier = production.GraphClassifier(
            name, parameters, **asdict(options), device=opts.requested_device(device)
        )
        with methods.ProgressBars() as bars:
            classifier.fit(loaded, hide_classes=hidden, progress=bars, checkpoints=checkpoints)
        keep(classifier)
        checkpoints.clear()
    return changed(classifier, model)


def _resumed(options: FolderOptions, checkpoints: "production.FitCheckpoints") -> FolderOptions:
    """Return the options with the work folder of the interrupted fit if this one continues it."""
    before = checkpoints.work_before()
    if before == IN_MEMORY and options.work is not None:
        raise InputError(
            f"the interrupted fit had its graph in memory: leave --work out, or delete {checkpoints.folder} to "
            "start again."
        )
    return replace(options, work=Path(before)) if before and options.work is None else options


@with_json
def labels(
    options: ModelOptions,
    out: Out = None,
    nodes: OnlyNodes = None,
    database: opts.Database = None,
    version: Version = None,
    as_json: bool = False,
) -> Output:
    """List the labels of a model: node, class, part, who gave the label and when, and further stored columns."""
    _check_output(out, "labels", as_json=as_json)
    (table,) = opts.tables_of(nodes, database=database)
    classifier = options.load(version=version)
    columns = classifier.label_columns(listed_ids(table, classifier))
    nodes_found, rows = len(set(columns["node"].tolist())), len(columns["node"])
    counts = {"version": classifier.version, "nodes": nodes_found, "rows": rows}
    if out is None:
        return Output({**counts, "labels": Rows([_rows(columns)])}, lambda: None)
    if out == STDOUT:
        _print_csv(iter([columns]))
    else:
        production.write_table(out, columns, "labels")
    line = f"{counted(nodes_found, 'labelled node')}, {counted(rows, 'row')}."
    return Output({**counts, "out": str(out)}, lambda: _say_written(line, out))


@with_json
def predict(
    options: ComputeOptions,
    out: Out = None,
    nodes: OnlyNodes = None,
    database: opts.Database = None,
    top: Annotated[int, option("Number of most likely classes to output.", min=1)] = 1,
    coverage: Annotated[float | None, option("Also output prediction sets with this coverage, such as 0.9.")] = None,
    version: Version = None,
    device: opts.Device = "auto",
    as_json: bool = False,
) -> Output:
    """Predict the classes of nodes.

    The output columns are node, class, probability, unknown_score and unknown. `--top` adds class_2, probability_2 and
    so on, `--coverage` adds set.
    """
    _check_output(out, "predictions", as_json=as_json)
    (table,) = opts.tables_of(nodes, database=database)
    classifier = options.load(version=version, device=device)
    ids = listed_ids(table, classifier)
    with redirect_stdout(sys.stderr) if out == STDOUT else nullcontext():
        compute_scores(classifier)
    blocks = classifier.predictions_in_blocks(ids, coverage=coverage, top=top)
    facts: dict[str, Any] = {"version": classifier.version, "classes": list(classifier.classes_)}
    if out is None:
        return Output({**facts, "predictions": Rows(_rows(block) for block in blocks)}, lambda: None)
    if out == STDOUT:
        count, unknown = _print_csv(blocks, counted="unknown")
    else:
        count, unknown = production.write_blocks(out, blocks, "predictions", "unknown")
    line = (
        f"{counted(count, 'node')}, {counted(len(facts['classes']), 'class')}, version {classifier.version}; "
        f"{unknown:,} {'looks' if unknown == 1 else 'look'} like none of them."
    )
    values = {**facts, "nodes": count, "unknown": unknown, "out": str(out)}
    return Output(values, lambda: _say_written(line, out))


@with_json
def explain(
    node: Annotated[str, argument("Id of the node.")],
    options: ComputeOptions,
    top: Annotated[int, option("Number of classes, features and neighbours to show.", min=1)] = 5,
) -> Output:
    """Explain the prediction for a node.

    It shows the competing classes, and the features, hops and neighbours that decide between them.
    """
    explanation = compute_scores(options.load()).explain(node, top=top)
    return Output(explanation, lambda: _print_explanation(explanation))


@opts.with_option_groups
def serve(
    options: ComputeOptions,
    host: Annotated[str, option("Address to listen on; 0.0.0.0 listens on all interfaces.")] = "127.0.0.1",
    port: Annotated[int, option("Port to listen on; 0 chooses a free one.", min=0, max=65535)] = 8765,
    token_file: Annotated[
        Path | None, option("File with the access token; it is created if missing (default: a new token).")
    ] = None,
    allow_host: Annotated[
        list[str] | None, option("Further host name under which the service may be called; repeatable.", metavar="HOST")
    ] = None,
    device: opts.Device = "auto",
) -> None:
    """Serve a model over HTTP, with a web page for labelling."""
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"`graphfcl serve` needs {' and '.join(missing)}: install them with `pip install 'graphfcl[serve]'`."
        )
    folder = options.folder()
    from graphfcl.service.serving import Address, serve

    address = Address(host, port, tuple(allow_host or ()))
    if folder.exists():
        with redirect_stdout(sys.stderr):  # the first line of standard output must be the address
            compute_scores(folder.load(device=opts.requested_device(device)))
    serve(options.model, address, token_file, device=opts.requested_device(device), use=options.folder_use())


def _check_output(out: Path | None, what: str, *, as_json: bool) -> None:
    """Refuse an output that is missing or cannot be written, before a model is loaded."""
    if out is None and not as_json:
        raise InputError(f"there is no output for {what}: add --out FILE, --out - for CSV, or --json.")
    if out == STDOUT and as_json:
        raise InputError("--out - and --json both write to standard output: keep one of them.")
    if out != STDOUT:
        production.refuse_unwritable(out, what)


def _say_written(line: str, out: Path) -> None:
    print_message(line) if out == STDOUT else print_line(f"{line} Wrote {out}.")


def _print_csv(blocks: Iterator[Mapping[str, Any]], counted: str | None = None) -> tuple[int, int]:
    """Print CSV. Return the number of rows, and of those in which the column ``counted`` is true."""
    rows = true = 0
    for place, block in enumerate(blocks):
        text = production.csv_bytes(block).decode()
        sys.stdout.write(text.partition("\n")[2] if place else text)
        rows += len(next(iter(block.values())))
        true += 0 if counted is None else int(block[counted].sum())
    sys.stdout.flush()
    return rows, true


def _rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns as rows of plain values."""
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*(v.tolist() for v in columns.values()), strict=True)]


def _print_explanation(explanation: dict[str, Any]) -> None:
    rows = [(c["class"], f"{c['probability']:.3f}", f"{c['by_itself']:.3f}") for c in explanation["classes"]]
    print_table(("class", "probability", "before smoothing"), rows, numbers=("probability", "before smoothing"))
    first, second = (explanation["classes"][place]["class"] for place in (0, min(1, len(rows) - 1)))
    print_line(f"Evidence for {first} (+) and for {second} (-):")
    for title, key in (("block", "blocks"), ("own feature", "features"), ("node around", "around")):
        print_table(
            (title, "adds"), [(name, f"{value:+.3g}") for name, value in explanation[key].items()], numbers=("adds",)
        )
    titles = ["neighbour", "share", f"its own probability of {first}"]
    neighbours = [[n["node"], f"{n['share']:.3f}", f"{n['probability']:.3f}"] for n in explanation["neighbours"]]
    if any(n["adds"] for n in explanation["neighbours"]):  # the method uses which classes link to each other
        titles.append("link adds")
        neighbours = [[*row, f"{n['adds']:+.2f}"] for row, n in zip(neighbours, explanation["neighbours"], strict=True)]
    print_table(titles, neighbours, numbers=("share", "link adds"))
