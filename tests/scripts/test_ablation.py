"""What each part of HAG-Meta adds, compared with plain loops."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from graphfcl.report import Block
from scripts.figures.ablation import (
    NLA_ALONE,
    PARTS,
    TLA_ALONE,
    against_zero,
    effect_sentence,
    full_leads,
    nla_minus_tla,
    part_effects,
    printed_effects,
    printed_halves,
)
from tests.metrics.test_comparison import corrected_test
from tests.report.folders import fake

ROWS = ("Proto-GNN", "Proto-GNN + GPIL", NLA_ALONE, TLA_ALONE, "Proto-GNN + NLA + GPIL", "Proto-GNN + TLA + GPIL")
BOTH = ("Proto-GNN + NLA + TLA", "Proto-GNN + NLA + TLA + GPIL")
SEEDS = 5


def table3() -> Block:
    random = np.random.default_rng(0)
    return fake({name: list(0.5 + 0.1 * ("GPIL" in name) + 0.02 * random.random(SEEDS)) for name in (*ROWS, *BOTH)})


def curve(block: Block, name: str, sessions: Sequence[Sequence[float]]) -> Block:
    """The block with another accuracy by session of one row, seed by seed."""
    rows = []
    for row in block.rows:
        if row.name == name:
            results = {
                seed: {**row.results[seed], "sessions": [{"balanced_accuracy": value} for value in values]}
                for seed, values in enumerate(sessions)
            }
            row = replace(row, results=results)
        rows.append(row)
    return replace(block, rows=tuple(rows))


def test_the_effect_of_a_part_is_the_mean_of_rows_with_it_minus_the_mean_of_rows_without() -> None:
    block = table3()
    found = part_effects(block)
    for part in PARTS:
        with_it, without = [], []
        for seed in range(SEEDS):
            sums = {True: 0.0, False: 0.0}
            for row in block.rows:
                sums[part in row.name.split(" + ")] += 100 * row.results[seed]["average"] / 4
            with_it.append(sums[True])
            without.append(sums[False])
        expected = corrected_test(with_it, without, 1 / 3)
        test = found[part].difference
        assert (test.mean, test.interval, test.p_value) == tuple(pytest.approx(one) for one in expected)
    assert found["GPIL"].ahead_after_holm
    assert not any(found[part].ahead_after_holm for part in ("NLA", "TLA"))


def test_effects_are_one_family_of_holms_correction() -> None:
    effects = {name: {seed: base + 0.1 * seed for seed in range(SEEDS)} for name, base in (("a", 1.0), ("b", 0.1))}
    found = against_zero(effects, dict.fromkeys(range(SEEDS), 0.5))
    raw = {name: one.difference.p_value or 0.0 for name, one in found.items()}
    assert found["a"].adjusted == pytest.approx(2 * raw["a"])
    assert found["b"].adjusted == pytest.approx(max(2 * raw["a"], raw["b"]))


def test_nla_and_tla_are_compared_in_both_halves_and_in_pd() -> None:
    random = np.random.default_rng(1)
    curves = {name: 0.9 - 0.1 * np.sort(random.random((SEEDS, 5)), axis=1) for name in (NLA_ALONE, TLA_ALONE)}
    block = table3()
    for name, values in curves.items():
        block = curve(block, name, values.tolist())
    found = nla_minus_tla(block)
    gap = 100 * (curves[NLA_ALONE] - curves[TLA_ALONE])
    expected = (
        sum(gap[seed, t] for seed in range(SEEDS) for t in range(3)) / 15,
        sum(gap[seed, t] for seed in range(SEEDS) for t in (3, 4)) / 10,
        sum(gap[seed, 0] - gap[seed, 4] for seed in range(SEEDS)) / 5,
    )
    assert [one.difference.mean for one in found.values()] == pytest.approx(expected)


def test_printed_effects_are_those_of_the_printed_table() -> None:
    """Averages over sessions of the eight rows of the paper's Table 3, added up by hand."""
    averages = (37.067, 50.927, 55.621, 55.403, 60.783, 60.884, 58.943, 63.789)
    gpil = sum(averages[place] for place in (1, 4, 5, 7)) / 4 - sum(averages[place] for place in (0, 2, 3, 6)) / 4
    assert printed_effects()["GPIL"] == pytest.approx(gpil)
    halves = printed_halves()
    assert halves["PD"] == pytest.approx(36.28 - 34.19)
    assert halves["first half of the sessions"] > 0 > halves["second half"]


def test_hag_meta_is_compared_with_the_seven_other_rows() -> None:
    found = full_leads(table3())
    assert len(found) == 7
    assert {name for name, one in found.items() if one.ahead_after_holm} == {
        n for n in (*ROWS, *BOTH) if "GPIL" not in n
    }


def test_a_sentence_names_the_graphs_of_each_effect() -> None:
    found = against_zero({"a": dict.fromkeys(range(SEEDS), 2.0) | {0: 2.1}}, dict.fromkeys(range(SEEDS), 0.5))["a"]
    none = against_zero({"a": {seed: (-1.0) ** seed for seed in range(SEEDS)}}, dict.fromkeys(range(SEEDS), 0.5))["a"]
    text = effect_sentence("It", {"up": found, "down": found.swapped, "flat": none})
    assert text.startswith("It raises the average over sessions on `up` (+2.0 points)")
    assert "lowers the average over sessions on `down` (−2.0 points)" in text
    assert "has no significant effect on `flat` (+0.2 points)" in text
    both = effect_sentence("It", {"one": found, "two": found})
    assert both == "It raises the average over sessions significantly on all 2 graphs (+2.0 points)."
    assert (
        effect_sentence("It", {"one": none, "two": none}) == "It has no significant effect on any graph (+0.2 points)."
    )
