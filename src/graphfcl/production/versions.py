"""A model on disk: numbered, immutable versions and one pointer.

::

    current                    {"version": 7, "sha256": that of its manifest}
    versions/000007.json       the manifest of version 7: names of its files, plain values, its changes, its checksum
    objects/<sha256>.npz|…     the files; a version shares those that did not change
    cache/                     embeddings and scores of the newest version: may be deleted at any time
    lock                       held by the one process that writes

A version's files are written aside, flushed and renamed; then its manifest; then the pointer. Whoever reads follows the
pointer and finds whole versions only. Nothing that the pointer ever showed is changed or removed.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.files import canonical_json, file_lock, flush_folder, make_folder, read_bytes, sha256_of, write_bytes
from graphfcl.production.codec import FILES, Damaged, Files, decode, encode
from graphfcl.production.history import Entry, History, last_accuracy, now, unsaved
from graphfcl.production.model_parts import ModelParts
from graphfcl.production.version_cache import VersionCache
from graphfcl.version import __version__

FORMAT = 1

Manifest = dict[str, Any]


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A version that was read. scores: (n, columns) of every node of its graph, if they were in the cache."""

    parts: ModelParts
    history: History
    version: int
    scores: np.ndarray | None


class Versions:
    """The versions of one model in a folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.cache = VersionCache(self.path / "cache" / "newest.safetensors")

    # Reading

    def exists(self) -> bool:
        """Whether there is a version that the pointer shows."""
        return (self.path / "current").exists()

    def current(self) -> int:
        """The number of the newest version."""
        self.refuse_lost_pointer()
        content = read_bytes(self.path / "current", "the model")
        try:
            pointer = json.loads(content)
            version, wanted = int(pointer["version"]), pointer["sha256"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._lost("is damaged") from error
        try:
            named = json.loads(self._manifest_path(version).read_bytes())["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            return version  # a damaged manifest is found when it is read
        if named != wanted:
            raise self._lost("is damaged, it does not fit the version it names")
        return version

    def manifest(self, version: int) -> Manifest:
        """The verified manifest of a version."""
        path = self._manifest_path(version)
        if not path.exists():
            if self.exists() and version <= self.current():
                raise self._damaged(version, f"{path.name} is missing")
            raise InputError(
                f"{self.path} has no version {version}: `graphfcl history --model {self.path}` lists them."
            )
        try:
            manifest = json.loads(read_bytes(path, "the version"))
            claimed = manifest.pop("sha256")
            number = manifest["format"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._damaged(version, f"{path.name} is no manifest of a version") from error
        if not isinstance(number, int) or number > FORMAT:
            raise InputError(
                f"{self.path}, version {version}, has format {number}; this graphfcl reads up to {FORMAT}: use the "
                f"graphfcl that wrote it ({manifest.get('graphfcl', 'unknown')})."
            )
        if claimed != sha256_of(canonical_json(manifest)):
            raise self._damaged(version, f"the checksum of {path.name} does not fit")
        return manifest

    def load(self, version: int | None = None, *, device: str = "cpu") -> StoredModel:
        """A version, the newest if none is named."""
        number = self.current() if version is None else version
        manifest = self.manifest(number)
        files = self._read_files(manifest)
        try:
            parts = decode(files, manifest["values"], device=device)
        except Damaged as error:
            raise self._damaged(number, str(error)) from error
        return StoredModel(parts, self.history(number), number, self.cache.read(manifest, parts))

    def history(self, upto: int | None = None) -> History:
        """Every change, oldest first, with the version that holds it."""
        entries: History = []
        for number in range(1, (self.current() if upto is None else upto) + 1):
            try:
                entries += [{**change, "version": number} for change in self.manifest(number)["changes"]]
            except InputError as error:
                entries.append({"version": number, "when": "", "what": "damaged", "error": str(error)})
        return entries

    def _read_files(self, manifest: Manifest) -> Files:
        files = {}
        for name, path in self._object_paths(manifest["files"]).items():
            try:
                files[name] = read_bytes(path, "the file")
            except InputError as error:
                raise self._damaged(manifest["version"], f"its file {path.name} cannot be read") from error
            if sha256_of(files[name]) != path.stem:
                raise self._damaged(manifest["version"], f"its file {path.name} ({name}) has another checksum")
        return files

    def _object_paths(self, digests: dict[str, str]) -> dict[str, Path]:
        return {name: self.path / "objects" / f"{digests[name]}.{kind}" for name, kind in FILES.items()}

    def _manifest_path(self, version: int) -> Path:
        return self.path / "versions" / f"{version:06d}.json"

    # Damage

    def refuse_lost_pointer(self) -> None:
        """Versions without a pointer must not be written over; a first one alone was never acknowledged."""
        if not self.exists() and self._newest_whole() and self._numbers() != [1]:
            raise self._lost("is missing")

    def _lost(self, how: str) -> InputError:
        return InputError(
            f"{self.path / 'current'} {how}: `graphfcl rollback --model {self.path} {self._newest_whole()}` goes on "
            "from the last version that is whole."
        )

    def _damaged(self, version: int, why: str) -> InputError:
        good = self._newest_whole(below=version)
        hint = (
            f"`graphfcl rollback --model {self.path} {good}` goes on from the last version before it that is whole"
            if good
            else "there is no whole version before it"
        )
        return InputError(f"{self.path}: version {version} is damaged, {why}: {hint}.")

    def _newest_whole(self, below: int | None = None) -> int:
        """The newest version whose manifest and files are all whole; 0 if there is none."""
        for number in reversed(self._numbers()):
            if below is not None and number >= below:
                continue
            try:
                manifest = json.loads(self._manifest_path(number).read_bytes())
                if manifest.pop("sha256") != sha256_of(canonical_json(manifest)):
                    continue
                paths = self._object_paths(manifest["files"]).values()
                if all(sha256_of(path.read_bytes()) == path.stem for path in paths):
                    return number
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
        return 0

    def _numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in (self.path / "versions").glob("*.json") if path.stem.isdigit())

    # Writing

    @contextmanager
    def writing(self, wait: float = 60.0) -> Iterator[None]:
        """Only one process writes at a time; another waits so many seconds, then it is refused."""
        with file_lock(self.lock_path(), wait=wait) as ours:
            if not ours:
                raise InputError(
                    f"{self.path} is being changed by another process, for longer than {wait:g} s: try again later, or "
                    "wait longer with --wait; nothing was changed."
                )
            self._sweep()
            yield

    def lock_path(self) -> Path:
        """The lock file. It is made if it is missing, which shows that the folder can be written."""
        try:
            make_folder(self.path)
            path = self.path / "lock"
            open(path, "ab").close()
            return path
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be written ({error.strerror}): choose a folder that you may write to."
            ) from error

    def _sweep(self) -> None:
        """Remove what a killed writer left half done; nobody else writes now."""
        for folder in ("objects", "versions", "cache", "."):
            for path in (self.path / folder).glob(".*.tmp"):
                with suppress(OSError):
                    path.unlink()

    def refuse_unrelated(self, loaded: int | None) -> None:
        """A model may follow only the version that it was loaded from or saved as."""
        there = self.current() if self.exists() else None
        if there is not None and loaded != there:
            raise InputError(
                f"{self.path} holds version {there} of a model, which this one was not loaded from: load it and "
                "change it again, or save to another folder."
            )

    def write(self, parts: ModelParts, history: History, *, loaded: int | None) -> Manifest:
        """Write the next version; the caller holds the lock. A first version holds the whole history.

        loaded: the version that the model was loaded from or saved as.
        """
        files, values = encode(parts)
        parent = loaded if self.exists() else None
        number = 1 if parent is None else parent + 1
        entries = history if parent is None else unsaved(history)
        changes = [{key: value for key, value in entry.items() if key != "version"} for entry in entries]
        return self._publish(number, parent, self._write_files(files), values, changes)

    def _write_files(self, files: Files) -> dict[str, str]:
        """Write those that are not there yet; the checksum of each."""
        digests = {name: sha256_of(content) for name, content in files.items()}
        for name, path in self._object_paths(digests).items():
            with suppress(OSError):
                if sha256_of(path.read_bytes()) == digests[name]:
                    continue
            write_bytes(path, files[name])
        flush_folder(self.path / "objects")  # a file found there may come from a writer that was killed before this
        return digests

    def _publish(
        self, number: int, parent: int | None, files: dict[str, str], values: dict[str, Any], changes: list[Entry]
    ) -> Manifest:
        """Write the manifest of a version whose files are there, then move the pointer."""
        manifest = {
            "format": FORMAT,
            "graphfcl": __version__,
            "version": number,
            "parent": parent,
            "written": now(),
            "files": files,
            "values": values,
            "changes": changes,
        }
        # Through JSON once, so that the checksum is that of what will be read.
        manifest = json.loads(canonical_json(manifest))
        digest = sha256_of(canonical_json(manifest))
        content = canonical_json({**manifest, "sha256": digest})
        pointer = canonical_json({"version": number, "sha256": digest})
        write_bytes(self._manifest_path(number), content)
        write_bytes(self.path / "current", pointer)
        return manifest

    def rollback(self, version: int, *, wait: float = 60.0) -> int:
        """Write a new version equal to an old one; returns its number. Works also if newer versions are damaged."""
        if not (self.path / "versions").is_dir():
            raise InputError(f"{self.path} holds no model: check the path.")
        with self.writing(wait):
            old = self.manifest(version)
            stored = self.load(version)
            number = self._numbers()[-1] + 1
            with suppress(InputError):
                # A manifest above the pointer was never acknowledged: its number is free.
                number = self.current() + 1
            change: Entry = {"what": "rollback", "to": version, "when": now()}
            accuracy = last_accuracy(stored.history)
            if accuracy:
                change["accuracy"] = accuracy
            manifest = self._publish(number, number - 1, old["files"], old["values"], [change])
            scores = stored.parts.compute_scores() if stored.scores is None else stored.scores
            self.cache.write(manifest, stored.parts, scores)
            return number
