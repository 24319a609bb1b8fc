"""What a person sees of a fit while it works."""

import sys
import time
from typing import Any

import pytest

from graphfcl import InputError, Progress, make_stream
from graphfcl.methods import ProgressBars
from graphfcl.methods.progress import CALIBRATION_NOTE, progress_of
from tests.production.models import quick, small_graph


def test_a_stage_that_ends_sooner_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBars() as bars:
        for step in range(1, 6):
            bars.step("first", step, 15, loss=0.5, score=0.25)
        bars.step("first", 6, 6, loss=0.5, score=0.25)
        bars.step("second", 3, 3, score=1.0)
        bars.step("sessions", 1, 4, score=0.5)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("first: 6 of at most 15, loss 0.500, validation 25.0 %, stopped early, ")
    assert lines[1].startswith("second: 3 of at most 3, validation 100.0 %, 0.")
    assert lines[2].startswith("sessions: 1 of at most 4, accuracy 50.0 %, 0."), "interrupted, not stopped early"


def test_a_calibration_run_says_once_that_it_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBars() as bars:
        for stage in ("head", "calibration run, encoder", "calibration run, head"):
            bars.step(stage, 1, 2, score=0.5)
    lines = capsys.readouterr().err.splitlines()
    assert [lines.index(CALIBRATION_NOTE), lines.count(CALIBRATION_NOTE)] == [1, 1]


def test_where_nobody_watches_a_line_comes_again_and_again(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBars(every=0.05) as bars:
        time.sleep(0.12)
        bars.step("slow", 2, 9)
        time.sleep(0.3)
    found = capsys.readouterr().err
    assert found.startswith("preparing; at work for 0 s\n")
    assert found.count("slow: 2 of at most 9; at work for 0 s\n") >= 2
    time.sleep(0.1)
    assert capsys.readouterr().err == "", "the end of the work is the end of the lines"


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with ProgressBars() as bars:
        bars.step("calibration run, head", 1, 30, score=0.5)
        bars.step("calibration run, head", 6, 6, score=0.5)
    shown = capsys.readouterr().err
    assert "stopped early" in shown
    assert "6/6" in shown
    assert "left at most" not in shown.rsplit("6/6", 1)[1]
    assert "Calibration run: the method is trained again" in " ".join(shown.split())


def test_progress_may_be_true_false_or_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_of(True) as bars:
        assert isinstance(bars, ProgressBars)
        bars.step("stage", 1, 2, score=0.1)
    assert "stage: 1 of at most 2" in capsys.readouterr().err
    own = Progress()
    with progress_of(own) as found:
        assert found is own
    for silent in (False, None):
        with progress_of(silent) as found:
            found.step("stage", 1, 2, score=0.1)
    assert capsys.readouterr().err == ""
    wrong: Any = "yes"
    with pytest.raises(InputError, match="progress is 'yes': give True, False, or an object"), progress_of(wrong):
        pass


def test_evaluate_and_run_take_true(capsys: pytest.CaptureFixture[str]) -> None:
    from graphfcl import evaluate, evaluate_active, find_method
    from graphfcl.evaluation import find_chooser
    from graphfcl.experiments import Run, run

    stream = make_stream(small_graph(), None, seed=0, way=1, sessions=1)
    settings = quick("proto-gcn")
    asked = make_stream(small_graph(), None, seed=0, way=1, sessions=1, track="active")
    for walk in (
        lambda: evaluate(find_method("proto-gcn").make(settings), stream, progress=True),
        lambda: evaluate_active(find_method("proto-gcn").make(settings), asked, find_chooser("random"), progress=True),
        lambda: run(Run(stream, "proto-gcn", settings), progress=True),
    ):
        walk()
        shown = capsys.readouterr().err
        assert "pre-training: " in shown
        assert shown.count("sessions: 1 of at most 1, accuracy ") == 1
