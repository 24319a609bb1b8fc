"""Embeddings and scores of the newest version, so that asking needs no forward pass. May be deleted at any time."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods import find_method
from graphfcl.production.answers.calibration import Readings
from graphfcl.production.store.chunked_file import ChunkedFile, write_chunked
from graphfcl.production.store.damage import UNFIT, need
from graphfcl.production.store.id_lookup import IdLookup, lookup_arrays
from graphfcl.production.store.objects import ReadCounter
from graphfcl.runtime.files import canonical_json, file_lock, flush_folder, make_folder, sha256_of

COMPUTED_FROM = ("nodes", "edges", "features", "network", "knowledge")
READINGS = ("ood_score", "temperatures")
MANY_ROWS = 1000
CLEAR_WAIT = 60.0  # seconds


@dataclass(frozen=True)
class CacheKeys:
    """scores: equal for versions with equal embeddings and scores. readings: and equal readings of them."""

    scores: str
    readings: str


@dataclass(frozen=True, eq=False)
class CacheContents:
    """What is kept of all nodes: the user's ids, embeddings (``table``), scores, and what they are asked by besides."""

    keys: CacheKeys
    ids: np.ndarray
    table: np.ndarray
    scores: np.ndarray
    readings: Readings


class OpenCache:
    """The cache of one version. What of it is damaged is as if it were not there: None."""

    def __init__(self, file: ChunkedFile) -> None:
        self._file = file
        self._lookup = IdLookup(file, file.values["fence"])
        self.nodes, self.columns = file["scores"].shape
        rows_of = {"scores": 2, "table": 2, "rows": 1, **dict.fromkeys(READINGS, 1)}
        for name, axes in rows_of.items():
            array = file[name]
            need(len(array.shape) == axes and array.shape[0] == self.nodes, "its arrays differ in number")
            need(array.dtype.kind == ("i" if name == "rows" else "f"), "its arrays are of another type")

    @property
    def of_numbers(self) -> bool:
        """Whether its ids are whole numbers."""
        return self._lookup.of_numbers

    def rows_of_ids(self, ids: Sequence[Any]) -> list[int] | None:
        """Rows of some ids, exactly as they are stored; None if one is not there."""
        try:
            found = self._lookup.find_all(ids)
        except UNFIT:
            return None
        return found if found is not None and all(0 <= row < self.nodes for row in found) else None

    def scores_of(self, rows: Sequence[int]) -> np.ndarray | None:
        """(r, columns) the scores of some rows."""
        return self._rows("scores", rows)

    def readings_of(self, key: str, rows: Sequence[int]) -> Readings | None:
        """What some rows are asked by besides, if that is of the version with this key."""
        if self._file.values.get("readings") != key:
            return None
        return _readings(*(self._rows(name, rows) for name in READINGS))

    def readings(self, key: str) -> Readings | None:
        """The same of all rows."""
        if self._file.values.get("readings") != key:
            return None
        return _readings(*(self._whole(name) for name in READINGS))

    def scores(self) -> np.ndarray | None:
        """(n, columns) all of them."""
        return self._whole("scores")

    def table(self) -> np.ndarray | None:
        """(n, width) the embeddings of all nodes."""
        return self._whole("table")

    def _rows(self, name: str, rows: Sequence[int]) -> np.ndarray | None:
        """Some rows of an array: each by itself, or out of all of them if they are many."""
        try:
            array = self._file[name]
            if len(rows) > MANY_ROWS:
                return array.whole()[np.array(rows)]
            return np.concatenate([array.rows(0, 0), *(array.rows(row, row + 1) for row in rows)])
        except UNFIT:
            return None

    def _whole(self, name: str) -> np.ndarray | None:
        try:
            return self._file[name].whole()
        except UNFIT:
            return None


def _readings(ood_score: np.ndarray | None, temperatures: np.ndarray | None) -> Readings | None:
    """Readings that answers can be made of; None if one is missing or none of these."""
    if ood_score is None or temperatures is None or not np.isfinite(ood_score).all():
        return None
    usable = np.isfinite(temperatures) & (temperatures > 0)
    return Readings(ood_score, temperatures) if usable.all() else None


class VersionCache:
    """The file of the cache. Its header says which model it belongs to.

    Whoever computed scores may write it, readers too. They have a lock of their own, and what is half done here is
    removed only by who holds it.
    """

    def __init__(self, folder: Path, counter: ReadCounter) -> None:
        self.folder, self.path = folder, folder / "newest.cache"
        self._counter = counter

    def write(self, contents: CacheContents, wanted: Callable[[], bool]) -> None:
        """Keep what a version answers from; not an error if that fails: it can be computed again.

        wanted: whether the version is still the newest one, asked while nobody else may change the cache: what was
        computed before nodes were erased must not be written after it.
        """
        with suppress(OSError, InputError):
            make_folder(self.folder)
            with file_lock(self.folder / "lock", wait=0) as ours:
                if not ours or not wanted():
                    return
                for left in self.folder.glob(".*.tmp"):
                    left.unlink()
                arrays, fence = lookup_arrays(contents.ids)
                arrays |= {"scores": contents.scores, "table": contents.table}
                arrays |= {name: getattr(contents.readings, name) for name in READINGS}
                values = {"key": contents.keys.scores, "readings": contents.keys.readings, "fence": fence}
                write_chunked(self.path, values, arrays)

    def clear(self) -> None:
        """Remove it for good, and what a killed writer left of it; the newest version in the folder is another now."""
        if not self.folder.exists():
            return
        with file_lock(self.folder / "lock", wait=CLEAR_WAIT) as ours:
            if not ours:
                raise InputError(
                    f"{self.folder} is being written by another process, for longer than {CLEAR_WAIT:g} s: try again "
                    "later; what is left to do is done by the next command that writes."
                )
            for path in (self.path, *self.folder.glob(".*.tmp")):
                path.unlink(missing_ok=True)
            flush_folder(self.folder)

    def open(self, key: str, columns: int) -> OpenCache | None:
        """The cache of a version with this key and so many columns; None if it is another's or damaged."""
        try:
            file = ChunkedFile(self.path, self._counter)
            if file.values["key"] != key:
                return None
            found = OpenCache(file)
            return found if found.columns == columns else None
        except UNFIT:
            return None


def cache_keys(manifest: dict[str, Any], method: str) -> CacheKeys:
    """Equal for versions with equal contents; edited code of a method from outside gives others."""
    trees = manifest["trees"]
    known = [trees.get(name) for name in COMPUTED_FROM]
    source = find_method(method).source
    return CacheKeys(*(sha256_of(canonical_json([each, method, source])) for each in (known, [known, trees])))


class CacheThread:
    """Writes the cache beside everything else; whoever changes what it writes waits for it first."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # several threads may ask one model

    def start(self, cache: VersionCache, contents: CacheContents, wanted: Callable[[], bool]) -> None:
        """Begin; Python waits for it before it ends. wanted: as in ``VersionCache.write``."""
        with self._lock:
            self._join()
            self._thread = threading.Thread(target=cache.write, args=(contents, wanted), name="graphfcl-cache")
            self._thread.start()

    def wait(self) -> None:
        """Until it is done."""
        with self._lock:
            self._join()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def __deepcopy__(self, _: Any) -> "CacheThread":
        return CacheThread()

    def __reduce__(self) -> Any:
        return CacheThread, ()
