"""Which neighbourhood a run takes: validation sessions choose one of the candidates.

They are tried on the two blocks that no label ever touched, so that every pseudo-novel class can stand for a novel one:
the encoder has seen all of them. The leading half of the columns tells the candidates apart as all of them do; with
fewer a node's own features say less, and candidates that look far gain.
"""

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
        for place, candidate in enumerate(candidates):
            if candidate.hops == hops:
                scores[place], tried = _try(candidate, inputs, (own, around), validation, settings), tried + 1
                progress.step("choosing hops", tried, len(candidates), score=float(scores.max()))
    best = int(np.argmax(scores))
    return candidates[best if scores[best] > scores[0] + settings.margin else 0]


def _try(
    how: Neighbourhood,
    inputs: GraphInputs,
    blocks: tuple[torch.Tensor, torch.Tensor],
    validation: ValidationSessions,
    settings: AnchorSettings,
) -> float:
    """The mean score of some draws of validation sessions."""

    def on_device(labelled: Labelled) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.from_numpy(inputs.visible.rows(labelled[0])).to(inputs.device)
        return rows, tensor_of(labelled[1], inputs.device)

    frame = {f"centre.{place}": block.mean(dim=0) for place, block in enumerate(blocks)}
    table = torch.cat([block.to(block_type(inputs)) for block in blocks], dim=1)
    weights = (settings.raw_weight, how.hop_weight)
    rows, columns = on_device(validation.train)
    vectors = joined_rows(table, rows, frame, weights)
    frame["middle"], frame["whitening"] = whitening(vectors, columns, validation.known_count, settings.shrinkage)
    embeddings = points_of_table(table, frame, weights)
    before = Anchors.empty().plus(embeddings[rows], columns, validation.known_count)
    asked, around, found = inputs.visible.rows(validation.asked[0]), Surroundings(inputs, how), []
    for draw in range(min(STEP_DRAWS, len(validation.supports))):
        alone = validation.only(draw)
        *_, last = alone.sessions()
        rows, columns = on_device((last.supports, last.support_classes))
        posterior, _ = before.plus(embeddings[rows], columns, last.class_count).transduced(embeddings, around, settings)
        found.append(alone.score_of(posterior.argmax(dim=1).cpu().numpy()[asked]))
    return float(np.mean(found))
