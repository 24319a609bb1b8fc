"""Number and learning rate of the fine-tuning steps of a session, chosen by validation sessions."""

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

Steps = tuple[Number, Positive]  # number of steps of a session, and their learning rate
DIVERGED = -1.0  # score of steps that diverge, below any accuracy
STEP_CANDIDATES: tuple[Steps, ...] = ((5, 0.001), (20, 0.001), (5, 0.005), (20, 0.005))


@dataclass(frozen=True)
class StepSettings(CheckedSettings):
    """Settings of the fine-tuning steps of a session."""

    fine_tuning: tuple[Steps, ...] = STEP_CANDIDATES
    """Candidate (steps, learning rate) pairs of a session, in addition to no steps; validation sessions choose one."""
    fine_tuning_steps: Number | None = None
    """Fixed number of fine-tuning steps of a session; none lets validation choose."""
    fine_tuning_rate: Positive = 0.005
    """Learning rate of a fixed number of steps."""


class FineTuning(Part):
    """The (steps, rate) of a session, fixed by settings or chosen by validation sessions.

    Args:
        settings: Settings of the method. If they do not include :class:`StepSettings`, no step is taken.

    Attributes:
        candidates: Choices to select from: no steps and the listed pairs, or only the pair that the settings fix.
        fallback: The choice if nothing can be validated: the fixed pair, else the first listed pair, else no steps.
        choice: The current choice. A method may append further values to steps and rate.
        scores: Score of each candidate on each part of the held-out classes so far, until :meth:`choose`.
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

    def set_choice(self, *choice: Any) -> None:
        """Set steps and rate of sessions; further chosen values stay."""
        self.choice = (*choice, *self.choice[len(choice) :])

    def score_candidates(
        self, validation: ValidationSessions, score: Callable[..., Any], progress: Progress
    ) -> list[np.ndarray]:
        """Score every candidate on one part of the held-out classes.

        Args:
            validation: Validation sessions of this part.
            score: From a draw of supports and a candidate to a score, or to several scores. The best counts after each
                is averaged over the draws.
            progress: Receives a step per candidate.

        Returns:
            The scores of each candidate, averaged over the draws of supports.
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

    def choose(self, fallback: tuple[Any, ...] | None = None) -> None:
        """Choose the candidate with the best mean score over the parts; the first one wins a tie.

        Without scores, choose what the settings fix, or else the fallback.
        """
        if self.scores:
            self.choice = self.candidates[int(np.argmax(np.mean(self.scores, axis=0)))]
            self.scores = []
        else:
            self.choice = self.fallback if self.is_fixed or fallback is None else fallback

    def chosen(self) -> dict[str, Any]:
        return {"fine_tuning_steps": self.steps, "fine_tuning_rate": self.rate} if self.is_set else {}


def open_choice(learner: Any, base: BaseSession) -> ValidationSessions | None:
    """Return validation sessions with all pseudo-novel classes held out, or None if there is nothing to choose.

    The learner is set to its fallback.
    """
    validation = ValidationSessions.draw(base, base.pseudo_novel_columns, learner.seed)
    learner.fine_tuning.choose()
    candidates = len(learner.fine_tuning.candidates) * len(learner.adjustment.candidates)
    return validation if candidates > 1 and validation.has_new_classes else None


def choose_on_copy(learner: Any, base: BaseSession, progress: Progress) -> None:
    """Choose by the validation score of a copy that is fitted to the base classes and learns the others in sessions."""
    validation = open_choice(learner, base)
    if validation is None:
        return
    changes: dict[str, Any] = {"adjustments": (0.0,)} if hasattr(learner.settings, "adjustments") else {}
    copy = learner._copy_fitted_to(validation.as_stream(base)[0], fine_tuning_steps=0, **changes)
    start = copy.state()

    def logits_after(draw: ValidationSessions, *steps: Any) -> tuple[torch.Tensor, LogitAdjustment]:
        copy.load_state(start)
        copy.fine_tuning.set_choice(*steps)
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
    """Choose the steps of a session together with the best factor τ of the logit adjustment.

    ``logits_after`` maps a draw, steps and rate to the (n, C) logits of the validation nodes after its sessions, and to
    the logit adjustment with the label counts at that time.
    """
    tuning, taus = learner.fine_tuning, learner.adjustment.candidates

    def score(draw: ValidationSessions, *steps: Any) -> list[float]:
        logits, learned = logits_after(draw, *steps)
        return [draw.score_of(learned.apply(logits, tau).argmax(dim=1).cpu().numpy()) for tau in taus]

    means = tuning.score_candidates(validation, score, progress)
    tuning.choose()
    learner.adjustment.strength = taus[int(means[tuning.candidates.index(tuning.choice)].argmax())]
