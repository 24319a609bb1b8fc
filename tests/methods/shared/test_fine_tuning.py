"""Which steps a session takes: the best mean over draws of held-out classes."""

from typing import Any

import torch

from graphfcl import SILENT, DivergenceError
from graphfcl.methods.bases.growing_head_learner import HeadSettings
from graphfcl.methods.shared.fine_tuning import DIVERGED, FineTuning

CANDIDATES = ((5, 0.001), (20, 0.005))


class Draws:
    """Validation sessions with so many draws of the supports."""

    def __init__(self, count: int = 1) -> None:
        self.draws = list(range(count))


ONE: Any = Draws()


def tuning() -> FineTuning:
    return FineTuning(HeadSettings(fine_tuning=CANDIDATES))


def test_the_best_mean_over_draws_is_taken() -> None:
    tuned = tuning()
    for scores in ((0.5, 0.9, 0.6), (0.6, 0.1, 0.7)):  # the second candidate wins the first draw, the third the mean
        row = dict(zip(((0, 0.0), *CANDIDATES), scores, strict=True))
        tuned.score_candidates(ONE, lambda _, steps, rate, row=row: row[steps, rate], SILENT)
    tuned.choose()
    assert (tuned.steps, tuned.rate) == (20, 0.005)
    assert tuned.scores == [], "a state does not carry them any longer"


def test_no_step_wins_a_draw_and_over_what_diverges() -> None:
    tuned = tuning()

    def score(_: Any, steps: int, rate: float) -> float:
        if steps == 20:
            raise DivergenceError(f"a rate of {rate} is too large")
        return 0.4

    means = tuned.score_candidates(ONE, score, SILENT)
    assert [float(each[0]) for each in means] == [0.4, 0.4, DIVERGED]
    tuned.choose()
    assert (tuned.steps, tuned.rate) == (0, 0.0)


def test_scores_so_far_are_part_of_the_state() -> None:
    tuned, again = tuning(), tuning()
    tuned.score_candidates(ONE, lambda _, steps, rate: steps / 100, SILENT)  # noqa: ARG005
    values = tuned.values()
    tuned.score_candidates(ONE, lambda _, steps, rate: 1 - steps / 100, SILENT)  # noqa: ARG005
    again.load(values, {}, torch.device("cpu"))
    assert again.scores == [[0.0, 0.05, 0.2]], "what was saved does not change with what goes on"
    again.choose()
    assert again.steps == 20


def test_scores_are_averaged_over_the_draws_of_supports_and_the_best_of_several_counts() -> None:
    tuned, draws = tuning(), Draws(3)
    means = tuned.score_candidates(draws, lambda draw, steps, _: (draw + steps, 2 * draw), SILENT)  # type: ignore[arg-type]
    assert [each.tolist() for each in means] == [[1, 2], [6, 2], [21, 2]]
    assert tuned.scores == [[2, 6, 21]]


def test_settings_fix_the_steps() -> None:
    fixed = FineTuning(HeadSettings(fine_tuning_steps=7, fine_tuning_rate=0.01))
    assert fixed.candidates == ((7, 0.01),)
    fixed.choose((1, 0.1))
    assert fixed.choice == (7, 0.01)
