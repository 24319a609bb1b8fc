"""A visible graph folder ready for computation: what a learner has in place of a graph on a device.

Tables are planned and then computed: a plan is the table's key alone, so that nothing is computed for a result that is
there already.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch

from graphfcl.graph import VisibleGraph
from graphfcl.graph.visible_folder import VisibleFolder
from graphfcl.methods.blocks.column_phases import ColumnTask, Operator, run_columns
from graphfcl.methods.blocks.row_phases import RowBlock, RowPhases, Tensors
from graphfcl.methods.blocks.source import Source
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.blocks.work_folder import WorkFolder, arrays_key, key_of
from graphfcl.methods.learner import SILENT, Progress
from graphfcl.methods.shared.untrained_features import leading_vectors_from, prepare


class FolderInputs:
    """The phases of one visible graph folder. progress: told which phase is how far."""

    def __init__(self, visible: VisibleFolder, seed: int, *, unit: bool, progress: Progress = SILENT) -> None:
        self.visible = visible
        self.device = torch.device("cpu")
        self.means = visible.means
        self.work = WorkFolder(visible.means.work)
        self.source = Source.of(visible, seed, unit=unit)
        self.progress = progress

    @property
    def feature_count(self) -> int:
        return self.source.feature_count

    @property
    def rows(self) -> RowPhases:
        """Row phases, of which hidden rows know that they are hidden."""
        scales = None if self.visible.mask is None else self.scales
        return RowPhases(self.source, self.work, self.means, scales, self.progress)

    def columns(
        self,
        phase: str,
        operator: Operator,
        given: StoredTable,
        found: tuple[tuple[int, StoredTable], ...],
        leading: int | None = None,
    ) -> None:
        """Compute what is missing of tables of hops, of all columns or of the leading ones."""
        task = ColumnTask(self.source, operator, given, found, ())
        run_columns(phase, task, self.means, self.progress, leading=leading)

    def smoothed(self, given: StoredTable, share: float, steps: int) -> StoredTable:
        """(n, C) P after ``steps`` of P ← s Â P + (1 − s) P₀; rows are not made to add up to 1."""
        key = key_of(smoothed=given.key, graph=self.source.graph_key, share=share, steps=steps)
        found = self.work.table("smoothed", key, given.rows, given.columns, by="slices")
        task = ColumnTask(self.source, self.adjacency, given, ((0, found),), (), (share, steps))
        run_columns("smoothing", task, self.means, self.progress)
        return found

    def near(self, nodes: np.ndarray, hops: int) -> tuple[VisibleGraph, np.ndarray]:
        """What lies within some hops of a few nodes, in memory, with the features X; and their rows in it."""
        rows = self.visible.rows(nodes)
        near = self.visible.around(rows, hops)
        features = prepare(near.features, self.source.seed, unit=self.source.unit)
        return near.with_features(features), near.rows(rows)

    # What every row and edge counts

    @cached_property
    def degrees(self) -> StoredTable:
        """(n, 1) sums of edge weights to visible neighbours."""
        if self.visible.mask is None:
            return self._written("degrees", 1, lambda start, stop: self._folder_degrees[start:stop, None])
        mask = self.visible.mask
        ones = self._written("ones", 1, lambda start, stop: np.ones((stop - start, 1), dtype=np.float32))
        of_mask = self._written(
            "visible", 2, lambda start, stop: np.stack([np.ones(stop - start), mask[start:stop]], axis=1)
        )
        key = key_of(degrees=self.source.graph_key)
        found = self.work.table("degrees", key, self.source.rows, 1, by="slices")
        self.columns("degrees", Operator(of_mask, loop=False), ones, ((1, found),))
        return found

    def tables_of_rows(self) -> list[StoredTable]:
        """What is kept of every row of this visible graph beside features and their hops."""
        names = {"scales": 2, "link-scales": 2, "ones": 1, "visible": 2}
        degrees = self.degrees if self.visible.mask is not None else self._planned("degrees", 1)
        return [degrees, *(self._planned(name, columns) for name, columns in names.items())]

    @cached_property
    def _folder_degrees(self) -> np.ndarray:
        return self.visible.reader.degrees()

    @cached_property
    def scales(self) -> StoredTable:
        """(n, 2) the factors of Â, (d + 1)^(−1/2); 0 for a hidden row."""
        return self._written("scales", 2, self._scale_rows)

    def _scale_rows(self, start: int, stop: int) -> np.ndarray:
        scale = 1 / np.sqrt(self.degrees.block(start) + 1)
        if self.visible.mask is not None:
            scale *= self.visible.mask[start:stop, None]
        return np.repeat(scale, 2, axis=1)

    @cached_property
    def adjacency(self) -> Operator:
        """Â."""
        return Operator(self.scales)

    def link_scales(self) -> StoredTable:
        """(n, 2) the factors of d^(−1/2) A with edge weights of mean 1; d of a lone node is 1, a hidden row has 0."""
        return self._written("link-scales", 2, self._link_scale_rows)

    def _link_scale_rows(self, start: int, stop: int) -> np.ndarray:
        mean = np.float32(self._mean_weight)
        shown = 1.0 if self.visible.mask is None else self.visible.mask[start:stop, None]
        left = shown / np.sqrt(np.maximum(self.degrees.block(start) / mean, 1))
        return np.concatenate([left, np.full_like(left, 1 / mean) * shown], axis=1)

    @cached_property
    def _mean_weight(self) -> float:
        """Of a visible edge; 1 if there is none."""
        if not self.visible.reader.weighted:
            return 1.0
        total, count, mask = 0.0, 0, self.visible.mask
        for start, stop, indptr, indices, weights in self.source.adjacency():
            if mask is not None:
                weights = weights[np.repeat(mask[start:stop], np.diff(indptr)) & mask[indices]]
            total, count = total + float(weights.sum(dtype=np.float64)), count + weights.size
        return total / count if count else 1.0

    def _written(self, phase: str, columns: int, rows: Callable[[int, int], np.ndarray]) -> StoredTable:
        """A table of a few columns, made here."""
        found = self._planned(phase, columns)
        for number in found.missing():
            file = found.files[number]
            file.write(rows(start, stop) for start, stop in file.extent.blocks)
        return found

    def _planned(self, phase: str, columns: int) -> StoredTable:
        key = key_of(**{phase: self.source.graph_key})
        return self.work.table(phase, key, self.source.rows, columns, by="parts")

    # X, its leading singular vectors, and hops of XB

    def leading_vectors(self, rank: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        """As the function of this name computes them in memory: Σ over blocks of Xᵀ(X S)."""

        def product(span: np.ndarray) -> np.ndarray:
            return self.rows.sums("span", _products, given={"span": span})["product"].astype(np.float32)

        def gram(span: np.ndarray) -> np.ndarray:
            return self.rows.sums("span-gram", _grams, given={"span": span})["gram"].astype(np.float32)

        shape = (self.visible.node_count, self.feature_count)
        return leading_vectors_from(shape, product, gram, rank, seed)

    def own(self, basis: torch.Tensor, *, compute: bool = True) -> StoredTable:
        """(n, k) XB of all rows, hidden ones included: they count nothing wherever rows are counted."""
        array = basis.cpu().numpy()
        key = key_of(own=self.source.feature_key, basis=arrays_key({"basis": array}))
        found = self.work.table("own", key, self.source.rows, array.shape[1], by="parts")
        if compute and found.missing():
            phases = RowPhases(self.source, self.work, self.means, None, self.progress)
            phases.fill("own", found, _projected, given={"basis": array})
        return found

    def hops(
        self,
        own: StoredTable,
        hops: tuple[int, ...],
        *,
        kind: str = "<f4",
        compute: bool = True,
        leading: int | None = None,
    ) -> list[StoredTable]:
        """(n, k) Â…ÂXB for each number of hops. leading: compute so many columns, the first ones, alone."""
        found = []
        for count in hops:
            key = key_of(hops=count, own=own.key, graph=self.source.graph_key, kind=kind)
            found.append(self.work.table(f"hops-{count}", key, own.rows, own.columns, kind=kind, by="slices"))
        if compute and any(table.missing() for table in found):
            self.columns("hops", self.adjacency, own, tuple(zip(hops, found, strict=True)), leading)
        return found

    def column_means(self, table: StoredTable, before: Callable[[], object] | None = None) -> torch.Tensor:
        """(D,) in 32 bits, over visible rows. before: makes the table, if the means are not there."""
        total = self.rows.sums("means", _column_sums, tables={"values": table}, before=before)["total"]
        return torch.from_numpy((total / max(1, self.visible.node_count)).astype(np.float32))


def _projected(block: RowBlock) -> torch.Tensor:
    """XB. Features that are fewer than the rank have a diagonal B, and the product is one of columns, to the bit."""
    features, basis = block.features(), block.given["basis"].numpy()
    if isinstance(features, np.ndarray) and basis.shape[0] == basis.shape[1]:
        diagonal = basis.diagonal()
        if np.count_nonzero(basis) == np.count_nonzero(diagonal):
            return torch.from_numpy(features * diagonal)
    return torch.from_numpy(np.asarray(features @ basis))


def _products(block: RowBlock) -> Tensors:
    """Xᵀ(X S) of the visible rows."""
    features, span = _visible_features(block), block.given["span"].numpy()
    return {"product": torch.from_numpy(np.asarray(features.T @ (features @ span)))}


def _grams(block: RowBlock) -> Tensors:
    seen = np.asarray(_visible_features(block) @ block.given["span"].numpy())
    return {"gram": torch.from_numpy(seen.T @ seen)}


def _visible_features(block: RowBlock) -> np.ndarray:
    features = block.features()
    return features if block.visible is None else features[block.visible.numpy()]


def _column_sums(block: RowBlock) -> Tensors:
    return {"total": block.only_visible(block.rows("values")).double().sum(dim=0)}
