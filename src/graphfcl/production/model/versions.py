"""A model on disk: numbered, immutable versions in one SQLite file.

::

    model.sqlite     manifests of all versions, and chunks of their arrays; versions share equal chunks
    cache.sqlite     embeddings and scores of the newest version; may be deleted at any time
    graph.json       for a model on a graph folder: where that folder and the work folder are
    work/            for a model on a graph folder: slices, blocks, scores; may be deleted at any time
    fitting/         checkpoints of a fit, until there is a model
    lock             locked by the one process that writes

A version is written in one transaction, and is not changed afterwards, with two exceptions: ``prune`` removes versions,
and ``erase`` rewrites all of them without some nodes. Each of these is one transaction, too.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from graphfcl.errors import InputError
from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.answers.version_cache import CacheContents, VersionCache, cache_keys
from graphfcl.production.graph.place import AS_BEFORE, FolderUse, work_folder
from graphfcl.production.labels.history import Entry, History, Past, now
from graphfcl.production.model.codec import encode
from graphfcl.production.model.parts import ModelParts, whole_number
from graphfcl.production.model.stored_version import (
    ERASURE,
    PRUNED,
    VERSION,
    Manifest,
    StoredVersion,
    chunks_of,
    is_whole,
    read_manifest,
    read_pruned,
)
from graphfcl.production.store.checks import Damaged
from graphfcl.production.store.database import Busy, Database
from graphfcl.production.store.parts import Parts
from graphfcl.runtime.files import file_lock, make_folder
from graphfcl.version import __version__

FITTING = "fitting"  # folder of the checkpoints of a fit


class Versions:
    """The versions of one model in a folder.

    Args:
        path: Path of the folder.
        use: Overrides for the graph folder's location and resource limits.
    """

    def __init__(self, path: str | Path, use: FolderUse = AS_BEFORE) -> None:
        self.path, self.use = Path(path), use
        self.database = Database(self.path / "model.sqlite")
        self.cache = VersionCache(self.path / "cache.sqlite")
        self.stored = Parts(self.database)

    def bytes_read(self) -> int:
        """Return the number of bytes read from the folder."""
        return self.database.bytes_read + self.cache.database.bytes_read

    # Reading

    def pointer(self) -> tuple[int, str] | None:
        """Return the newest version and its checksum, or None if there is no version."""
        self._refuse_link()
        with self._whole_file():
            return self.database.newest(VERSION)

    def exists(self) -> bool:
        """Return whether there is a version."""
        return self.pointer() is not None

    def current(self) -> int:
        """Return the number of the newest version, or raise an error if there is none."""
        newest = self.pointer()
        if newest is None:
            raise InputError(f"the model {self.path} does not exist: check the path.")
        return newest[0]

    def numbers(self, kind: str = VERSION) -> list[int]:
        """Return version numbers, ascending, including damaged ones.

        ``kind`` selects other documents, such as pruned versions.
        """
        with self._whole_file():
            return self.database.numbers(kind)

    def shows(self, version: int) -> bool:
        """Return whether a version is the newest."""
        try:
            return self.current() == version
        except InputError:
            return False

    def manifest(self, version: int) -> Manifest:
        """Return the verified manifest of a version."""
        version = whole_number(version, "the version", 3)
        self._refuse_link()
        try:
            return read_manifest(self.database, version)
        except Damaged as error:
            raise self.damaged(version, str(error)) from error

    def load(self, version: int | None = None, *, device: str = "cpu") -> StoredVersion:
        """Open a version, by default the newest one."""
        manifest = self.manifest(self.current() if version is None else version)
        refuse = partial(self._unreadable, manifest)
        return StoredVersion(self.path, manifest, self.stored, self.cache, refuse, device, self.use)

    def history(self, upto: int | None = None, *, after: int = 0) -> list[Entry]:
        """Return all changes of the versions after ``after`` and up to ``upto``, oldest first, with their versions."""
        last = self.current() if upto is None else whole_number(upto, "the version", 3)
        there = set(self.numbers())
        numbers = [number for number in sorted(there.union(self.numbers(PRUNED))) if after < number <= last]
        changes = ((number, self.changes(number, pruned=number not in there)) for number in numbers)
        return [{**change, "version": number} for number, each in changes for change in each]

    def changes(self, number: int, *, pruned: bool = False) -> list[Entry]:
        """Return the changes of one version."""
        try:
            if pruned:
                return [{**change, "pruned": True} for change in read_pruned(self.database, number)]
            return read_manifest(self.database, number)["changes"]
        except Damaged as error:
            return [{"when": "", "what": "damaged", "error": f"version {number}: {error}"}]

    def stored_history(self, manifest: Manifest) -> History:
        """Return the history of a version. It is read from the database only when it is used."""
        past, count = manifest["past"], manifest["past"]["changes"] + len(manifest["changes"])
        return History(past=Past(lambda: self.history(manifest["version"]), count, past.get("accuracy")))

    def keep_answers(
        self,
        manifest: Manifest,
        parts: ModelParts,
        answers: ModelAnswers,
        write: Callable[[CacheContents, Callable[[], bool]], None] | None,
    ) -> None:
        """Store the answers of a version for its next reader.

        Answers of a model in memory are written to the cache if the version is the newest one.

        Args:
            manifest: Manifest of the version.
            parts: Parts of the version.
            answers: Answers of the version.
            write: The cache's method ``write`` or ``start``, or None to skip caching.
        """

        def cache(contents: CacheContents) -> None:
            if write is not None and self.shows(manifest["version"]):
                write(contents, lambda: self.shows(manifest["version"]))

        parts.graph.keep_answers(answers, parts.learner, cache_keys(manifest), cache if write else None)

    # Damage

    @contextmanager
    def _whole_file(self) -> Iterator[None]:
        try:
            yield
        except Damaged as error:
            raise InputError(
                f"{self.database.path} is damaged, {error}: put a copy of it in its place, or choose another folder."
            ) from error

    def damaged(self, version: int, why: str) -> InputError:
        """Make the error for a damaged or missing version: what is wrong with it, and how to continue."""
        newest, there = self.pointer(), self.numbers()
        if newest is None:
            return InputError(f"{self.path} does not hold a model any more: check the path.")
        if version not in there:
            listed = f"`graphfcl history --model {self.path}` lists them"
            if version in self.numbers(PRUNED):
                return InputError(
                    f"{self.path}: version {version} was pruned, so its content is gone: choose a version that is "
                    f"kept; {listed}."
                )
            if not 0 < version <= newest[0]:
                return InputError(f"{self.path} has no version {version}: {listed}.")
        verified = set[str]()
        before = (number for number in reversed(there) if number < version)
        good = next((number for number in before if is_whole(self.database, number, verified)), 0)
        hint = (
            f"`graphfcl rollback --model {self.path} {good}` continues from the last intact version before it"
            if good
            else "there is no intact version before it"
        )
        return InputError(f"{self.path}: version {version} is damaged, {why}: {hint}.")

    def _unreadable(self, manifest: Manifest, why: str) -> InputError:
        """Make the error for a version that was loaded, but whose parts cannot be read."""
        number = manifest["version"]
        with suppress(Damaged):
            if read_manifest(self.database, number)["sha256"] != manifest["sha256"]:
                return InputError(
                    f"{self.path}: nodes were erased from version {number} while it was read: load it again."
                )
        return self.damaged(number, why)

    def refuse_missing_chunks(self, version: int) -> None:
        """Raise an InputError if a chunk of a version is missing or has the wrong length."""
        try:
            for name, size in chunks_of(self.database, self.manifest(version)).items():
                stored = self.database.chunk_size(name)
                if stored is None or size not in (stored, -1):
                    raise Damaged(f"its chunk {name[:12]} is {'missing' if stored is None else 'incomplete'}")
        except Damaged as error:
            raise self.damaged(version, str(error)) from error

    def _refuse_link(self) -> None:
        """Refuse a link in place of the folder of checkpoints: graphfcl would write and delete files elsewhere.

        The database checks its own files.
        """
        if (self.path / FITTING).is_symlink():
            raise InputError(
                f"{self.path / FITTING} is a symbolic link, and a model keeps its files in its own folder: put a "
                "folder in its place."
            )

    # Writing

    @contextmanager
    def writing(self, wait: float = 60.0) -> Iterator[dict[str, Any] | None]:
        """Hold the lock of the folder: only one process writes at a time.

        If another process holds the lock, this call waits up to ``wait`` seconds and then raises an error. The lock
        file is locked as long as the context lasts. SQLite's own lock protects the database even if the lock file is
        removed. Changes that are not committed at the end of the context are undone.

        Yields:
            The report of an interrupted erasure, which is completed first, or None.
        """
        with ExitStack() as stack:
            try:
                make_folder(self.path)
                ours = stack.enter_context(file_lock(self.path / "lock", wait=wait))
            except OSError as error:
                raise InputError(
                    f"{self.path} cannot be written ({error.strerror}): choose a folder that you may write to."
                ) from error
            if not ours:
                raise Busy.waited(self.path, wait)
            stack.callback(self.database.rollback)
            stack.enter_context(self._whole_file())
            self.database.begin(wait)
            if self.exists():  # the fit that made the model is complete
                shutil.rmtree(self.path / FITTING, ignore_errors=True)
            finished = self.finish_erasure()
            self.database.begin(wait)
            yield finished

    def refuse_unrelated(self, loaded: int | None) -> None:
        """Raise an InputError if the newest version is not the one that the model was loaded from or saved as."""
        newest = self.pointer()
        if newest is not None and loaded != newest[0]:
            raise InputError(
                f"{self.path} holds version {newest[0]} of a model, which this one was not loaded from: load it and "
                "change it again, or save to another folder."
            )

    def write(
        self, parts: ModelParts, history: History, *, loaded: int | None, request: Entry | None = None
    ) -> Manifest:
        """Write the next version. The caller holds the lock. The first version contains the whole history.

        Args:
            parts: Parts of the model.
            history: History of the model.
            loaded: Version that the model was loaded from or saved as.
            request: JSON values that the entry of the last change stores about the request that caused it.

        Returns:
            The manifest.
        """
        parent = loaded if self.exists() else None
        entries = history.entries() if parent is None else history.unsaved()
        changes = [{key: value for key, value in entry.items() if key != "version"} for entry in entries]
        if request is not None:
            changes[-1]["request"] = request
        parts.graph.write_place(self.path)
        with self.transaction():
            stored = {name: self.stored.write(source) for name, source in encode(parts).items()}
            manifest = {
                "version": 1 if parent is None else parent + 1,
                "parent": parent,
                "parts": stored,
                "values": {"method": parts.configuration.method},
                "past": {"changes": len(history) - len(entries), "accuracy": history.last_accuracy()},
                "changes": changes,
            }
            return self.put_manifest(manifest)

    def put_manifest(self, manifest: Manifest) -> Manifest:
        """Write a manifest within a transaction, and return it with its checksum."""
        manifest = {"graphfcl": __version__, "written": now(), **manifest}
        digest = self.database.put_document(VERSION, manifest["version"], manifest)
        return {**manifest, "sha256": digest}

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything that is written inside the context. After an error, nothing is written."""
        try:
            with self._whole_file():
                self.database.begin()
                yield
                self.database.commit()
        finally:
            self.database.rollback()

    def rollback(self, version: int, *, wait: float = 60.0) -> int:
        """Write a new version equal to an old one, and return its number. Newer versions may be damaged."""
        version = whole_number(version, "the version", 3)
        self.current()  # raises an error if there is no version
        with self.writing(wait):
            return self.write_rollback(version)["version"]

    def write_rollback(self, version: int, *, request: Entry | None = None) -> Manifest:
        """Write a rollback as in :meth:`rollback`, for a caller that holds the lock.

        ``request`` has the same meaning as in :meth:`write`.
        """
        old = self.load(version)
        old.verify()
        change = {**self.rollback_entry(old), **({} if request is None else {"request": request})}
        old.parts.graph.write_place(self.path)
        with self.transaction():
            return self.put_manifest({**self.on_top(old, change.get("accuracy")), "changes": [change]})

    def rollback_entry(self, old: StoredVersion) -> Entry:
        """Make the history entry of a rollback to a version."""
        accuracy = self.stored_history(old.manifest).last_accuracy()
        noted = {"accuracy": accuracy} if accuracy else {}
        return {"what": "rollback", "to": old.version, "when": now(), **noted}

    def on_top(self, old: StoredVersion, accuracy: dict[str, Any] | None) -> Manifest:
        """Make the manifest of a version after the newest one that equals an old one, except for its changes."""
        newest = self.current()
        try:
            before = len(self.stored_history(read_manifest(self.database, newest)))
        except Damaged:
            before = len(self.history(newest))
        return {
            "version": newest + 1,
            "parent": newest,
            "parts": old.manifest["parts"],
            "values": {"method": old.parts.configuration.method},
            "past": {"changes": before, "accuracy": accuracy},
        }

    def finish_erasure(self) -> dict[str, Any] | None:
        """Delete files that may still contain erased nodes after the nodes were removed from all versions.

        Returns the report of the erasure, or None if no erasure is unfinished.
        """
        if not self.database.numbers(ERASURE):
            return None
        report = self.database.document(ERASURE, 0)[0].get("report")
        self.database.rollback()
        self.cache.clear()
        work = work_folder(self.path)
        if work is not None:  # files computed from a graph folder may contain features of the nodes
            from graphfcl.production.graph.work_files import clear_work

            clear_work(work)
        try:
            self.database.vacuum()
        except InputError as error:
            raise InputError(
                f"{self.path}: the nodes are erased from all versions, but the file could not be rewritten without its "
                f"free space ({error.__cause__ or error}): free some disk space; the next command that changes the "
                "model completes it."
            ) from error
        with self.transaction():
            self.database.delete_document(ERASURE, 0)
        return report if isinstance(report, dict) else None
