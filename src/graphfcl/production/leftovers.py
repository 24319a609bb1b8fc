"""Removing what no version of a folder needs any more."""

from collections.abc import Iterable
from pathlib import Path

from graphfcl.files import flush_folder
from graphfcl.production.storage.locks import WriterLock
from graphfcl.production.storage.manifests import Manifests
from graphfcl.production.storage.objects import NAME


def remove_manifests(manifests: Manifests, going: Iterable[int]) -> None:
    """Some versions go."""
    for number in going:
        manifests.path(number).unlink(missing_ok=True)
    # The names are gone for good before an object is that a manifest names.
    flush_folder(manifests.folder / "versions")


def remove_objects(folder: Path, lock: WriterLock, needed: set[str]) -> int:
    """All objects go but those that are needed; how many bytes that frees. folder: of the model."""
    freed = 0
    lock.check()
    for path in (folder / "objects").iterdir():
        if path.name not in needed and NAME.fullmatch(path.name):
            freed += path.stat().st_size
            path.unlink(missing_ok=True)
    flush_folder(folder / "objects")
    return freed
