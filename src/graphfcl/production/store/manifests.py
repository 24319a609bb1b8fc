"""The pointer to the newest version, and one manifest for each version that says what it consists of."""

import json
import math
import re
from pathlib import Path
from typing import Any

from graphfcl.errors import InputError
from graphfcl.production.store.damage import Damaged, need
from graphfcl.production.store.objects import ReadCounter, read_file
from graphfcl.production.store.strict_json import read_json, whole_number
from graphfcl.runtime.files import canonical_json, flush_folder, sha256_of, write_bytes

FORMAT = 2
LARGEST = 1 << 26  # bytes of a manifest
PAGE = re.compile(r"[0-9]{6,15}\.json")
PRUNED = "pruned.json"
ERASING = "erasing.json"

Manifest = dict[str, Any]


class NotKept(InputError):
    """A change makes something that no version can hold; nothing is wrong with the folder."""


class Newer(InputError):
    """A version of a format that this graphfcl does not know yet."""


class Manifests:
    """The manifests of one folder. Everything that is wrong with one is said as :class:`Damaged`."""

    def __init__(self, folder: Path, counter: ReadCounter) -> None:
        self.folder, self._counter = folder, counter

    def path(self, version: int) -> Path:
        return self.folder / "versions" / f"{version:06d}.json"

    def numbers(self) -> list[int]:
        """Of all manifests there are, whole or not, ascending."""
        names = [path.name for path in (self.folder / "versions").glob("*.json") if PAGE.fullmatch(path.name)]
        return sorted(int(name.removesuffix(".json")) for name in names if self.path(int(name[:-5])).name == name)

    def read(self, version: int) -> Manifest:
        """The manifest of a version, verified."""
        found = self._read(self.path(version))
        claimed, number = found.pop("sha256", None), found.get("format")
        if type(number) is int and number > FORMAT:
            wrote = str(found.get("graphfcl", "unknown"))[:40]
            raise Newer(
                f"{self.folder}, version {version}, has format {number}; this graphfcl reads up to {FORMAT}: use the "
                f"graphfcl that wrote it ({wrote})."
            )
        need(number == FORMAT, "has no format that can be")
        need(claimed == sha256_of(canonical_json(found)), "has another checksum than it says")
        number = whole_number(found.get("version"), "its version", 1, 10**15 - 1)
        need(number == version, "is the manifest of another version")
        _check(found)
        return {**found, "sha256": claimed}

    def write(self, manifest: Manifest) -> Manifest:
        """Write a manifest; as it will be read."""
        sealed = _sealed(manifest)
        _write(self.path(sealed["version"]), canonical_json(sealed))
        return sealed

    # The pointer

    def pointer(self) -> tuple[int, str]:
        """The newest version, and the checksum of its manifest."""
        found = self._read(self.folder / "current")
        return whole_number(found.get("version"), "its version", 1, 10**15 - 1), str(found.get("sha256"))

    def point(self, manifest: Manifest) -> None:
        """Let the pointer show a version."""
        pointer = canonical_json({"version": manifest["version"], "sha256": manifest["sha256"]})
        write_bytes(self.folder / "current", pointer)

    # Versions that were pruned

    def pruned(self) -> tuple[int, list[dict[str, Any]]]:
        """Up to which version the folder was pruned, and the changes of those that are gone."""
        path = self.folder / "versions" / PRUNED
        if not path.exists():
            return 0, []
        found = self._unsealed(path)
        entries: Any = found.get("entries")
        _check_entries(entries)
        for entry in entries:
            whole_number(entry.get("version"), "the version of a change", 1)
        return whole_number(found.get("upto"), "the last version that was pruned"), entries

    def write_pruned(self, upto: int, entries: list[dict[str, Any]]) -> None:
        """Note what is about to go."""
        sealed = _sealed({"format": FORMAT, "upto": upto, "entries": entries})
        _write(self.folder / "versions" / PRUNED, canonical_json(sealed))

    # Nodes that are being erased

    def erasing(self) -> dict[str, Any] | None:
        """The plan of an erasure that is not finished: ``manifests``, ``pruned`` and ``report``."""
        path = self.folder / "versions" / ERASING
        if not path.exists():
            return None
        found = self._unsealed(path)
        planned: Any = found.get("manifests")
        need(isinstance(planned, list) and len(planned) > 0, "lacks its manifests")
        for manifest in planned:
            need(isinstance(manifest, dict) and manifest.get("format") == FORMAT, "has another format")
            whole_number(manifest.get("version"), "the version of a manifest", 1, 10**15 - 1)
            _check(manifest)
        pruned = found.get("pruned")
        if pruned is not None:
            need(isinstance(pruned, list) and len(pruned) == 2, "lacks what was pruned")
            whole_number(pruned[0], "the last version that was pruned")
            _check_entries(pruned[1])
        need(isinstance(found.get("report"), dict), "lacks its report")
        return found

    def write_erasing(self, plan: dict[str, Any]) -> None:
        """Note what will be done, whoever is killed."""
        content = canonical_json(_sealed({"format": FORMAT, **plan}))
        if len(content) > LARGEST:
            raise InputError(
                f"{self.folder} has too many versions to erase from all of them at once: prune it first; nothing was "
                "erased."
            )
        write_bytes(self.folder / "versions" / ERASING, content)

    def remove_erasing(self) -> None:
        """It is done."""
        (self.folder / "versions" / ERASING).unlink(missing_ok=True)
        flush_folder(self.folder / "versions")

    def _unsealed(self, path: Path) -> dict[str, Any]:
        found = self._read(path)
        claimed = found.pop("sha256", None)
        need(claimed == sha256_of(canonical_json(found)), "has another checksum than it says")
        return found

    def _read(self, path: Path) -> dict[str, Any]:
        found = read_json(read_file(path, LARGEST, self._counter))
        need(isinstance(found, dict), "is no manifest")
        return found


