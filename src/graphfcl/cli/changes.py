"""Verbs that change a model: learn, grow, shrink, unlearn, rename, merge, retire."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import graphfcl.methods as methods
import graphfcl.production as production
from graphfcl.cli.completion import choices
from graphfcl.cli.on_disk import ComputeOptions, ModelOptions
from graphfcl.cli.options import (
    Database,
    Device,
    DryRun,
    OptionGroup,
    Wait,
    argument,
    option,
    requested_device,
    tables_of,
)
from graphfcl.cli.output import Output, print_line, print_message, print_table, with_json
from graphfcl.errors import InputError, counted
from graphfcl.production.labels.class_curves import labels_text
from graphfcl.production.labels.history import change_notes, change_text, percent, short_time

MOVES_SHOWN = 5  # pairs of classes between which nodes move, in a dry run
NodeTable = Annotated[str, argument("Table with the column node, a file or 'sql:SELECT ...'.")]


@dataclass(frozen=True)
class ChangeOptions(ComputeOptions):
    """Options of commands that change a model."""

    panel: ClassVar[str] = "Change"
    device: Device = "auto"
    wait: Wait = 60.0
    max_loss: Annotated[
        float | None,
        option(
            "Refuse the change if known classes lose more than this share of balanced accuracy; 0.02 is 2 points.",
            min=0,
            max=1,
        ),
    ] = None
    dry_run: DryRun = False

    def change(self, apply: Callable[["production.GraphClassifier"], object]) -> Output:
        """Apply a change to the newest version. The new version is written durably before anything is printed."""

        def guarded(classifier: "production.GraphClassifier") -> None:
            if self.max_loss is None:
                apply(classifier)
                return
            with methods.ProgressBars() as bars, classifier.guarded(self.max_loss, progress=bars):
                apply(classifier)

        return make_change(self, guarded, wait=self.wait, device=requested_device(self.device), dry_run=self.dry_run)


@dataclass(frozen=True)
class NewClassOptions(OptionGroup):
    """Which new classes a table of labels may contain."""

    panel: ClassVar[str] = "Change"
    new_class: Annotated[
        list[str] | None,
        option(
            "Allow only this new class, even if its name resembles that of a known class; repeatable.", metavar="CLASS"
        ),
    ] = None
    no_new_classes: Annotated[bool, option("Refuse labels of new classes.", flag="--no-new-classes")] = False

    def allowed(self) -> "bool | list[str]":
        """The value of ``new_classes`` of :meth:`GraphClassifier.learn`."""
        if self.new_class and self.no_new_classes:
            raise InputError("--no-new-classes and --new-class exclude each other: keep one of them.")
        return self.new_class or not self.no_new_classes


def make_change(
    options: ModelOptions,
    apply: Callable[["production.GraphClassifier"], object],
    *,
    wait: float,
    dry_run: bool,
    device: str = "cpu",
) -> Output:
    """Apply a change to a model, or with ``dry_run`` only show its effect."""
    folder = options.folder()
    if dry_run:
        return would_change(folder.dry_run(apply, device=device), options.model)
    with folder.editing(wait, device=device, write_cache=False) as classifier:
        apply(classifier)
    return changed(classifier, options.model)


def listed_ids(table: Any, classifier: "production.GraphClassifier") -> Any:
    """Read the ids in a user's table; None without a table."""
    return None if table is None else production.read_ids(table, classifier.configuration.columns)


def _note(text: str) -> None:
    print_message(f"note: {text}")


@with_json
def learn(
    supports: Annotated[
        str,
        argument(
            "Table with the columns node and class, a file or 'sql:SELECT ...'; further columns, such as by and when, "
            "are stored with the labels."
        ),
    ],
    options: ChangeOptions,
    database: Database = None,
    on_conflict: Annotated[
        str,
        option(
            "If a node already has another label: refuse the table, keep or replace the label.",
            choices("refuse", "keep", "replace"),
        ),
    ] = "refuse",
    *,
    new: NewClassOptions,
) -> Output:
    """Learn new or known classes from labelled nodes."""
    allowed = new.allowed()
    (table,) = tables_of(supports, database=database)

    def apply(classifier: "production.GraphClassifier") -> None:
        columns, graph = classifier.configuration.columns, classifier.graph_
        listed = production.read_supports(table, columns, graph=graph, classes=classifier.classes_, tell=_note)
        classifier.learn_listed(listed, on_conflict=on_conflict, new_classes=allowed)

    return options.change(apply)


@with_json
def grow(
    options: ChangeOptions,
    nodes: Annotated[str | None, option("Table of new nodes: the column node, and text or feature columns.")] = None,
    edges: Annotated[str | None, option("Table of new edges: columns source, target, optionally weight.")] = None,
    database: Database = None,
    on_existing: Annotated[
        str,
        option(
            "If a node or edge exists with other features or another weight: refuse, skip or update it.",
            choices("refuse", "skip", "update"),
        ),
    ] = "refuse",
    unknown_ends: Annotated[
        str | None,
        option(
            "If an edge ends at an unknown node: refuse or skip it (default: as in fit).", choices("refuse", "skip")
        ),
    ] = None,
) -> Output:
    """Add or update nodes and edges of the model's graph."""
    if nodes is None and edges is None:
        raise InputError("there is nothing to add: give --nodes, --edges or both.")
    node_table, edge_table = tables_of(nodes, edges, database=database)

    def apply(classifier: "production.GraphClassifier") -> None:
        columns = classifier.configuration.columns
        new = None if nodes is None else production.read_nodes(node_table, classifier.graph_, columns, _note)
        ends = None if edges is None else production.read_edges(edge_table, columns)
        classifier.grow(nodes=new, edges=ends, on_existing=on_existing, unknown_ends=unknown_ends)

    return options.change(apply)


