"""Which objects a version needs, whether they are all there and whole, and removing those that none needs."""

from collections.abc import Iterable
from pathlib import Path

from graphfcl.errors import InputError
from graphfcl.production.model.codec import TREES
from graphfcl.production.store.block_arrays import checked
from graphfcl.production.store.damage import Damaged, need
from graphfcl.production.store.locks import WriterLock
from graphfcl.production.store.manifests import Manifest, Manifests
from graphfcl.production.store.objects import NAME, ObjectFolder
from graphfcl.production.store.trees import read_tree
from graphfcl.runtime.files import flush_folder


class Wholeness:
    """Looks at the versions of one folder; an object that several of them share is looked at once."""

    def __init__(self, manifests: Manifests, objects: ObjectFolder) -> None:
        self._manifests, self._objects = manifests, objects
        self._seen: dict[str, bool] = {}

    def is_whole(self, version: int) -> bool:
        """Whether manifest, trees and blocks of a version are what their checksums say."""
        try:
            manifest = self._manifests.read(version)
            return all(self._is_block(name, size) for name, size in self._blocks(manifest))
        except (Damaged, InputError):
            return False

    def needed(self, manifest: Manifest) -> set[str]:
        """The names of all files under ``objects`` that a version needs; :class:`Damaged` if that cannot be told."""
        trees = {manifest["trees"].get(name, [""])[0] for name in TREES}
        return trees | {name for name, _ in self._blocks(manifest)}

    def cut_short(self, manifest: Manifest) -> list[str]:
        """The files under ``objects`` that a version needs and that are gone or of another length."""
        return sorted(name for name, size in self._blocks(manifest) if not self._objects.is_there(name, size))

    def _blocks(self, manifest: Manifest) -> set[tuple[str, int]]:
        """Name and size of every block."""
        found = set()
        for name in TREES:
            need(name in manifest["trees"], f"its manifest does not name {name!r}")
            for index in read_tree(self._objects, manifest["trees"][name]).arrays.values():
                dtype, _, blocks = checked(index)
                found |= {(block, items * dtype.itemsize) for block, items in blocks}
        return found

    def _is_block(self, name: str, size: int) -> bool:
        if name not in self._seen:
            try:
                self._objects.get(name, size)
                self._seen[name] = True
            except Damaged:
                self._seen[name] = False
        return self._seen[name]


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
