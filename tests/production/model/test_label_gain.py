"""Which class would gain most from more labels."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphClassifier, ModelFolder
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.card import ClassCard, gain_text, most_gain
from graphfcl.production.model.label_gain import MORE, SUMS, expected_gains, exponent, observed_sums
from tests.production.models import copy_of, members


def random_labels(random: np.random.Generator) -> LabelStore:
    """Six classes of session 0 and five few-shot classes."""
    train, validation = random.integers(0, 6, 200), random.integers(0, 5, 60)  # class 5 has no validation node
    supports = np.concatenate([np.arange(6, 11), random.integers(4, 10, 40)])  # class 10 has one support
    names = [f"class {at}" for at in range(11)]
    store = LabelStore.of((np.arange(200), train), (np.arange(200, 260), validation), names[:6])
    return store.with_supports(np.arange(300, 345), supports, names[6:])


def random_recalls(labels: LabelStore, random: np.random.Generator) -> dict[str, Any]:
    return {"classes": {name: float(random.random()) for name in labels.classes[:5] + labels.classes[6:10]}}


def figures(labels: LabelStore, accuracy: dict[str, Any], name: str) -> tuple[int, str, int, float]:
    """Labels of a class, its kind, how many nodes it was measured on, and its error there, node by node."""
    counts = [0, 0]
    for column, part in zip(labels.columns.tolist(), labels.parts.tolist(), strict=True):
        if labels.names[column] == name:
            counts[part == 1] += 1
    few = labels.names.index(name) >= labels.session_zero_columns
    nodes = 0 if name not in accuracy["classes"] else counts[0] if few else counts[1]
    return counts[0], "few_shot" if few else "session_zero", nodes, 1 - accuracy["classes"].get(name, 0)


@pytest.mark.parametrize("seed", range(5))
def test_gains_are_those_of_a_plain_loop(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = random_labels(random)
    accuracy = {**random_recalls(labels, random), SUMS: {"few_shot": [30.0, 80.0]}}
    powers = {"few_shot": (100 * 0.2 + 30) / (100 + 80), "session_zero": 0.2}
    gains = expected_gains(labels, accuracy)
    for name, gain in zip(labels.classes, gains.tolist(), strict=True):
        count, kind, nodes, error = figures(labels, accuracy, name)
        alike = [each for each in (figures(labels, accuracy, other) for other in labels.classes) if each[1] == kind]
        mean = sum(each[2] * each[3] for each in alike) / sum(each[2] for each in alike)
        shrunk = (nodes * error + 2 * mean) / (nodes + 2)
        assert gain == pytest.approx(shrunk * (1 - (count / (count + MORE)) ** powers[kind]))
    assert (gains > 0).all(), "classes that were not measured are taken for usual ones of their kind"
    assert np.isnan(expected_gains(labels, {})).all()


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_those_of_a_plain_loop(seed: int) -> None:
    random = np.random.default_rng(seed)
    before = random_labels(random)
    after = before.with_supports(np.arange(400, 430), random.integers(3, 12, 30), ["new"])
    old = {**random_recalls(before, random), SUMS: {"few_shot": [1.0, 2.0]}}
    new = random_recalls(after, random)
    sums = {"few_shot": [1.0, 2.0], "session_zero": [0.0, 0.0]}
    for name in before.classes:
        (n1, kind, v1, e1), (n2, _, v2, e2) = figures(before, old, name), figures(after, new, name)
        if n1 != n2 and v1 and v2:
            weight, growth = v1 * v2 / (v1 + v2), math.log(n2 / n1)
            sums[kind][0] += weight * growth * (e1 - e2)
            sums[kind][1] += weight * growth**2 * (e1 + e2) / 2
    observed = observed_sums(before, old, after, new)
    assert {kind: pytest.approx(pair, abs=1e-5) for kind, pair in sums.items()} == observed


def test_the_exponent_is_the_prior_and_then_that_of_the_model() -> None:
    assert exponent("few_shot", {}) == exponent("session_zero", {}) == pytest.approx(0.2)
    pair, counts, power = [0.0, 0.0], 5, 0.4
    for _ in range(2000):  # each time twice the labels: the error falls by 2^-0.4
        first, last = 0.5, 0.5 * 2**-power
        pair[0] += counts * math.log(2) * (first - last)
        pair[1] += counts * math.log(2) ** 2 * (first + last) / 2
    assert exponent("few_shot", {"few_shot": pair}) == pytest.approx(power, abs=0.02)
    assert exponent("few_shot", {"few_shot": [-1e6, 10.0]}) == 0
    assert exponent("few_shot", {"few_shot": [1e6, 10.0]}) == 1


def card(name: str, gain: float | None, recall: float | None = 0.5) -> ClassCard:
    return ClassCard(name, 5, 0, True, recall, gain)


def test_the_sentence() -> None:
    cards = [card("a", 0.02), card("b", 0.113), card("c", None)]
    assert most_gain(cards) is cards[1]
    assert gain_text(cards) == (
        "'b' would gain most from more labels: 5 labels, recall 50.0 %, about +11.3 points from 10 more."
    )
    assert "recall not measured" in gain_text([card("a", 0.2, recall=None)])
    assert gain_text([card("a", 0.009), card("b", None)]).startswith("No class would gain 1 point")
    assert gain_text([card("a", None)]) == ""


def test_a_model_watches_what_labels_bring(start: GraphClassifier, tmp_path: Path) -> None:
    model, eight, nine = copy_of(start), members("class-08"), members("class-09")
    model.learn({"eight": eight[:3], "nine": nine[:2]})
    assert model.history[-1]["accuracy"][SUMS] == {"few_shot": [0, 0], "session_zero": [0, 0]}, "both are new"
    before, accuracy = model.label_store_, model.history[-1]["accuracy"]
    model.save(tmp_path / "m")
    model.learn({"eight": eight[3:9], "class-00": eight[9:10]})
    sums = model.history[-1]["accuracy"][SUMS]
    assert sums == observed_sums(before, accuracy, model.label_store_, model.history[-1]["accuracy"])
    assert sums["few_shot"][1] > 0
    for change in (
        lambda: model.unlearn(eight[9:10]),
        lambda: model.rename("eight", "8"),
        lambda: model.retire("nine"),
    ):
        change()
        assert model.history[-1]["accuracy"][SUMS] == sums, model.history[-1]["what"]
    model.save(tmp_path / "m")
    model.wait()
    folder = ModelFolder(tmp_path / "m")
    stored = folder.card()
    assert stored.classes == model.card().classes
    gains = expected_gains(model.label_store_, model.history[-1]["accuracy"])
    assert [each.gain for each in stored.classes] == pytest.approx(gains.tolist(), abs=1e-4)
    eight_card = next(each for each in stored.classes if each.name == "8")
    assert [labels for labels, _ in eight_card.earlier] == [3]
    folder.rollback(1)
    assert folder.history()[-1]["accuracy"][SUMS] == accuracy[SUMS], "what a rollback undid does not count"
