"""Verbs of teaching: what to label next, and groups that have no name yet."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphfcl.cli.answer import Answer, answers
from graphfcl.cli.changes import Model, OwnMethod, Wait, bring, changed, changing
from graphfcl.cli.completion import choices, graphs, models
from graphfcl.cli.on_disk import OnDiskOptions, OnDiskResources, settle_first
from graphfcl.cli.options import DataDir, Device
from graphfcl.cli.show import print_table, say, say_notes
from graphfcl.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphfcl.production import GraphClassifier
    from graphfcl.production.graph.place import FolderUse
    from graphfcl.production.labelling.groups import Group
    from graphfcl.production.labelling.suggestions import Suggestion

NOTHING_UNKNOWN = "No group to name: too few nodes without a label look like none of the known classes."
DrawingSeed = Annotated[int, typer.Option("--seed", min=0, help="Random seed; the same seed gives the same result.")]
ONE_OF_TWO = "give either --model, a folder, or --graph, of a graph that has no model yet."
NOTHING_TO_ASK = "No node was named: every node has a label, or the strategy found none that is worth one."
SHOWN = 20  # suggestions that are printed


@answers
def suggest(
    model: Annotated[
        Path | None,
        typer.Option("--model", help="Model folder.", show_default=False, autocompletion=models),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            help="Graph without a model: a name from `data list` or a path; with --model: new place of its graph "
            "folder, if it was moved.",
            autocompletion=graphs,
        ),
    ] = None,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Maximum number of nodes to suggest.")] = 20,
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            help="Strategy: auto, typical, uncertain, unknown, random, or your own as module:Class.",
            autocompletion=choices("auto", "typical", "uncertain", "unknown", "random"),
        ),
    ] = "auto",
    out: Annotated[
        Path | None, typer.Option("--out", help="Output file, .csv or .parquet, with an empty column class to fill in.")
    ] = None,
    seed: DrawingSeed = 0,
    method: OwnMethod = None,
    device: Device = "auto",
    data_dir: DataDir = None,
    *,
    on_disk: OnDiskResources,
) -> Answer:
    """Suggest nodes to label next, with reasons; fill in the column class and pass the file to `graphfcl learn`."""
    from graphfcl.active import strategy_from
    from graphfcl.production.changes.written_tables import refuse_unwritable

    _refuse_unused(model, graph, method, device, data_dir, on_disk)
    refuse_unwritable(out, "suggestions")
    name = strategy_from(strategy).name
    found: Sequence[Suggestion]
    if model is None:
        found = _suggested(graph or "", data_dir, budget, name, seed)
    else:
        classifier = _loaded(model, method, device, on_disk.use_at(None if graph is None else Path(graph)))
        if graph is not None and not classifier.has_graph_folder:
            raise InputError(ONE_OF_TWO)
        found = classifier.suggest(budget, strategy=name, seed=seed)
    if out is not None:
        from graphfcl.production.changes.written_tables import write_table
        from graphfcl.production.labelling.suggestions import suggestion_table

        write_table(out, suggestion_table(found), "suggestions")

    def show() -> None:
        _print_suggestions(found)
        if out is not None:
            say(f"Wrote {len(found):,} nodes to {out}: fill in the column class, and give it to `graphfcl learn`.")

    return Answer([each.as_json() for each in found], show)


def _loaded(model: Path, method: str | None, device: str, use: "FolderUse") -> "GraphClassifier":
    """The newest version, with answers about all nodes."""
    from graphfcl.cli.run import requested_device
    from graphfcl.production import GraphClassifier

    bring(method, model)
    classifier = GraphClassifier.load(model, device=requested_device(device), use=use)
    settle_first(classifier)
    return classifier


def _suggested(graph: str, data_dir: Path | None, budget: int, strategy: str, seed: int) -> "Sequence[Suggestion]":
    """Without a model."""
    from graphfcl.datasets import load_dataset
    from graphfcl.production.labelling.suggestions import suggest_for_graph

    loaded, _ = load_dataset(graph, data_dir=data_dir)
    say_notes(loaded)
    return suggest_for_graph(loaded, budget, strategy=strategy, seed=seed)


@answers
def groups(
    model: Model,
    count: Annotated[int, typer.Option("--count", min=1, help="Maximum number of groups.")] = 5,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", help="Learn a group as a class, such as 2=gardening; repeatable. Requires --version."),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(
            "--version", help="With --name: the version for which the groups were listed.", show_default=False
        ),
    ] = None,
    by: Annotated[str, typer.Option("--by", help="With --name: who named the group; stored with the labels.")] = "",
    out: Annotated[
        Path | None, typer.Option("--out", help="Output file for the members of the groups, .csv or .parquet.")
    ] = None,
    seed: DrawingSeed = 0,
    method: OwnMethod = None,
    device: Device = "auto",
    wait: Wait = 60.0,
    *,
    on_disk: OnDiskOptions,
) -> Answer:
    """Find groups of similar nodes that look like none of the known classes; name one to learn it."""
    from graphfcl.production.changes.written_tables import refuse_unwritable

    if name:
        if out is not None:
            raise InputError("--name teaches groups and lists none: leave out --out.")
        if version is None:
            raise InputError(
                "--name needs --version: a number means a group of one version, and `graphfcl groups` says of which."
            )
        named = _names(name)
        with changing(model, wait, device, method, on_disk) as classifier:
            _refuse_other_version(version, classifier.version)
            found = classifier.groups(max(count, *named), seed=seed)
            for number, class_name in named.items():
                classifier.name_group(_numbered(found, number), class_name, by=by)
        return changed(classifier, model)
    if version is not None:
        raise InputError("--version belongs to --name: groups are listed for the newest version.")
    if by:
        raise InputError("--by belongs to --name: it says who names a group.")
    refuse_unwritable(out, "groups")
    classifier = _loaded(model, method, device, on_disk.use())
    found = classifier.groups(count, seed=seed)
    if out is not None:
        _write_members(out, found, classifier.version)

    def show() -> None:
        _print_groups(found, f"--version {classifier.version}" + (f" --seed {seed}" if seed else ""))
        if out is not None:
            say(f"Wrote the members of {len(found)} groups to {out}.")

    return Answer([{"version": classifier.version, **group.as_json()} for group in found], show)


VERBS = (suggest, groups)
GROUP_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def _refuse_unused(
    model: Path | None,
    graph: str | None,
    method: str | None,
    device: str,
    data_dir: Path | None,
    on_disk: OnDiskResources,
) -> None:
    """Refuse an option that would change nothing."""
    if model is None and graph is None:
        raise InputError(ONE_OF_TWO)
    if model is not None and data_dir is not None:
        raise InputError("--model has no use for --data-dir: leave it out.")
    options = {"--method": method is not None, "--device": device != "auto", "--backend": on_disk.backend != "local"}
    options |= {f"--{name}": getattr(on_disk, name) is not None for name in ("memory", "work", "workers")}
    for option, given in options.items():
        if model is None and given:
            raise InputError(f"--graph has no use for {option}: leave it out.")


def _names(given: list[str]) -> dict[int, str]:
    """``["2=gardening"]`` as group numbers and class names."""
    found: dict[int, str] = {}
    for text in given:
        number, equals, name = text.partition("=")
        if not equals or not GROUP_NUMBER.fullmatch(number.strip()) or not name.strip():
            raise InputError(f"--name {text}: write the number of a group and a class, as in --name 2=gardening.")
        if int(number) in found:
            raise InputError(f"--name {text}: group {int(number)} is named twice: give it one name.")
        found[int(number)] = name
    return found


def _refuse_other_version(listed: int, current: int | None) -> None:
    if listed != current:
        raise InputError(
            f"the groups of version {listed} are gone, the model is version {current}: list them again with "
            "`graphfcl groups`; nothing was learned."
        )


def _numbered(found: "Sequence[Group]", number: int) -> "Group":
    for group in found:
        if group.number == number:
            return group
    there = "there is none" if not found else f"there are {len(found)}"
    raise InputError(f"there is no group {number}, {there}: `graphfcl groups` lists them; nothing was learned.")


def _print_suggestions(found: "Sequence[Suggestion]") -> None:
    if not found:
        say(NOTHING_TO_ASK)
        return
    rows = []
    for each in found[:SHOWN]:
        first = f"{each.classes[0][0]} ({100 * each.classes[0][1]:.0f} %)" if each.classes else ""
        rows.append((each.node, each.reason, first, each.why))
    print_table(("node", "reason", "the model's guess", "why"), rows)
    if len(found) > SHOWN:
        say(f"and {len(found) - SHOWN:,} more.")


def _print_groups(found: "Sequence[Group]", where: str) -> None:
    """where: the options that name the same groups again."""
    if not found:
        say(NOTHING_UNKNOWN)
        return
    for group in found:
        say(f"Group {group.number}: {group.size:,} nodes, estimated purity {100 * group.estimated_purity:.0f} %.")
        say(f"  typical:    {', '.join(map(str, group.typical))}")
        if group.words:
            say(f"  in common:  {', '.join(group.words)}")
        if group.neighbours:
            linked = ", ".join(f"{name} ({100 * share:.0f} %)" for name, share in group.neighbours)
            say(f"  links to:   {linked}")
        say(f"  why:        {group.why}.")
    say(f"Teach one by its number: --name 1=CLASS {where}")


def _write_members(out: Path, found: "Sequence[Group]", version: int | None) -> None:
    import numpy as np

    from graphfcl.graph.ids import text_array
    from graphfcl.production.changes.written_tables import write_table

    members = [(group, node) for group in found for node in group.nodes]
    nodes = [node for _, node in members]
    numbers = bool(nodes) and all(isinstance(node, int) for node in nodes)
    columns = {
        "version": np.full(len(members), version or 0, dtype=np.int64),
        "group": np.array([group.number for group, _ in members], dtype=np.int64),
        "node": np.array(nodes, dtype=np.int64) if numbers else text_array([str(node) for node in nodes]),
        "typical": text_array(["yes" if node in group.typical else "no" for group, node in members]),
        "estimated_purity": text_array([f"{group.estimated_purity:.3f}" for group, _ in members]),
    }
    write_table(out, columns, "groups")
