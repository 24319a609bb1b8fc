"""What takes seconds is computed beside the requests, for the newest version: suggestions, groups, the cache.

Two threads: one looks for versions that other processes wrote, one computes.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphfcl.errors import GraphfclError
from graphfcl.service.snapshots import Snapshot, Snapshots
from graphfcl.service.writer import Writer

POLL = 0.5  # seconds between two looks at the folder
QUIET = 5.0  # seconds in which no change was made or under way, after which the cache is written
KINDS = 16  # different questions that are remembered

Question = tuple[Any, ...]  # what is asked: a name and its arguments
log = logging.getLogger("graphfcl.service")


@dataclass(frozen=True)
class Found:
    """What was computed of a version: a value, or the sentence of an error."""

    version: int
    value: Any = None
    error: str | None = None


class Background:
    """Computes answers to questions for the newest version, one at a time; a version that is overtaken is left out."""

    def __init__(self, snapshots: Snapshots, writer: Writer) -> None:
        self._snapshots, self._writer = snapshots, writer
        self._compute: dict[Question, Callable[[Snapshot], Any]] = {}
        self._found: dict[Question, Found] = {}
        self._wanted: dict[Question, None] = {}  # those that are still to be computed, the oldest first
        self._asked: dict[Question, int] = {}  # for which version each was asked last
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
        """Let both threads end; what the next start can use is written."""
        self._stopping.set()
        self._wake.set()
        for thread in self._threads:
            thread.join()
        self._write_cache()

    def changed(self) -> None:
        """A version was published: what was asked of the last one will be asked of it too."""
        version = self._snapshots.current.version
        with self._lock:
            for question, asked in self._asked.items():
                if asked >= version - 1:
                    self._wanted[question] = None
        self._wake.set()

    def find(self, question: Question, compute: Callable[[Snapshot], Any], snapshot: Snapshot) -> Found | None:
        """What was computed last, perhaps of an older version; of this one it is computed if it was not yet."""
        with self._lock:
            found = self._found.get(question)
            self._asked.pop(question, None)
            self._asked[question] = snapshot.version
            self._compute[question] = compute
            if found is None or found.version != snapshot.version:
                self._wanted[question] = None
                self._wake.set()
            while len(self._asked) > KINDS:
                self._forget(next(iter(self._asked)))
        return found

    def known(self, question: Question, version: int) -> Any:
        """What was computed of a version; None if it was not."""
        with self._lock:
            found = self._found.get(question)
        return found.value if found is not None and found.version == version else None

    def _forget(self, question: Question) -> None:
        for kept in (self._asked, self._compute, self._found, self._wanted):
            kept.pop(question, None)

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
            version = self._snapshots.current.version
            if version != last or self._writer.busy:
                last, since = version, time.monotonic()
            if time.monotonic() - since > QUIET:
                self._write_cache()

    def _compute_next(self) -> bool:
        """One question; whether there was one."""
        with self._lock:
            question = next(iter(self._wanted), None)
            if question is None:
                return False
            del self._wanted[question]
            compute = self._compute[question]
        snapshot = self._snapshots.current
        try:
            found = Found(snapshot.version, compute(snapshot))
        except GraphfclError as error:
            found = Found(snapshot.version, error=str(error))
        except Exception:  # one question that fails must not end the answers to all others
            log.exception("%s could not be computed", question[0])
            found = Found(snapshot.version, error="an error that was not foreseen; the log of the service has more.")
        with self._lock:
            if question in self._asked:
                self._found[question] = found
        return True

    def _write_cache(self) -> None:
        """Let the next process that loads this version find its scores."""
        snapshot = self._snapshots.current
        if self._cached == snapshot.version:
            return
        self._cached = snapshot.version
        try:
            snapshot.model.write_cache()
        except Exception:  # the cache may be missing at any time
            log.exception("the cache could not be written")
