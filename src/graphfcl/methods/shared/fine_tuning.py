"""How many steps an incremental session takes, and how long they are; validation sessions choose."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from graphfcl.errors import DivergenceError
from graphfcl.methods.learner import Progress
from graphfcl.methods.settings import CheckedSettings, Number, Positive
from graphfcl.methods.shared.heads import LogitAdjustment
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.stream.sessions import BaseSession

Steps = tuple[Number, Positive]  # of a session, and their rate
DIVERGED = -1.0  # the score of steps that diverge: below any accuracy
STEP_CANDIDATES: tuple[Steps, ...] = ((5, 0.001), (20, 0.001), (5, 0.005), (20, 0.005))


@dataclass(frozen=True)
class StepSettings(CheckedSettings):
    """The steps of an incremental session."""

    fine_tuning: tuple[Steps, ...] = STEP_CANDIDATES
    """(steps, rate) candidates of a session, besides (0, 0); validation sessions choose."""
    fine_tuning_steps: Number | None = None
    """Steps of a session, instead of choosing them."""
    fine_tuning_rate: Positive = 0.005
    """Rate of these steps."""


class FineTuning(Part):
    """The (steps, rate) of an incremental session: fixed by settings, or chosen by validation sessions.

    settings: those of a method; without :class:`StepSettings` no step is taken.
    candidates: what there is to choose from; no step at all comes first. fallback: what is taken without a choice.
    choice: what sessions take. A method may let more than steps and rate be chosen, which then follow these two.
    scores: of every candidate on every part of held-out classes so far, until :meth:`settle`.
    """

    name = "fine_tuning"
    saved: tuple[str, ...] = ("choice", "scores")

    def __init__(self, settings: Any) -> None:
        self.is_set = isinstance(settings, StepSettings)
        self.candidates: tuple[tuple[Any, ...], ...] = ((0, 0.0), *(settings.fine_tuning if self.is_set else ()))
        self.fallback: tuple[Any, ...] = self.candidates[:2][-1]
        self.is_fixed = self.is_set and settings.fine_tuning_steps is not None
        if self.is_fixed:
            self.fallback = (settings.fine_tuning_steps, settings.fine_tuning_rate)
            self.candidates = (self.fallback,)
        self.choice: tuple[Any, ...] = (0, 0.0)
        self.scores: list[list[float]] = []

    @property
    def steps(self) -> int:
        return self.choice[0]

    @property
    def rate(self) -> float:
        return self.choice[1]

    def take(self, *choice: Any) -> None:
        """Sessions take so many steps at this rate from now on; what else was chosen stays."""
        self.choice = (*choice, *self.choice[len(choice) :])

    def try_out(
        self, validation: ValidationSessions, score: Callable[..., Any], progress: Progress
    ) -> list[np.ndarray]:
        """Score every candidate on one part of held-out classes.

        score: from one draw of their supports and a candidate to a score, or to several of which the best counts.
        Returns these scores, averaged over the draws of supports.
        """
        means: list[np.ndarray] = []
        for choice in self.candidates:
            try:
                scores = [score(draw, *choice) for draw in validation.draws]
            except DivergenceError:
                scores = [DIVERGED]
            means.append(np.atleast_1d(np.mean(scores, axis=0)))
            best = float(max(each.max() for each in means))
            progress.step("choosing fine-tuning", len(means), len(self.candidates), score=best)
        self.scores.append([float(each.max()) for each in means])
        return means

    def settle(self, fallback: tuple[Any, ...] | None = None) -> None:
        """Take the candidate with the best mean score over the parts. Of equal ones it is the first.

        Without scores it is what the settings fix, else the fallback.
        """
        if self.scores:
            self.choice = self.candidates[int(np.argmax(np.mean(self.scores, axis=0)))]
            self.scores = []
        else:
            self.choice = self.fallback if self.is_fixed or fallback is None else fallback

    def chosen(self) -> dict[str, Any]:
        return {"fine_tuning_steps": self.steps, "fine_tuning_rate": self.rate} if self.is_set else {}


def open_choice(learner: Any, base: BaseSession) -> ValidationSessions | None:
    """Validation sessions with all pseudo-novel classes held out; None if nothing is to be chosen.

    The learner takes what there is without a choice.
    """
    validation = ValidationSessions.draw(base, base.pseudo_novel_columns, learner.seed)
    learner.fine_tuning.settle()
    candidates = len(learner.fine_tuning.candidates) * len(learner.adjustment.candidates)
    return validation if candidates > 1 and validation.has_new_classes else None


def choose_on_copy(learner: Any, base: BaseSession, progress: Progress) -> None:
    """Choose by how a copy that knows the base classes alone does after sessions in which all others arrive."""
    validation = open_choice(learner, base)
    if validation is None:
        return
    changes: dict[str, Any] = {"adjustments": (0.0,)} if hasattr(learner.settings, "adjustments") else {}
    copy = learner._copy_fitted_to(validation.as_stream(base)[0], fine_tuning_steps=0, **changes)
    start = copy.state()

    def logits_after(draw: ValidationSessions, *steps: Any) -> tuple[torch.Tensor, LogitAdjustment]:
        copy.load_state(start)
        copy.fine_tuning.take(*steps)
        for session in draw.as_stream(base)[1]:
            copy.learn(session)
        return torch.from_numpy(copy.scores(base.visible_graph, validation.queries[0])), copy.adjustment

    choose_with_adjustment(learner, validation, logits_after, progress)


def choose_with_adjustment(
    learner: Any,
    validation: ValidationSessions,
    logits_after: Callable[..., tuple[torch.Tensor, LogitAdjustment]],
    progress: Progress,
) -> None:
    """Choose the steps of a session together with τ, the adjustment of logits that is best for them.

    logits_after: from a draw, steps and rate to the (n, C) logits of the validation nodes after its sessions, and the
    numbers of labels that were learned by then.
    """
    tuning, taus = learner.fine_tuning, learner.adjustment.candidates

    def score(draw: ValidationSessions, *steps: Any) -> list[float]:
        logits, learned = logits_after(draw, *steps)
        return [draw.score_of(learned.apply(logits, tau).argmax(dim=1).cpu().numpy()) for tau in taus]

    means = tuning.try_out(validation, score, progress)
    tuning.settle()
    learner.adjustment.strength = taus[int(means[tuning.candidates.index(tuning.choice)].argmax())]
