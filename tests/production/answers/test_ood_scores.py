"""Measures of ood_score: what they say, how they are weighed, and that one is added by one file and one line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score

import graphfcl
from graphfcl import VisibleGraph
from graphfcl.production.answers import ood_scores
from graphfcl.production.answers.ood_scores import (
    ENERGY,
    ENERGY_AROUND,
    MEASURES,
    Evidence,
    Measure,
    RobustScaler,
    Stage,
    balanced_weights,
    combined,
    fit_weights,
    measured,
    measured_left_out,
    separation,
)
from graphfcl.production.answers.row_values import RowValues
from tests.production.models import HIDDEN, NAME, quick

NEW_MEASURE = """
def _margin(evidence: Evidence) -> np.ndarray:
    ordered = np.sort(evidence.scores, axis=1)
    return ordered[:, -2] - ordered[:, -1]


MEASURES = (
    Measure("margin", _margin),
"""
FIT = """
import json, sys
import graphfcl
from graphfcl.datasets import load_dataset
from graphfcl.production import GraphClassifier

name, hidden, settings = json.loads(sys.argv[1])
model = GraphClassifier("proto-gcn", settings).fit(load_dataset(name)[0], hide_classes=hidden)
print(json.dumps([graphfcl.__file__, model.history[0]["unknown_auroc"]]))
"""


def visible_of(adjacency: np.ndarray) -> VisibleGraph:
    count = len(adjacency)
    matrix = sparse.csr_array(adjacency.astype(np.float32))
    return VisibleGraph(np.arange(count), matrix, np.zeros((count, 0), dtype=np.float32))


def some_evidence(seed: int = 0, count: int = 12, classes: int = 4) -> Evidence:
    """A random graph with edge weights, a lone node (the last), and some labelled nodes."""
    random = np.random.default_rng(seed)
    weights = random.integers(1, 9, (count, count)) / np.float32(8)
    upper = np.triu(weights * (random.random((count, count)) < 0.3), 1)
    upper[:, -1] = 0
    visible = visible_of(upper + upper.T)
    labelled = random.random(count) < 0.5
    scores = random.normal(size=(count, classes)) * 3
    return Evidence(RowValues.of(scores), 2.0, np.arange(classes) >= 3, visible, labelled)


def mixed(evidence: Evidence, values: np.ndarray, steps: int) -> np.ndarray:
    """Half of a node's own value and half of the mean of its neighbours, by loops."""
    plain = evidence.visible.neighbours_at(np.arange(12)).toarray()
    for _ in range(steps):
        after = values.copy()
        for v in range(len(values)):
            weights = plain[v]
            near = (
                sum(weights[u] * values[u] for u in range(len(values))) / weights.sum() if weights.sum() else values[v]
            )
            after[v] = 0.5 * values[v] + 0.5 * near
        values = after
    return values


def test_the_measures_are_those_of_loops() -> None:
    evidence = some_evidence()
    energy, entropy = np.zeros(12), np.zeros(12)
    for v, row in enumerate(evidence.scores.whole()):
        energy[v] = -np.log(np.exp(row).sum())
        shares = np.exp(row / 2) / np.exp(row / 2).sum()
        entropy[v] = -(shares * np.log(shares)).sum()
    plain = evidence.visible.neighbours_at(np.arange(12)).toarray()
    near = np.array([(row * evidence.labelled).sum() / row.sum() if row.sum() else 0.0 for row in plain])
    expected = {
        "energy": energy,
        "energy around": mixed(evidence, energy, 2),
        "entropy": entropy,
        "entropy around": mixed(evidence, entropy, 2),
        "unlabelled around": -mixed(evidence, near, 2),
        "few-shot answer": (evidence.scores.whole().argmax(axis=1) == 3).astype(float),
    }
    assert [each.name for each in MEASURES] == list(expected)
    found = measured(evidence, list(expected))
    for place, name in enumerate(expected):
        np.testing.assert_allclose(found[:, place], expected[name], err_msg=name)


def test_a_node_left_out_moves_its_own_energy_and_its_share_of_the_one_around() -> None:
    evidence = some_evidence(1)
    names, rows = [ENERGY.name, ENERGY_AROUND.name, "entropy"], np.array([0, 3, 11])
    values = measured(evidence, names)
    scores = evidence.scores[rows] - np.array([[1.0], [2.0], [3.0]])
    found = measured_left_out(evidence, values, names, rows, scores)
    np.testing.assert_allclose(found[:, 0], -logsumexp(scores, axis=1))
    np.testing.assert_allclose(found[:, 2], values[rows, 2])
    for place, row in enumerate(rows):
        alone = values[:, 0].copy()
        alone[row] = found[place, 0]
        np.testing.assert_allclose(found[place, 1], mixed(evidence, alone, 2)[row])


@pytest.mark.parametrize("measure", MEASURES[:4], ids=lambda each: each.name)
def test_a_node_far_from_every_class_is_stranger(measure: Measure) -> None:
    scores = np.array([[5.0, 0.0, 0.0], [1.0, 0.5, 0.5]])
    nothing = Evidence(
        RowValues.of(scores), 1.0, np.zeros(3, dtype=bool), visible_of(np.zeros((2, 2))), np.zeros(2, dtype=bool)
    )
    near, far = measure.compute(nothing)
    assert far > near


def test_a_ruler_measures_in_spreads_and_clips() -> None:
    known = np.column_stack([np.arange(101.0), np.full(101, 7.0), np.zeros(101)])
    scaler = RobustScaler.of(["energy", "unlabelled around", "few-shot answer"], known)
    found = scaler.apply(np.array([[50.0, 7.0, 1.0], [100.0, 9.0, 0.0], [1e9, -9.0, 1.0]]))
    np.testing.assert_allclose(found, [[0, 0, 1], [1, 2, 0], [6, -2, 1]], atol=1e-6)


def test_weights_go_to_the_measure_that_tells_unknown_nodes() -> None:
    random = np.random.default_rng(0)
    columns = np.repeat(np.arange(6), 50)
    standard = random.normal(size=(300, len(MEASURES)))
    standard[:, 1] += 3 * (columns >= 4)
    stages = [Stage(standard, columns, 4), Stage(standard, columns, 6)]  # no node is unknown in the second
    weights = fit_weights(stages)
    assert max(weights, key=lambda name: weights[name]) == MEASURES[1].name
    strange = combined(standard, weights)
    assert separation(strange[columns >= 4], strange[columns < 4]) > 0.95
    assert fit_weights(stages[1:]) == {ENERGY_AROUND.name: 1.0}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.lists(st.integers(-5, 5), min_size=1, max_size=30))
