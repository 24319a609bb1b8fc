"""Steps, rate and direction of distillation are chosen together."""

from typing import Any

import torch

from graphfcl import SILENT
from graphfcl.methods.geometer.learner import GeometerSettings, SessionSteps
from tests.methods.shared.test_fine_tuning import ONE

STEPS = ((5, 0.001), (20, 0.005))


def test_the_best_mean_over_draws_is_taken() -> None:
    chosen = SessionSteps(GeometerSettings(fine_tuning=STEPS))
    first = {("far", 5): 0.9, ("near", 20): 0.7}
    second = {("near", 20): 0.8}
    for scores in (first, second):
        chosen.score_candidates(ONE, lambda _, steps, __, way, scores=scores: scores.get((way, steps), 0.1), SILENT)
    loaded = SessionSteps(GeometerSettings(fine_tuning=STEPS))
    loaded.load(chosen.values(), {}, torch.device("cpu"))
    for each in (chosen, loaded):
        assert [len(row) for row in each.scores] == [6, 6]
        each.choose()
        assert each.chosen() == {"fine_tuning_steps": 20, "fine_tuning_rate": 0.005, "distil": "near"}


def test_no_step_and_the_released_direction_win_a_draw() -> None:
    chosen = SessionSteps(GeometerSettings(fine_tuning=STEPS))
    chosen.score_candidates(ONE, lambda *_: 0.5, SILENT)
    chosen.choose()
    assert chosen.chosen() == {"fine_tuning_steps": 0, "fine_tuning_rate": 0.0, "distil": "far"}


def test_settings_fix_either() -> None:
    steps = SessionSteps(GeometerSettings(fine_tuning_steps=7, fine_tuning_rate=0.01))
    tried: list[tuple[int, float, str]] = []

    def score(_: Any, *choice: Any) -> float:
        tried.append(choice)
        return float(choice[2] == "near")

    steps.score_candidates(ONE, score, SILENT)
    steps.choose()
    assert tried == [(7, 0.01, "far"), (7, 0.01, "near")]
    assert steps.choice == (7, 0.01, "near")
    assert len(SessionSteps(GeometerSettings(fine_tuning_steps=7, distil="far")).candidates) == 1
    assert len(SessionSteps(GeometerSettings(distil="near")).candidates) == 5
