"""Removing old versions: never the newest, never what a kept version needs, and killed at any moment nothing is lost.

First the changes of the versions that go are written down; then their manifests go, oldest first; then the objects
that no manifest names any more. Whoever is killed in between leaves a folder that is whole, and the next call goes on.
"""

from dataclasses import dataclass
from typing import Any

from graphfcl.errors import InputError
from graphfcl.production.model.parts import whole_number
from graphfcl.production.model.versions import Versions
from graphfcl.production.model.wholeness import Wholeness, remove_manifests, remove_objects
from graphfcl.production.store.damage import Damaged
from graphfcl.production.store.manifests import PRUNED


@dataclass(frozen=True)
class Pruned:
    """What a call removed: versions, and bytes of objects. kept: versions that are left."""

    versions: tuple[int, ...]
    kept: tuple[int, ...]
    freed: int


def prune(versions: Versions, keep: int, *, wait: float = 60.0) -> Pruned:
    """Keep the newest ``keep`` versions of a folder."""
    if whole_number(keep, "the number of versions to keep", 3) < 1:
        raise InputError(f"{keep} versions cannot be kept: keep at least 1.")
    if not versions.exists() and not versions.manifests.numbers():
        raise InputError(f"{versions.path} holds no model: check the path.")
    with versions.writing(wait):
        newest = versions.current()
        there = versions.manifests.numbers()
        kept = [number for number in there if newest - keep < number <= newest]
        going = [number for number in there if number <= newest - keep]
        needed = _needed(versions, kept)
        _write_down(versions, going)
        # A manifest above the pointer was never acknowledged.
        remove_manifests(versions.manifests, [*going, *(number for number in there if number > newest)])
        return Pruned(tuple(going), tuple(kept), remove_objects(versions.path, versions.lock, needed))


def _needed(versions: Versions, kept: list[int]) -> set[str]:
    """The objects of all kept versions; an error if that cannot be told of one, and nothing is removed."""
    check = Wholeness(versions.manifests, versions.objects)
    found: set[str] = set()
    for number in kept:
        try:
            found |= check.needed(versions.manifest(number))
        except Damaged as error:
            raise versions.damaged(number, f"{error}, so nobody can say what it needs, and nothing was removed") from (
                error
            )
    return found


def _write_down(versions: Versions, going: list[int]) -> None:
    """Keep the changes of the versions that go, without the accuracy of single classes."""
    if not going:
        return
    try:
        _, entries = versions.manifests.pruned()
    except Damaged as error:
        raise InputError(f"{versions.path}: versions/{PRUNED} {error}: move it away; nothing was removed.") from error
    said = {entry["version"] for entry in entries}
    for number in going:
        if number in said:
            continue
        for change in _changes(versions, number):
            entries.append({**_shortened(change), "version": number, "pruned": True})
    versions.lock.check()
    versions.manifests.write_pruned(going[-1], entries)


def _changes(versions: Versions, number: int) -> list[dict[str, Any]]:
    try:
        return versions.manifests.read(number)["changes"]
    except (Damaged, InputError) as error:
        return [{"when": "", "what": "damaged", "error": str(error)}]


def _shortened(change: dict[str, Any]) -> dict[str, Any]:
    accuracy = change.get("accuracy")
    if not accuracy:
        return change
    return {**change, "accuracy": {key: value for key, value in accuracy.items() if key != "classes"}}
