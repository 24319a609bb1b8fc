"""Verbs that change a model: learn, grow, shrink, unlearn, rename, merge, retire."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import graphfcl.production as production
from graphfcl.cli.completion import choices
from graphfcl.cli.on_disk import ComputeOptions, ModelOptions
from graphfcl.cli.options import Device, Wait, argument, option, requested_device
from graphfcl.cli.output import Answer, answers, print_table, say, tell
from graphfcl.errors import InputError
from graphfcl.production.labels.class_curves import labels_text
from graphfcl.production.labels.history import change_notes, change_text, percent, short_time

NodeTable = Annotated[Path, argument("Table with the column node.")]


@dataclass(frozen=True)
class ChangeOptions(ComputeOptions):
    """A model folder that is to be changed."""

    device: Device = "auto"
    wait: Wait = 60.0

    def change(self, apply: Callable[["production.GraphClassifier"], object]) -> Answer:
        """Change the newest version into the next one, which is durable before the answer is printed."""
        with self.folder().editing(self.wait, device=requested_device(self.device), write_cache=False) as classifier:
            apply(classifier)
        return changed(classifier, self.model)


def listed_ids(table: Path | None, classifier: "production.GraphClassifier") -> Any:
    """The ids in a user's table; None without a table."""
    return None if table is None else production.read_ids(table, classifier.configuration.columns)


def _note(text: str) -> None:
    tell(f"note: {text}")


@answers
def learn(
    supports: Annotated[Path, argument("Table with the columns node and class; by, when and others are stored too.")],
    options: ChangeOptions,
    on_conflict: Annotated[
        str, option("If a node has another label: refuse, keep or replace it.", choices("refuse", "keep", "replace"))
    ] = "refuse",
) -> Answer:
    """Learn new classes, or more labelled nodes of known classes."""

    def apply(classifier: "production.GraphClassifier") -> None:
        columns, graph = classifier.configuration.columns, classifier.graph_
        listed = production.read_supports(supports, columns, graph=graph, classes=classifier.classes_, tell=_note)
        classifier.learn_listed(listed, on_conflict=on_conflict)

    return options.change(apply)


@answers
def grow(
    options: ChangeOptions,
    nodes: Annotated[Path | None, option("Table of new nodes: the column node, and text or feature columns.")] = None,
    edges: Annotated[Path | None, option("Table of new edges: columns source, target, optionally weight.")] = None,
    on_existing: Annotated[
        str,
        option(
            "If a node or edge is there with other features or weight: refuse, skip or update it.",
            choices("refuse", "skip", "update"),
        ),
    ] = "refuse",
) -> Answer:
    """Add nodes and edges to the model's graph, or update them."""
    if nodes is None and edges is None:
        raise InputError("there is nothing to add: give --nodes, --edges or both.")

    def apply(classifier: "production.GraphClassifier") -> None:
        columns = classifier.configuration.columns
        new = None if nodes is None else production.read_nodes(nodes, classifier.graph_, columns, _note)
        ends = None if edges is None else production.read_edges(edges, columns)
        classifier.grow(nodes=new, edges=ends, on_existing=on_existing)

    return options.change(apply)


@answers
def shrink(
    options: ChangeOptions,
    nodes: Annotated[Path | None, option("Table of nodes to remove, with the column node.")] = None,
    edges: Annotated[Path | None, option("Table of edges to remove, with the columns source and target.")] = None,
) -> Answer:
    """Remove nodes and edges, and what was learned from them as far as the method allows."""
    if nodes is None and edges is None:
        raise InputError("there is nothing to remove: give --nodes, --edges or both.")

    def apply(classifier: "production.GraphClassifier") -> None:
        gone = None if edges is None else production.read_edges(edges, classifier.configuration.columns)[:2]
        classifier.shrink(nodes=listed_ids(nodes, classifier), edges=gone)

    return options.change(apply)


@answers
def unlearn(nodes: NodeTable, options: ChangeOptions) -> Answer:
    """Remove the labels of some nodes."""
    return options.change(lambda classifier: classifier.unlearn(listed_ids(nodes, classifier)))


@answers
def rename(
    old: Annotated[str, argument("Class to rename.")],
    new: Annotated[str, argument("Its new name.")],
    options: ModelOptions,
    wait: Wait = 60.0,
) -> Answer:
    """Rename a class."""
    with options.folder().editing(wait, device="cpu", write_cache=False) as classifier:
        classifier.rename(old, new)
    return changed(classifier, options.model)


@answers
def merge(
    source: Annotated[str, argument("Class that disappears.")],
    into: Annotated[str, argument("Class that gets its nodes.")],
    options: ChangeOptions,
) -> Answer:
    """Merge one class into another."""
    return options.change(lambda classifier: classifier.merge(source, into))


@answers
def retire(
    name: Annotated[str, argument("Class to retire; its nodes lose their label.")], options: ChangeOptions
) -> Answer:
    """Stop predicting a class."""
    return options.change(lambda classifier: classifier.retire(name))


def changed(classifier: "production.GraphClassifier", model: Path) -> Answer:
    """The new version of a model and its changes."""
    entries = entries_of(classifier.history, classifier.version)

    def show() -> None:
        say(f"{classifier!r} is version {classifier.version} of {model}.")
        print_entries(entries)

    version, classes = classifier.version, list(classifier.classes_)
    return Answer({"model": str(model), "version": version, "classes": classes, "changes": entries}, show)


def entries_of(history: Sequence[dict[str, Any]], version: int | None) -> list[dict[str, Any]]:
    """The entries of one version."""
    return [entry for entry in history if entry["version"] == version]


def print_entries(entries: Sequence[dict[str, Any]]) -> None:
    """Print entries of the history as a table, with their notes and warnings."""
    accuracies = [entry.get("accuracy") or {} for entry in entries]
    table = {
        "version": [entry["version"] for entry in entries],
        "when": [short_time(entry["when"]) for entry in entries],
        "what": [f"{change_text(entry)}{' (pruned)' if entry.get('pruned') else ''}" for entry in entries],
        "labels: recall, %": [labels_text(entry) for entry in entries],
        "validation, %": [percent(each.get("validation")) for each in accuracies],
        "learned, leave-one-out, %": [percent(each.get("leave_one_out")) for each in accuracies],
    }
    table = {name: column for name, column in table.items() if any(column)}
    print_table(tuple(table), zip(*table.values(), strict=True), numbers=("version", *list(table)[-2:]))
    for entry in entries:
        for note in change_notes(entry):
            say(f"note, version {entry['version']}: {note}")
        if "warning" in entry:
            say(f"warning, version {entry['version']}: {entry['warning']}.")
