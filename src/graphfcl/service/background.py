"""Compute results that take seconds in the background, for the newest version: suggestions, groups, the cache.

Two threads: one looks for versions that other processes wrote, one computes.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphfcl.errors import GraphfclError
from graphfcl.production.store.checks import Damaged
from graphfcl.service.snapshots import Snapshot
from graphfcl.service.writer import Writer

POLL = 0.5  # seconds between two checks of the folder
QUIET = 5.0  # seconds without a change, after which the cache is written
GRACE = 5.0  # seconds that a running computation has to end when the service stops
QUESTIONS = 16  # results kept in memory
UNEXPECTED = (
    "{what} of version {version} met an unexpected error ({kind}). It is tried again with the next version; please "
    "report it with what the service wrote to standard error."
)
NO_CACHE = "The cache of version %d is not written: %s The next start of the service computes the predictions again."

Question = tuple[Any, ...]  # a name and its arguments
log = logging.getLogger("graphfcl.service")


@dataclass(frozen=True)
class Computed:
    """The result for a version: a value, or an error message."""

    version: int
    value: Any = None
    error: str | None = None


def compute_for(snapshot: Snapshot, compute: Callable[[Snapshot], Any], name: str) -> Computed:
    """Compute the result for the version of a snapshot; an exception becomes its error. Messages use ``name``.

    Errors such as a full disk, a damaged folder or a wrong setting have a clear message. Any other exception is a fault
    of graphfcl or a plug-in. Its traceback is logged, and the thread continues, so that later results are computed.
    """
    try:
        return Computed(snapshot.version, compute(snapshot))
    except (GraphfclError, Damaged, OSError) as error:
        return Computed(snapshot.version, error=str(error))
    except Exception as error:
        words = UNEXPECTED.format(what=name, version=snapshot.version, kind=type(error).__name__)
        log.exception(words)
        return Computed(snapshot.version, error=words)


class Background:
    """Computes requested results for the newest version, one at a time; versions in between are skipped."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._compute: dict[Question, Callable[[Snapshot], Any]] = {}
        self._results: dict[Question, Computed] = {}
        self._wanted: dict[Question, None] = {}  # still to be computed, oldest first
        self._requested: dict[Question, int] = {}  # the version each was last requested for
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._stopping = threading.Event()
        self._cached = 0  # the version whose cache was written
        self._threads = [
            threading.Thread(target=target, name=f"graphfcl-{name}", daemon=True)
            for name, target in (("follow", self._follow), ("compute", self._work))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop both threads and write the cache for the next start; a long computation is abandoned."""
        self._stopping.set()
        self._wake.set()
        for thread in self._threads:
            thread.join(GRACE)
        if not any(thread.is_alive() for thread in self._threads):
            self._write_cache()

    def changed(self) -> None:
        """Note that a version was published: compute for it what was requested for the previous one."""
        version = self._writer.current.version
        with self._lock:
            for question, requested in self._requested.items():
                if requested >= version - 1:
                    self._wanted[question] = None
        self._wake.set()

    def find(self, question: Question, compute: Callable[[Snapshot], Any], snapshot: Snapshot) -> Computed | None:
        """Return the last result, perhaps of an older version. If this version has none, schedule it."""
        with self._lock:
            result = self._results.get(question)
            self._requested.pop(question, None)
            self._requested[question] = snapshot.version
            self._compute[question] = compute
            if result is None or result.version != snapshot.version:
                self._wanted[question] = None
                self._wake.set()
            while len(self._requested) > QUESTIONS:
                oldest = next(iter(self._requested))
                for table in (self._requested, self._compute, self._results, self._wanted):
                    table.pop(oldest, None)
        return result

    def computed(self, question: Question, version: int) -> Any:
        """Return the value for a version; None if it is not computed."""
        with self._lock:
            result = self._results.get(question)
        return result.value if result is not None and result.version == version else None

    # The threads

    def _follow(self) -> None:
        while not self._stopping.wait(POLL):
            if self._writer.follow():
                self.changed()

    def _work(self) -> None:
        last, since = 0, time.monotonic()
        while not self._stopping.is_set():
            self._wake.wait(POLL)
            self._wake.clear()
            while not self._stopping.is_set() and self._compute_next():
                pass
            version = self._writer.current.version
            if version != last or self._writer.busy:
                last, since = version, time.monotonic()
            if time.monotonic() - since > QUIET:
                self._write_cache()

    def _compute_next(self) -> bool:
        """Compute the next scheduled result; return whether there was one."""
        with self._lock:
            question = next(iter(self._wanted), None)
            if question is None:
                return False
            del self._wanted[question]
            compute = self._compute[question]
        result = compute_for(self._writer.current, compute, f"the answer to {question[0]!r}")
        with self._lock:
            if question in self._requested:
                self._results[question] = result
        return True

    def _write_cache(self) -> None:
        """Store the scores for the next process that loads this version."""
        snapshot = self._writer.current
        if self._cached == snapshot.version:
            return
        self._cached = snapshot.version
        result = compute_for(snapshot, lambda each: each.model.write_cache(), "the cache")
        if result.error is not None:
            log.warning(NO_CACHE, snapshot.version, result.error)
