"""Which neighbourhood a run on a graph folder takes, by passes over all nodes as in memory."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.frame_on_disk import Blocks, frame_of, sums_of, vectors_of
from graphfcl.methods.anchor.rounds_on_disk import posterior_rows, transduced
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.blocks.folder_inputs import FolderInputs
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions, all_held_out
from graphfcl.stream import BaseSession

MakeBlocks = Callable[[int], Blocks]  # XB and Â…ÂXB of so many hops


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
    vectors: StoredTable
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
