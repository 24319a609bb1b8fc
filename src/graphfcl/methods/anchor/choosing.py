"""Which neighbourhood a run takes: validation sessions choose one of the candidates.

They are tried on the two blocks that no label ever touched, so that every pseudo-novel class can stand for a novel one:
the encoder has seen all of them. The leading half of the columns tells the candidates apart as all of them do; with
fewer a node's own features say less, and candidates that look far gain.
"""

from dataclasses import dataclass

import numpy as np
import torch

from graphfcl.methods.anchor.class_sums import Anchors, whitening
from graphfcl.methods.anchor.neighbours import Surroundings
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.vectors import block_type, joined_rows, points_of_table
from graphfcl.methods.learner import Labelled, Progress
from graphfcl.methods.shared.untrained_features import propagated
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions, all_held_out
from graphfcl.nn import GraphInputs, tensor_of
from graphfcl.stream import BaseSession


def choose_neighbourhood(
    base: BaseSession, inputs: GraphInputs, basis: torch.Tensor, settings: AnchorSettings, seed: int, progress: Progress
) -> Neighbourhood:
    """The candidate with the best score, or the first if that is hardly better. basis: (d, k) leading columns of B."""
    candidates = settings.neighbourhoods()
    validation = ValidationSessions.draw(all_held_out(base), seed)
    if len(candidates) == 1 or not validation.has_new_classes:
        return candidates[0]
    own, scores, tried = inputs.raw() @ basis, np.zeros(len(candidates)), 0
    for hops in sorted({candidate.hops for candidate in candidates}):
        around = propagated(inputs, own, hops)
        for hop_weight in sorted({candidate.hop_weight for candidate in candidates if candidate.hops == hops}):
            trial = _Trial.of(inputs, (own, around), hop_weight, validation, settings)
            for place, candidate in enumerate(candidates):
                if (candidate.hops, candidate.hop_weight) == (hops, hop_weight):
                    scores[place], tried = trial.score(candidate), tried + 1
                    progress.step("choosing hops", tried, len(candidates), score=float(scores.max()))
    best = int(np.argmax(scores))
    return candidates[best if scores[best] > scores[0] + settings.margin else 0]


@dataclass(frozen=True, eq=False)
class _Trial:
    """What candidates with the same features around share. embeddings: (n, D) x. known: the sums of known classes."""

    inputs: GraphInputs
    validation: ValidationSessions
    settings: AnchorSettings
    embeddings: torch.Tensor
    known: Anchors

    @classmethod
    def of(
        cls,
        inputs: GraphInputs,
        blocks: tuple[torch.Tensor, torch.Tensor],
        hop_weight: float,
        validation: ValidationSessions,
        settings: AnchorSettings,
    ) -> "_Trial":
        frame = {f"centre.{place}": block.mean(dim=0) for place, block in enumerate(blocks)}
        table = torch.cat([block.to(block_type(inputs)) for block in blocks], dim=1)
        weights = (settings.raw_weight, hop_weight)
        rows, columns = _on_device(inputs, validation.train)
        vectors = joined_rows(table, rows, frame, weights)
        frame["middle"], frame["whitening"] = whitening(vectors, columns, validation.known_count, settings.shrinkage)
        embeddings = points_of_table(table, frame, weights)
        known = Anchors.empty().plus(embeddings[rows], columns, validation.known_count)
        return cls(inputs, validation, settings, embeddings, known)

    def score(self, how: Neighbourhood) -> float:
        """The mean score of some draws of validation sessions."""
        asked, around, found = self.inputs.visible.rows(self.validation.asked[0]), Surroundings(self.inputs, how), []
        for draw in range(min(STEP_DRAWS, len(self.validation.supports))):
            alone = self.validation.only(draw)
            *_, last = alone.sessions()
            rows, columns = _on_device(self.inputs, (last.supports, last.support_classes))
            anchors = self.known.plus(self.embeddings[rows], columns, last.class_count)
            posterior, _ = anchors.transduced(self.embeddings, around, self.settings)
            found.append(alone.score_of(posterior.argmax(dim=1).cpu().numpy()[asked]))
        return float(np.mean(found))


def _on_device(inputs: GraphInputs, labelled: Labelled) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and columns of labelled nodes."""
    rows = torch.from_numpy(inputs.visible.rows(labelled[0])).to(inputs.device)
    return rows, tensor_of(labelled[1], inputs.device)
