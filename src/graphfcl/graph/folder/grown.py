"""A graph folder and what was added to it and removed from it, read like one graph folder.

Tasks open it by a path: a small folder with ``grown.json``, which names the graph folder, and ``grown.npz``. Both can
be written again at any time by whoever knows what was changed.
"""

import json
import zlib
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.folder.growth import Growth
from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.folder.rows import STEP, FolderRows, Neighbours
from graphfcl.graph.folder.text_keys import pack_texts, unpack_texts
from graphfcl.graph.graph import Features
from graphfcl.graph.ids import text_array
from graphfcl.runtime.files import canonical_json, make_folder, sha256_of, write_bytes

GROWN = "grown.json"
ARRAYS = "grown.npz"


class GrownFolder:
    """Rows of the graph folder first, then those of the added nodes. path: where tasks open it.

    The row of a removed node stays, without edges, features and id. mask: (row_count,) bool, the rows that have a node;
    None if all have one.
    """

    def __init__(self, path: Path, base: GraphFolder, growth: Growth) -> None:
        self.path, self.base, self.growth = path, base, growth
        self.mask = growth.shown(base.node_count)
        pairs = np.concatenate([np.stack([growth.first, growth.second]), np.stack([growth.second, growth.first])], 1)
        order = np.lexsort((pairs[1], pairs[0]))
        self._rows, self._others = pairs[:, order]
        self._weights = np.concatenate([growth.weights, growth.weights])[order]
        self._more = np.concatenate([growth.weights - growth.before] * 2)[order]

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return open_folder, (self.path,)

    def __repr__(self) -> str:
        return f"GrownFolder({str(self.base.path)!r}, {self.node_count:,} nodes, {self.edge_count:,} edges)"

    @property
    def name(self) -> str:
        return self.base.name

    @property
    def node_count(self) -> int:
        """All rows, those of removed nodes included."""
        return self.growth.row_count

    @property
    def edge_count(self) -> int:
        return self.base.edge_count + self.growth.edge_change

    @property
    def feature_count(self) -> int:
        return self.base.feature_count

    @property
    def class_names(self) -> tuple[str, ...]:
        """Those of the graph folder."""
        return self.base.class_names

    @property
    def integer_classes(self) -> bool:
        return self.base.integer_classes

    @property
    def sparse_features(self) -> bool:
        return self.base.sparse_features

    @cached_property
    def weighted(self) -> bool:
        return self.base.weighted or not bool(np.isin(self.growth.weights, (0, 1)).all())

    @property
    def digest(self) -> str:
        return sha256_of(canonical_json([self.base.digest, self.growth.digest]))

    @property
    def key(self) -> str:
        """Identifies the content."""
        return self.digest

    @property
    def rows(self) -> "GrownFolder":
        """What a learner of a model is handed: all of it, labels of the graph folder included."""
        return self

    def hiding(self, mask: np.ndarray | None) -> "GrownFolder":
        """Itself: the rows that a model hides are those of removed nodes, which it hides already."""
        if mask is not None and (self.mask is None or not np.array_equal(mask, self.mask)):
            raise ValueError("a graph that was grown hides the rows of removed nodes, and no others")
        return self

    def neighbours(self, start: int, stop: int) -> Neighbours:
        """The neighbours of rows ``start`` to ``stop`` - 1, by the edges that there are now."""
        low, high = np.searchsorted(self._rows, [start, stop]).tolist()
        middle = min(max(start, self.base.node_count), stop)
        part = self.base.neighbours(min(start, middle), middle) if start < middle else self.base.neighbours(0, 0)
        indptr = np.concatenate([part.indptr, np.full(stop - middle, part.indptr[-1])])
        indices, weights = part.indices, part.weights
        if weights is None and self.weighted:
            weights = np.ones(part.indices.size, dtype=np.float32)
        if low < high:
            shape = (stop - start, self.node_count)
            known = np.ones(part.indices.size, dtype=np.float32) if weights is None else weights
            there = sparse.csr_array((known, part.indices, indptr), shape=shape)
            ends = np.searchsorted(self._rows[low:high], np.arange(start, stop + 1))
            others = self._others[low:high]
            changed = sparse.csr_array((np.ones(high - low, dtype=np.float32), others, ends), shape=shape)
            now = sparse.csr_array((self._weights[low:high], others, ends), shape=shape)
            joined = sparse.csr_array(there - there.multiply(changed) + now)
            joined.eliminate_zeros()
            joined.sort_indices()
            indptr, indices = joined.indptr.astype(np.int64), joined.indices.astype(part.indices.dtype)
            weights = joined.data if self.weighted else None
        return self._shown(start, stop, Neighbours(indptr, indices, weights))

    def _shown(self, start: int, stop: int, part: Neighbours) -> Neighbours:
        """Without edges of removed nodes."""
        if self.mask is None:
            return part
        kept = self.mask[part.indices] & np.repeat(self.mask[start:stop], np.diff(part.indptr))
        ends = np.concatenate([[0], np.cumsum(kept)])
        return Neighbours(ends[part.indptr], part.indices[kept], None if part.weights is None else part.weights[kept])

    def neighbour_ranges(self, neighbours: int = STEP) -> list[tuple[int, int]]:
        """Ranges of rows that cover the graph, each with about so many neighbours of the graph folder."""
        found, count = self.base.neighbour_ranges(neighbours), self.base.node_count
        return found if self.node_count == count else [*found, (count, self.node_count)]

    def degrees(self) -> np.ndarray:
        """(n,) float32 sums of the weights of a row's edges."""
        # What is subtracted leaves a rounding error, by which a node without edges would seem to have some.
        if self.mask is None and (self._weights > 0).all():
            added = np.zeros(self.node_count - self.base.node_count, dtype=np.float32)
            found = np.concatenate([self.base.degrees(), added])
            np.add.at(found, self._rows, self._more)
            return found
        found = np.empty(self.node_count, dtype=np.float32)
        for start, stop in self.neighbour_ranges():
            part = self.neighbours(start, stop)
            rows = np.repeat(np.arange(stop - start), np.diff(part.indptr))
            found[start:stop] = np.bincount(rows, weights=part.weights, minlength=stop - start)
        return found

    def features(self, start: int, stop: int) -> Features:
        """(stop - start, d) float32, a CSR matrix if the folder has sparse features; 0 for a removed node."""
        count, places = self.base.node_count, self.growth.places
        middle = min(max(start, count), stop)
        parts = [self.base.features(min(start, middle), middle)] if start < middle else []
        if middle < stop:
            low, high = np.searchsorted(places, [middle, stop]).tolist()
            parts.append(_scattered(self.growth.features[low:high], places[low:high] - middle, stop - middle))
        if not parts:
            return self.base.features(0, 0)
        together = parts[0] if len(parts) == 1 else _stacked(parts)
        gone = self.growth.gone
        low, high = np.searchsorted(gone, [start, stop]).tolist()
        return together if low == high else _emptied(together, gone[low:high] - start)

    @property
    def feature_names(self) -> np.ndarray | None:
        return self.base.feature_names

    def ids(self, rows: Any) -> np.ndarray:
        """(m,) the user's ids of some rows that have a node."""
        rows, count = np.asarray(rows, dtype=np.int64), self.base.node_count
        added = rows >= count
        if not added.any():
            return self.base.ids(rows)
        found = np.empty(rows.size, dtype=self.growth.ids.dtype)
        found[~added] = self.base.ids(rows[~added])
        found[added] = self.growth.ids[np.searchsorted(self.growth.places, rows[added])]
        return found

    def rows_of(self, ids: Any) -> np.ndarray:
        """(m,) rows of the user's ids; -1 where there is none."""
        found = self.base.rows_of(ids)
        if self.growth.gone.size:
            found = np.where(np.isin(found, self.growth.gone), -1, found)
        if self.growth.ids.size:
            added = self.growth.index.rows(ids)
            found = np.where((found < 0) & (added >= 0), self.growth.places[added], found)
        return found

    def write(self) -> None:
        """Let tasks open it by its path; nothing is written if they can."""
        said = self._said()
        known = _read(self.path / GROWN) or {}
        if known == {**said, ARRAYS: _checksum(self.path / ARRAYS)}:
            return
        ids = self.growth.ids
        arrays = self.growth.arrays()
        if ids.dtype == object:
            arrays["id_text"], arrays["id_starts"] = pack_texts([str(each) for each in ids.tolist()])
        else:
            arrays["ids"] = ids
        make_folder(self.path)
        content = BytesIO()
        np.savez(content, **arrays)  # type: ignore[arg-type]
        write_bytes(self.path / ARRAYS, content.getvalue())
        write_bytes(self.path / GROWN, canonical_json({**said, ARRAYS: sha256_of(content.getvalue())}))

    def _said(self) -> dict[str, str]:
        return {"graph": str(self.base.path.resolve()), "base": self.base.digest, "digest": self.digest}


