"""Help pages: plain text with options by purpose, examples, and the ``--json`` keys of each verb."""

import signal
from collections.abc import Mapping
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup

from graphfcl.errors import GraphfclError, without_secrets

USAGE_ERROR: Any = BadParameter.__bases__[0]  # click's class; some versions of typer contain their own copy of click
CHANGED = "model, version, classes, and changes (the entries of `history --json` for the new version)."
EFFECT = (
    " With --dry-run also dry_run and effect (new_classes, gone_classes, accuracy_before, accuracy_after, nodes, "
    "nodes_changed and moves)."
)

EXAMPLES = """
data list
data list --json
data show --graph debian
data show --graph my_tables:label=topic,drop=price
data check --graph my_tables
data check --graph my_tables:label=topic --json
data import --graph my_tables --out my_graph
data import --graph my_tables --out my_graph --memory 800MB
data import --nodes customers.csv --edges 'sql:SELECT a AS source, b AS target FROM pairs' --database shop.db --out shop
stream --graph debian --way 2 --shot 5
stream --graph debian --seed 3 --out stream.json
stream --verify
run --graph debian
run --graph debian --method anchor --seed 1 --out runs/one
run --graph debian --method anchor --seed 1 --out runs/one --resume
run --graph my_tables --set episodes=200 --no-refit
methods
methods anchor
check anchor
check my_module:MyLearner --set epochs=5
bench table2 --graph debian --seeds 3
bench table2 --graph debian,wordnet --methods anchor,hag-meta --jobs 2
bench my_grid.toml --out runs/mine
report runs/bench
fit --graph debian --model my_model
fit --graph my_tables --model my_model --hide-classes shoes,hats
fit --graph my_tables --model my_model --resume
learn supports.csv --model my_model
learn supports.csv --model my_model --on-conflict replace --json
learn supports.csv --model my_model --no-new-classes --max-loss 0.02
labels --model my_model --out labels.csv
labels --model my_model --out - | head
grow --model my_model --nodes new_nodes.csv --edges new_edges.csv
grow --model my_model --edges new_edges.csv
shrink --model my_model --nodes gone.csv
predict --model my_model --out answers.csv
predict --model my_model --nodes nodes.csv --top 3 --out -
predict --model my_model --nodes nodes.csv --coverage 0.9 --json
explain node-17 --model my_model
explain node-17 --model my_model --top 3 --json
history my_model
history my_model --json
history my_model --class gardening
rollback 3 --model my_model
prune --model my_model --keep 5
erase people.csv --model my_model
unlearn wrong.csv --model my_model
rename shoes footwear --model my_model
merge boots shoes --model my_model
merge boots shoes --model my_model --dry-run
retire hats --model my_model
suggest --model my_model --budget 10 --out to_label.csv
suggest --graph my_tables --budget 50 --out to_label.csv
groups --model my_model
groups --model my_model --name 2=gardening --version 4
label-issues --model my_model --out issues.csv
label-issues --model my_model --count 50 --folds 5 --json
info my_model
info my_model --markdown > MODEL_CARD.md
info my_model --json
refit --model my_model
refit --model my_model --graph my_tables --anyway
serve --model my_model
serve --model my_model --port 9000 --token-file token
""".strip().splitlines()

CHANGES = ("learn", "grow", "shrink", "rollback", "unlearn", "rename", "merge", "retire")
JSON_KEYS: Mapping[str, str] = {
    "fit": CHANGED,
    **dict.fromkeys(CHANGES, CHANGED + EFFECT),
    "data list": "data_folder, and graphs (a list with name, files, default_stream and title).",
    "data show": "name, title, nodes, edges, features, classes, class_sizes, notes, sha256 or digest, and more.",
    "data check": "name, nodes, edges, classes, notes, and findings (kind, serious and text).",
    "data import": "folder, name, nodes, edges, classes, bytes, digest, notes.",
    "stream": (
        "graph, seed, protocol, protocol_hash, base, pseudo_novel, sessions and out; with --verify: "
        "protocol_version and graphs (number of equal streams per graph)."
    ),
    "run": "folder, and the contents of its result.json.",
    "methods": "methods (a list with group, name, title and reference); for one method: method and settings.",
    "check": "learner, rules (each with rule and broken, which is null if the rule holds) and keeps_all.",
    "bench": "grid, cells, done, failed, failures, folder and files; for table1: graphs and files.",
    "report": "files.",
    "labels": "version, nodes, rows and out; without --out: labels (a list of rows).",
    "predict": "version, classes, nodes, unknown and out; without --out: predictions (a list of rows).",
    "explain": "classes, blocks, features, around, neighbours.",
    "history": (
        "a list of changes, oldest first, each with version, when, what, label_counts, accuracy and more; with "
        "--class: a list with version, when, labels and recall."
    ),
    "prune": "model, removed, kept, bytes_freed; with --dry-run also dry_run.",
    "erase": (
        "model, version, nodes, labels, versions, remembering, seen, trained, in_graph_folder, remains; with --dry-run "
        "also dry_run."
    ),
    "suggest": "a list of nodes, each with node, reason, why, classes, unknown and unknown_score.",
    "groups": "a list of groups; with --name: the same as `learn --json`.",
    "label-issues": (
        "version, and issues (a list with node, given, given_by, given_when, confidence, guess, probability)."
    ),
    "info": (
        "version, sha256, method, settings, data, accuracy, class_table, most_gain, bytes_on_disk, signs, refit_due, "
        "and more."
    ),
    "refit": f"model, version, taken, why, before, after, nodes, classes.{EFFECT}",
}


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


class Interrupted(GraphfclError):
    """The user pressed Ctrl-C, or the process received SIGTERM."""

    def __init__(self, stop: KeyboardInterrupt) -> None:
        super().__init__("stopped")
        self.exit_code = 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


class Verb(TyperCommand):
    """A command whose help lists arguments, its own options, and then each group of shared options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_argument = parameter.param_type_name == "argument"
            title = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"
            sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Verbs(TyperGroup):
    """All commands, by panels. Ctrl-C reaches the caller, which prints how to continue."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, Any]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                panels.setdefault(panel if isinstance(panel, str) else "Commands", []).append((name, command))
        width = max(len(name) for commands in panels.values() for name, _ in commands)
        for panel, commands in panels.items():
            with formatter.section(panel):
                formatter.write_dl([(name.ljust(width), _summary(command)) for name, command in commands])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted(error) from error
        except USAGE_ERROR as error:  # its message repeats words of the command, which may be secret
            error.message = without_secrets(error.message)
            raise


def _summary(command: Any) -> str:
    """The first paragraph of a command's help."""
    return " ".join((command.help or "").split("\n\n")[0].split())


def epilog(verb: str) -> str:
    """The end of a help page: the keys of --json, and examples. ``verb`` is ``fit``, ``data list`` and so on."""
    parts = [f"With --json: {JSON_KEYS[verb]}"] if verb in JSON_KEYS else []
    lines = [f"  graphfcl {line}" for line in examples(verb)]
    return "\n\n".join([*parts, "\n".join(["\b", "Examples:", *lines])])


def examples(verb: str) -> list[str]:
    """The examples of a verb, without the leading ``graphfcl``."""
    return [line for line in EXAMPLES if f"{line} ".startswith(f"{verb} ")]
