"""The adjacency of a visible graph folder, multiplied and read without holding it."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from graphfcl.graph.visible_folder import VisibleFolder

EDGES_AT_A_TIME = 1 << 22


@dataclass(frozen=True, eq=False)
class FolderAdjacency:
    """(n, n) A of a folder: what of a CSR matrix its users need."""

    visible: VisibleFolder

    def __matmul__(self, values: np.ndarray) -> np.ndarray:
        """(n,) A · values, with some rows of A in memory at a time. values: (n,)."""
        reader, found = self.visible.reader, np.empty(values.size, dtype=np.float64)
        for start, stop in reader.neighbour_ranges(EDGES_AT_A_TIME):
            part = reader.neighbours(start, stop)
            weights = np.ones(part.indices.size, dtype=np.float32) if part.weights is None else part.weights
            block = sparse.csr_array((weights, part.indices, part.indptr), shape=(stop - start, values.size))
            found[start:stop] = block @ values
        return found

    def sum(self, axis: int) -> np.ndarray:
        """(n,) the degrees; A is symmetric, so either axis has the same sums."""
        _ = axis
        return self.visible.reader.degrees()

    def __getitem__(self, rows: np.ndarray) -> sparse.csr_array:
        """(m, n) some rows, in any order."""
        ordered, places = np.unique(rows, return_inverse=True)
        return sparse.csr_array(self.visible.adjacency_rows(ordered)[places])
