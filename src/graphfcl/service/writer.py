"""The only writer of a service. It locks the folder, loads what other processes wrote, and writes changes as versions.

A change works on a copy of the newest version; readers see it when its version is written. A change that fails leaves
folder and readers unchanged. Only snapshots are kept between changes.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphfcl.errors import GraphfclError, InputError, in_one_line, quoted
from graphfcl.production import GraphClassifier
from graphfcl.production.graph.place import FolderUse
from graphfcl.production.model.versions import Versions
from graphfcl.production.store.checks import Damaged
from graphfcl.production.store.database import Busy, NotKept
from graphfcl.service.changes import ChangeLog, Completed, answer_to, is_empty
from graphfcl.service.metrics import Metrics
from graphfcl.service.problems import Problem
from graphfcl.service.security import Limits
from graphfcl.service.snapshots import Snapshot

CHECK_EVERY = 10.0  # seconds between two checks that all files of the version exist

log = logging.getLogger("graphfcl.service")

Details = dict[str, Any] | None  # further fields of the answer to a change, as JSON values
Apply = Callable[[GraphClassifier, Snapshot], Details | GraphClassifier]


@dataclass(frozen=True)
class ChangeRequest:
    """A request to change the model.

    Attributes:
        fingerprint: Hash of the request.
        version: Version that the request requires (``If-Match``); None for any.
        key: Idempotency key.
    """

    fingerprint: str
    version: int | None = None
    key: str | None = None

    def as_json(self, details: Details = None) -> dict[str, Any] | None:
        """Return what the folder stores. A repeated request gets an answer with the same ``details``."""
        stored = {} if self.key is None else {"key": self.key, "hash": self.fingerprint}
        return {**stored, **({"details": details} if details else {})} or None


class Writer:
    """Makes changes one after the other and publishes a snapshot of each version.

    Attributes:
        versions: Versions of the model folder.
        newest: Snapshot of the newest version.
        previous: Snapshot of the version before, if this process loaded it.
        trouble: What is wrong with the folder; None if nothing is.
    """

    def __init__(
        self,
        folder: Path,
        metrics: Metrics,
        limits: Limits,
        *,
        device: str = "cpu",
        use: FolderUse = FolderUse(),  # noqa: B008  # it is frozen
    ) -> None:
        self.versions = Versions(folder, use)
        self.newest: Snapshot | None = None
        self.previous: Snapshot | None = None
        self.trouble: str | None = None
        self._metrics, self._limits, self._device = metrics, limits, device
        self._log = ChangeLog(limits.keys)
        self._checked = 0.0  # time at which the files of the version were last checked
        self._logged: tuple[object, ...] = ()  # the pointer of the folder when damage was last logged
        self._lock = threading.Lock()  # held while writing, or while loading what another process wrote

    @property
    def current(self) -> Snapshot:
        """The snapshot that readers see. A request reads it once and uses it throughout."""
        assert self.newest is not None, "the service was not started"
        return self.newest

    def model_of(self, version: int) -> GraphClassifier:
        """Return a version from memory or the folder; on a graph folder only if its predictions are on disk."""
        pointer = version, self.versions.manifest(version)["sha256"]
        for snapshot in (self.newest, self.previous):
            if snapshot is not None and snapshot.pointer == pointer:
                return snapshot.model
        model = GraphClassifier.from_version(self.versions, version, device=self._device, whole=True)
        if not model.has_answers:
            raise InputError(f"the predictions of version {version} are no longer on disk, so nothing can be compared.")
        return model

    # What other processes write

    def start(self) -> None:
        """Load the newest version; raise an error if it cannot be read."""
        with self._lock:
            self._load()

    @property
    def busy(self) -> bool:
        """Whether a change is being made, or a version loaded."""
        return self._lock.locked()

    def follow(self) -> bool:
        """Load the newest version if another process wrote one, and return whether it did.

        If the folder is damaged, readers continue with the version they have.
        """
        if not self._lock.acquire(blocking=False):
            return False  # a change is being made, which loads the newest version itself
        try:
            return self._catch_up()
        except Exception as error:  # go on, so that later versions are loaded
            self._note(error)
            return False
        finally:
            self._lock.release()

    def _note(self, error: Exception) -> None:
        """Report what is wrong with the folder to readers, and once per damaged version in the log."""
        trouble = str(error) if isinstance(error, GraphfclError | Damaged | OSError) else in_one_line(error)
        self.trouble = trouble
        try:
            pointer: object = self.versions.pointer()
        except InputError:
            pointer = None
        if self._logged != (pointer,):
            self._logged = (pointer,)
            log.warning("%s Reads continue from version %d.", trouble, self.current.version)

    def _catch_up(self) -> bool:
        """Load the version that the folder points to; return whether it differs from the loaded version."""
        pointer = self._pointer()
        if pointer != self.current.pointer:
            self._load()
            return True
        if self.trouble is not None or time.monotonic() - self._checked > CHECK_EVERY:
            self.versions.refuse_missing_chunks(pointer[0])
            self.trouble, self._checked, self._logged = None, time.monotonic(), ()
        return False

    def _pointer(self) -> tuple[int, str]:
        self.versions.current()  # raises what is wrong
        pointer = self.versions.pointer()
        assert pointer is not None
        return pointer

    def _load(self) -> None:
        pointer = self._pointer()
        try:
            model = GraphClassifier.from_version(self.versions, pointer[0], device=self._device, whole=True)
            self._show(model, pointer)
        except (GraphfclError, Damaged, OSError):
            raise
        except Exception as error:  # what another process wrote must not stop the service
            raise self.versions.damaged(pointer[0], f"it cannot be loaded ({in_one_line(error)})") from error

    def _show(self, model: GraphClassifier, pointer: tuple[int, str]) -> None:
        """Publish a version that another process wrote."""
        before = self.newest
        if before is None or pointer[0] <= before.version:  # nodes were erased, or the folder was replaced
            self._log = ChangeLog(self._limits.keys, model.label_store_.integers)
        self._log.read(self.versions, pointer[0])
        self._publish(model, pointer)

    def _publish(self, model: GraphClassifier, pointer: tuple[int, str]) -> None:
        changes, recalls = self._log.changes, self._log.recalls
        before, self.newest = self.newest, Snapshot.of(model, pointer, changes, recalls, self.newest)
        self.previous = before
        self.trouble, self._logged = None, ()

    # Changes

    def change(self, request: ChangeRequest, apply: Apply) -> dict[str, Any]:
        """Apply a change to a copy of the model, write it as the next version and return the answer.

        A request that changes nothing, such as labels that exist already, writes no version.
        """

        def write(snapshot: Snapshot) -> GraphClassifier | dict[str, Any]:
            model = snapshot.model.snapshot()
            try:
                details = apply(model, snapshot)
            except InputError as error:
                raise Problem(422, str(error)) from error
            details = details if isinstance(details, dict) else None
            entries = model.history.unsaved() or [{"what": "learn"}]  # no entry if all labels were left out
            if all(map(is_empty, entries)):
                request_json = {"request": request.as_json(details)}
                return answer_to({**entries[-1], "version": snapshot.version, **request_json}, self._log.integers)
            try:
                model.write_version(self.versions, write_cache=False, request=request.as_json(details))
            except NotKept as error:
                raise Problem(422, str(error)) from error
            model.leave_history()
            return model

        return self._write(request, write)

    def rollback(self, request: ChangeRequest, version: int) -> dict[str, Any]:
        """Write a new version equal to an old one."""

        def write(_: Snapshot) -> GraphClassifier | dict[str, Any]:
            if version not in self.versions.numbers():
                text = f"there is no version {version} to go back to: /v1/versions lists them."
                raise Problem(404, text, "unknown-version")
            number = self.versions.write_rollback(version, request=request.as_json())["version"]
            return GraphClassifier.from_version(self.versions, number, device=self._device, whole=True)

        return self._write(request, write)

    def _write(
        self, request: ChangeRequest, write: Callable[[Snapshot], GraphClassifier | dict[str, Any]]
    ) -> dict[str, Any]:
        """Take the locks, load the newest version, and refuse a request, repeat its answer, or carry it out.

        ``write`` returns the written model, or the answer if there was nothing to write.
        """
        start = time.perf_counter()
        with self._lock, self._folder_troubles():
            if not self.versions.exists():
                self.versions.current()  # raises what is wrong; taking the lock would create the folder
            with self.versions.writing(self._limits.lock):
                self._catch_up()
                completed = None if request.key is None else self._log.completed.get(request.key)
                if completed is not None:
                    return _repeated(request, completed)
                snapshot = self.current
                if request.version not in (None, snapshot.version):
                    raise stale(snapshot.version, request.version)
                self.versions.refuse_missing_chunks(snapshot.version)
                model = write(snapshot)
                if isinstance(model, dict):
                    if request.key is not None:  # no version stores it, so it is remembered until this process ends
                        self._log.remember(request.key, Completed(request.fingerprint, model))
                    return model
                pointer = self._pointer()
                self._log.read(self.versions, pointer[0])
                answer = answer_to(self._log.last, self._log.integers)
                self._publish(model, pointer)
        self._metrics.change(answer["what"], time.perf_counter() - start)
        return answer

    @contextmanager
    def _folder_troubles(self) -> Iterator[None]:
        """Turn errors of the folder, which the request did not cause, into problems with the status 503."""
        try:
            yield
        except Busy as error:
            raise Problem(503, str(error), "busy", headers={"Retry-After": "5"}) from error
        except (InputError, Damaged, OSError) as error:
            self._note(error)
            version = self.current.version
            text = f"{error} Reads continue from version {version}."
            raise Problem(503, text, "damaged-folder", version=version) from error


def _repeated(request: ChangeRequest, completed: Completed) -> dict[str, Any]:
    """Return the answer to a request that was carried out before."""
    if completed.fingerprint != request.fingerprint:
        raise Problem(
            422,
            f"the idempotency key {quoted(request.key)} was used for another request: use a new key for "
            "each request; nothing was changed.",
            "reused-key",
        )
    return completed.answer


def stale(current: int, named: int | None) -> Problem:
    """Make the problem of a change that was meant for another version."""
    return Problem(
        412,
        f"the change was made for version {named}, but the model is at version {current}: read it again, and repeat "
        "the change with this version if you still want it; nothing was changed.",
        headers={"ETag": f'"{current}"'},
        version=current,
    )
