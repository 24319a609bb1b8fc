"""Which steps a session takes: the best mean over draws of held-out classes."""

from typing import Any

import torch

from graphfcl import SILENT, DivergenceError
from graphfcl.methods.bases.growing_head_learner import HeadSettings
from graphfcl.methods.shared.fine_tuning import DIVERGED, FineTuning, score_after_sessions

CANDIDATES = ((5, 0.001), (20, 0.005))


def tuning() -> FineTuning:
    return FineTuning(HeadSettings(fine_tuning=CANDIDATES))


def test_the_best_mean_over_draws_is_taken() -> None:
    found = tuning()
    for scores in ((0.5, 0.9, 0.6), (0.6, 0.1, 0.7)):  # the second candidate wins the first draw, the third the mean
        row = dict(zip(((0, 0.0), *CANDIDATES), scores, strict=True))
        found.try_out(lambda steps, rate, row=row: row[steps, rate], SILENT)  # type: ignore[misc]
    found.settle()
    assert (found.steps, found.rate) == (20, 0.005)
    assert found.scores == [], "a state does not carry them any longer"


def test_no_step_wins_a_draw_and_over_what_diverges() -> None:
    found = tuning()
    found.choose(lambda steps, _: 0.4 if steps < 20 else DIVERGED, SILENT)
    assert (found.steps, found.rate) == (0, 0.0)


def test_scores_so_far_are_part_of_the_state() -> None:
    found, again = tuning(), tuning()
    found.try_out(lambda steps, _: steps / 100, SILENT)
    values = found.values()
    found.try_out(lambda steps, _: 1 - steps / 100, SILENT)
    again.load(values, {}, torch.device("cpu"))
    assert again.scores == [[0.0, 0.05, 0.2]], "what was saved does not change with what goes on"
    again.settle()
    assert again.steps == 20


def test_every_draw_starts_from_before_the_sessions() -> None:
    """Sessions of one draw leave nothing behind for the next, and all of them are taught before the score."""
    taught: list[int] = []

    class Draws:
        """Two sessions in every draw."""

        def only(self, draw: int) -> "Draws":  # noqa: ARG002
            return self

        def sessions(self) -> list[int]:
            return [1, 2]

    def score(_: Any) -> float:
        return float(len(taught))

    draws: Any = Draws()
    assert score_after_sessions(draws, taught.clear, taught.append, score) == 2.0  # type: ignore[arg-type]

    def diverge(_: Any) -> None:
        raise DivergenceError("too far")

    assert score_after_sessions(draws, taught.clear, diverge, score) == DIVERGED
