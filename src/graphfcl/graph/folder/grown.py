"""A graph folder with added and removed nodes and edges. The folder itself is not changed.

Worker processes open it by the path of a small folder with ``grown.json``, which names the graph folder, and
``grown.npz``, which has the changes. Both can be written again from the changes at any time.
"""

import json
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.folder.reader import GraphFolder
from graphfcl.graph.folder.rows import STEP, FolderRows, Neighbours
from graphfcl.graph.graph import UNKNOWN
from graphfcl.graph.ids import IdIndex, pack_texts, unpack_texts
from graphfcl.graph.views import Features, stacked
from graphfcl.runtime.files import canonical_json, make_folder, sha256_of, write_bytes

GROWN = "grown.json"
ARRAYS = "grown.npz"
EDGES = ("first", "second", "weights", "before")


@dataclass(frozen=True, eq=False)
class Growth:
    """Difference between a graph and the graph folder from which it grew.

    Added nodes get rows after the rows of the folder. The row of a removed node stays empty and is never reused, and
    nothing else is kept of the node.

    Args:
        row_count: Number of rows, including rows of removed nodes.
        places: (m,) int64 Rows of added nodes that still exist, and of folder nodes with changed features, ascending.
        ids: (m,) Ids of these nodes.
        features: (m, d) Raw features of these nodes.
        gone: (g,) int64 Rows of removed nodes of the folder, ascending.
        first: (e,) int64 First ends of changed edges. Pairs are sorted and each occurs once.
        second: (e,) int64 Second ends; ``first < second``.
        weights: (e,) float32 Current weights; 0 for a removed edge.
        before: (e,) float32 Weights in the folder; 0 for an edge that it does not have.
        edge_change: Current number of edges minus the number in the folder.
    """

    row_count: int
    places: np.ndarray
    ids: np.ndarray
    features: Features
    gone: np.ndarray
    first: np.ndarray
    second: np.ndarray
    weights: np.ndarray
    before: np.ndarray
    edge_change: int = 0

    @classmethod
    def none(cls, folder: GraphFolder) -> "Growth":
        """Return a growth without changes."""
        nowhere, nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        ids, features = folder.ids(nowhere), folder.features(0, 0)
        return cls(folder.node_count, nowhere, ids, features, nowhere, nowhere, nowhere, nothing, nothing)

    @property
    def is_empty(self) -> bool:
        return not (self.places.size or self.gone.size or self.first.size)

    @cached_property
    def both_directions(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Changed edges in both directions, sorted: (2e,) rows, columns, weights, and differences to the folder."""
        ends = np.concatenate([np.stack([self.first, self.second]), np.stack([self.second, self.first])], axis=1)
        order = np.lexsort((ends[1], ends[0]))
        weights, before = (np.concatenate([each, each])[order] for each in (self.weights, self.before))
        return ends[0, order], ends[1, order], weights, weights - before

    @cached_property
    def digest(self) -> str:
        """Hash of all changes."""
        ids = [str(each) for each in self.ids.tolist()]
        parts = {name: sha256_of(np.ascontiguousarray(array).tobytes()) for name, array in self.arrays().items()}
        return sha256_of(canonical_json([ids, parts, list(self.features.shape)]))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all fields except the ids as arrays."""
        counts = np.array([self.row_count, self.edge_change], dtype=np.int64)
        arrays = {name: getattr(self, name) for name in ("places", "gone", *EDGES)} | {"counts": counts}
        if isinstance(self.features, np.ndarray):
            return {**arrays, "rows": self.features}
        values = {"indptr": self.features.indptr, "indices": self.features.indices, "data": self.features.data}
        return {**arrays, **values}

    @classmethod
    def of_arrays(cls, ids: np.ndarray, arrays: dict[str, np.ndarray], width: int) -> "Growth":
        """Read the result of :meth:`arrays`; ``width`` is the number of feature columns."""
        row_count, edge_change = arrays["counts"].tolist()
        features: Any = arrays.get("rows")
        if features is None:
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            features = sparse.csr_array(parts, shape=(ids.size, width))
        rows = {name: arrays[name] for name in ("places", "gone", *EDGES)}
        return cls(row_count=row_count, ids=ids, features=features, edge_change=edge_change, **rows)

    @cached_property
    def index(self) -> IdIndex:
        """Index of the ids in this growth."""
        return IdIndex(self.ids)

    def added(self, folder_rows: int) -> int:
        """Return the number of added nodes that exist; ``folder_rows`` is the number of rows of the folder."""
        return self.places.size - int(np.searchsorted(self.places, folder_rows))

    def shown(self, folder_rows: int) -> np.ndarray | None:
        """Return (row_count,) bool, True for rows with a node; None if all rows have one."""
        if not self.gone.size and self.row_count == folder_rows + self.added(folder_rows):
            return None
        mask = np.zeros(self.row_count, dtype=bool)
        mask[:folder_rows] = True
        mask[self.gone] = False
        mask[self.places] = True
        return mask

    # Changes

    def with_nodes(self, ids: np.ndarray, features: Features) -> "Growth":
        """Add nodes in the next rows."""
        rows = np.arange(self.row_count, self.row_count + ids.size)
        return replace(self, row_count=self.row_count + ids.size).with_features(rows, ids, features)

    def with_features(self, rows: np.ndarray, ids: np.ndarray, features: Features) -> "Growth":
        """Set the features of nodes; each row may occur once."""
        kept = np.flatnonzero(~np.isin(self.places, rows))
        places = np.concatenate([self.places[kept], rows])
        order = np.argsort(places)
        return replace(
            self,
            places=places[order],
            ids=np.concatenate([self.ids[kept], ids])[order],
            features=stacked([self.features[kept], features])[order],
        )

    def without_nodes(self, rows: np.ndarray, folder_rows: int, edges: int) -> "Growth":
        """Remove nodes and their changed edges; ``rows`` are rows of existing nodes, which have ``edges`` edges."""
        kept = ~np.isin(self.places, rows)
        untouched = ~(np.isin(self.first, rows) | np.isin(self.second, rows))
        return replace(
            self,
            places=self.places[kept],
            ids=self.ids[kept],
            features=self.features[np.flatnonzero(kept)],
            gone=np.union1d(self.gone, rows[rows < folder_rows]).astype(np.int64),
            edge_change=self.edge_change - edges,
            **{name: getattr(self, name)[untouched] for name in EDGES},
        )

    def with_weights(
        self, first: np.ndarray, second: np.ndarray, weights: np.ndarray, before: np.ndarray, edge_change: int
    ) -> "Growth":
        """Set the weights of edges, each pair once; 0 removes an edge.

        Args:
            first: (e,) First ends.
            second: (e,) Second ends; ``first < second``.
            weights: (e,) New weights.
            before: (e,) Weights in the folder.
            edge_change: New number of edges minus the current number.
        """
        pairs = np.stack([np.concatenate([self.first, first]), np.concatenate([self.second, second])])
        both = np.concatenate([self.weights, weights]), np.concatenate([self.before, before])
        order = np.lexsort((-np.arange(pairs.shape[1]), pairs[1], pairs[0]))  # the newest weight of a pair comes first
        pairs, now, then = pairs[:, order], both[0][order], both[1][order]
        kept = np.ones(order.size, dtype=bool)
        kept[1:] = (np.diff(pairs, axis=1) != 0).any(axis=0)
        kept &= now != then
        return replace(
            self,
            first=pairs[0, kept],
            second=pairs[1, kept],
            weights=now[kept].astype(np.float32),
            before=then[kept].astype(np.float32),
            edge_change=self.edge_change + edge_change,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class GrownRows(FolderRows):
    """Rows of a graph folder (``stored``), followed by rows of added nodes. Rows of removed nodes are hidden."""

    stored: FolderRows
    growth: Growth

    @classmethod
    def grown(cls, path: Path, stored: FolderRows, growth: Growth, key: str) -> "GrownRows":
        return cls(
            path=path,
            key=key,
            node_count=growth.row_count,
            edge_count=stored.edge_count + growth.edge_change,
            feature_count=stored.feature_count,
            weighted=stored.weighted or not bool(np.isin(growth.weights, (0, 1)).all()),
            sparse_features=stored.sparse_features,
            files=stored.files,
            mask=growth.shown(stored.node_count),
            stored=stored,
            growth=growth,
        )

    def __reduce__(self) -> tuple[Any, tuple[Path, np.ndarray | None]]:
        return _open_rows, (self.path, self.mask)

    def _all_neighbours(self, start: int, stop: int) -> Neighbours:
        """Read neighbours from the folder and apply the changed edges."""
        count = self.stored.node_count
        part = self.stored.neighbours(min(start, count), min(stop, count))
        indptr = np.concatenate([part.indptr, np.full(stop - max(start, min(stop, count)), part.indptr[-1])])
        rows, others, weights, _ = self.growth.both_directions
        low, high = np.searchsorted(rows, [start, stop]).tolist()
        before = Neighbours(indptr, part.indices, part.weights)
        if low == high:
            return before if part.weights is not None or not self.weighted else _with_ones(before)
        in_folder = before.matrix(self.node_count)
        ends = np.searchsorted(rows[low:high], np.arange(start, stop + 1))
        changed, now = (
            sparse.csr_array((values, others[low:high], ends), shape=in_folder.shape)
            for values in (np.ones(high - low, dtype=np.float32), weights[low:high])
        )
        joined = sparse.csr_array(in_folder - in_folder.multiply(changed) + now)
        joined.eliminate_zeros()
        joined.sort_indices()
        indices = joined.indices.astype(part.indices.dtype)
        return Neighbours(joined.indptr.astype(np.int64), indices, joined.data if self.weighted else None)

    def neighbour_ranges(self, neighbours: int = STEP) -> list[tuple[int, int]]:
        """Split all rows into ranges with about this many neighbours in the graph folder; added rows are one range."""
        ranges, count = self.stored.neighbour_ranges(neighbours), self.stored.node_count
        return ranges if self.node_count == count else [*ranges, (count, self.node_count)]

    def degrees(self) -> np.ndarray:
        rows, _, weights, more = self.growth.both_directions
        # Subtracting weights leaves rounding errors, so that a node without edges could get a positive degree.
        if self.mask is None and (weights > 0).all():
            added = np.zeros(self.node_count - self.stored.node_count, dtype=np.float32)
            sums = np.concatenate([self.stored.degrees(), added])
            np.add.at(sums, rows, more)
            return sums
        return super().degrees()

    def _degrees(self, start: int, stop: int) -> np.ndarray:
        return self._weight_sums(start, stop)

    def _all_features(self, start: int, stop: int) -> Features:
        count, places = self.stored.node_count, self.growth.places
        stored = self.stored.features(min(start, count), min(stop, count))
        low, high = np.searchsorted(places, [start, stop]).tolist()
        if low == high and stop <= count:
            return stored
        empty = np.zeros((1, self.feature_count), dtype=np.float32)
        parts = (
            stored,
            self.growth.features[low:high],
            empty if isinstance(stored, np.ndarray) else sparse.csr_array(empty),
        )
        count = stored.shape[0]
        source = np.full(stop - start, count + high - low)  # rows without a node take the empty row
        source[:count] = np.arange(count)
        source[places[low:high] - start] = count + np.arange(high - low)
        return stacked([*parts])[source]


class GrownFolder(GraphFolder):
    """A graph folder with changes. Workers open it at ``path``.

    The row of a removed node stays, without edges, features and id.
    """

    def __init__(self, path: Path, base: GraphFolder, growth: Growth) -> None:
        self.base, self.growth = base, growth
        rows = GrownRows.grown(path, base.rows, growth, self.sha256)
        super().__init__(path, base.manifest, base._files, base._resources, rows)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return open_folder, (self.path,)

    @property
    def sha256(self) -> str:
        return grown_sha256(self.base, self.growth)

    @cached_property
    def labels(self) -> np.ndarray:
        """(n,) Labels of the graph folder; unknown for added and removed nodes."""
        labels = np.full(self.growth.row_count, UNKNOWN, dtype=np.int32)
        labels[: self.manifest.nodes] = self.base.labels
        labels[self.growth.gone] = UNKNOWN
        return labels

    def ids(self, rows: Any) -> np.ndarray:
        """Return (m,) the user's ids of rows that have a node."""
        rows = np.asarray(rows, dtype=np.int64)
        added = rows >= self.manifest.nodes
        if not added.any():
            return super().ids(rows)
        ids = np.empty(rows.size, dtype=self.growth.ids.dtype)
        ids[~added] = super().ids(rows[~added])
        ids[added] = self.growth.ids[np.searchsorted(self.growth.places, rows[added])]
        return ids

    def nodes_of(self, ids: Any) -> np.ndarray:
        """Return (m,) rows of the user's ids; -1 where there is none."""
        rows = super().nodes_of(ids)
        if self.growth.gone.size:
            rows = np.where(np.isin(rows, self.growth.gone), -1, rows)
        if self.growth.ids.size:
            added = self.growth.index.rows(ids)
            rows = np.where((rows < 0) & (added >= 0), self.growth.places[added], rows)
        return rows

    def write(self) -> None:
        """Write the files from which workers open it, unless they are up to date."""
        named = {"graph": str(self.base.path.resolve()), "base": self.base.sha256, "digest": self.sha256}
        if _read(self.path / GROWN) == {**named, ARRAYS: _checksum(self.path / ARRAYS)}:
            return
        arrays, ids = self.growth.arrays(), self.growth.ids
        if ids.dtype == object:
            arrays["id_text"], arrays["id_starts"] = pack_texts([str(each) for each in ids.tolist()])
        else:
            arrays["ids"] = ids
        make_folder(self.path)
        content = BytesIO()
        np.savez(content, **arrays)  # type: ignore[arg-type]
        write_bytes(self.path / ARRAYS, content.getvalue())
        write_bytes(self.path / GROWN, canonical_json({**named, ARRAYS: sha256_of(content.getvalue())}))


def grown_sha256(base: GraphFolder, growth: Growth) -> str:
    """Return the fingerprint of a graph folder with changes."""
    return sha256_of(canonical_json([base.sha256, growth.digest]))


def open_folder(path: str | Path) -> GraphFolder:
    """Open a graph folder, with or without changes."""
    path = Path(path)
    named = _read(path / GROWN)
    if named is None:
        return GraphFolder.open(path)
    base = GraphFolder.open(named["graph"])
    try:
        with np.load(path / ARRAYS, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        ids = arrays.pop("ids", None)
        if ids is None:
            ids = unpack_texts(arrays.pop("id_text"), arrays.pop("id_starts"))
        grown = GrownFolder(path, base, Growth.of_arrays(ids, arrays, base.feature_count))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
        raise InputError(f"{path / ARRAYS} is missing or damaged: delete {path}, and start again.") from error
    if grown.sha256 != named["digest"]:
        raise InputError(f"{path} was changed: delete it, and start again.")
    return grown


def _open_rows(path: Path, mask: np.ndarray | None) -> FolderRows:
    return open_folder(path).rows.hiding(mask)


def _with_ones(part: Neighbours) -> Neighbours:
    return replace(part, weights=np.ones(part.indices.size, dtype=np.float32))


def _read(path: Path) -> dict[str, str] | None:
    try:
        named = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return named if isinstance(named, dict) else None


def _checksum(path: Path) -> str | None:
    try:
        return sha256_of(path.read_bytes())
    except OSError:
        return None
