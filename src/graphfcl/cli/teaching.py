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
from graphfcl.cli.output import Output, print_line, print_notes, print_table, with_json
from graphfcl.errors import InputError, counted

NOTHING_UNKNOWN = "There is no group: too few unlabelled nodes look like none of the known classes."
NOTHING_TO_LABEL = "There is no suggestion: every node has a label, or the strategy chose none."
ONE_OF_TWO = "give --model with a model folder, or --graph with a graph that has no model yet."
SHOWN = 20  # suggestions or issues that are printed
NO_ISSUE = "The model disputes no label: lower --threshold to list less certain ones."
WHAT_TO_DO_WITH_ISSUES = (
    "keep only the rows with wrong labels. Then pass the file to `graphfcl unlearn` to remove these labels, or fill in "
    "the column class and pass it to `graphfcl learn --on-conflict replace`."
)
GROUP_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True)
class SuggestGraph(GraphOptions):
    """A graph without a model, or the new path of a model's graph folder."""

    graph: Annotated[
        str | None, option("Graph without a model; with --model, the new path of its graph folder.", graph_names)
    ] = None


@with_json
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
) -> Output:
    """Suggest nodes to label next, with reasons.

    Fill in the column class of the output file and pass it to `graphfcl learn`.
    """
    of_models = [*resources.used_flags(), *["--method"] * (method is not None), *["--device"] * (device != "auto")]
    if model is None and not source.given():
        raise InputError(ONE_OF_TWO)
    if model is None and of_models:
        raise InputError(f"{source.used_flags()[0]} does not use {of_models[0]}: leave it out.")
    if model is not None and (of_graphs := [flag for flag in source.used_flags() if flag != "--graph"]):
        raise InputError(f"--model does not use {of_graphs[0]}: leave it out.")
    production.refuse_unwritable(out, "suggestions")
    name = active.strategy_from(strategy).name
    if model is None:
        loaded, _ = source.load()
        print_notes(loaded)
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
            print_line(f"Wrote {count} to {out}. Fill in the column class and pass the file to `graphfcl learn`.")

    return Output([each.as_json() for each in suggestions], show)


def _print_suggestions(suggestions: "Sequence[production.Suggestion]") -> None:
    if not suggestions:
        print_line(NOTHING_TO_LABEL)
        return
    rows = []
    for each in suggestions[:SHOWN]:
        first = f"{each.classes[0]} ({100 * each.probabilities[0]:.0f} %)" if each.classes else ""
        rows.append((each.node, each.reason, first, each.why))
    print_table(("node", "reason", "the model's guess", "why"), rows)
    if len(suggestions) > SHOWN:
        print_line(f"and {len(suggestions) - SHOWN:,} more.")


@with_json
def groups(
    options: ChangeOptions,
    count: Annotated[int, option("Maximum number of groups.", min=1)] = 5,
    name: Annotated[
        list[str] | None,
        option("Learn a group as a class, such as 2=gardening; needs --version; repeatable.", metavar="NUMBER=CLASS"),
    ] = None,
    version: Annotated[int | None, option("With --name: version for which the groups were listed.")] = None,
    by: Annotated[str, option("With --name: person who named the group, stored with the labels.")] = "",
    out: Annotated[Path | None, option("Output file for the members of the groups, .csv or .parquet.")] = None,
    seed: Seed = 0,
    *,
    new: NewClassOptions,
) -> Output:
    """Find groups of similar nodes that look like none of the known classes.

    --name gives a group a name and learns it as a class.
    """
    if name:
        if out is not None:
            raise InputError("--name learns groups and lists none: leave --out out.")
        if version is None:
            raise InputError(
                "--name needs --version: group numbers are valid for one version only. `graphfcl groups` prints both."
            )
        names, allowed = _names(name), new.allowed()

        def learn(classifier: "production.GraphClassifier") -> None:
            _refuse_other_version(version, classifier.version)
            listed = classifier.groups(max(count, *names), seed=seed)
            for number, class_name in names.items():
                classifier.name_group(_numbered(listed, number), class_name, by=by, new_classes=allowed)

        return options.change(learn)
    if version is not None:
        raise InputError("--version needs --name: without it, groups are listed for the newest version.")
    if by:
        raise InputError("--by needs --name: add it, or leave --by out.")
    only_named = {"--dry-run": options.dry_run, "--max-loss": options.max_loss is not None}
    if used := [*new.used_flags(), *(flag for flag, is_used in only_named.items() if is_used)]:
        raise InputError(f"{used[0]} needs --name: without it, the model is not changed.")
    production.refuse_unwritable(out, "groups")
    classifier = compute_scores(options.load(device=options.device))
    listed = classifier.groups(count, seed=seed)
    if out is not None:
        _write_members(out, listed, classifier.version)

    def show() -> None:
        _print_groups(listed, f"--version {classifier.version}" + (f" --seed {seed}" if seed else ""))
        if out is not None:
            print_line(f"Wrote the members of {len(listed)} groups to {out}.")

    return Output([{"version": classifier.version, **group.as_json()} for group in listed], show)


