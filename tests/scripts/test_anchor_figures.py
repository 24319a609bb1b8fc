"""Accuracy against labels, compared with plain loops over the stored cells."""

import json
from collections import defaultdict

import numpy as np
import pyarrow.parquet as pq
import pytest

from scripts.figures.anchor import above_joint, anchor_curve, shot_families
from scripts.figures.reading import ROOT
from tests.metrics.test_comparison import corrected_test

CELLS = ROOT / "results" / "bench" / "grids" / "shots.parquet"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not CELLS.exists(), reason="a source distribution has no cells"),
]


def cells() -> dict[tuple[str, str], dict[str, dict[int, tuple[float, float]]]]:
    """(Graph, labels) → method → seed → last balanced accuracy in percent, and n_test/n_train."""
    found: dict[tuple[str, str], dict[str, dict[int, tuple[float, float]]]] = defaultdict(lambda: defaultdict(dict))
    for text in pq.read_table(CELLS, columns=["result"])["result"].to_pylist():
        if text is not None:
            result, rules = json.loads(text)["result"], json.loads(text)["cell"]["rules"]
            labels = "all" if rules.get("pool_as_supports") else str(rules["shot"])
            last = 100 * result["sessions"][-1]["balanced_accuracy"]
            ratio = result["n_test"] / result["n_train"]
            found[result["dataset"], labels][result["method"]][result["seed"]] = (last, ratio)
    return found


def test_differences_are_those_of_plain_loops() -> None:
    families, stored = shot_families(), cells()
    for (graph, labels), methods in stored.items():
        family, smallest = families[graph][labels], 1.0
        assert set(family) == set(methods) - {"anchor", "joint"}
        for name, one in family.items():
            ours, theirs = ([methods[which][seed][0] for seed in range(5)] for which in ("anchor", name))
            ratio = float(np.mean([methods[name][seed][1] for seed in range(5)]))
            mean, interval, p_value = corrected_test(ours, theirs, ratio)
            test = one.difference
            assert (test.mean, test.interval, test.p_value) == tuple(map(pytest.approx, (mean, interval, p_value)))
            smallest = min(smallest, p_value)
        adjusted = min(one.adjusted or 1.0 for one in family.values())
        assert adjusted == pytest.approx(min(1.0, len(family) * smallest)), "Holm multiplies the smallest by all"


def test_the_table_shows_anchor_and_its_smallest_lead() -> None:
    stored, lines = cells(), anchor_curve().splitlines()
    for graph in {graph for graph, _ in stored}:
        (line,) = (line for line in lines if line.startswith(f"| `{graph}` |"))
        for labels, cell in zip(("1", "5", "20", "50", "all"), line.split("|")[2:-1], strict=True):
            methods = stored[graph, labels]
            means = {name: np.mean([last for last, _ in seeds.values()]) for name, seeds in methods.items()}
            ours = means.pop("anchor")
            means.pop("joint", None)
            lead = ours - max(means.values())
            sign = "+" if lead >= 0.05 else "−" if lead <= -0.05 else ""
            assert cell.strip().startswith(f"{ours:.1f} ({sign}{abs(lead):.1f} ±"), (graph, labels)


def test_methods_above_joint_are_named() -> None:
    expected = set()
    for (graph, labels), methods in cells().items():
        if labels == "all":
            means = {name: np.mean([last for last, _ in seeds.values()]) for name, seeds in methods.items()}
            expected |= {
                f"`{name}` on `{graph}` (+{means[name] - means['joint']:.1f})"
                for name in methods
                if means[name] - means["joint"] >= 0.05
            }
    assert set(above_joint()) == expected
