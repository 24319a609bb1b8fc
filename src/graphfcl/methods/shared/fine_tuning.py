"""How many steps an incremental session takes, and how long they are; validation sessions choose."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.errors import DivergenceError
from graphfcl.methods.learner import Progress
from graphfcl.methods.settings import Number, Positive
from graphfcl.methods.shared.heads import LogitAdjustment
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.training_state import copy_weights
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, KnownClasses, ValidationSessions

Steps = tuple[Number, Positive]  # of a session, and their rate
DIVERGED = -1.0  # the score of steps that diverge: below any accuracy
STEP_CANDIDATES: tuple[Steps, ...] = ((5, 0.001), (20, 0.001), (5, 0.005), (20, 0.005))


class FineTuning(Part):
    """The (steps, rate) of an incremental session: fixed by settings, or chosen by validation sessions.

    settings: have ``fine_tuning``, ``fine_tuning_steps`` and ``fine_tuning_rate``; without them no step is taken.
    scores: of every candidate on every draw of held-out classes so far, until :meth:`settle`.
    """

    name = "fine_tuning"
    saved: tuple[str, ...] = ("steps", "rate", "scores")

    def __init__(self, settings: Any) -> None:
        self.is_set = hasattr(settings, "fine_tuning")
        self.candidates: tuple[Steps, ...] = settings.fine_tuning if self.is_set else ()
        fixed = settings.fine_tuning_steps if self.is_set else 0
        self.fixed: Steps | None = None if fixed is None else (fixed, settings.fine_tuning_rate if self.is_set else 0.0)
        self.steps, self.rate = 0, 0.0
        self.scores: list[list[float]] = []

    @property
    def all_candidates(self) -> tuple[Steps, ...]:
        """No step at all, then the candidates of the settings."""
        return ((0, 0.0), *self.candidates)

    def take(self, steps: int, rate: float) -> None:
        """Sessions take so many steps from now on."""
        self.steps, self.rate = steps, rate

    def choose(self, score: Callable[[int, float], float], progress: Progress) -> None:
        """Take the candidate with the best validation score."""
        self.try_out(score, progress)
        self.settle()

    def try_out(self, score: Callable[[int, float], float], progress: Progress) -> None:
        """Score every candidate on one draw of held-out classes."""
        row: list[float] = []
        for steps, rate in self.all_candidates:
            row.append(score(steps, rate))
            progress.step("choosing fine-tuning", len(row), len(self.all_candidates), score=max(row))
        self.scores.append(row)

    def try_sessions(
        self,
        network: nn.Module,
        validation: ValidationSessions,
        teach: Callable[[KnownClasses, int, float], None],
        score: Callable[[ValidationSessions], float],
        progress: Progress,
    ) -> None:
        """Score every candidate by how the network does after validation sessions; then it has its weights back.

        teach: one session with so many steps at this rate.
        """
        start = copy_weights(network)

        def score_of(steps: int, rate: float) -> float:
            return score_after_sessions(
                validation, lambda: network.load_state_dict(start), lambda known: teach(known, steps, rate), score
            )

        self.try_out(score_of, progress)
        network.load_state_dict(start)

    def settle(self, default: Steps | None = None) -> None:
        """Take the candidate with the best mean score over the draws. No step at all comes first and wins a draw.

        Without scores it is what the settings fix, else the default, which is the first candidate if none is given.
        """
        if self.scores:
            self.take(*self.all_candidates[int(np.argmax(np.mean(self.scores, axis=0)))])
            self.scores = []
        else:
            self.take(*(self.fixed or default or (*self.candidates, (0, 0.0))[0]))

    def chosen(self) -> dict[str, Any]:
        return {"fine_tuning_steps": self.steps, "fine_tuning_rate": self.rate} if self.is_set else {}


def score_after_sessions(
    validation: ValidationSessions,
    reset: Callable[[], object],
    teach: Callable[[KnownClasses], None],
    score: Callable[[ValidationSessions], float],
) -> float:
    """The mean score of some draws after their sessions were taught one by one; ``DIVERGED`` if one diverges.

    reset: back to how it was before the sessions, for each draw. score: of the draw that was taught.
    """
    scores = []
    for draw in range(STEP_DRAWS):
        reset()
        alone = validation.only(draw)
        try:
            for known in alone.sessions():
                teach(known)
        except DivergenceError:
            return DIVERGED
        scores.append(score(alone))
    return float(np.mean(scores))


def choose_with_adjustment(
    fine_tuning: FineTuning,
    adjustment: LogitAdjustment,
    validation: ValidationSessions,
    logits_after: Callable[[int, Steps], tuple[torch.Tensor, LogitAdjustment]],
    progress: Progress,
) -> None:
    """Choose the steps of a session together with τ, the adjustment of logits that is best for them.

    logits_after: from a draw and (steps, rate) to the (n, C) logits of the validation nodes after its sessions, and the
    numbers of labels that were learned by then.
    """
    taus = adjustment.candidates
    best_taus: dict[Steps, float] = {}

    def score(steps: int, rate: float) -> float:
        scores = []
        for draw in range(STEP_DRAWS):
            try:
                logits, learned = logits_after(draw, (steps, rate))
            except DivergenceError:
                return DIVERGED
            answers = (learned.apply(logits, tau).argmax(dim=1).cpu().numpy() for tau in taus)
            scores.append([validation.only(draw).score_of(answer) for answer in answers])
        means = np.mean(scores, axis=0)
        best_taus[steps, rate] = taus[int(means.argmax())]
        return float(means.max())

    if fine_tuning.fixed is None:
        fine_tuning.choose(score, progress)
    else:
        score(*fine_tuning.fixed)
    adjustment.strength = best_taus.get((fine_tuning.steps, fine_tuning.rate), taus[0])
