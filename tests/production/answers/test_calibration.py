"""What a calibration promises: shares of known nodes, sets that hold the true class, and that it can be kept."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphfcl import InputError, VisibleGraph
from graphfcl.production.answers.calibration import (
    KEPT,
    LEVELS,
    Calibration,
    HeldOutResult,
    ModelScores,
    miss_quantiles,
    probabilities_of,
)
from graphfcl.production.answers.ood_scores import Evidence
from graphfcl.production.answers.row_values import RowValues
from tests.production.answers.test_temperature import drawn


def evidence(scores: np.ndarray, few: int = 0) -> Evidence:
    """Without edges or labels. few: so many of the last classes were learned later."""
    count, classes = scores.shape
    visible = VisibleGraph(np.arange(count), sparse.csr_array((count, count), dtype=np.float32), np.zeros((count, 0)))
    return Evidence(
        RowValues.of(scores), 1.0, np.arange(classes) >= classes - few, visible, np.zeros(count, dtype=bool)
    )


def answered(scores: np.ndarray, labels: np.ndarray, asked: int, **more: Any) -> ModelScores:
    """The first nodes are the validation nodes."""
    few = more.pop("few", 0)
    return ModelScores(evidence(scores, few), np.arange(asked), labels[:asked], np.arange(scores.shape[1]), **more)


def test_the_threshold_keeps_as_many_known_nodes_as_promised() -> None:
    scores, labels = drawn(2, 6000)
    calibration, readings = Calibration().recalibrated(answered(scores, labels, 3000))
    unknown = calibration.unknown_scores(readings[:, 0])
    assert calibration.threshold == pytest.approx(KEPT, abs=0.001)
    assert (unknown[:3000] <= calibration.threshold).mean() == pytest.approx(KEPT, abs=0.001)
    assert (unknown[3000:] <= calibration.threshold).mean() == pytest.approx(KEPT, abs=0.015)
    probabilities = probabilities_of(scores, readings[:, 1])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    for low in (0.2, 0.4, 0.6, 0.8):
        here = (confidence >= low) & (confidence < low + 0.2)
        assert confidence[here].mean() == pytest.approx(right[here].mean(), abs=0.06)


def test_readings_of_a_kept_calibration_are_those_of_its_making() -> None:
    scores, labels = drawn(5, 300)
    taught = HeldOutResult(
        {"entropy": 0.5, "energy": 1.0}, {"entropy": -0.1, "energy": 0.2}, few_heat=0.3, few_share=0.4
    )
    calibration, readings = Calibration(taught).recalibrated(answered(scores, labels, 200, few=2))
    again = Calibration.from_json(json.loads(json.dumps(calibration.as_json(), sort_keys=True)))
    assert again == calibration
    found = again.readings(replace(evidence(scores, 2), temperature=again.temperature))
    np.testing.assert_allclose(found[:, 0], readings[:, 0])
    np.testing.assert_allclose(found[:, 1], readings[:, 1])


def test_few_shot_classes_soften_temperatures_by_their_share() -> None:
    scores, labels = drawn(6, 500)
    taught = HeldOutResult(few_heat=0.5, few_share=0.4)
    heats = [Calibration(taught).recalibrated(answered(scores, labels, 500, few=few))[0].heat for few in (0, 1, 2, 3)]
    np.testing.assert_allclose(np.diff(heats), [0.25, 0.25, 0.0], atol=1e-6)


def test_the_threshold_keeps_supports_that_were_left_out() -> None:
    """Their energies are higher than those of validation nodes; what the calibration run saw above them is added."""
    scores, labels = drawn(7, 400)
    weights = {"energy": 1.0}
    left_scores = scores[300:350] - 4.0
    left = (np.arange(300, 350), left_scores)

    def threshold(taught: HeldOutResult, left_out: Any) -> float:
        return Calibration(taught).recalibrated(answered(scores, labels, 300, few=1, left_out=left_out))[0].threshold

    assert threshold(HeldOutResult(weights), None) == pytest.approx(KEPT, abs=0.001)
    seen = threshold(HeldOutResult(weights, few_excess=0.0), left)
    assert seen > KEPT
    assert threshold(HeldOutResult(weights, few_excess=1.0), left) > seen
    limited = threshold(HeldOutResult(weights, few_limit=2.5), None)
    calibration, readings = Calibration(HeldOutResult(weights)).recalibrated(answered(scores, labels, 300))
    assert limited == pytest.approx(float(calibration.unknown_scores(np.array([2.5]))[0]))
    assert readings[:, 0].shape == (400,)


def test_unknown_scores_rise_with_ood_score_and_never_reach_1() -> None:
    scores, labels = drawn(6, 500)
    calibration, _ = Calibration().recalibrated(answered(scores, labels, 500))
    strange = np.linspace(-10, 10, 2001)
    found = calibration.unknown_scores(strange)
    assert (np.diff(found) >= 0).all()
    assert found[0] == 0
    assert 0.99 < found[-1] < 1
    assert calibration.unknown_scores(np.array([1e9]))[0] > found[-1]


def test_nodes_that_are_as_strange_as_known_ones_do_not_count_as_stranger() -> None:
    """If all validation nodes are equally strange, a node like them is not strange at all."""
    calibration = Calibration(ood_score=tuple([3.0] * LEVELS.size))
    np.testing.assert_allclose(calibration.unknown_scores(np.array([2.9, 3.0])), 0)
    assert calibration.unknown_scores(np.array([3.1]))[0] > KEPT
    half = Calibration(ood_score=tuple(np.repeat([1.0, 2.0], [500, 501]).tolist()))
    assert half.unknown_scores(np.array([2.0]))[0] == pytest.approx(0.5, abs=0.002)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_quantiles_of_misses_are_those_of_split_conformal_prediction(misses: list[float], level: float) -> None:
    place = int(np.ceil(level * 1000 - 1e-9))
    rank = int(np.ceil((len(misses) + 1) * place / 1000 - 1e-9))
    expected = 1.0 if rank > len(misses) else 0.0 if rank == 0 else sorted(misses)[rank - 1]
    assert expected <= miss_quantiles(np.array(misses))[place] <= min(1, expected * (1 + 3e-6) + 1e-8)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.99])
def test_sets_hold_the_true_class_as_often_as_promised(coverage: float) -> None:
    scores, labels = drawn(8, 8000)
    calibration, readings = Calibration().recalibrated(answered(scores, labels, 2000))
    probabilities = probabilities_of(scores, readings[:, 1])[2000:]
    sets = calibration.sets(probabilities, np.zeros(5, dtype=bool), coverage)
    held = sets[np.arange(6000), labels[2000:]].mean()
    assert held >= coverage - 0.02
    if coverage >= 0.8:  # below, the likeliest class alone may cover more
        assert held <= coverage + 0.03
    assert sets.any(axis=1).all()


def test_nodes_with_equal_answers_are_in_their_sets() -> None:
    probabilities = np.array([[0.65432155, 0.34567845]] * 20)
    labels = np.repeat([0, 1], 10)
    misses = miss_quantiles(1 - probabilities[np.arange(20), labels])
    sets = Calibration(misses=misses).sets(probabilities, np.zeros(2, dtype=bool), 0.9)
    assert sets[np.arange(20), labels].all()


def test_a_class_of_two_columns_is_calibrated_as_one() -> None:
    """Its columns cannot be told apart, but the class is always right."""
    random = np.random.default_rng(3)
    labels = random.integers(3, size=600)
    scores = 4.0 * np.eye(3)[labels]
    two = labels > 0
    scores[two, 1:] = 4.0 + random.normal(size=(int(two.sum()), 2))  # either column, by chance
    united = replace(answered(scores, labels, 600), class_of_column=np.array([0, 1, 1]))
    alone, together = (
        Calibration().recalibrated(each)[0].temperature for each in (answered(scores, labels, 600), united)
    )
    assert together < 0.8 * alone


@pytest.mark.parametrize("worst", [-np.inf, -1e30])
def test_scores_that_rule_a_class_out_are_no_obstacle(worst: float) -> None:
    scores, labels = drawn(4, 300)
    scores[::3, (labels[::3] + 1) % 5] = worst
    calibration, readings = Calibration().recalibrated(
        replace(answered(scores, labels, 300), evidence=evidence(RowValues.of(scores).bounded().whole()))
    )
    assert np.isfinite(readings[:, 0]).all()
    assert np.isfinite(calibration.temperature)


def test_the_limit_of_few_shot_classes_is_never_below_that_of_the_others() -> None:
    taught = HeldOutResult(few_misses=tuple((LEVELS / 2).tolist()))
    calibration = Calibration(taught, misses=tuple(LEVELS.tolist()))
    probabilities = np.array([[0.6, 0.2, 0.2], [0.7, 0.25, 0.05]])
    few = np.array([False, False, True])
    # At a coverage of 0.9 a miss of 0.9 counts: a limit of 0.45 for the last class would leave it out of the first set.
    assert calibration.sets(probabilities, few, 0.9).tolist() == [[True, True, True], [True, True, False]]


def test_sets_are_larger_where_the_calibration_run_saw_larger_misses() -> None:
    scores, labels = drawn(9, 500)
    taught = HeldOutResult(few_misses=tuple(np.minimum(1, LEVELS + 0.5).tolist()))
    calibration, readings = Calibration(taught).recalibrated(answered(scores, labels, 500))
    probabilities = probabilities_of(scores, readings[:, 1])
    few = np.arange(5) >= 3
    plain, wide = (calibration.sets(probabilities, kind, 0.8) for kind in (np.zeros(5, dtype=bool), few))
    assert (plain <= wide).all()
    assert wide[:, 3:].sum() > plain[:, 3:].sum()
    np.testing.assert_array_equal(wide[:, :3], plain[:, :3])


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1.0, float("nan")])
def test_a_coverage_that_makes_no_sense_is_refused(coverage: float) -> None:
    with pytest.raises(InputError, match="choose a number between 0 and 1"):
        Calibration(misses=tuple(LEVELS)).sets(np.ones((1, 1)), np.zeros(1, dtype=bool), coverage)


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0.0},
        {"temperature": float("inf")},
        {"tail": -1.0},
        {"middles": {"energy": 1.0}},
        {"ood_score": [1.0]},
        {"misses": [1.0] * 1002},
        {"misses": [1.0] + [0.0] * 1000},
        {"heat": 2000.0},
        {"spreads": {"energy around": 0.0}},
        {"held_out": {"weights": {}}, "middles": {}, "spreads": {}},
        {"held_out": {"weights": {"no such": 1.0}}, "middles": {"no such": 0.0}, "spreads": {"no such": 1.0}},
        {"held_out": {"weights": {"energy around": float("nan")}}},
        {"held_out": {"few_share": 0.0}},
    ],
)
def test_values_that_cannot_be_used_are_refused(change: dict[str, Any]) -> None:
    scores, labels = drawn(5, 100)
    good = Calibration().recalibrated(answered(scores, labels, 100))[0].as_json()
    assert Calibration.from_json(good)
    with pytest.raises(ValueError, match=r"its (calibration|temperature)"):
        Calibration.from_json({**good, **change})
