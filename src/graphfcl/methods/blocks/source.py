"""A picklable description of a visible part of a graph folder, from which worker tasks read rows of X and A."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from graphfcl.graph.folder.grown import open_folder
from graphfcl.graph.folder.rows import FolderRows
from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.graph.views import Features, FeatureView
from graphfcl.methods.blocks.work_folder import arrays_key, key_of
from graphfcl.methods.shared.untrained_features import WIDEST, prepare

EDGES_AT_A_TIME = 1 << 18  # entries of A that are read at a time, few enough for the CPU cache


class AdjacencyRows(NamedTuple):
    """Rows ``start`` to ``stop`` − 1 of A in CSR format; ``indptr`` and ``indices`` have the same type."""

    start: int
    stop: int
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class Source:
    """A graph folder, and how the features X of a learner follow from its raw features.

    Args:
        path: The graph folder.
        content: Key of the folder's content.
        mask: Digest of the visible rows; empty if all rows are visible.
        view: Transformation of the raw features, or None.
        unit: Whether rows are scaled to unit length, see ``prepare``.
        seed: Seed of the hash of columns, see ``prepare``.
        rows: Number of rows of the folder.
    """

    path: Path
    content: str
    mask: str
    view: FeatureView | None
    unit: bool
    seed: int
    rows: int

    @classmethod
    def of(cls, visible: VisibleFolder, seed: int, *, unit: bool) -> "Source":
        reader = visible.reader
        return cls(reader.path, reader.key, visible.mask_digest, visible.view, unit, seed, reader.node_count)

    @cached_property
    def graph_key(self) -> str:
        """Key of the visible nodes and edges."""
        return key_of(graph=self.content, mask=self.mask)

    @cached_property
    def feature_key(self) -> str:
        """Key of X of all rows."""
        seed = self.seed if self.raw_width > WIDEST else 0  # without hashing, X does not depend on the seed
        return key_of(graph=self.content, view=_key_of_view(self.view), unit=self.unit, seed=seed)

    @cached_property
    def key(self) -> str:
        """Key of the visible nodes and edges, and of X."""
        return key_of(graph=self.graph_key, features=self.feature_key)

    @cached_property
    def folder(self) -> FolderRows:
        """Edges and features of all rows."""
        return open_folder(self.path).rows

    @cached_property
    def raw_width(self) -> int:
        """Number of feature columns before hashing."""
        empty = self.folder.features(0, 0)
        return int((empty if self.view is None else self.view.apply(empty)).shape[1])

    @property
    def feature_count(self) -> int:
        """Number of columns of X."""
        return 1 if self.raw_width == 0 else min(self.raw_width, WIDEST)

    def features(self, start: int, stop: int) -> Features:
        """Read (stop − start, d) rows of X, including hidden rows."""
        raw = self.folder.features(start, stop)
        return prepare(raw if self.view is None else self.view.apply(raw), self.seed, unit=self.unit)

    def adjacency(self) -> Iterator[AdjacencyRows]:
        """Read the rows of A in chunks, including edges of hidden rows."""
        ones = np.ones(0, dtype=np.float32)
        for start, stop in self.folder.neighbour_ranges(EDGES_AT_A_TIME):
            part = self.folder.neighbours(start, stop)
            count = part.indices.size
            if part.weights is None and ones.size < count:
                ones = np.ones(count, dtype=np.float32)
            weights = ones[:count] if part.weights is None else part.weights
            yield AdjacencyRows(start, stop, part.indptr.astype(part.indices.dtype), part.indices, weights)


def _key_of_view(view: FeatureView | None) -> str:
    if view is None:
        return ""
    values = {field.name: getattr(view, field.name) for field in fields(view)}  # type: ignore[arg-type]
    beside = values.pop("beside", None)
    if beside is not None:
        values |= {"first": beside.first, "groups": beside.groups, **vars(beside.standardisation)}
    return type(view).__name__ + arrays_key({name: np.asarray(value) for name, value in values.items()})
