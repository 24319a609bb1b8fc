"""What validation sessions choose where no session takes steps: the best of some candidates over draws of supports."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions

Candidate = TypeVar("Candidate")


def choose_over_draws(
    candidates: Sequence[Candidate],
    validation: ValidationSessions,
    scores_of: Callable[[ValidationSessions], Sequence[float]],
    progress: Progress,
    *,
    margin: float = 0.0,
) -> Candidate:
    """The candidate with the best mean score over draws of the supports, or the first if it is hardly better.

    scores_of: from one draw to the score of every candidate. margin: by so much another one must be better than the
    first. Without classes to hold out it is the first.
    """
    if len(candidates) == 1 or not validation.has_new_classes:
        return candidates[0]
    draws = [validation.only(draw) for draw in range(min(STEP_DRAWS, len(validation.supports)))]
    scores = np.zeros((len(draws), len(candidates)))
    for number, draw in enumerate(draws):
        scores[number] = scores_of(draw)
        best = float(scores[: number + 1].mean(axis=0).max())
        progress.step("choosing", number + 1, len(draws), score=best)
    means = scores.mean(axis=0)
    place = int(means.argmax())
    return candidates[place if means[place] > means[0] + margin else 0]
