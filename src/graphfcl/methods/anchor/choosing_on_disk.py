"""Which neighbourhood a run on a graph folder takes: by passes over all nodes as in memory, or on some rows alone."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from graphfcl.methods.anchor.class_sums import Anchors, whitening
from graphfcl.methods.anchor.frame_on_disk import Blocks, centres_of, frame_of, sums_of, vectors_of
from graphfcl.methods.anchor.rounds_on_disk import posterior_rows, transduced
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.vectors import joined, points
from graphfcl.methods.learner import Progress, Tensors
from graphfcl.methods.on_disk.folder_inputs import FolderInputs
from graphfcl.methods.on_disk.labelled_rows import some_of_each_class
from graphfcl.methods.on_disk.tables import Table
from graphfcl.methods.shared.choosing import choose_over_draws
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions, all_held_out
from graphfcl.stream import BaseSession

MakeBlocks = Callable[[int], Blocks]  # XB and Â…ÂXB of so many hops
MOST_NODES = 500  # of a class, where rows alone choose
BYTES_OF_NUMBER = 20  # of rows that are held while they are joined and whitened


def choose_by_passes(
    base: BaseSession, inputs: FolderInputs, make: MakeBlocks, settings: AnchorSettings, seed: int, progress: Progress
) -> Neighbourhood:
    """As in memory: every candidate is tried on all visible nodes."""
    candidates = settings.neighbourhoods()
    validation = ValidationSessions.draw(all_held_out(base), seed)
    if len(candidates) == 1 or not validation.has_new_classes:
        return candidates[0]
    scores, tried = np.zeros(len(candidates)), 0
    for hops, hop_weight in sorted({(each.hops, each.hop_weight) for each in candidates}):
        weights = (settings.raw_weight, hop_weight)
        blocks = replace(make(hops), weights=weights, columns=settings.trial_rank)
        trial = _Trial.of(inputs, blocks, validation, settings)
        for place, candidate in enumerate(candidates):
            if (candidate.hops, candidate.hop_weight) == (hops, hop_weight):
                scores[place], tried = trial.score(candidate), tried + 1
                progress.step("choosing hops", tried, len(candidates), score=float(scores.max()))
        trial.vectors.remove()
    best = int(np.argmax(scores))
    return candidates[best if scores[best] > scores[0] + settings.margin else 0]


@dataclass(frozen=True, eq=False)
class _Trial:
    """What candidates with the same features around share."""

    inputs: FolderInputs
    validation: ValidationSessions
    settings: AnchorSettings
    vectors: Table
    known: Anchors

    @classmethod
    def of(
        cls, inputs: FolderInputs, blocks: Blocks, validation: ValidationSessions, settings: AnchorSettings
    ) -> "_Trial":
        frame = frame_of(inputs, blocks, validation.train, validation.known_count, settings.shrinkage)
        vectors = vectors_of(inputs, blocks, frame)
        known = sums_of(inputs, vectors, validation.train, validation.known_count)
        return cls(inputs, validation, settings, vectors, known)

    def score(self, how: Neighbourhood) -> float:
        """The mean score of some draws of validation sessions."""
        asked, found = self.inputs.visible.rows(self.validation.asked[0]), []
        for draw in range(min(STEP_DRAWS, len(self.validation.supports))):
            alone = self.validation.only(draw)
            *_, last = alone.sessions()
            supports = torch.from_numpy(self.vectors.rows_at(self.inputs.visible.rows(last.supports)))
            anchors = self.known.plus(supports, torch.from_numpy(last.support_classes), last.class_count)
            rounds = transduced(self.inputs, self.vectors, anchors, how, self.settings)
            posterior = posterior_rows(self.vectors, rounds, anchors, asked, self.settings.temperature)
            found.append(alone.score_of(posterior.argmax(dim=1).numpy()))
            if rounds.posterior is not None:
                rounds.posterior.remove()
        return float(np.mean(found))


def choose_by_rows(
    base: BaseSession, inputs: FolderInputs, make: MakeBlocks, settings: AnchorSettings, seed: int, progress: Progress
) -> Neighbourhood:
    """The weight of the features around alone, by the sums of labelled nodes: some rows are read, no node is passed.

    Neighbours are heard only as a setting says it; hops are those of the first candidate.
    """
    first = settings.neighbourhoods()[0]
    weights = dict.fromkeys(each.hop_weight for each in settings.neighbourhoods() if each.hops == first.hops)
    first = first._replace(smoothing=settings.smoothing or 0.0, links=settings.links or 0.0)
    candidates = [first._replace(hop_weight=weight) for weight in weights]
    validation = ValidationSessions.draw(all_held_out(base), seed)
    if len(candidates) == 1 or not validation.has_new_classes:
        return candidates[0]
    blocks = replace(make(first.hops), columns=settings.trial_rank)
    rows = _Rows.of(inputs, blocks, settings)
    train = some_of_each_class(validation.train, MOST_NODES, seed)
    validation = validation.asking(some_of_each_class(validation.asked, MOST_NODES, seed))
    count = train[0].size + validation.asked[0].size
    held = f"choosing the weight of the features around on {count:,} rows of {blocks.width:,} columns"
    inputs.means.require_here(count * blocks.width * BYTES_OF_NUMBER, inputs.source.rows, held)
    # Rows that lie anywhere take a pass over the tables, so all are read in one.
    supports = np.unique(np.concatenate(validation.supports, axis=None))
    supports = supports[supports >= 0]  # a class may have too few for a draw
    of_train, of_asked, of_every_draw = rows.read(train[0], validation.asked[0], supports)
    labels = torch.from_numpy(train[1])
    pairs = [(settings.raw_weight, candidate.hop_weight) for candidate in candidates]
    learned = [rows.learned(of_train, labels, validation.known_count, pair) for pair in pairs]

    def scores_of(draw: ValidationSessions) -> list[float]:
        *_, last = draw.sessions()
        here = torch.from_numpy(np.searchsorted(supports, last.supports))
        of_supports, found = [block[here] for block in of_every_draw], []
        for pair, (frame, known) in zip(pairs, learned, strict=True):
            seen = rows.points(of_supports, frame, pair)
            anchors = known.plus(seen, torch.from_numpy(last.support_classes), last.class_count)
            logits = anchors.logits(rows.points(of_asked, frame, pair), settings)
            found.append(draw.score_of(logits.argmax(dim=1).numpy()))
        return found

    return choose_over_draws(candidates, validation, scores_of, progress, margin=settings.margin)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of both blocks in memory, and what is made of them."""

    inputs: FolderInputs
    blocks: Blocks
    settings: AnchorSettings
    centres: Tensors

    @classmethod
    def of(cls, inputs: FolderInputs, blocks: Blocks, settings: AnchorSettings) -> "_Rows":
        centres = centres_of(inputs, blocks)
        return cls(inputs, blocks, settings, {name: centre[: blocks.columns] for name, centre in centres.items()})

    def read(self, *lists: np.ndarray) -> list[list[torch.Tensor]]:
        """For each list of nodes its rows of both blocks."""
        rows, kind = self.inputs.visible.rows(np.concatenate(lists)), np.dtype(self.blocks.kind)
        leading, sizes = self.blocks.columns, [nodes.size for nodes in lists]
        blocks = [
            torch.from_numpy(table.rows_at(rows, lambda part: part[:, :leading].astype(kind))).split(sizes)
            for table in self.blocks.tables
        ]
        return [list(each) for each in zip(*blocks, strict=True)]

    def learned(
        self, rows: list[torch.Tensor], labels: torch.Tensor, count: int, weights: tuple[float, float]
    ) -> tuple[Tensors, Anchors]:
        """Frame and class sums of known classes."""
        vectors = joined(rows, self.centres, weights).half()
        middle, root = whitening(vectors, labels, count, self.settings.shrinkage)
        frame = {**self.centres, "middle": middle, "whitening": root}
        return frame, Anchors.empty().plus(points(vectors.float(), frame), labels, count)

    def points(self, rows: list[torch.Tensor], frame: Tensors, weights: tuple[float, float]) -> torch.Tensor:
        return points(joined(rows, frame, weights), frame)
