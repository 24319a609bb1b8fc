"""Verbs of labelling: which nodes to label next, groups of unknown nodes, and labels that are probably wrong."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import graphfcl.active as active
import graphfcl.methods as methods
import graphfcl.production as production
from graphfcl.cli.changes import ChangeOptions, NewClassOptions
from graphfcl.cli.completion import graph_names, model_folders
from graphfcl.cli.on_disk import ComputeOptions, FolderOptions, compute_scores, import_method
from graphfcl.cli.options import STRATEGIES, Device, GraphOptions, OwnMethod, Seed, option, requested_device
from graphfcl.cli.output import Answer, answers, print_table, say, say_notes
from graphfcl.errors import InputError, counted

NOTHING_UNKNOWN = "No group to name: too few nodes without a label look like none of the known classes."
NOTHING_TO_LABEL = "No node was named: every node has a label, or the strategy found none that is worth one."
ONE_OF_TWO = "give either --model, a folder, or --graph, of a graph that has no model yet."
SHOWN = 20  # suggestions that are printed
NO_ISSUE = "The model disputes no label: lower --threshold to list less certain ones."
WHAT_TO_DO_WITH_ISSUES = (
    "as it is, `graphfcl unlearn` would take back every one of them: keep the rows that are wrong and give it to "
    "`graphfcl unlearn`, or fill in the column class and give it to `graphfcl learn --on-conflict replace`."
)
GROUP_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True)
class SuggestGraph(GraphOptions):
    """A graph without a model, or the new place of that of a model."""

    graph: Annotated[
        str | None, option("Graph without a model; with --model: new place of its graph folder.", graph_names)
    ] = None


@answers
def suggest(
    source: SuggestGraph,
    model: Annotated[Path | None, option("Model folder.", model_folders)] = None,
    budget: Annotated[int, option("Maximum number of nodes to suggest.", min=1)] = 20,
    strategy: Annotated[
        str, option("Strategy: auto, typical, uncertain, unknown, random, or your own as module:Class.", STRATEGIES)
    ] = "auto",
    out: Annotated[Path | None, option("Output file, .csv or .parquet, with an empty column class to fill in.")] = None,
    seed: Seed = 0,
    method: OwnMethod = None,
    device: Device = "auto",
    *,
    resources: FolderOptions,
) -> Answer:
    """Suggest nodes to label next, with reasons; fill in the column class and pass the file to `graphfcl learn`."""
    of_models = [*resources.used_flags(), *["--method"] * (method is not None), *["--device"] * (device != "auto")]
    if model is None and not source.given():
        raise InputError(ONE_OF_TWO)
    if model is None and of_models:
        raise InputError(f"{source.used_flags()[0]} has no use for {of_models[0]}: leave it out.")
    if model is not None and (of_graphs := [flag for flag in source.used_flags() if flag != "--graph"]):
        raise InputError(f"--model has no use for {of_graphs[0]}: leave it out.")
    production.refuse_unwritable(out, "suggestions")
    name = active.strategy_from(strategy).name
    if model is None:
        loaded, _ = source.load()
        say_notes(loaded)
        suggestions = production.suggest_for_graph(loaded, budget, strategy=name, seed=seed)
    else:
        import_method(method, model)
        use = resources.use(None if source.graph is None else Path(source.graph))
        classifier = compute_scores(production.ModelFolder(model, use).load(device=requested_device(device)))
        if source.graph is not None and not classifier.has_graph_folder:
            raise InputError(ONE_OF_TWO)
        suggestions = classifier.suggest(budget, strategy=name, seed=seed)
    if out is not None:
        production.write_table(out, production.suggestion_table(suggestions), "suggestions")

    def show() -> None:
        _print_suggestions(suggestions)
        if out is not None:
            count = f"{len(suggestions):,} nodes"
            say(f"Wrote {count} to {out}: fill in the column class, and give it to `graphfcl learn`.")

    return Answer([each.as_json() for each in suggestions], show)


def _print_suggestions(suggestions: "Sequence[production.Suggestion]") -> None:
    if not suggestions:
        say(NOTHING_TO_LABEL)
        return
    rows = []
    for each in suggestions[:SHOWN]:
        first = f"{each.classes[0]} ({100 * each.probabilities[0]:.0f} %)" if each.classes else ""
        rows.append((each.node, each.reason, first, each.why))
    print_table(("node", "reason", "the model's guess", "why"), rows)
    if len(suggestions) > SHOWN:
        say(f"and {len(suggestions) - SHOWN:,} more.")


@answers
def groups(
    options: ChangeOptions,
    count: Annotated[int, option("Maximum number of groups.", min=1)] = 5,
    name: Annotated[
        list[str] | None,
        option("Learn a group, such as 2=gardening; needs --version; repeatable.", metavar="NUMBER=CLASS"),
    ] = None,
    version: Annotated[int | None, option("With --name: the version for which the groups were listed.")] = None,
    by: Annotated[str, option("With --name: who named the group; stored with the labels.")] = "",
    out: Annotated[Path | None, option("Output file for the members of the groups, .csv or .parquet.")] = None,
    seed: Seed = 0,
    *,
    new: NewClassOptions,
) -> Answer:
    """Find groups of similar nodes that look like none of the known classes; name one to learn it."""
    if name:
        if out is not None:
            raise InputError("--name teaches groups and lists none: leave out --out.")
        if version is None:
            raise InputError(
                "--name needs --version: a number means a group of one version, and `graphfcl groups` says of which."
            )
        names, allowed = _names(name), new.allowed()

        def learn(classifier: "production.GraphClassifier") -> None:
            _refuse_other_version(version, classifier.version)
            listed = classifier.groups(max(count, *names), seed=seed)
            for number, class_name in names.items():
                classifier.name_group(_numbered(listed, number), class_name, by=by, new_classes=allowed)

        return options.change(learn)
    if version is not None:
        raise InputError("--version belongs to --name: groups are listed for the newest version.")
    if by:
        raise InputError("--by belongs to --name: it says who names a group.")
    only_named = {"--dry-run": options.dry_run, "--max-loss": options.max_loss is not None}
    if used := [*new.used_flags(), *(flag for flag, is_used in only_named.items() if is_used)]:
        raise InputError(f"{used[0]} belongs to --name: without it the model is not changed.")
    production.refuse_unwritable(out, "groups")
    classifier = compute_scores(options.load(device=options.device))
    listed = classifier.groups(count, seed=seed)
    if out is not None:
        _write_members(out, listed, classifier.version)

    def show() -> None:
        _print_groups(listed, f"--version {classifier.version}" + (f" --seed {seed}" if seed else ""))
        if out is not None:
            say(f"Wrote the members of {len(listed)} groups to {out}.")

    return Answer([{"version": classifier.version, **group.as_json()} for group in listed], show)


@answers
def label_issues(
    options: ComputeOptions,
    count: Annotated[int | None, option("Maximum number of labels to list (default: all).", min=1)] = None,
    threshold: Annotated[float, option("Lowest confidence to list; 0 lists every label.", min=0, max=1)] = 0.9,
    folds: Annotated[int, option("Number of models to train, each without a part of the labels.", min=2)] = 3,
    out: Annotated[Path | None, option("Output file, .csv or .parquet, with an empty column class to fill in.")] = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> Answer:
    """Find labels that are probably wrong, by models trained without them; takes --folds trainings."""
    production.refuse_unwritable(out, "label issues")
    classifier = options.load(device=device)
    with methods.ProgressBars() as bars:
        table = classifier.label_issues(count=count, threshold=threshold, folds=folds, seed=seed, progress=bars)
    if out is not None:
        columns = {name: table[name].to_numpy() for name in table.column_names}
        production.write_table(out, production.issue_table(columns), "label issues")

    def show() -> None:
        _print_issues(table.slice(0, SHOWN).to_pylist(), table.num_rows)
        if out is not None:
            hint = f": {WHAT_TO_DO_WITH_ISSUES}" if table.num_rows else "."
            say(f"Wrote {counted(table.num_rows, 'label')} to {out}{hint}")

    return Answer({"version": classifier.version, "issues": table.to_pylist()}, show)


def _print_issues(issues: list[dict[str, Any]], count: int) -> None:
    """issues: the first of ``count``."""
    if not issues:
        say(NO_ISSUE)
        return
    rows = [
        (
            each["node"],
            each["given"],
            each["given_by"],
            f"{each['confidence']:.3f}",
            f"{each['guess']} ({100 * each['probability']:.0f} %)",
        )
        for each in issues
    ]
    columns = ("node", "given", "by", "confidence that it is wrong", "the model's guess")
    print_table(columns, rows, numbers=("confidence that it is wrong",))
    if count > len(issues):
        say(f"and {count - len(issues):,} more.")


def _names(texts: list[str]) -> dict[int, str]:
    """``["2=gardening"]`` as group numbers and class names."""
    names: dict[int, str] = {}
    for text in texts:
        number, equals, name = text.partition("=")
        if not equals or not GROUP_NUMBER.fullmatch(number.strip()) or not name.strip():
            raise InputError(f"--name {text}: write the number of a group and a class, as in --name 2=gardening.")
        if int(number) in names:
            raise InputError(f"--name {text}: group {int(number)} is named twice: give it one name.")
        names[int(number)] = name
    return names


def _refuse_other_version(listed: int, current: int | None) -> None:
    if listed != current:
        raise InputError(
            f"the groups of version {listed} are gone, the model is version {current}: list them again with "
            "`graphfcl groups`; nothing was learned."
        )


def _numbered(groups: "Sequence[production.Group]", number: int) -> "production.Group":
    for group in groups:
        if group.number == number:
            return group
    there = f"there are {len(groups)}" if groups else "there is none"
    raise InputError(f"there is no group {number}, {there}: `graphfcl groups` lists them; nothing was learned.")


def _print_groups(listed: "Sequence[production.Group]", where: str) -> None:
    """where: the options that name the same groups again."""
    if not listed:
        say(NOTHING_UNKNOWN)
        return
    for group in listed:
        say(f"Group {group.number}: {group.size:,} nodes, estimated purity {100 * group.estimated_purity:.0f} %.")
        say(f"  typical:    {', '.join(map(str, group.typical))}")
        if group.words:
            say(f"  in common:  {', '.join(group.words)}")
        if group.neighbours:
            shares = zip(group.neighbours, group.shares, strict=True)
            linked = ", ".join(f"{name} ({100 * share:.0f} %)" for name, share in shares)
            say(f"  links to:   {linked}")
        say(f"  why:        {group.why}.")
    say(f"Teach one by its number: --name 1=CLASS {where}")


def _write_members(out: Path, listed: "Sequence[production.Group]", version: int | None) -> None:
    import numpy as np

    from graphfcl.graph.ids import text_array

    members = [(group, node) for group in listed for node in group.nodes]
    nodes = [node for _, node in members]
    numbers = bool(nodes) and all(isinstance(node, int) for node in nodes)
    columns = {
        "version": np.full(len(members), version or 0, dtype=np.int64),
        "group": np.array([group.number for group, _ in members], dtype=np.int64),
        "node": np.array(nodes, dtype=np.int64) if numbers else text_array([str(node) for node in nodes]),
        "typical": text_array(["yes" if node in group.typical else "no" for group, node in members]),
        "estimated_purity": text_array([f"{group.estimated_purity:.3f}" for group, _ in members]),
    }
    production.write_table(out, columns, "groups")
