"""Pages of the command line, one per verb, made from the application itself."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from graphfcl.cli import app
from graphfcl.cli.help import JSON_KEYS, examples
from graphfcl.cli.options import BackendOptions, GraphOptions, StreamOptions

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = "reference/commands"

# The pages that show a verb in use, the best one first; only those that exist are linked.
GUIDES = {
    "data": ("data.md", "columns.md", "check-data.md", "datasets.md", "graph-folder.md"),
    "stream": ("visibility.md",),
    "run": ("experiments.md", "result-json.md"),
    "methods": ("methods.md", "your-method.md"),
    "check": ("your-method.md",),
    "bench": ("experiments.md", "grids.md", "benchmark.md"),
    "report": ("experiments.md",),
    "fit": ("production.md", "data.md"),
    "learn": ("teaching.md", "jobs.md"),
    "labels": ("people.md",),
    "grow": ("grow.md", "jobs.md"),
    "predict": ("production.md", "unknown.md", "answers.md"),
    "explain": ("production.md",),
    "history": ("undo.md", "model-folder.md"),
    "rollback": ("undo.md",),
    "prune": ("model-folder.md",),
    "erase": ("erase.md",),
    "unlearn": ("undo.md",),
    "rename": ("undo.md",),
    "merge": ("undo.md",),
    "retire": ("undo.md",),
    "shrink": ("grow.md",),
    "suggest": ("what-to-label.md", "active-learning.md"),
    "groups": ("groups.md",),
    "label-issues": ("label-issues.md",),
    "info": ("production.md",),
    "refit": ("refit.md",),
    "serve": ("service.md", "deploy.md", "page.md"),
}
SHARED = {  # tables of options that several verbs have
    "Options for the graph": [field.name for field in fields(GraphOptions)],
    "Options for the stream": [field.name for field in fields(StreamOptions)],
    "Options for memory, workers and devices": [
        *(field.name for field in fields(BackendOptions)), "memory", "work", "workers", "device",
    ],
}  # fmt: skip
FAILURES = {  # what exit code 1 means
    "check": "the learner breaks a rule of the contract",
    "data check": "the check found something serious",
    "bench": "a cell of the grid failed",
    "run": "training diverged",
    "fit": "training diverged",
    "refit": "training diverged",
}


def command_pages() -> dict[str, str]:
    """A page for each verb, with its sub-verbs, and an index with one line per verb."""
    root: Any = typer.main.get_command(app)
    verbs = {name: command for name, command in root.commands.items() if not command.hidden}
    pages = {f"{FOLDER}/{name}.md": _verb_page(name, command) for name, command in verbs.items()}
    return {f"{FOLDER}/index.md": _index(verbs), **pages}


def _index(verbs: dict[str, Any]) -> str:
    panels: dict[str, list[str]] = {}
    for name, command in verbs.items():
        panels.setdefault(command.rich_help_panel, []).append(f"| [`{name}`]({name}.md) | {_cell(_summary(command))} |")
    lead = (
        "`graphfcl VERB --help` prints the options of a verb. [The command line](../../command-line.md) explains what"
    )
    parts = ["# Commands", f"{lead} all verbs share."]
    for title, rows in panels.items():
        parts += [f"## {title}", "\n".join(["| verb | what it does |", "|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def _verb_page(name: str, command: Any) -> str:
    below = getattr(command, "commands", {})
    parts = [f"# graphfcl {name}", *_paragraphs(command)]
    guides = [f"[{_title(page)}](../../{page})" for page in GUIDES[name]]
    parts.append(f"See also: {', '.join(guides)}.")
    if not below:
        return "\n\n".join([*parts, *_sections(name, command, "##")]) + "\n"
    parts.append("\n".join(f"- [`{name} {word}`](#graphfcl-{name}-{word}): {_summary(c)}" for word, c in below.items()))
    for word, sub in below.items():
        words = f"{name} {word}"
        parts += [f"## graphfcl {words}", *_paragraphs(sub), *_sections(words, sub, "###")]
    return "\n\n".join(parts) + "\n"


def _sections(words: str, command: Any, level: str) -> list[str]:
    """Usage, arguments, options, output, exit codes and examples of one command."""
    context = command.make_context(f"graphfcl {words}", [], resilient_parsing=True)
    usage = " ".join(command.get_usage(context).removeprefix("Usage:").split())
    sections = ["\n".join(["```text", usage, "```"])]
    for title, parameters in _tables(command).items():
        records = [record for each in parameters if (record := each.get_help_record(context))]
        rows = [f"| `{_plain(name)}` | {_cell(text)} |" for name, text in records]
        sections += [f"{level} {title}", "\n".join(["| name | meaning |", "|---|---|", *rows])]
    if words in JSON_KEYS:
        sections += [f"{level} Output of --json", _cell(JSON_KEYS[words])]
    flags = {flag for each in command.params for flag in each.opts}
    rows = [f"| {code} | {meaning} |" for code, meaning in _exit_codes(words, flags)]
    sections += [f"{level} Exit codes", "\n".join(["| code | meaning |", "|---|---|", *rows])]
    lines = [f"graphfcl {line}" for line in examples(words)]
    return [*sections, f"{level} Examples", "\n".join(["```bash", *lines, "```"])]


def _tables(command: Any) -> dict[str, list[Any]]:
    """Title of a table → its parameters; a group of shared options has a table if the command has all of them."""
    names = {each.name for each in command.params}
    place = {name: title for title, group in SHARED.items() if names.issuperset(group) for name in group}
    tables: dict[str, list[Any]] = {"Arguments": [], "Options": [], **{title: [] for title in SHARED}}
    for each in command.params:
        is_argument = each.param_type_name == "argument"
        tables["Arguments" if is_argument else place.get(each.name, "Options")].append(each)
    return {title: parameters for title, parameters in tables.items() if parameters}


def _exit_codes(words: str, flags: set[str]) -> list[tuple[str, str]]:
    failure = FAILURES.get(words, "a failure other than wrong input")
    wait = "; another process changed the model for longer than `--wait`" if "--wait" in flags else ""
    codes = [("0", "done"), ("1", failure), ("2", f"wrong input{wait}")]
    if "--max-loss" in flags:
        codes.append(("3", "known classes would lose more accuracy than `--max-loss` allows; nothing was changed"))
    if words == "serve":
        return [("0", "stopped by Ctrl-C or `SIGTERM`; the change in progress was completed"), *codes[1:]]
    return [*codes, ("130, 143", "stopped by Ctrl-C, or by `SIGTERM`")]


def _paragraphs(command: Any) -> list[str]:
    return [_cell(" ".join(each.split())) for each in (command.help or "").split("\n\n")]


def _summary(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def _plain(flags: str) -> str:
    """The names and types of a parameter, as ``--set KEY=VALUE`` or ``--way <int>``."""
    return re.sub(r"<(?:list\[)?(\w+)[^>]*>", r"<\1>", flags)


def _cell(text: str) -> str:
    """A text as Markdown: characters that would be markup are escaped, except in code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>|\[\]])", r"\\\1", part) for part in parts)


def _title(page: str) -> str:
    return (DOCS / page).read_text().partition("\n")[0].removeprefix("# ")
