"""What ANCHOR computes of a graph folder: the same formulas, in column phases and row phases.

Blocks XB, Â…ÂXB and Z are tables; x is a table in 16 bits. Up to ``whole_up_to`` nodes everything is as in memory.
Above, the neighbourhood is chosen on a sample (``choosing_by_sample.py``), and the head sees some nodes of each class.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from graphfcl.graph.visible_folder import Need
from graphfcl.methods.anchor.choosing_by_sample import choose_by_sample, need_of_choice, trial_columns
from graphfcl.methods.anchor.choosing_on_disk import choose_by_passes
from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.frame_on_disk import Blocks, frame_of, sums_of, vectors_of
from graphfcl.methods.anchor.head import LabelledPoints
from graphfcl.methods.anchor.hop_encoder import HOPS, HopEncoder, hop_rows
from graphfcl.methods.anchor.rounds_on_disk import score_table, transduced
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.storage import AnchorKnowledge
from graphfcl.methods.blocks.column_phases import need_of_slice
from graphfcl.methods.blocks.folder_inputs import FolderInputs
from graphfcl.methods.blocks.labelled_rows import count_of_each_class
from graphfcl.methods.blocks.row_phases import RowBlock, need_of_rows
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.learner import Labelled, Progress
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS
from graphfcl.nn import Encoder
from graphfcl.stream import BaseSession

BYTES_OF_HOP = 16  # of a number that the encoder reads, as it is gathered and with that of the other rows
BYTES_OF_POINT = 12  # of a number of x that the head reads
HEAD_NODES = 500  # of a class on a graph above ``whole_up_to``


@dataclass(frozen=True, eq=False)
class NodesOnDisk:
    """The nodes of one visible graph folder, as ANCHOR with this knowledge sees them."""

    inputs: FolderInputs
    known: AnchorKnowledge
    encoder: Encoder
    settings: AnchorSettings

    @property
    def _is_large(self) -> bool:
        return self.inputs.visible.node_count > self.settings.whole_up_to

    def require_room(self, base: BaseSession, rank: int, seed: int) -> None:
        """Refuse a limit of memory that is too small for a phase of session 0, or for scores of all classes.

        rank: columns of the basis at most. The limit that is named is enough for all phases.
        """
        inputs, settings = self.inputs, self.settings
        rows, rank = inputs.source.rows, min(rank, inputs.visible.node_count, inputs.feature_count)
        classes = max(len(base.classes), inputs.visible.class_count)
        draws = STEP_DRAWS if self._is_large else 1
        read_by_encoder = (1 + len(HOPS)) * rank if isinstance(self.encoder, HopEncoder) else 0
        vector = 2 * rank + self.encoder.size
        # Of features; of what the encoder reads; of vectors with posteriors; of posteriors with those of neighbours.
        widest = max(inputs.feature_count, read_by_encoder, vector + classes, 2 * draws * classes + 2)
        needs = [need_of_slice(rows, buffers=3), need_of_rows(rows, widest)]
        labels = (base.train_labels, base.validation_labels)
        if read_by_encoder:
            taken = sum(count_of_each_class(part, settings.encoder_nodes) for part in labels)
            needs.append(_need_of_encoder(taken, read_by_encoder))
        if settings.head_share > 0:
            most = (self.most_for_head, self.most_asked)
            needs.append(_need_of_head(sum(map(count_of_each_class, labels, most)), vector))
        if self._is_large:
            needs.append(need_of_choice(base, inputs, rank, settings, seed))
        inputs.means.require(rows, *needs)

    def leading_vectors(self, rank: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.inputs.leading_vectors(rank, seed)

    def hop_rows(self, nodes: np.ndarray) -> torch.Tensor:
        """(m, 3k) what an encoder of hops reads."""
        tables = self._hop_tables(compute=True)
        self.inputs.means.require(
            self.inputs.source.rows, _need_of_encoder(nodes.size, sum(table.columns for table in tables))
        )
        rows, kind = self.inputs.visible.rows(nodes), np.dtype(self._kind)
        return hop_rows([torch.from_numpy(table.rows_at(rows).astype(kind)) for table in tables])

    def choose(self, base: BaseSession, seed: int, progress: Progress) -> Neighbourhood:
        if not self._is_large:
            return choose_by_passes(base, self.inputs, self._untrained, self.settings, seed, progress)
        leading = trial_columns(self.known.frame["basis"].shape[1], self.settings)

        def plan(hops: int) -> Blocks:
            planned = self._untrained(hops, compute=False)
            return replace(planned, columns=leading, make=lambda: self._untrained(hops, leading=leading))

        chosen = choose_by_sample(base, self.inputs, plan, self.settings, seed, progress)
        for hops in {each.hops for each in self.settings.neighbourhoods()} - {chosen.hops, *HOPS}:
            plan(hops).tables[1].remove()
        return chosen

    def fix_frame(self, base: BaseSession) -> StoredTable:
        """Centres, middle and whitening; answers x of all nodes."""
        blocks, labelled = self._blocks(), (base.train, base.train_labels)
        found = frame_of(self.inputs, blocks, labelled, len(base.classes), self.settings.shrinkage)
        self.known.frame |= {**found, "whitening": found["whitening"].half().float()}
        return vectors_of(self.inputs, blocks, self.known.frame)

    def embeddings(self) -> StoredTable:
        """x of all nodes. A limit of memory that is too small for them or for scores is refused at first."""
        blocks = self._blocks()

        def make() -> None:
            self._require(*self._needs_of_vectors(), *self._needs_of_rounds(blocks.width))
            blocks.make()

        return vectors_of(self.inputs, replace(blocks, make=make), self.known.frame)

    def points(self, embeddings: StoredTable, labelled: Labelled) -> LabelledPoints:
        """x of some labelled nodes, and their columns."""
        self.inputs.means.require(self.inputs.source.rows, _need_of_head(labelled[0].size, embeddings.columns))
        rows = self.inputs.visible.rows(labelled[0])
        return torch.from_numpy(embeddings.rows_at(rows)), torch.from_numpy(labelled[1].copy())

    def anchors(self, embeddings: StoredTable, labelled: Labelled, count: int) -> Anchors:
        return sums_of(self.inputs, embeddings, labelled, count)

    @property
    def most_for_head(self) -> int | None:
        limit = self.settings.head_nodes
        return min(limit or HEAD_NODES, HEAD_NODES) if self._is_large else limit

    @property
    def most_asked(self) -> int | None:
        return HEAD_NODES if self._is_large else None

    def scores(self, embeddings: StoredTable, rounds: Any) -> StoredTable:  # noqa: ARG002
        self._require(*self._needs_of_rounds(embeddings.columns))
        found = transduced(self.inputs, embeddings, self.known.anchors, self.known.neighbourhood, self.settings)
        scores = score_table(self.inputs, embeddings, self.known, found, self.settings)
        if found.posterior is not None:
            found.posterior.remove()
        return scores

    def tables(self) -> list[StoredTable]:
        """All that x was made of, but for what other visible graphs have as well."""
        (around,) = self.inputs.hops(self._own, (self.known.neighbourhood.hops,), kind=self._kind, compute=False)
        hops = self._hop_tables(compute=False)[1:]
        codes, _ = self._codes()
        return [*self.inputs.tables_of_rows(), around, *hops, *([] if codes is None else [codes])]

    # Memory

    def _require(self, *needs: Need) -> None:
        self.inputs.means.require(self.inputs.source.rows, *needs)

    def _needs_of_vectors(self) -> list[Need]:
        """Of a pass from features to x, with an encoder and a frame that are known."""
        rows, blocks = self.inputs.source.rows, self._blocks()
        read_by_encoder = sum(table.columns for table in self._hop_tables(compute=False))
        trained = isinstance(self.encoder, HopEncoder)
        widest = max(self.inputs.feature_count, blocks.width, read_by_encoder * trained)
        return [need_of_slice(rows, buffers=2), need_of_rows(rows, widest)]

    def _needs_of_rounds(self, width: int) -> list[Need]:
        """Of a pass from x to scores. width: of x."""
        rows, classes, how = self.inputs.source.rows, len(self.known.anchors.counts), self.known.neighbourhood
        widest = max(width + max(1, classes), 2 * classes + 2)  # with posteriors; posteriors with those of neighbours
        slices = [need_of_slice(rows, buffers=3 if how.smoothing > 0 else 2)] * (how.smoothing > 0 or how.links > 0)
        return [need_of_rows(rows, widest), *slices]

    # Blocks

    @property
    def _own(self) -> StoredTable:
        """XB, planned."""
        return self.inputs.own(self.known.frame["basis"], compute=False)

    @property
    def _kind(self) -> str:
        """16 bits hold words with rows of unit length; numbers may be of any size."""
        reader = self.inputs.visible.reader
        return "<f2" if reader.sparse_features and reader.feature_count else "<f4"

    def _untrained(self, hops: int, *, compute: bool = True, leading: int | None = None) -> Blocks:
        """XB and Â…ÂXB. leading: of the hops compute so many columns, the first ones, alone."""
        basis = self.known.frame["basis"]
        own = self.inputs.own(basis, compute=compute)
        (around,) = self.inputs.hops(own, (hops,), kind=self._kind, compute=compute, leading=leading)
        weights = (self.settings.raw_weight, self.known.neighbourhood.hop_weight)
        return Blocks((own, around), weights, self._kind)

    def _blocks(self) -> Blocks:
        """XB, Â…ÂXB and Z, planned; they are computed when a phase needs them."""
        hops = self.known.neighbourhood.hops
        two = self._untrained(hops, compute=False)
        codes, make_codes = self._codes()

        def make() -> None:
            self._untrained(hops)
            make_codes()

        tables = (*two.tables, *([] if codes is None else [codes]))
        return replace(two, tables=tables, weights=(*two.weights, self.settings.encoder_weight), make=make)

    def _hop_tables(self, *, compute: bool) -> list[StoredTable]:
        own = self.inputs.own(self.known.frame["basis"], compute=compute)
        return [own, *self.inputs.hops(own, HOPS, kind=self._kind, compute=compute)]

    def _codes(self) -> tuple[StoredTable | None, Any]:
        """(n, h) Z, planned, and what computes it; none without an encoder."""
        if not isinstance(self.encoder, HopEncoder):
            return None, lambda: None
        tables = self._hop_tables(compute=False)
        given = {name: weight.detach().numpy() for name, weight in self.encoder.state_dict().items()}
        named = {f"hops {number}": table for number, table in enumerate(tables)}

        def table(*, planned: bool) -> StoredTable:
            return self.inputs.rows.table(
                "codes",
                _codes,
                self.encoder.size,
                kind=self._kind,
                tables=named,
                given=given,
                planned=planned,
                before=lambda: self._hop_tables(compute=True),
                rounded_to=self._kind,
            )

        return table(planned=True), lambda: table(planned=False)


def _need_of_encoder(rows: int, columns: int) -> Need:
    what = f"the encoder's training on {rows:,} rows of {columns:,} columns"
    return Need(rows * columns * BYTES_OF_HOP, what, here=True)


def _need_of_head(rows: int, columns: int) -> Need:
    what = f"the head's training on {rows:,} rows of {columns:,} columns"
    return Need(rows * columns * BYTES_OF_POINT, what, here=True)


def _codes(block: RowBlock) -> torch.Tensor:
    kind = torch.float16 if block.values["rounded_to"] == "<f2" else torch.float32
    rows = hop_rows([block.rows(name).to(kind) for name in sorted(block.tables)])
    hidden = torch.relu(rows @ block.given["first.weight"] + block.given["first.bias"])
    return hidden @ block.given["second.weight"] + block.given["second.bias"]
