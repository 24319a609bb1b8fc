"""What a calibration run teaches, with a learner whose answers are known beforehand."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphfcl import NO_STORE, SILENT, BaseSession, Learner, Session, VisibleGraph, VisibleNodes
from graphfcl.active.grouping import PurityModel
from graphfcl.production import FitCheckpoints
from graphfcl.production.answers.calibration import Calibration, HeldOutResult
from graphfcl.production.answers.row_values import RowValues
from graphfcl.production.model.fitting import Labels, make_start
from graphfcl.production.model.held_out_run import run_held_out
from graphfcl.production.model.parts import Configuration
from tests.graphs import random_graph

CLASSES, EACH = 8, 60
CONFIGURATION = Configuration("told", {}, way=2, shot=5, seed=0, max_loss=0.05)


class Told(Learner):
    """Knows the class of every node, and errs as often as it is told to; far from all classes it does not know."""

    def __init__(self, truth: np.ndarray, names: tuple[str, ...], wrong: dict[int, float]) -> None:
        super().__init__()
        self.truth, self.names, self.wrong = truth, names, wrong
        self.asked = 0

    def calibration_learner(self) -> Learner:
        return Told(self.truth, self.names, self.wrong)

    def fit(self, base: BaseSession, progress: Any = SILENT, encoders: Any = NO_STORE) -> None:
        _ = progress, encoders
        self.classes_ = base.classes

    def learn(self, session: Session) -> None:
        self.classes_ += session.new_classes

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        _ = visible
        self.asked += 1
        random = np.random.default_rng(0)
        column_of = {self.names.index(name): column for column, name in enumerate(self.classes_)}
        scores = random.normal(size=(nodes.size, len(self.classes_))) * 0.3
        for row, node in enumerate(nodes.tolist()):
            column = column_of.get(int(self.truth[node]))
            if column is not None:
                errs = random.random() < self.wrong.get(int(self.truth[node]), 0.05)
                scores[row, (column + 1) % len(self.classes_) if errs else column] += 6.0
        return scores


def run(wrong: dict[int, float]) -> tuple[HeldOutResult, dict[str, float]]:
    graph = random_graph(0, [EACH] * CLASSES)
    nodes = np.arange(graph.node_count)
    visible = VisibleGraph(nodes=nodes, adjacency=graph.adjacency, features=graph.features)
    start = make_start(visible, Labels(nodes, graph.labels, graph.class_names), CONFIGURATION)
    told = Told(graph.labels, graph.class_names, wrong)
    told.fit(start.base)
    return run_held_out(start.base, told, told, NO_STORE, SILENT, FitCheckpoints())


def held_out() -> list[int]:
    """The classes that are pseudo-novel, and so held out: all are of one size, so the last ones."""
    return list(range(round(CLASSES * 0.55), CLASSES))


def test_classes_that_are_right_as_often_as_others_change_no_temperature() -> None:
    found, _ = run({})
    assert abs(found.few_heat) < 0.15
    assert found.few_share == pytest.approx(len(held_out()) / CLASSES)
    assert found.few_excess is None, "this learner cannot leave a support out"


def test_few_shot_classes_that_err_more_often_soften_temperatures_and_widen_sets() -> None:
    usual, _ = run({})
    found, _ = run(dict.fromkeys(held_out(), 0.5))
    assert found.few_heat > usual.few_heat + 0.3
    assert found.few_misses is not None
    assert usual.few_misses is not None
    assert found.few_misses[700] > 0.5 > usual.few_misses[700]


def test_nodes_of_classes_that_are_held_out_are_told_by_what_tells_them() -> None:
    found, separations = run({})
    assert separations["energy"] > 0.95
    assert separations["all"] >= 0.95
    assert found.weights["energy"] > 0
    assert found.few_limit is not None


def test_without_a_class_to_hold_out_there_is_nothing_to_learn() -> None:
    graph = random_graph(0, [EACH] * 3)
    nodes = np.arange(graph.node_count)
    visible = VisibleGraph(nodes=nodes, adjacency=graph.adjacency, features=graph.features)
    start = make_start(visible, Labels(nodes, graph.labels, graph.class_names), CONFIGURATION)
    base = replace(start.base, base_classes=start.base.classes, pseudo_novel_classes=())
    told = Told(graph.labels, graph.class_names, {})
    told.fit(base)
    assert run_held_out(base, told, told, NO_STORE, SILENT, FitCheckpoints()) == (HeldOutResult(), {})
    assert told.asked == 0


def test_scores_that_rule_a_class_out_are_far_below_all_others() -> None:
    scores = np.array([[1.0, -np.inf, 3.0], [0.0, 2.0, -np.inf]])
    found = RowValues.of(scores).bounded().whole()
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[np.isfinite(scores)], scores[np.isfinite(scores)])
    assert found[0, 1] < -20
    assert RowValues.of(found).bounded().whole() is found


def test_groups_of_held_out_classes_are_measured() -> None:
    """Features are noise, so the most alike of unknown nodes are of any class."""
    held_out, _ = run({})
    stated = PurityModel.from_json(held_out.group_purity).of(np.array([[1.0, 1.0]]))
    assert 0.2 < float(stated[0]) < 0.7
    calibration = Calibration(held_out=held_out).as_json()
    assert json.loads(json.dumps(calibration))["held_out"]["group_purity"] == held_out.group_purity
