"""A model on disk: numbered, immutable versions and one pointer.

::

    graph.json                 of a model on a graph folder: where that is, and its work folder
    work/                      of the same: slices, blocks, scores; may be deleted at any time
    current                    {"version": 7, "sha256": that of its manifest}
    versions/000007.json       the manifest of version 7: names of its trees, its changes, its checksum
    versions/pruned.json       the changes of versions that were pruned
    versions/erasing.json      there while nodes are erased: what is left to do
    objects/<sha256>           trees and blocks of arrays; a version shares those that did not change
    cache/                     embeddings and scores of the newest version: may be deleted at any time
    fitting/                   what a fit has, until it is a model
    lock                       held by the one process that writes

A version's objects are written aside, flushed and renamed; then its manifest; then the pointer. Whoever reads follows
the pointer and finds whole versions only. Nothing that the pointer ever showed is changed, but for two verbs: ``prune``
removes versions, and ``erase`` writes all of them anew without some nodes.
"""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from graphfcl.errors import InputError
from graphfcl.production.answers.version_cache import VersionCache
from graphfcl.production.graph.place import FolderUse
from graphfcl.production.labels.history import Entry, History, now
from graphfcl.production.model.codec import encode
from graphfcl.production.model.erasure_plan import ErasurePlan, Erasures
from graphfcl.production.model.parts import ModelParts, whole_number
from graphfcl.production.model.stored_version import StoredVersion
from graphfcl.production.model.wholeness import Wholeness
from graphfcl.production.store.block_arrays import BlockArrays
from graphfcl.production.store.damage import Damaged
from graphfcl.production.store.locks import WriterLock
from graphfcl.production.store.manifests import FORMAT, PRUNED, Manifest, Manifests, Newer, NotKept
from graphfcl.production.store.objects import ObjectFolder, ReadCounter
from graphfcl.version import __version__

FITTING = "fitting"  # folder of what a fit has, until it is a model
OWN_FOLDERS = ("versions", "objects", "cache", FITTING)  # those that only graphfcl writes to


class Busy(InputError):
    """Another process writes to the folder."""


