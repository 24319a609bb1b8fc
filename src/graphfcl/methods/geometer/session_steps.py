"""What validation sessions choose for the sessions of Geometer: steps, rate, and the direction of distillation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from graphfcl.methods.learner import Progress, Tensors
from graphfcl.methods.shared.fine_tuning import FineTuning, Steps


class SessionSteps(FineTuning):
    """(steps, rate) as in all methods, each with every direction of distillation that is to be tried.

    direction: ``far`` or ``near``. scores: a row for each draw of held-out classes, all steps of the first direction
    first.
    """

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.directions = ("far", "near") if settings.distil == "chosen" else (settings.distil,)
        self.direction = self.directions[0]

    @property
    def all_candidates(self) -> tuple[Steps, ...]:
        return super().all_candidates if self.fixed is None else (self.fixed,)

    @property
    def chooses(self) -> bool:
        """Whether the settings leave anything open."""
        return len(self.all_candidates) * len(self.directions) > 1

    def try_directions(self, score: Callable[[int, float, str], float], progress: Progress) -> None:
        """Score every candidate in every direction on one draw of held-out classes."""
        for direction in self.directions:

            def in_direction(steps: int, rate: float, direction: str = direction) -> float:
                return score(steps, rate, direction)

            self.try_out(in_direction, progress)
        before = len(self.scores) - len(self.directions)
        self.scores = [*self.scores[:before], [value for row in self.scores[before:] for value in row]]

    def settle(self) -> None:
        """Take what has the best mean score over the draws; the first wins a draw."""
        which, place = divmod(int(np.argmax(np.mean(self.scores, axis=0))), len(self.all_candidates))
        self.direction = self.directions[which]
        self.take(*self.all_candidates[place])
        self.scores = []

    def chosen(self) -> dict[str, Any]:
        return {**super().chosen(), "distil": self.direction}

    def values(self) -> dict[str, Any]:
        return {**super().values(), "distil": self.direction}

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        super().load(values, tensors, device)
        self.direction = values["distil"]
