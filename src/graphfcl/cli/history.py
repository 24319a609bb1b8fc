"""What has become of a model, as a table."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from graphfcl.errors import InputError

if TYPE_CHECKING:
    from graphfcl.production import ModelFolder


def print_entries(entries: Sequence[dict[str, Any]]) -> None:
    from graphfcl.cli.show import print_table, say

    rows = []
    for entry in entries:
        accuracy = entry.get("accuracy") or {}
        rows.append(
            (
                entry["version"],
                entry["when"].replace("+00:00", "Z"),
                f"{_said(entry)}{' (pruned)' if entry.get('pruned') else ''}",
                _percent(accuracy, "validation"),
                _percent(accuracy, "leave_one_out"),
            )
        )
    columns = ("version", "when", "what", "validation, %", "learned, leave-one-out, %")
    print_table(columns, rows, numbers=["version", "validation, %", "learned, leave-one-out, %"])
    for entry in entries:
        if "warning" in entry:
            say(f"warning, version {entry['version']}: {entry['warning']}.")


def print_hint(folder: "ModelFolder", entries: Sequence[dict[str, Any]]) -> None:
    """One line if the changes of a model ask for a refit; a folder that cannot be opened has other troubles."""
    from graphfcl.cli.show import say
    from graphfcl.production.ageing import verdict
    from graphfcl.production.model_info import signs_in_history

    with suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        signs = signs_in_history(entries, folder.load().configuration)
        if any(sign.over for sign in signs):
            said = verdict(signs)
            say(f"{said[0].upper()}{said[1:]}: `graphfcl info --model {folder.path}` has the figures.")


def _percent(accuracy: dict[str, Any], key: str) -> str:
    if not accuracy:
        return ""
    return "not measured" if accuracy.get(key) is None else f"{100 * accuracy[key]:.1f}"


def _said(entry: dict[str, Any]) -> str:
    """A change in a few words; an entry that lacks some of them was not written by graphfcl."""
    try:
        return _told(entry)
    except (LookupError, TypeError, ValueError, AttributeError):
        return str(entry["what"])


def _told(entry: dict[str, Any]) -> str:
    what = entry["what"]
    if what == "fit":
        return f"fit on {entry['graph']}: {len(entry['classes'])} classes, {entry['labelled']:,} labelled nodes"
    if what == "refit":
        compared = entry["compared"]
        both = [f"{100 * compared[key]:.1f}" for key in ("before", "after")] if compared["nodes"] else ["?", "?"]
        trained = f"refit: {len(entry['classes'])} classes, {entry['labelled']:,} labelled nodes"
        return f"{trained}; {both[0]} to {both[1]} % on {compared['nodes']:,} held-out nodes"
    if what == "learn":
        parts = [
            f"{name}{' (new)' if name in entry['new'] else ''} from {_some(nodes)}"
            for name, nodes in entry["supports"].items()
        ]
        return f"learn {'; '.join([*parts, *_settled(entry)])}"
    if what in ("grow", "shrink"):
        return f"{what}: {entry['nodes']:,} nodes, {entry['edges']:,} edges; {entry['within_reach']:.1%} within reach"
    if what == "unlearn":
        return f"unlearn {_some(entry['nodes'])}"
    if what == "rename":
        return f"rename {entry['from']} to {entry['to']}"
    if what == "merge":
        return f"merge {entry['from']} into {entry['into']}"
    if what == "retire":
        return f"retire {entry['class']}"
    if what == "erase":
        counted = (_count(entry["nodes"], "node"), _count(entry["labels"], "label"))
        return f"erase {' and '.join(counted)} from {_count(entry['versions'], 'version')}"
    if what == "rollback":
        return f"rollback to version {entry['to']}"
    return f"{what}: {entry.get('error', '')}"


def _settled(entry: dict[str, Any]) -> list[str]:
    """Labels that were said again, and conflicts."""
    said = []
    if entry.get("agreed"):
        said.append(f"said again of {_some(entry['agreed'])}")
    for conflict in entry.get("conflicts", ())[:5]:
        both = [(conflict["label"], conflict["label_by"]), (conflict["said"], conflict["said_by"])]
        kept, gone = both if entry["settled"] == "keep" else reversed(both)
        said.append(f"{conflict['node']} is {_by(*kept)} against {_by(*gone)}")
    if len(entry.get("conflicts", ())) > 5:
        said.append(f"and {len(entry['conflicts']) - 5} more conflicts")
    return said


def _by(name: str, who: str) -> str:
    return f"{name} (by {who})" if who else name


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _some(nodes: list[Any]) -> str:
    if not nodes:
        return "nodes that were erased"
    shown = ", ".join(str(node) for node in nodes[:5])
    return shown if len(nodes) <= 5 else f"{shown} and {len(nodes) - 5} more"
