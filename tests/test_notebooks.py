"""Pictures and tables of evaluations, models and graphs in a notebook."""

import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import Evaluation, GraphClassifier, InputError, build_graph, evaluate, make_stream
from tests.production.models import HIDDEN, members, small_graph


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    return evaluate("sgc-ridge", make_stream(small_graph(), seed=0))


@pytest.fixture(scope="module")
def model() -> GraphClassifier:
    model = GraphClassifier("sgc-ridge", max_loss=1.0).fit(small_graph(), hide_classes=HIDDEN)
    return model.learn({HIDDEN[0]: members(HIDDEN[0])[:5]})


def lines(figure: Any) -> dict[str, list[float]]:
    return {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in figure.axes[0].get_lines()}


def test_an_evaluation_is_drawn_by_session(evaluation: Evaluation, tmp_path: Path) -> None:
    drawn = lines(evaluation.plot(tmp_path / "curve.png"))
    assert drawn["all classes"] == pytest.approx([100 * s.balanced_accuracy for s in evaluation.metrics.sessions])
    novel = [s.novel for s in evaluation.metrics.sessions]
    assert drawn["novel"] == pytest.approx([100 * value for value in novel if value is not None])
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_is_drawn_by_change(model: GraphClassifier, tmp_path: Path) -> None:
    model.snapshot().save(tmp_path / "model")
    loaded = GraphClassifier.load(tmp_path / "model").retire(HIDDEN[0])
    figure = loaded.plot(tmp_path / "model.png")
    measured = [entry["accuracy"]["validation"] for entry in loaded.history]
    assert lines(figure)["classes of the fit, validation nodes"] == pytest.approx([100 * each for each in measured])
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["fit\nv1", "learn\nv1", "retire"]
    assert (tmp_path / "model.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_draws_the_recall_of_each_class_with_its_interval(model: GraphClassifier) -> None:
    axes = model.plot().axes[1]
    names = [label.get_text() for label in axes.get_yticklabels()]
    drawn = {}
    for points, _, (bars,) in axes.containers:
        for at, recall, segment in zip(points.get_ydata(), points.get_xdata(), bars.get_segments(), strict=True):
            drawn[names[int(at)]] = (recall, *segment[:, 0])
    assert len(drawn) == len(model.classes_)
    for each in model.class_table():
        recall, low, high = drawn[f"{each.name} ({each.labels})"]
        assert recall == pytest.approx(100 * (each.recall or 0.0))
        count = each.labels if each.few_shot else each.validation
        # An end of Wilson's interval is a share from which the measured one is 1.96 standard errors away.
        for share in (low / 100, high / 100):
            assert (recall / 100 - share) ** 2 == pytest.approx(1.96**2 * share * (1 - share) / count, abs=1e-9)
    assert [label.get_text() for label in axes.get_legend().get_texts()] == [
        "validation nodes",
        "labels, each left out",
    ]


def test_the_name_of_a_class_is_no_formula(model: GraphClassifier, tmp_path: Path) -> None:
    model = model.snapshot().rename(model.classes_[0], r"$\frac$ up to 5 $")
    model.plot(tmp_path / "model.png")


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InputError, match="this classifier is not fitted"):
        GraphClassifier().plot()
    with pytest.raises(InputError, match="this evaluation has no session yet"):
        Evaluation((), (), np.zeros(0, dtype=np.int64)).plot()


def cells(thing: Any) -> list[list[str]]:
    """The rows of the table that a notebook shows; it is well-formed."""
    table = xml.fromstring(f"<div>{thing._repr_html_()}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def test_an_evaluation_in_a_notebook(evaluation: Evaluation) -> None:
    printed = [line.split() for line in str(evaluation).splitlines()]
    head, *rows = cells(evaluation)
    assert len(rows) == len(evaluation.confusions)
    assert rows[-1][:3] == printed[len(rows)][:3]
    assert head[:2] == ["session", "classes"]
    assert "average" in evaluation._repr_html_()
    assert cells(Evaluation((), (), np.zeros(0, dtype=np.int64))) == []


def test_a_model_in_a_notebook(model: GraphClassifier) -> None:
    rows = dict(cells(model))
    assert rows["method"] == "sgc-ridge"
    assert rows["classes"] == str(len(model.classes_))
    assert rows["version"] == "not saved"
    assert rows["balanced accuracy, validation"].endswith(" %")
    assert "nodes" not in dict(cells(GraphClassifier()))


def test_a_graph_in_a_notebook_shows_names_as_text() -> None:
    names = ["<script>alert(1)</script>", "a & b", *(f"class {n}" for n in range(20))]
    graph = build_graph(np.zeros((22, 22)), np.eye(22), names, name="<b>mine</b>")
    text = graph._repr_html_()
    assert "<script>" not in text
    assert "<b>" not in text
    rows = dict(cells(graph))
    assert rows["nodes"] == "22"
    assert rows["22 classes"].endswith("and 10 more")
