"""Verbs for the versions of a model: history, rollback, prune, erase, info and refit."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import graphfcl.cli.options as opts
import graphfcl.graph as graphs
import graphfcl.graph.folder as graph_folders
import graphfcl.methods as methods
import graphfcl.production as production
from graphfcl.cli.changes import (
    NodeTable,
    changed,
    effect_json,
    entries_of,
    print_effect,
    print_entries,
    would_change,
)
from graphfcl.cli.completion import graph_names
from graphfcl.cli.on_disk import ComputeOptions, ModelOptions, import_method
from graphfcl.cli.options import argument, option
from graphfcl.cli.output import Output, print_line, print_notes, print_sentence, print_table, with_json
from graphfcl.errors import InputError, counted
from graphfcl.production.labels.history import percent, short_time


def _one_model(folder: Path | None, model: Path | None, verb: str) -> Path:
    """The model folder of a verb that takes it as an argument or with --model."""
    named = [path for path in (folder, model) if path is not None]
    if len(named) != 1:
        fix = "leave --model out" if named else f"as in `graphfcl {verb} my_model`"
        raise InputError(f"name one model: {fix}.")
    return named[0]


@with_json
def history(
    folder: opts.ModelArgument = None,
    model: opts.ModelOption = None,
    class_name: Annotated[
        str | None, option("Show the labels and the recall of this class in each version.", flag="--class")
    ] = None,
) -> Output:
    """List all versions of a model.

    For each version it shows the change, its time, the labels and recall of classes, and the accuracy.
    """
    place = production.ModelFolder(_one_model(folder, model, "history"))
    if class_name is not None:
        points = place.load().class_history(class_name)
        return Output([point.as_json() for point in points], lambda: _print_curve(points))
    entries = place.history()

    def show() -> None:
        print_entries(entries)
        _print_hint(place, entries)

    return Output(entries, show)


def _print_curve(points: "Sequence[production.CurvePoint]") -> None:
    """Print the number of labels and the recall of a class by version."""
    rows = [(each.version, short_time(each.when), f"{each.labels:,}", percent(each.recall)) for each in points]
    columns = ("version", "when", "labels", "recall, %")
    print_table(columns, rows, numbers=(columns[0], *columns[2:]))


def _print_gain(classes: "Sequence[production.ClassCard]") -> None:
    from graphfcl.production.model.card import gain_text

    text = gain_text(classes)
    if text:
        print_line(text)


def _print_hint(folder: "production.ModelFolder", entries: Sequence[dict[str, Any]]) -> None:
    """Print which class would gain most from labels, and whether a refit is due. Ignore a damaged folder here."""
    from graphfcl.production.model.info import signs_in_history, verdict

    with suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = folder.load()
        _print_gain(model.class_table())
        signs = signs_in_history(entries, model.configuration)
        if any(sign.over for sign in signs):
            print_sentence(f"{verdict(signs)}: `graphfcl info --model {folder.path}` shows the details")


@with_json
def rollback(
    version: Annotated[int, argument("Version to restore.")],
    options: ComputeOptions,
    wait: opts.Wait = 60.0,
    dry_run: opts.DryRun = False,
) -> Output:
    """Restore an old version as the newest one."""
    folder = options.folder()
    if dry_run:
        return would_change(folder.dry_rollback(version), options.model)
    number = folder.rollback(version, wait=wait)
    answer = changed(folder.load(number), options.model)
    return replace(answer, show=lambda: print_line(f"Version {number} of {options.model} equals version {version}."))


@with_json
def prune(
    model: opts.Model,
    keep: Annotated[int, option("Number of newest versions to keep.", min=1)],
    wait: opts.Wait = 60.0,
    dry_run: opts.DryRun = False,
) -> Output:
    """Delete old versions and the files that only they need."""
    done = production.ModelFolder(model).prune(keep, wait=wait, dry_run=dry_run)
    kept, removed = list(done.kept), list(done.versions)
    line = (
        f"{'Would remove' if dry_run else 'Removed'} {len(removed):,} versions of {model} and "
        f"{done.freed / 1e6:,.1f} MB; versions {kept[0]} to {kept[-1]} are kept."
    )
    values = {"model": str(model), "removed": removed, "kept": kept, "bytes_freed": done.freed}
    return Output({**values, **({"dry_run": True} if dry_run else {})}, lambda: print_line(line))


@with_json
def erase(
    nodes: NodeTable,
    options: ModelOptions,
    database: opts.Database = None,
    device: opts.Device = "auto",
    wait: opts.Wait = 60.0,
    dry_run: opts.DryRun = False,
) -> Output:
    """Delete nodes and everything stored about them from every version.

    This cannot be undone.
    """
    (table,) = opts.tables_of(nodes, database=database)
    folder, columns = options.folder(), None
    with suppress(InputError):  # erase reports a damaged folder itself
        columns = folder.load().configuration.columns
    ids, device = production.read_ids(table, columns), opts.usable_device(device)
    done = folder.erase(ids, wait=wait, device=device, dry_run=dry_run)
    remains = _remains(done)

    def show() -> None:
        where = f"from {_versions(done.versions)} of {options.model}, and the cache"
        did = "Would erase" if dry_run else "Erased"
        print_line(f"{did} {counted(done.nodes, 'node')} ({_labelled(done.labels)}) {where}.")
        verb = "would be" if dry_run else "is"
        print_line(f"Version {done.version} {verb} version {done.version - 1} without these nodes.")
        for sentence in remains:
            print_line(sentence)

    values = {"model": str(options.model), **asdict(done), "remains": remains}
    return Output({**values, **({"dry_run": True} if dry_run else {})}, show)


def _remains(done: "production.Erased") -> list[str]:
    """What remains after an erasure, in sentences."""
    sentences = [f"{done.method}: its class statistics are as if these nodes had never existed."]
    if done.remembering:
        sentences = [
            f"{done.method} cannot unlearn single labels: the labels of these nodes still influence the weights of "
            f"{_versions(done.remembering)}."
        ]
    if done.seen:
        sentences.append(
            f"`graphfcl fit` used {done.seen:,} of them, {_labelled(done.trained)}: their influence on weights, "
            "scaling and selected settings remains. To remove it, fit a new model without them."
        )
    if done.in_graph_folder:
        sentences.append(
            f"The graph folder still contains ids and features of {done.in_graph_folder:,} of them: import the graph "
            "without them, run `graphfcl refit --graph NEW --anyway` and `graphfcl prune --keep 1`, and delete the old "
            "folder."
        )
    return sentences


def _labelled(count: int) -> str:
    return f"{f'{count:,}' if count else 'none'} of them with a label"


def _versions(numbers: Sequence[int]) -> str:
    """Format version numbers: version 4; versions 1, 3; versions 1 to 5."""
    if not numbers:
        return "no version"
    if len(numbers) == 1:
        return f"version {numbers[0]}"
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"versions {numbers[0]} to {numbers[-1]}"
    return f"versions {', '.join(map(str, numbers))}"


@with_json
def info(
    folder: opts.ModelArgument = None,
    model: opts.ModelOption = None,
    full: Annotated[bool, option("Also count unknown nodes, which may need a forward pass.", flag="--full")] = False,
    markdown: Annotated[bool, option("Print the model card as Markdown.", flag="--markdown")] = False,
    method: opts.OwnMethod = None,
    as_json: bool = False,
) -> Output:
    """Show a model card.

    It lists classes, labels, accuracy, data, settings, version and size, and says whether a refit is due.
    """
    place = _one_model(folder, model, "info")
    if markdown and as_json:
        raise InputError("--markdown and --json exclude each other: keep one of them.")
    import_method(method, place)
    model_folder = production.ModelFolder(place)
    card = model_folder.card()
    if full:
        card = replace(card, info=model_folder.info(full=True))

    def show() -> None:
        if not markdown:
            _print_card(card, place)
            return
        for line in card.as_markdown(place.resolve().name).split("\n"):
            print_line(line)

    return Output(card.as_json(), show)


def _print_card(card: "production.ModelCard", model: Path) -> None:
    print_table(("model", str(model)), card.rows())
    print_table(production.CLASS_COLUMNS, card.class_rows(), numbers=production.CLASS_COLUMNS[1:5])
    _print_gain(card.classes)
    signs = [(sign.what, sign.figure, sign.limit, "over" if sign.over else "") for sign in card.info.signs]
    print_table(("sign of age", "value", "limit", ""), signs)
    print_sentence(card.info.verdict)


@dataclass(frozen=True)
class RefitGraph(opts.GraphOptions):
    """A graph that replaces the model's."""

    graph: Annotated[
        str | None, option("Use this graph, with the same node ids (default: the model's graph).", graph_names)
    ] = None