class Versions:
    """The versions of one model in a folder. counter: how many bytes were read of it.

    use: what a user says anew about the graph folder of the model, if it has one.
    """

    def __init__(self, path: str | Path, use: FolderUse = FolderUse()) -> None:  # noqa: B008  # it is frozen
        self.path, self.use = Path(path), use
        self.counter = ReadCounter()
        self.manifests = Manifests(self.path, self.counter)
        self.objects = ObjectFolder(self.path / "objects", self.counter)
        self.arrays = BlockArrays(self.objects)
        self.cache = VersionCache(self.path / "cache", self.counter)
        self.lock = WriterLock(self.path)
        self.erasures = Erasures(self.path, self.manifests, self.objects, self.cache, self.lock)

    def is_at(self, path: str | Path) -> bool:
        """Whether this is the folder of a path."""
        return self.path.absolute() == Path(path).absolute()

    # Reading

    def exists(self) -> bool:
        """Whether there is a version that the pointer shows."""
        return (self.path / "current").exists()

    def current(self) -> int:
        """The number of the newest version."""
        return self._newest()[0]

    def shows(self, version: int) -> bool:
        """Whether the pointer shows a version."""
        try:
            return self.manifests.pointer()[0] == version
        except Damaged:
            return False

    def _refuse_links(self) -> None:
        """Folders of a model hold nothing that lies elsewhere: it would be written to and deleted there."""
        for name in OWN_FOLDERS:
            if (self.path / name).is_symlink():
                raise InputError(
                    f"{self.path / name} is a symbolic link, and a model keeps its files in its own folder: put a "
                    "folder in its place (a link named cache may be deleted)."
                )

    def _newest(self) -> tuple[int, Manifest | None]:
        """The newest version, and its manifest if that is whole."""
        self._refuse_links()
        self.refuse_lost_pointer()
        if not self.exists():
            raise InputError(f"the model {self.path} does not exist: check the path.")
        try:
            version, claimed = self.manifests.pointer()
        except Damaged as error:
            raise self._lost("is damaged") from error
        try:
            manifest = self.manifests.read(version)
        except (Damaged, Newer):
            return version, None  # said when it is read
        if manifest["sha256"] != claimed:
            if self.manifests.pointer()[0] != version:  # it moved on, and nodes were erased from the version before
                return self._newest()
            raise self._lost("is damaged, it does not fit the version it names")
        return version, manifest

    def manifest(self, version: int) -> Manifest:
        """The verified manifest of a version."""
        version = whole_number(version, "the version", 3)
        self._refuse_links()
        path = self.manifests.path(version)
        if not path.exists():
            self._refuse_missing(version)
        try:
            return self.manifests.read(version)
        except Damaged as error:
            raise self.damaged(version, f"{path.name} {error}") from error

    def load(self, version: int | None = None, *, device: str = "cpu") -> StoredVersion:
        """A version, the newest if none is named."""
        number, manifest = self._newest() if version is None else (whole_number(version, "the version", 3), None)
        manifest = manifest or self.manifest(number)
        return StoredVersion(
            self.path,
            manifest,
            self.arrays,
            self.cache,
            refuse=lambda why: self._unreadable(manifest, why),
            device=device,
            use=self.use,
        )

    def history(self, upto: int | None = None) -> list[Entry]:
        """Every change, oldest first, with the version that holds it."""
        entries: list[Entry] = []
        last = self.current() if upto is None else whole_number(upto, "the version", 3)
        try:
            pruned, gone = self.manifests.pruned()
        except Damaged as error:
            pruned, gone = 0, []
            entries.append({"version": 0, "when": "", "what": "damaged", "error": f"{PRUNED} {error}"})
        there = {number for number in self.manifests.numbers() if number <= last}
        entries += [entry for entry in gone if entry["version"] not in there and entry["version"] <= last]
        for number in sorted(there | set(range(pruned + 1, last + 1))):
            try:
                entries += [{**change, "version": number} for change in self.manifests.read(number)["changes"]]
            except (Damaged, Newer) as error:
                said = f"{self.manifests.path(number).name} {error}"
                entries.append({"version": number, "when": "", "what": "damaged", "error": said})
        return entries

    def stored_history(self, manifest: Manifest) -> History:
        """The history of a version, read when somebody looks at it."""
        number, past = manifest["version"], manifest["past"]
        return History.stored(
            lambda: self.history(number), past["changes"] + len(manifest["changes"]), past.get("accuracy")
        )

    # Damage

    def refuse_lost_pointer(self) -> None:
        """Versions without a pointer must not be written over."""
        if self.exists() or not self.manifests.numbers():
            return
        if self._newest_whole():
            raise self._lost("is missing")
        raise InputError(
            f"{self.path} holds versions of a model, but none of them is whole, and {self.path / 'current'} is "
            "missing: choose another folder, or move this one away."
        )

    def _lost(self, how: str) -> InputError:
        whole = self._newest_whole()
        hint = (
            f"`graphfcl rollback --model {self.path} {whole}` goes on from the last version that is whole"
            if whole
            else "no version of it is whole"
        )
        return InputError(f"{self.path / 'current'} {how}: {hint}.")

    def damaged(self, version: int, why: str) -> InputError:
        """The error that names a version, what is wrong with it, and where to go on."""
        if not self.exists():
            return InputError(f"{self.path} holds no model any more: check the path.")
        if not self.manifests.path(version).exists():
            return InputError(f"{self.path}: version {version} was pruned while it was read: load the newest one.")
        good = self._newest_whole(below=version)
        hint = (
            f"`graphfcl rollback --model {self.path} {good}` goes on from the last version before it that is whole"
            if good
            else "there is no whole version before it"
        )
        return InputError(f"{self.path}: version {version} is damaged, {why}: {hint}.")

    def _unreadable(self, manifest: Manifest, why: str) -> InputError:
        """The error of a version that was loaded, if what it consists of cannot be read."""
        number = manifest["version"]
        with suppress(Damaged, Newer):
            if self.manifests.path(number).exists() and self.manifests.read(number)["sha256"] != manifest["sha256"]:
                return InputError(
                    f"{self.path}: nodes were erased from version {number} while it was read: load it again."
                )
        return self.damaged(number, why)

    def _refuse_missing(self, version: int) -> None:
        listed = f"`graphfcl history --model {self.path}` lists them"
        with suppress(Damaged):
            if 0 < version <= self.manifests.pruned()[0]:
                raise InputError(
                    f"{self.path}: version {version} was pruned, what it consisted of is gone: choose one that is "
                    f"kept; {listed}."
                )
        if self.exists() and 0 < version <= self.current():
            path = self.manifests.path(version)
            good = self._newest_whole(below=version)
            hint = f"`graphfcl rollback --model {self.path} {good}` goes on" if good else "there is none before it"
            raise InputError(f"{self.path}: version {version} is damaged, {path.name} is missing: {hint}.")
        raise InputError(f"{self.path} has no version {version}: {listed}.")

    def refuse_missing_files(self, version: int) -> None:
        """Refuse to go on from a version of which a file is gone or has another length."""
        try:
            cut = Wholeness(self.manifests, self.objects).cut_short(self.manifest(version))
        except Damaged as error:
            raise self.damaged(version, str(error)) from error
        if cut:
            there = (self.objects.path / cut[0]).is_file()
            raise self.damaged(version, f"its file {cut[0]} {'is not whole' if there else 'is missing'}")

    def _newest_whole(self, below: int | None = None) -> int:
        """The newest version whose manifest and objects are all whole; 0 if there is none."""
        check = Wholeness(self.manifests, self.objects)
        numbers = [number for number in reversed(self.manifests.numbers()) if below is None or number < below]
        return next((number for number in numbers if check.is_whole(number)), 0)

    # Writing

    @contextmanager
    def writing(self, wait: float = 60.0) -> Iterator[ErasurePlan | None]:
        """Only one process writes at a time; another waits so many seconds, then it is refused.

        Gives the erasure that another process left unfinished, if there was one: it is finished first.
        """
        self._refuse_links()
        with ExitStack() as stack:
            try:
                ours = stack.enter_context(self.lock.hold(wait))
            except OSError as error:
                raise InputError(
                    f"{self.path} cannot be written ({error.strerror}): choose a folder that you may write to."
                ) from error
            if not ours:
                raise Busy(
                    f"{self.path} is being changed by another process, for longer than {wait:g} s: try again later, or "
                    "wait longer with --wait; nothing was changed."
                )
            self._sweep()
            yield self.erasures.carry_out()

    def _sweep(self) -> None:
        """Remove what a killed writer left half done; nobody else writes here now. The cache has a lock of its own."""
        for folder in ("objects", "versions", "."):
            for path in (self.path / folder).glob(".*.tmp"):
                with suppress(OSError):
                    path.unlink()
        if self.exists():  # the fit that made the model is done
            shutil.rmtree(self.path / FITTING, ignore_errors=True)

    def refuse_unrelated(self, loaded: int | None) -> None:
        """A model may follow only the version that it was loaded from or saved as."""
        there = self.current() if self.exists() else None
        if there is not None and loaded != there:
            raise InputError(
                f"{self.path} holds version {there} of a model, which this one was not loaded from: load it and "
                "change it again, or save to another folder."
            )

    def write(
        self, parts: ModelParts, history: History, *, loaded: int | None, request: Entry | None = None
    ) -> Manifest:
        """Write the next version; the caller holds the lock. A first version holds the whole history.

        loaded: the version that the model was loaded from or saved as. request: kept with the last change.
        """
        try:
            parts.graph.write_place(self.path)
            trees = encode(parts, self.arrays)
        except Damaged as error:
            raise NotKept(f"the model cannot be kept in {self.path}: {error}; nothing was changed.") from error
        self.objects.flush()
        parent = loaded if self.exists() else None
        number = 1 if parent is None else parent + 1
        entries = history.entries() if parent is None else history.unsaved()
        before = 0 if parent is None else len(history) - len(entries)
        changes = [{key: value for key, value in entry.items() if key != "version"} for entry in entries]
        if request is not None:
            changes[-1]["request"] = request
        return self._publish(
            {
                "format": FORMAT,
                "version": number,
                "parent": parent,
                "trees": trees,
                "values": {"method": parts.configuration.method},
                "past": {"changes": before, "accuracy": history.last_accuracy()},
                "changes": changes,
            }
        )

    def _publish(self, said: Manifest) -> Manifest:
        """Write the manifest of a version whose objects are there, then move the pointer."""
        self.lock.check()
        manifest = self.manifests.write({"graphfcl": __version__, "written": now(), **said})
        self.lock.check()
        self.manifests.point(manifest)
        return manifest

    def rollback(self, version: int, *, wait: float = 60.0) -> int:
        """Write a new version equal to an old one; returns its number. Works also if newer versions are damaged."""
        version = whole_number(version, "the version", 3)
        if not (self.path / "versions").is_dir():
            raise InputError(f"{self.path} holds no model: check the path.")
        with self.writing(wait):
            return self.write_rollback(version)

    def write_rollback(self, version: int, *, request: Entry | None = None) -> int:
        """The same for a caller that holds the lock. request: kept with the change."""
        old = self.load(version)
        old.verify()
        old.parts.graph.write_place(self.path)
        number, before = self.after_newest()
        change: Entry = {"what": "rollback", "to": version, "when": now()}
        accuracy = self.stored_history(old.manifest).last_accuracy()
        if accuracy:
            change["accuracy"] = accuracy
        if request is not None:
            change["request"] = request
        self._publish(
            {
                "format": FORMAT,
                "version": number,
                "parent": number - 1,
                "trees": old.manifest["trees"],
                "values": {"method": old.parts.configuration.method},
                "past": {"changes": before, "accuracy": accuracy},
                "changes": [change],
            }
        )
        return number

    def after_newest(self) -> tuple[int, int]:
        """The number of the next version, and how many changes there are before it, whatever is damaged."""
        try:
            number, manifest = self._newest()
        except InputError:
            number, manifest = self.manifests.numbers()[-1], None
        if manifest is None:
            return number + 1, len(self.history(number))
        return number + 1, len(self.stored_history(manifest))
