"""Answers that are computed beside: one at a time, for the newest version."""

import logging
import re
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import graphfcl.service.background as background_module
from graphfcl import InputError
from graphfcl.service.background import QUESTIONS, Background


def snapshot_of(version: int) -> Any:
    return SimpleNamespace(version=version, model=SimpleNamespace(write_cache=lambda: None))


def until(met: Callable[[], Any]) -> Any:
    end = time.monotonic() + 10
    while not (value := met()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return value


def test_a_question_is_answered_for_each_version() -> None:
    writer: Any = SimpleNamespace(current=snapshot_of(1), follow=lambda: False, busy=False)
    background = Background(writer)
    background.start()
    seen = []

    def compute(snapshot: Any) -> int:
        seen.append(snapshot.version)
        return 10 * snapshot.version

    def ask() -> Any:
        return background.find(("tens",), compute, writer.current)

    assert ask() is None
    assert until(ask).value == 10
    assert ask().version == 1
    writer.current = snapshot_of(2)
    background.changed()
    assert until(lambda: background.computed(("tens",), 2)) == 20, "without being asked"
    assert ask().value == 20
    assert seen == [1, 2]

    def fail(_: Any) -> None:
        raise InputError("what and why.")

    assert background.find(("fails",), fail, writer.current) is None
    assert until(lambda: background.find(("fails",), fail, writer.current)).error == "what and why."

    def break_down(_: Any) -> None:
        raise ZeroDivisionError("secret")

    def full(_: Any) -> None:
        raise OSError(28, "No space left on device")

    def error_of(question: str, run: Callable[[Any], None]) -> str:
        background.find((question,), run, writer.current)
        return str(until(lambda: background.find((question,), run, writer.current)).error)

    unexpected = error_of("breaks down", break_down)
    assert re.search("'breaks down' of version 2 .*ZeroDivisionError.* report it", unexpected)
    assert "secret" not in unexpected, "the log has the rest"
    assert error_of("full", full) == "[Errno 28] No space left on device"
    for number in range(QUESTIONS):
        background.find(("other", number), compute, writer.current)
    assert background.computed(("tens",), 2) is None, "old questions are forgotten"
    background.stop()


def test_a_long_computation_does_not_keep_the_service_from_stopping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "GRACE", 0.1)
    started, end = threading.Event(), threading.Event()

    def compute(_: Any) -> None:
        started.set()
        end.wait(30)

    writer: Any = SimpleNamespace(current=snapshot_of(1), follow=lambda: False, busy=False)
    background = Background(writer)
    background.start()
    background.find(("long",), compute, writer.current)
    assert started.wait(10)
    start = time.monotonic()
    background.stop()
    assert time.monotonic() - start < 5
    end.set()


def test_a_cache_that_cannot_be_written_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def no_space() -> None:
        raise OSError(28, "No space left on device")

    snapshot = SimpleNamespace(version=3, model=SimpleNamespace(write_cache=no_space))
    writer: Any = SimpleNamespace(current=snapshot, follow=lambda: False, busy=False)
    background = Background(writer)
    background.start()
    with caplog.at_level(logging.WARNING, "graphfcl.service"):
        background.stop()
    assert "The cache of version 3 is not written: [Errno 28] No space left on device" in caplog.text
    assert "computes the predictions again" in caplog.text
