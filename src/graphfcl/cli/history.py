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
    from graphfcl.production.labels.history import change_notes, change_text

    rows = []
    for entry in entries:
        accuracy = entry.get("accuracy") or {}
        rows.append(
            (
                entry["version"],
                entry["when"].replace("+00:00", "Z"),
                f"{change_text(entry)}{' (pruned)' if entry.get('pruned') else ''}",
                _percent(accuracy, "validation"),
                _percent(accuracy, "leave_one_out"),
            )
        )
    columns = ("version", "when", "what", "validation, %", "learned, leave-one-out, %")
    print_table(columns, rows, numbers=["version", "validation, %", "learned, leave-one-out, %"])
    for entry in entries:
        for note in change_notes(entry):
            say(f"note, version {entry['version']}: {note}")
        if "warning" in entry:
            say(f"warning, version {entry['version']}: {entry['warning']}.")


def print_hint(folder: "ModelFolder", entries: Sequence[dict[str, Any]]) -> None:
    """One line if the changes of a model ask for a refit; a folder that cannot be opened has other troubles."""
    from graphfcl.cli.show import say
    from graphfcl.production.model.info import signs_in_history, verdict

    with suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        signs = signs_in_history(entries, folder.load().configuration)
        if any(sign.over for sign in signs):
            said = verdict(signs)
            say(f"{said[0].upper()}{said[1:]}: `graphfcl info --model {folder.path}` has the figures.")


def _percent(accuracy: dict[str, Any], key: str) -> str:
    return "not measured" if accuracy.get(key) is None else f"{100 * accuracy[key]:.1f}"