def test_separation_is_the_auroc(high: list[int], low: list[int]) -> None:
    expected = roc_auc_score([1] * len(high) + [0] * len(low), high + low)
    assert separation(np.array(high), np.array(low)) == pytest.approx(expected)


def test_every_class_counts_the_same() -> None:
    labels = np.array([0, 0, 0, 2, 5, 5])
    weights = balanced_weights(labels)
    for label in (0, 2, 5):
        assert weights[labels == label].sum() == pytest.approx(1 / 3)


@pytest.mark.long
def test_a_measure_is_added_by_a_function_and_a_line(tmp_path: Path) -> None:
    package = tmp_path / "graphfcl"
    shutil.copytree(Path(graphfcl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / "production" / "answers" / "ood_scores.py"
    assert file.read_text().count("MEASURES = (") == 1
    file.write_text(file.read_text().replace("MEASURES = (", NEW_MEASURE.strip()))
    done = subprocess.run(
        [sys.executable, "-c", FIT, json.dumps([NAME, HIDDEN, quick("proto-gcn")])],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    place, found = json.loads(done.stdout.splitlines()[-1])
    assert Path(place).is_relative_to(tmp_path)
    assert list(found) == ["margin", *(each.name for each in MEASURES), "all"]
    assert 0 <= found["margin"] <= 1


def test_what_two_measures_start_from_is_computed_once() -> None:
    passes = []

    def own(evidence: Evidence) -> np.ndarray:
        passes.append(evidence)
        return np.arange(3.0)

    visible = visible_of(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    evidence = Evidence(RowValues.of(np.zeros((3, 2))), 1.0, np.zeros(2, dtype=bool), visible, np.zeros(3, dtype=bool))
    listed = [Measure("own", own), Measure("own around", own, smooth=True), Measure("other", lambda _: np.ones(3))]
    alone, around, other = ood_scores._columns(evidence, listed)
    assert len(passes) == 1
    np.testing.assert_allclose(alone, [0, 1, 2])
    np.testing.assert_allclose(around, [0.5, 0.5, 2])
    np.testing.assert_allclose(other, 1)
