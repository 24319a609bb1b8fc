"""What the database of a model holds of each version: its parts by checksum, its changes, its own checksum.

========  =============================================================================
version   the manifest of a version, by its number
pruned    the changes of a version that was pruned
erasure   number 0, while an erasure is not finished: what its caller is told
========  =============================================================================
"""

import re
from typing import Any

from graphfcl.production.model.codec import PARTS
from graphfcl.production.store.checks import Damaged, need, whole_number
from graphfcl.production.store.database import Database
from graphfcl.production.store.parts import StoredPart

VERSION, PRUNED, ERASURE = "version", "pruned", "erasure"
NAME = re.compile(r"[0-9a-f]{64}")

Manifest = dict[str, Any]


def read_manifest(database: Database, version: int) -> Manifest:
    """The manifest of a version with its checksum, verified."""
    manifest, digest = database.document(VERSION, version)
    need(whole_number(manifest.get("version"), "its version", 1, 10**15 - 1) == version, "it is of another version")
    parent, parts, past = (manifest.get(key) for key in ("parent", "parts", "past"))
    need(parent is None or type(parent) is int, "it has no parent that can be")
    need(isinstance(manifest.get("values"), dict), "it lacks its values")
    check_changes(manifest.get("changes"))
    if not isinstance(parts, dict) or not all(NAME.fullmatch(str(parts.get(name))) for name in PARTS):
        raise Damaged("it does not name its parts")
    if not isinstance(past, dict):
        raise Damaged("it lacks its past")
    whole_number(past.get("changes"), "the number of changes before it")
    _check_accuracy(past.get("accuracy"))
    need(past.get("accuracy") is None or "classes" in past["accuracy"], "it lacks the accuracy of its classes")
    return {**manifest, "sha256": digest}


def read_pruned(database: Database, version: int) -> list[dict[str, Any]]:
    """The changes of a version that was pruned."""
    changes = database.document(PRUNED, version)[0].get("changes")
    check_changes(changes)
    return changes  # type: ignore[return-value]


def chunks_of(database: Database, manifest: Manifest) -> dict[str, int]:
    """Names of all chunks that a version needs, with their bytes; those of the descriptions of its parts have -1."""
    chunks = {manifest["parts"][name]: -1 for name in PARTS}
    for name in list(chunks):
        chunks |= StoredPart(database, name).chunks()
    return chunks


def is_whole(database: Database, version: int, verified: set[str]) -> bool:
    """Whether a version is what its checksums say. verified: chunks that are, to which more are added."""
    try:
        for name in chunks_of(database, read_manifest(database, version)).keys() - verified:
            database.chunk(name)
            verified.add(name)
    except Damaged:
        return False
    return True


def check_changes(changes: Any) -> None:
    """Refuse what is no list of entries of a history."""
    need(isinstance(changes, list) and all(isinstance(entry, dict) for entry in changes), "it lacks its changes")
    for entry in changes:
        need("what" in entry and "when" in entry, "it has a change of no kind")
        texts = (entry.get(key, "") for key in ("what", "when", "warning"))
        need(all(isinstance(text, str) for text in texts), "it has a change of no kind")
        _check_accuracy(entry.get("accuracy"))


def _check_accuracy(accuracy: Any) -> None:
    if accuracy is None:
        return
    if not isinstance(accuracy, dict) or not isinstance(accuracy.get("classes", {}), dict):
        raise Damaged("it has an accuracy that is none")
    means = (accuracy.get("validation"), accuracy.get("leave_one_out"))
    numbers = [*accuracy.get("classes", {}).values(), *(mean for mean in means if mean is not None)]
    fits = all(type(number) in (int, float) and -1e300 < number < 1e300 for number in numbers)
    need(fits, "it has an accuracy that is none")