@with_json
def label_issues(
    options: ComputeOptions,
    count: Annotated[int | None, option("Maximum number of labels to list (default: all).", min=1)] = None,
    threshold: Annotated[
        float, option("Lowest confidence that a listed label is wrong; 0 lists all.", min=0, max=1)
    ] = 0.9,
    folds: Annotated[int, option("Number of models to train; each leaves out a part of the labels.", min=2)] = 3,
    out: Annotated[Path | None, option("Output file, .csv or .parquet, with an empty column class to fill in.")] = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> Output:
    """Find labels that are probably wrong.

    It trains --folds models, and judges each label by the model that was trained without it.
    """
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
            print_line(f"Wrote {counted(table.num_rows, 'label')} to {out}{hint}")

    return Output({"version": classifier.version, "issues": table.to_pylist()}, show)


def _print_issues(issues: list[dict[str, Any]], count: int) -> None:
    """Print the first issues of ``count``."""
    if not issues:
        print_line(NO_ISSUE)
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
        print_line(f"and {count - len(issues):,} more.")


def _names(texts: list[str]) -> dict[int, str]:
    """Parse group numbers and class names, such as ``["2=gardening"]``."""
    names: dict[int, str] = {}
    for text in texts:
        number, equals, name = text.partition("=")
        if not equals or not GROUP_NUMBER.fullmatch(number.strip()) or not name.strip():
            raise InputError(f"--name {text}: write the number of a group and a class name, as in --name 2=gardening.")
        if int(number) in names:
            raise InputError(f"--name {text}: group {int(number)} has two names: give it one.")
        names[int(number)] = name
    return names


def _refuse_other_version(listed: int, current: int | None) -> None:
    if listed != current:
        raise InputError(
            f"the groups of version {listed} are outdated, because the model is now version {current}: list them again "
            "with `graphfcl groups`. Nothing was learned."
        )


def _numbered(groups: "Sequence[production.Group]", number: int) -> "production.Group":
    for group in groups:
        if group.number == number:
            return group
    count = f"there are {len(groups)}" if groups else "there are none"
    raise InputError(f"there is no group {number}, {count}: `graphfcl groups` lists them. Nothing was learned.")


def _print_groups(listed: "Sequence[production.Group]", where: str) -> None:
    """Print groups. ``where`` holds the options with which --name refers to the same groups."""
    if not listed:
        print_line(NOTHING_UNKNOWN)
        return
    for group in listed:
        print_line(
            f"Group {group.number}: {group.size:,} nodes, estimated purity {100 * group.estimated_purity:.0f} %."
        )
        print_line(f"  typical:    {', '.join(map(str, group.typical))}")
        if group.words:
            print_line(f"  in common:  {', '.join(group.words)}")
        if group.neighbours:
            shares = zip(group.neighbours, group.shares, strict=True)
            linked = ", ".join(f"{name} ({100 * share:.0f} %)" for name, share in shares)
            print_line(f"  links to:   {linked}")
        print_line(f"  why:        {group.why}.")
    print_line(f"Learn a group by its number: --name 1=CLASS {where}")


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
