"""What every row and edge of a visible graph on disk counts: degrees, and the factors of hops and links.

They are tables of a few columns. A row that is hidden has no edges and counts nothing.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np

from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.methods.blocks.column_phases import ColumnTask, Operator, run_columns
from graphfcl.methods.blocks.source import Source
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.blocks.work_folder import WorkFolder, key_of
from graphfcl.methods.learner import Progress

COLUMNS = {"degrees": 1, "ones": 1, "visible": 2, "scales": 2, "link-scales": 2, "link-roots": 1}


class FolderRows:
    """The tables of one visible graph on disk that hold a number or two for each row."""

    def __init__(
        self, visible: VisibleFolder, source: Source, work: WorkFolder, progress: Callable[[], Progress]
    ) -> None:
        self._visible, self._source, self._work, self._progress = visible, source, work, progress

    @cached_property
    def degrees(self) -> StoredTable:
        """(n, 1) sums of edge weights to visible neighbours."""
        mask = self._visible.mask
        if mask is None:
            return self._written("degrees", lambda start, stop: self._folder_degrees[start:stop, None])
        ones = self._written("ones", lambda start, stop: np.ones((stop - start, 1), dtype=np.float32))
        shown = self._written(
            "visible", lambda start, stop: np.stack([np.ones(stop - start), mask[start:stop]], axis=1)
        )
        found = self._planned("degrees")
        task = ColumnTask(self._source, Operator(shown, loop=False), ones, ((1, found),), ())
        run_columns("degrees", task, self._visible.resources, self._progress())
        return found

    @cached_property
    def _folder_degrees(self) -> np.ndarray:
        return self._visible.reader.degrees()

    @cached_property
    def scales(self) -> StoredTable:
        """(n, 2) the factors of Â, (d + 1)^(−1/2); 0 for a hidden row."""

        def rows(start: int, stop: int) -> np.ndarray:
            return np.repeat(self._shown(start, stop) / np.sqrt(self.degrees.block(start) + 1), 2, axis=1)

        return self._written("scales", rows)

    @property
    def adjacency(self) -> Operator:
        """Â."""
        return Operator(self.scales)

    @cached_property
    def link_roots(self) -> StoredTable:
        """(n, 1) d^(1/2) with edge weights of mean 1; 1 for a lone node, 0 for a hidden row."""
        return self._written("link-roots", lambda start, stop: self._shown(start, stop) * self._roots(start))

    @cached_property
    def link_scales(self) -> StoredTable:
        """(n, 2) the factors of d^(−1/2) A with edge weights of mean 1; a hidden row has 0."""

        def rows(start: int, stop: int) -> np.ndarray:
            left = self._shown(start, stop) / self._roots(start)
            return np.concatenate([left, self._shown(start, stop) / np.float32(self.mean_weight)], axis=1)

        return self._written("link-scales", rows)

    def _roots(self, start: int) -> np.ndarray:
        return np.sqrt(np.maximum(self.degrees.block(start) / np.float32(self.mean_weight), 1))

    def _shown(self, start: int, stop: int) -> np.ndarray:
        """(rows, 1) 1 for a visible row and 0 for a hidden one."""
        mask = self._visible.mask
        return np.ones((stop - start, 1), np.float32) if mask is None else mask[start:stop, None].astype(np.float32)

    @cached_property
    def mean_weight(self) -> float:
        """Of a visible edge; 1 if there is none."""
        if not self._visible.reader.weighted:
            return 1.0
        total, count, mask = 0.0, 0, self._visible.mask
        for start, stop, indptr, indices, weights in self._source.adjacency():
            if mask is not None:
                weights = weights[np.repeat(mask[start:stop], np.diff(indptr)) & mask[indices]]
            total, count = total + float(weights.sum(dtype=np.float64)), count + weights.size
        return total / count if count else 1.0

    def folders(self) -> list[Path]:
        """Where they lie."""
        return [self._planned(name).folder for name in COLUMNS]

    def _written(self, name: str, rows: Callable[[int, int], np.ndarray]) -> StoredTable:
        found = self._planned(name)
        for number in found.missing():
            file = found.files[number]
            file.write(rows(start, stop) for start, stop in file.extent.blocks)
        return found

    def _planned(self, name: str) -> StoredTable:
        masked = name == "degrees" and self._visible.mask is not None  # made by a pass over the edges
        key = key_of(**{name: self._source.graph_key})
        by = "slices" if masked else "parts"
        return self._work.table(name, key, self._source.rows, COLUMNS[name], by=by)  # type: ignore[arg-type]
