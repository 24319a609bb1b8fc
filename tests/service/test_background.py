"""Answers that are computed beside: one at a time, for the newest version."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from graphfcl import InputError
from graphfcl.service.background import QUESTIONS, Background
from graphfcl.service.snapshots import Snapshots


def snapshots(version: int) -> Any:
    model = SimpleNamespace(write_cache=lambda: None)
    return SimpleNamespace(current=SimpleNamespace(version=version, model=model))


def until(met: Callable[[], Any]) -> Any:
    end = time.monotonic() + 10
    while not (found := met()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def test_a_question_is_answered_for_each_version() -> None:
    held: Any = snapshots(1)
    background = Background(held, SimpleNamespace(follow=lambda: False, busy=False))  # type: ignore[arg-type]
    assert Snapshots().newest is None
    background.start()
    seen = []

    def compute(snapshot: Any) -> int:
        seen.append(snapshot.version)
        return 10 * snapshot.version

    def ask() -> Any:
        return background.find(("tens",), compute, held.current)

    assert ask() is None
    assert until(ask).value == 10
    assert ask().version == 1
    held.current = snapshots(2).current
    background.changed()
    assert until(lambda: background.computed(("tens",), 2)) == 20, "without being asked"
    assert ask().value == 20
    assert seen == [1, 2]

    def fail(_: Any) -> None:
        raise InputError("what and why.")

    assert background.find(("fails",), fail, held.current) is None
    assert until(lambda: background.find(("fails",), fail, held.current)).error == "what and why."
    for number in range(QUESTIONS):
        background.find(("other", number), compute, held.current)
    assert background.computed(("tens",), 2) is None, "old questions are forgotten"
    background.stop()
