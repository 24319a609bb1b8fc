"""How many steps an incremental session takes, and how long they are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from graphfcl.errors import DivergenceError
from graphfcl.methods.learner import Progress, Tensors
from graphfcl.methods.settings import require_range
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, KnownClasses, ValidationSessions

Steps = tuple[int, float]
DIVERGED = -1.0  # the score of steps that diverge: below any accuracy
STEP_CANDIDATES: tuple[Steps, ...] = ((5, 0.001), (20, 0.001), (5, 0.005), (20, 0.005))


class FineTuning(Part):
    """The (steps, rate) of an incremental session: fixed by settings, or chosen by validation sessions.

    settings: has ``fine_tuning``, ``fine_tuning_steps`` and ``fine_tuning_rate``.
    scores: of every candidate on every draw of held-out classes so far, until :meth:`settle`.
    """

    def __init__(self, settings: Any) -> None:
        self.candidates: tuple[Steps, ...] = settings.fine_tuning
        fixed = settings.fine_tuning_steps
        self.fixed: Steps | None = None if fixed is None else (fixed, settings.fine_tuning_rate)
        self.steps, self.rate = 0, 0.0
        self.scores: list[list[float]] = []

    @property
    def all_candidates(self) -> tuple[Steps, ...]:
        """No step at all, then the candidates of the settings."""
        return ((0, 0.0), *self.candidates)

    @property
    def mildest(self) -> Steps:
        """What a session takes if no class could be held out to choose on: the first candidate."""
        return self.candidates[0] if self.candidates else (0, 0.0)

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

    def settle(self) -> None:
        """Take the candidate with the best mean score over the draws. No step at all comes first and wins a draw."""
        self.take(*self.all_candidates[int(np.argmax(np.mean(self.scores, axis=0)))])
        self.scores = []

    def chosen(self) -> dict[str, Any]:
        return {"fine_tuning_steps": self.steps, "fine_tuning_rate": self.rate}

    def values(self) -> dict[str, Any]:
        running = {"fine_tuning_scores": [list(row) for row in self.scores]} if self.scores else {}
        return {"fine_tuning": [self.steps, self.rate], **running}

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:  # noqa: ARG002
        self.take(*values["fine_tuning"])
        self.scores = [list(row) for row in values.get("fine_tuning_scores", [])]


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


def check_steps(candidates: tuple[Steps, ...], steps: int | None, rate: float) -> None:
    """Refuse impossible steps of an incremental session."""
    require_range("fine_tuning_steps", steps, least=0)
    require_range("fine_tuning_rate", rate, above=0)
    for count, each in candidates:
        require_range("fine_tuning, steps", count, least=0)
        require_range("fine_tuning, rate", each, above=0)