@with_json
def shrink(
    options: ChangeOptions,
    nodes: Annotated[str | None, option("Table of nodes to remove, with the column node.")] = None,
    edges: Annotated[str | None, option("Table of edges to remove, with the columns source and target.")] = None,
    database: Database = None,
) -> Output:
    """Remove nodes and edges from the model's graph.

    What was learned from them is removed as far as the method allows.
    """
    if nodes is None and edges is None:
        raise InputError("there is nothing to remove: give --nodes, --edges or both.")
    node_table, edge_table = tables_of(nodes, edges, database=database)

    def apply(classifier: "production.GraphClassifier") -> None:
        gone = None if edges is None else production.read_edges(edge_table, classifier.configuration.columns)[:2]
        classifier.shrink(nodes=listed_ids(node_table, classifier), edges=gone)

    return options.change(apply)


@with_json
def unlearn(nodes: NodeTable, options: ChangeOptions, database: Database = None) -> Output:
    """Remove the labels of some nodes."""
    (table,) = tables_of(nodes, database=database)
    return options.change(lambda classifier: classifier.unlearn(listed_ids(table, classifier)))


@with_json
def rename(
    old: Annotated[str, argument("Class to rename.")],
    new: Annotated[str, argument("New name of the class.")],
    options: ModelOptions,
    wait: Wait = 60.0,
    dry_run: DryRun = False,
) -> Output:
    """Rename a class."""
    return make_change(options, lambda classifier: classifier.rename(old, new), wait=wait, dry_run=dry_run)


@with_json
def merge(
    source: Annotated[str, argument("Class to merge; it disappears.")],
    into: Annotated[str, argument("Class that receives its nodes.")],
    options: ChangeOptions,
) -> Output:
    """Merge one class into another."""
    return options.change(lambda classifier: classifier.merge(source, into))


@with_json
def retire(
    name: Annotated[str, argument("Class to retire; its nodes lose their label.")], options: ChangeOptions
) -> Output:
    """Stop predicting a class."""
    return options.change(lambda classifier: classifier.retire(name))


def changed(classifier: "production.GraphClassifier", model: Path) -> Output:
    """The output after a change: the new version of a model and its changes."""
    entries = entries_of(classifier.history, classifier.version)

    def show() -> None:
        print_line(f"{classifier!r} is version {classifier.version} of {model}.")
        print_entries(entries)

    version, classes = classifier.version, list(classifier.classes_)
    return Output({"model": str(model), "version": version, "classes": classes, "changes": entries}, show)


def would_change(effect: "production.Effect", model: Path) -> Output:
    """The output of a dry run."""
    plain = {"version": effect.version, "classes": list(effect.classes), "changes": list(effect.changes)}
    return Output({"model": str(model), **plain, **effect_json(effect)}, lambda: print_effect(effect, model))


def effect_json(effect: "production.Effect") -> dict[str, Any]:
    """The keys that ``--json`` adds in a dry run."""
    values = {key: value for key, value in asdict(effect).items() if key not in ("version", "classes", "changes")}
    return {"dry_run": True, "effect": {**values, "nodes_changed": effect.nodes_changed}}


def print_effect(effect: "production.Effect", model: Path) -> None:
    """Print changes that were not made, and their effect."""
    print_line(f"Dry run: {model} stays at version {effect.version}.")
    print_entries(effect.changes)
    for kind, names in (("New", effect.new_classes), ("Gone", effect.gone_classes)):
        if names:
            print_line(f"{kind} {'class' if len(names) == 1 else 'classes'}: {', '.join(map(str, names))}.")
    accuracies = effect.accuracy_before, effect.accuracy_after
    for what, where in (("validation", "validation nodes"), ("leave_one_out", "supports of learned classes")):
        before, after = (each.get(what) for each in accuracies)
        if before is not None or after is not None:
            print_line(f"Balanced accuracy on {where}, %: {percent(before)} before, {percent(after)} after.")
    moves = [f"{each.before} → {each.after} {each.nodes:,}" for each in effect.moves[:MOVES_SHOWN]]
    more = [f"and {len(effect.moves) - MOVES_SHOWN} more"] if len(effect.moves) > MOVES_SHOWN else []
    listed = f": {', '.join([*moves, *more])}" if moves else ""
    print_line(f"{effect.nodes_changed:,} of {counted(effect.nodes, 'node')} change class{listed}.")


def entries_of(history: Sequence[dict[str, Any]], version: int | None) -> list[dict[str, Any]]:
    """The entries of one version in a history."""
    return [entry for entry in history if entry["version"] == version]


def print_entries(entries: Sequence[dict[str, Any]]) -> None:
    """Print entries of the history as a table, with their notes and warnings."""
    accuracies = [entry.get("accuracy") or {} for entry in entries]
    table = {
        "version": [entry["version"] or "" for entry in entries],
        "when": [short_time(entry["when"]) for entry in entries],
        "what": [f"{change_text(entry)}{' (pruned)' if entry.get('pruned') else ''}" for entry in entries],
        "labels: recall, %": [labels_text(entry) for entry in entries],
        "validation, %": [percent(each.get("validation")) for each in accuracies],
        "learned, leave-one-out, %": [percent(each.get("leave_one_out")) for each in accuracies],
    }
    table = {name: column for name, column in table.items() if any(column)}
    print_table(tuple(table), zip(*table.values(), strict=True), numbers=("version", *list(table)[-2:]))
    for entry in entries:
        of_version = f", version {entry['version']}" if entry["version"] else ""
        for note in change_notes(entry):
            print_line(f"note{of_version}: {note}")
        if "warning" in entry:
            print_line(f"warning{of_version}: {entry['warning']}.")