def _write(path: Path, content: bytes) -> None:
    """Write what can be read again."""
    try:
        read_json(content)
    except Damaged as error:
        raise NotKept(f"{path} cannot be written, {error}; nothing was changed.") from error
    if len(content) > LARGEST:
        raise NotKept(
            f"{path} would be longer than {LARGEST:,} bytes: make the change in several steps; nothing was changed."
        )
    write_bytes(path, content)


def _sealed(values: dict[str, Any]) -> dict[str, Any]:
    """With its checksum."""
    # Through JSON once, so that the checksum is that of what will be read.
    plain = json.loads(canonical_json(values))
    return {**plain, "sha256": sha256_of(canonical_json(plain))}


def _check(manifest: Manifest) -> None:
    """All that the code behind it relies on."""
    parent = manifest.get("parent")
    need(parent is None or type(parent) is int, "has no parent that can be")
    need(isinstance(manifest.get("values"), dict), "lacks its values")
    _check_entries(manifest.get("changes"))
    need(isinstance(manifest.get("trees"), dict), "lacks its files")
    past = manifest.get("past")
    if not isinstance(past, dict):
        raise Damaged("lacks its past")
    whole_number(past.get("changes"), "the number of changes before it")
    _check_accuracy(past.get("accuracy"))
    need(past.get("accuracy") is None or "classes" in past["accuracy"], "lacks the accuracy of its classes")


def _check_entries(entries: Any) -> None:
    need(isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries), "lacks its changes")
    for entry in entries:
        need(all(isinstance(entry.get(key, ""), str) for key in ("what", "when", "warning")), "has a change of no kind")
        need("what" in entry and "when" in entry, "has a change of no kind")
        _check_accuracy(entry.get("accuracy"))


def _check_accuracy(accuracy: Any) -> None:
    if accuracy is None:
        return
    if not isinstance(accuracy, dict) or not isinstance(accuracy.get("classes", {}), dict):
        raise Damaged("has an accuracy that is none")
    means = (accuracy.get("validation"), accuracy.get("leave_one_out"))
    numbers = [*accuracy.get("classes", {}).values(), *(mean for mean in means if mean is not None)]
    fits = all(type(number) in (int, float) and math.isfinite(number) for number in numbers)
    need(fits, "has an accuracy that is none")
