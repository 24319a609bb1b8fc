"""Verdicts on the paper's claims follow from the comparisons."""

from dataclasses import replace

import pytest

from graphfcl.report import Block
from scripts.figures.reproduction import BASELINES, METHOD, better, family, first_loss, verdict
from tests.metrics.test_comparison import corrected_test
from tests.report.folders import fake

LOSSES = [[0.90, 0.80, 0.78, 0.75], [0.91, 0.83, 0.80, 0.79], [0.88, 0.80, 0.77, 0.75], [0.9, 0.82, 0.8, 0.76]]
LOSSES += [[0.92, 0.81, 0.80, 0.77]]


def block_with(values: dict[str, list[float]], key: str = "average") -> Block:
    block = fake({METHOD: values[METHOD], **{name: values.get(name, values["others"]) for name in BASELINES}})
    for row in block.rows:
        for result in row.results.values():
            result[key] = result["average"]
    return block


def test_a_claim_holds_everywhere_somewhere_or_nowhere() -> None:
    assert verdict([True, True]) == "reproduced"
    assert verdict([True, False]) == "partly"
    assert verdict([False, False]) == "not reproduced"


def test_less_is_better_for_pd() -> None:
    values = {METHOD: [0.10, 0.11, 0.10, 0.12, 0.11], "others": [0.50, 0.52, 0.50, 0.51, 0.53]}
    for measure, expected in (("average", False), ("pd", True)):
        found = family(block_with(values, measure), measure)
        assert found.keys() == set(BASELINES)
        assert {better(one, measure) for one in found.values()} == {expected}
        assert {better(one.swapped, measure) for one in found.values()} == {not expected}


def test_the_first_loss_is_compared_with_the_average_later_one() -> None:
    block = fake({"gpn": [0.5] * 5})
    results = {
        seed: {**block.rows[0].results[seed], "sessions": [{"balanced_accuracy": value} for value in accuracies]}
        for seed, accuracies in enumerate(LOSSES)
    }
    block = replace(block, rows=(replace(block.rows[0], results=results),))
    first, later = [], []
    for accuracies in LOSSES:
        lost = [100 * (accuracies[i] - accuracies[i + 1]) for i in range(3)]
        first.append(lost[0])
        later.append((lost[1] + lost[2]) / 2)
    mean, interval, p_value = corrected_test(first, later, 1 / 3)
    test = first_loss(block, "gpn").difference
    assert (test.mean, test.interval, test.p_value) == tuple(pytest.approx(one) for one in (mean, interval, p_value))