AnyFolder: TypeAlias = GraphFolder | GrownFolder
AnyRows: TypeAlias = FolderRows | GrownFolder


def open_folder(path: str | Path) -> AnyFolder:
    """A graph folder, or one that was grown."""
    path = Path(path)
    said = _read(path / GROWN)
    if said is None:
        return GraphFolder.open(path)
    base = GraphFolder.open(said["graph"])
    try:
        with np.load(path / ARRAYS, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        ids = arrays.pop("ids", None)
        if ids is None:
            ids = text_array(unpack_texts(arrays.pop("id_text"), arrays.pop("id_starts")))
        found = GrownFolder(path, base, Growth.of_arrays(ids, arrays, base.feature_count))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(f"{path / ARRAYS} is missing or damaged: delete {path}, and start again.") from error
    if found.digest != said["digest"]:
        raise InputError(f"{path} was changed: delete it, and start again.")
    return found


def _read(path: Path) -> dict[str, str] | None:
    try:
        said = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def _checksum(path: Path) -> str | None:
    try:
        return sha256_of(path.read_bytes())
    except OSError:
        return None


def _scattered(rows: Features, places: np.ndarray, count: int) -> Features:
    """(count, d) some rows in their places, 0 elsewhere."""
    if places.size == count:
        return rows if isinstance(rows, np.ndarray) else sparse.csr_array(rows)
    if isinstance(rows, np.ndarray):
        found = np.zeros((count, rows.shape[1]), dtype=rows.dtype)
        found[places] = rows
        return found
    lengths = np.zeros(count, dtype=np.int64)
    lengths[places] = np.diff(rows.indptr)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return sparse.csr_array((rows.data, rows.indices, ends), shape=(count, rows.shape[1]))


def _emptied(rows: Features, places: np.ndarray) -> Features:
    """The same with some rows 0. rows: may be changed."""
    if isinstance(rows, np.ndarray):
        rows[places] = 0
        return rows
    kept = np.ones(rows.shape[0], dtype=bool)
    kept[places] = False
    lengths = np.diff(rows.indptr)
    inside = np.repeat(kept, lengths)
    ends = np.concatenate([[0], np.cumsum(np.where(kept, lengths, 0))])
    return sparse.csr_array((rows.data[inside], rows.indices[inside], ends), shape=rows.shape)


def _stacked(parts: list[Features]) -> Features:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return sparse.csr_array(sparse.vstack(parts, format="csr", dtype=np.float32))