@with_json
def refit(
    model: opts.Model,
    source: RefitGraph,
    anyway: Annotated[bool, option("Replace the model even if the new one is not better.", flag="--anyway")] = False,
    method: opts.OwnMethod = None,
    device: opts.Device = "auto",
    wait: opts.Wait = 60.0,
    dry_run: opts.DryRun = False,
) -> Output:
    """Train a model again on its current graph and labels.

    The new model replaces the current one only if it is better on held-out nodes.
    """
    import_method(method, model)
    folder = production.ModelFolder(model)
    before = folder.current()
    loaded: graphs.AnyGraph | None = None
    if source.graph and graph_folders.is_graph_folder(source.graph) and folder.load().has_graph_folder:
        source.check()
        loaded = production.graph_at(Path(source.graph))
    elif source.used_flags():
        loaded, _ = source.load(folder.load().configuration.columns)
        print_notes(loaded)
    device, results, effect = opts.usable_device(device), [], None
    with methods.ProgressBars() as bars:
        if dry_run:
            refit_copy = partial(production.GraphClassifier.refit, graph=loaded, anyway=anyway, progress=bars)
            effect = folder.dry_run(lambda classifier: results.append(refit_copy(classifier)), device=device)
        else:
            results.append(folder.refit(loaded, anyway=anyway, progress=bars, device=device, wait=wait))
    result, number = results[0], folder.current()

    def show() -> None:
        _print_comparison(result.comparison)
        print_sentence(result.why)
        if not result.taken:
            print_line(f"Nothing was changed: {model} stays at version {before}. Use --anyway to replace it.")
        elif effect is not None:
            print_effect(effect, model)
        else:
            print_line(f"It is version {number} of {model}.")
            print_entries(entries_of(folder.history(), number))

    effect_values = {} if effect is None else effect_json(effect)
    return Output({"model": str(model), "version": number, **result.as_json(), **effect_values}, show)


def _print_comparison(comparison: "production.Comparison") -> None:
    """Print the recall of each class before and after."""
    rows = [
        (each.name, f"{100 * each.before:.1f}", f"{100 * each.after:.1f}", f"{each.nodes:,}")
        for each in comparison.classes
    ]
    columns = ("class", "recall before, %", "after, %", "held-out nodes")
    print_table(columns, rows, numbers=columns[1:])
