"""A graph folder and what was added to it, read like one graph folder.

Tasks open it by a path: a small folder with ``grown.json``, which names the graph folder, and ``grown.npz``. Both can
be written again at any time by whoever knows what was added.
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
from graphfcl.files import canonical_json, make_folder, sha256_of, write_bytes
from graphfcl.graph.folder.growth import Growth
from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.folder.rows import STEP, FolderRows, Neighbours
from graphfcl.graph.folder.text_keys import pack_texts, unpack_texts
from graphfcl.graph.graph import Features
from graphfcl.graph.ids import text_array

GROWN = "grown.json"
ARRAYS = "grown.npz"


class GrownFolder:
    """Rows of the graph folder first, then those of the added nodes. path: where tasks open it."""

    def __init__(self, path: Path, base: GraphFolder, growth: Growth) -> None:
        self.path, self.base, self.growth = path, base, growth
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
        return self.base.node_count + int(self.growth.ids.size)

    @property
    def edge_count(self) -> int:
        return self.base.edge_count + self.growth.edge_count

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
        return self.base.weighted or not bool((self.growth.weights == 1).all())

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
        """All rows: a model hides none."""
        if mask is not None:
            raise ValueError("a graph that was grown shows all of its rows")
        return self

    def neighbours(self, start: int, stop: int) -> Neighbours:
        """The neighbours of rows ``start`` to ``stop`` - 1, those by added edges among them."""
        low, high = np.searchsorted(self._rows, [start, stop]).tolist()
        middle = min(max(start, self.base.node_count), stop)
        part = self.base.neighbours(min(start, middle), middle) if start < middle else self.base.neighbours(0, 0)
        indptr = np.concatenate([part.indptr, np.full(stop - middle, part.indptr[-1])])
        weights = part.weights
        if weights is None and self.weighted:
            weights = np.ones(part.indices.size, dtype=np.float32)
        if low == high:
            return Neighbours(indptr, part.indices, weights)
        shape = (stop - start, self.node_count)
        known = np.ones(part.indices.size, dtype=np.float32) if weights is None else weights
        there = sparse.csr_array((known, part.indices, indptr), shape=shape)
        ends = np.searchsorted(self._rows[low:high], np.arange(start, stop + 1))
        added = sparse.csr_array((self._weights[low:high], self._others[low:high], ends), shape=shape)
        joined = there.maximum(added).tocsr()
        joined.sort_indices()
        indices = joined.indices.astype(part.indices.dtype)
        return Neighbours(joined.indptr.astype(np.int64), indices, joined.data if self.weighted else None)

    def neighbour_ranges(self, neighbours: int = STEP) -> list[tuple[int, int]]:
        """Ranges of rows that cover the graph, each with about so many neighbours of the graph folder."""
        found = self.base.neighbour_ranges(neighbours)
        return found if not self.growth.ids.size else [*found, (self.base.node_count, self.node_count)]

    def degrees(self) -> np.ndarray:
        """(n,) float32 sums of the weights of a row's edges."""
        found = np.concatenate([self.base.degrees(), np.zeros(self.growth.ids.size, dtype=np.float32)])
        np.add.at(found, self._rows, self._more)
        return found

    def features(self, start: int, stop: int) -> Features:
        """(stop - start, d) float32, a CSR matrix if the folder has sparse features."""
        count = self.base.node_count
        if stop <= count:
            return self.base.features(start, stop)
        added = self.growth.features[max(0, start - count) : stop - count]
        if start >= count:
            return added if isinstance(added, np.ndarray) else sparse.csr_array(added)
        parts = [self.base.features(start, count), added]
        if isinstance(added, np.ndarray):
            return np.concatenate(parts)
        return sparse.csr_array(sparse.vstack(parts, format="csr", dtype=np.float32))

    @property
    def feature_names(self) -> np.ndarray | None:
        return self.base.feature_names

    def ids(self, rows: Any) -> np.ndarray:
        """(m,) the user's ids of some rows."""
        rows, count = np.asarray(rows, dtype=np.int64), self.base.node_count
        added = rows >= count
        if not added.any():
            return self.base.ids(rows)
        found = np.empty(rows.size, dtype=self.growth.ids.dtype)
        found[~added] = self.base.ids(rows[~added])
        found[added] = self.growth.ids[rows[added] - count]
        return found

    def rows_of(self, ids: Any) -> np.ndarray:
        """(m,) rows of the user's ids; -1 where there is none."""
        found = self.base.rows_of(ids)
        if self.growth.ids.size:
            added = self.growth.index.rows(ids)
            found = np.where((found < 0) & (added >= 0), added + self.base.node_count, found)
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
