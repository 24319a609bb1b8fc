"""The parameter study, compared with plain loops."""

from dataclasses import replace

import numpy as np
import pytest

from graphfcl.report import Block
from scripts.figures.parameters import METHODS, gains, leads
from tests.metrics.test_comparison import corrected_test
from tests.report.folders import fake

WAYS, SHOTS, SEEDS = (1, 2), (1, 5, 10), 5


def study() -> dict[tuple[int, int], Block]:
    random = np.random.default_rng(3)
    blocks = {}
    for way in WAYS:
        for shot in SHOTS:
            levels = {name: 0.5 + 0.004 * shot + 0.05 * (name == "hag-meta") for name in METHODS}
            block = fake({name: list(level + 0.02 * random.random(SEEDS)) for name, level in levels.items()})
            blocks[way, shot] = replace(block, protocol={**block.protocol, "way": way, "shot": shot})
    return blocks


def percent(block: Block, name: str, seed: int) -> float:
    return next(100 * row.results[seed]["average"] for row in block.rows if row.name == name)


def test_the_lead_is_tested_for_each_n_and_k() -> None:
    blocks = study()
    found = leads(blocks)
    assert found.keys() == blocks.keys()
    for place, block in blocks.items():
        ours, theirs = ([percent(block, name, seed) for seed in range(SEEDS)] for name in METHODS)
        mean, interval, p_value = corrected_test(ours, theirs, 1 / 3)
        test = found[place].difference
        assert (test.mean, test.interval, test.p_value) == tuple(map(pytest.approx, (mean, interval, p_value)))
    smallest = min(one.difference.p_value or 1.0 for one in found.values())
    assert min(one.adjusted or 1.0 for one in found.values()) == pytest.approx(len(found) * smallest)


def test_the_gain_of_more_labels_is_a_mean_over_n() -> None:
    blocks = study()
    for name in METHODS:
        found = gains(blocks, name)
        assert list(found) == [(1, 5), (5, 10), (1, 10)]
        for (less, more), one in found.items():
            means: dict[int, list[float]] = {less: [], more: []}
            for shot in (less, more):
                for seed in range(SEEDS):
                    total = 0.0
                    for way in WAYS:
                        total += percent(blocks[way, shot], name, seed) / len(WAYS)
                    means[shot].append(total)
            mean, interval, p_value = corrected_test(means[more], means[less], 1 / 3)
            assert (one.difference.mean, one.difference.interval, one.difference.p_value) == tuple(
                map(pytest.approx, (mean, interval, p_value))
            )


def test_the_widest_interval_of_the_settings_counts() -> None:
    blocks = study()
    place = (2, 10)
    rows = []
    for row in blocks[place].rows:
        rows.append(replace(row, results={seed: {**each, "n_test": 3} for seed, each in row.results.items()}))
    wider = leads({**blocks, place: replace(blocks[place], rows=tuple(rows))})
    for setting, one in leads(blocks).items():
        assert (wider[setting].difference.interval or 0.0) > (one.difference.interval or 0.0)
