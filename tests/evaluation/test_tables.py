"""An evaluation is printed as a table and becomes one of pandas or pyarrow."""

import sys

import numpy as np
import pytest

from graphfcl import Evaluation, InputError
from graphfcl.metrics import balanced_accuracy, session_metrics


def evaluation(answered: tuple[np.ndarray, ...] = ()) -> Evaluation:
    """Two base classes, and one that comes in session 1, of four queries each; figures that one can count."""
    first = np.array([[3, 1], [0, 4]])
    second = np.array([[3, 1, 0], [0, 2, 2], [0, 0, 4]])
    return Evaluation((first, second), (1.5, 0.25), np.array([0, 0, 1]), answered)


def test_it_is_printed_as_a_table() -> None:
    lines = str(evaluation()).splitlines()
    assert lines[0].split()[:2] == ["session", "classes"]
    assert lines[1].split()[:3] == ["0", "2", f"{100 * (0.75 + 1) / 2:.2f}"]
    assert lines[2].split()[:3] == ["1", "3", f"{100 * (0.75 + 0.5 + 1) / 3:.2f}"]
    assert lines[1].split()[-1] == "1.50"
    assert len({len(line) for line in lines[:3]}) == 1, "columns are aligned"
    assert f"{100 * (87.5 + 75) / 200:.2f}" in " ".join(lines[4:]), "the average"
    assert repr(evaluation()) == "Evaluation(2 sessions, average accuracy 81.25 %)"


def test_an_evaluation_that_has_not_begun_says_so() -> None:
    empty = Evaluation((), (), np.array([0]))
    assert str(empty) == repr(empty) == "Evaluation(no session yet)"


def test_a_table_of_arrow_has_every_measure() -> None:
    table = evaluation().to_arrow()
    assert table.column_names == ["session", "classes", *(metric.name for metric in session_metrics()), "seconds"]
    actual = table.to_pydict()
    assert (actual["session"], actual["classes"], actual["seconds"]) == ([0, 1], [2, 3], [1.5, 0.25])
    assert actual["balanced_accuracy"] == [balanced_accuracy(each) for each in evaluation().confusions]
    assert actual["novel"] == [None, 1.0]
    active = evaluation((np.array([4, 7, 9]),))
    assert active.to_arrow()["labels"].to_pylist() == [0, 3]
    assert "labels" in str(active)


def test_a_frame_of_pandas_is_the_same() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and nothing here needs it")
    frame = evaluation().to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["classes"].tolist() == [2, 3]
    assert frame["accuracy"].tolist() == evaluation().to_arrow()["accuracy"].to_pylist()
    assert np.isnan(frame["novel"][0])


def test_without_pandas_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        InputError, match=r"to_frame needs pandas, which is not installed: `pip install pandas`, or use to_arrow\(\)"
    ):
        evaluation().to_frame()
