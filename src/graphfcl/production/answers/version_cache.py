"""Cache of embeddings and scores of the newest version, so that queries are answered without a forward pass."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import text_array
from graphfcl.methods import find_method
from graphfcl.production.store.checks import UNFIT, Damaged, need
from graphfcl.production.store.database import Database
from graphfcl.production.store.ids import IdLookup, lookup_part
from graphfcl.production.store.parts import Part, read_part, write_part
from graphfcl.runtime.files import canonical_json, flush_folder, sha256_of

COMPUTED_FROM = ("nodes", "edges", "features", "network", "knowledge")
MANY_ROWS = 1000
CHUNK = 1 << 15  # bytes; small, because single rows are read
DOCUMENT = "cache", 0


@dataclass(frozen=True)
class CacheKeys:
    """Keys of cached values.

    Attributes:
        scores: Key of embeddings and scores. Versions with the same key have equal embeddings and scores.
        readings: Key of the readings. Versions with the same key also have equal readings.
    """

    scores: str
    readings: str


@dataclass(frozen=True, eq=False)
class CacheContents:
    """Values of all nodes to be cached: the user's ids, embeddings (``table``), scores and (n, 2) readings."""

    keys: CacheKeys
    ids: np.ndarray
    table: np.ndarray
    scores: np.ndarray
    readings: np.ndarray


class OpenCache:
    """Cache of one version. Damaged content is treated as missing: methods return None.

    Args:
        rows: Part from which single rows are read.
        table: Function that reads the embeddings.
        key: Key of the stored readings.
    """

    def __init__(self, rows: Part, table: Callable[[], np.ndarray], key: str) -> None:
        self._part, self._table, self._key = rows, table, key
        self._lookup = IdLookup(rows)
        self.nodes, self.columns = rows.stored("scores").shape
        for name, width in {"scores": (self.columns,), "rows": (), "readings": (2,)}.items():
            array = rows.stored(name)
            need(array.shape == (self.nodes, *width), "its arrays differ in length")
            need(array.dtype.kind == ("i" if name == "rows" else "f"), "its arrays have another type")

    def find(self, ids: Sequence[Any]) -> tuple[np.ndarray, list[int]] | None:
        """Return the ids as they are stored, and their rows; None if an id is not stored in exactly this form."""
        rows = _unless_damaged(lambda: self._lookup.find_all(ids))
        if rows is None or not all(0 <= row < self.nodes for row in rows):
            return None
        numbers = self._lookup.of_numbers
        return np.array(list(map(int, ids)), np.int64) if numbers else text_array(list(map(str, ids))), rows

    def scores(self, rows: Sequence[int] | None = None) -> np.ndarray | None:
        """Return (r, columns) scores of some rows, or of all."""
        return self._read("scores", rows)

    def readings(self, key: str, rows: Sequence[int] | None = None) -> np.ndarray | None:
        """Return (r, 2) OOD scores and temperatures of some rows, or of all.

        Return None if the cache belongs to a version with another key.
        """
        readings = self._read("readings", rows) if self._key == key else None
        if readings is None or not np.isfinite(readings).all() or not (readings[:, 1] > 0).all():
            return None
        return readings

    def table(self) -> np.ndarray | None:
        """Return (n, width) embeddings of all nodes."""
        table = _unless_damaged(self._table)
        return table if table is not None and table.ndim == 2 and table.dtype.kind == "f" else None

    def _read(self, name: str, rows: Sequence[int] | None) -> np.ndarray | None:
        """Return some rows of an array. For many rows, the whole array is read."""
        if rows is not None and len(rows) <= MANY_ROWS:
            return _unless_damaged(lambda: self._part.stored(name).take(rows))
        whole = _unless_damaged(lambda: self._part.array(name))
        return whole if whole is None or rows is None else whole[np.array(rows)]


def _unless_damaged(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (*UNFIT, InputError):
        return None


class VersionCache:
    """Database of the cache. Its single document names the version that the cache belongs to.

    Every process that has computed scores may write the cache. The cache need not survive a power cut, and it may be
    deleted at any time.
    """

    def __init__(self, path: Path) -> None:
        self.database = Database(path, lasting=False)
        self._writing, self._starting = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None

    def write(self, contents: CacheContents, wanted: Callable[[], bool]) -> None:
        """Store the values of a version. A failure is not an error, because the values can be computed again.

        ``wanted`` returns whether the version is still the newest one. It is called while no other process can change
        the cache, so that values computed before an erasure are not written after it.
        """
        with self._writing, suppress(OSError, InputError, Damaged):
            try:
                self._write(contents, wanted)
            except Damaged:
                self.clear()
                self._write(contents, wanted)

    def start(self, contents: CacheContents, wanted: Callable[[], bool]) -> None:
        """Store the values as :meth:`write` does, in a thread. Python waits for the thread before it exits."""
        with self._starting:
            self._join()
            self._thread = threading.Thread(target=self.write, args=(contents, wanted), name="graphfcl-cache")
            self._thread.start()

    def wait(self) -> None:
        """Wait until the cache is written."""
        with self._starting:
            self._join()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _write(self, contents: CacheContents, wanted: Callable[[], bool]) -> None:
        database, ids = self.database, lookup_part(contents.ids)
        try:
            database.begin(wait=0)
            if wanted():
                arrays = {**ids.arrays, "scores": contents.scores, "readings": contents.readings}
                rows = Part(ids.values, arrays, chunk=CHUNK)
                database.keep_chunks(set())
                parts = {"rows": write_part(database, rows)}
                parts["table"] = write_part(database, Part({}, {"table": contents.table}))
                keys = {"key": contents.keys.scores, "readings": contents.keys.readings}
                database.put_document(*DOCUMENT, {**keys, **parts})
                database.commit()
        finally:
            database.rollback()

    def clear(self) -> None:
        """Delete the cache. A process that is writing the cache continues to write to the deleted file."""
        path = self.database.path
        if path.is_file() or path.is_symlink():
            path.unlink(missing_ok=True)
            flush_folder(path.parent)

    def open(self, key: str, columns: int) -> OpenCache | None:
        """Open the cache if it is intact and belongs to a version with this key and number of columns."""

        def read() -> OpenCache | None:
            values, _ = self.database.document(*DOCUMENT)
            if values["key"] != key:
                return None
            rows = read_part(self.database, values["rows"])
            cache = OpenCache(
                rows, lambda: read_part(self.database, values["table"]).array("table"), values["readings"]
            )
            return cache if cache.columns == columns else None

        return _unless_damaged(read)


def cache_keys(manifest: dict[str, Any]) -> CacheKeys:
    """Compute the keys of a version from its contents and the source code of its method."""
    parts, method = manifest["parts"], manifest["values"]["method"]
    computed = [parts.get(name) for name in COMPUTED_FROM]
    source = find_method(method).source
    return CacheKeys(*(sha256_of(canonical_json([each, method, source])) for each in (computed, [computed, parts])))
