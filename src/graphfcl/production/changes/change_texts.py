"""What an entry of the history says, in a few words."""

from typing import Any

from graphfcl.errors import counted, quoted


def change_text(entry: dict[str, Any]) -> str:
    """A change in a few words; an entry that lacks some of them was not written by graphfcl."""
    try:
        return _told(entry)
    except (LookupError, TypeError, ValueError, AttributeError):
        return str(entry["what"])


def change_notes(entry: dict[str, Any]) -> list[str]:
    """Sentences on what a user might not expect of a change."""
    known, words, unknown = (entry.get(key) for key in ("known", "words", "unknown_words"))
    notes = []
    if isinstance(known, list) and known:
        notes.append(
            f"{counted(len(known), 'node')} had this label already ({_some(known)}): nothing changed for them."
        )
    alike = entry.get("alike")
    if isinstance(alike, list) and alike and isinstance(alike[0], list):
        names = ", ".join(" and ".join(quoted(name) for name in group) for group in alike)
        notes.append(f"{names} differ only by case or accents and are different classes: `merge` makes one of two.")
    if entry["what"] == "grow" and isinstance(words, int) and isinstance(unknown, int) and unknown:
        notes.append(
            f"{unknown:,} of {words:,} words of the new nodes are outside the vocabulary of the fit and passed over: "
            "`refit --graph` learns new words."
        )
    return notes


def _told(entry: dict[str, Any]) -> str:
    what = entry["what"]
    if what == "fit":
        return f"fit on {entry['graph']}: {_trained_on(entry)}"
    if what == "refit":
        compared = entry["compared"]
        both = [f"{100 * compared[key]:.1f}" for key in ("before", "after")] if compared["nodes"] else ["?", "?"]
        return f"refit: {_trained_on(entry)}; {both[0]} to {both[1]} % on {counted(compared['nodes'], 'held-out node')}"
    if what == "learn":
        parts = [
            f"{name}{' (new)' if name in map(str, entry['new']) else ''} from {_some(nodes)}"
            for name, nodes in entry["supports"].items()
        ]
        return f"learn {'; '.join([*parts, *_settled(entry)])}"
    if what in ("grow", "shrink"):
        reach = f"; {entry['within_reach']:.1%} within reach" if "within_reach" in entry else ""
        return f"{what}: {counted(entry['nodes'], 'node')}, {counted(entry['edges'], 'edge')}{reach}"
    if what == "unlearn":
        return f"unlearn {_some(entry['nodes'])}"
    if what == "rename":
        return f"rename {entry['from']} to {entry['to']}"
    if what == "merge":
        return f"merge {entry['from']} into {entry['into']}"
    if what == "retire":
        return f"retire {entry['class']}"
    if what == "erase":
        removed = (counted(entry["nodes"], "node"), counted(entry["labels"], "label"))
        return f"erase {' and '.join(removed)} from {counted(entry['versions'], 'version')}"
    if what == "rollback":
        return f"rollback to version {entry['to']}"
    return f"{what}: {entry.get('error', '')}"


def _trained_on(entry: dict[str, Any]) -> str:
    return f"{counted(len(entry['classes']), 'class')}, {counted(entry['labelled'], 'labelled node')}"


def _settled(entry: dict[str, Any]) -> list[str]:
    """Labels that were said again, and conflicts."""
    said = []
    if entry.get("agreed"):
        said.append(f"said again of {_some(entry['agreed'])}")
    if entry.get("known"):
        said.append(f"known already: {_some(entry['known'])}")
    for conflict in entry.get("conflicts", ())[:5]:
        both = [(conflict["label"], conflict["label_by"]), (conflict["said"], conflict["said_by"])]
        kept, gone = both if entry["settled"] == "keep" else reversed(both)
        said.append(f"{conflict['node']} is {_by(*kept)} against {_by(*gone)}")
    if len(entry.get("conflicts", ())) > 5:
        said.append(f"and {len(entry['conflicts']) - 5} more conflicts")
    return said


def _by(name: str | int, who: str) -> str:
    return f"{name} (by {who})" if who else str(name)


def _some(nodes: list[Any]) -> str:
    if not nodes:
        return "nodes that were erased"
    shown = ", ".join(str(node) for node in nodes[:5])
    return shown if len(nodes) <= 5 else f"{shown} and {len(nodes) - 5} more"
