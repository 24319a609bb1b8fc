"""One writer, whatever happens to the lock file."""

import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from graphfcl import InputError
from graphfcl.production.store.locks import WriterLock


def _hold(folder: str, ready: Any, done: Any) -> None:
    with WriterLock(Path(folder)).hold(5) as ours:
        assert ours
        ready.set()
        done.wait(30)


@pytest.mark.parametrize("how", ["left", "removed", "replaced"])
def test_a_second_writer_does_not_get_in(tmp_path: Path, how: str) -> None:
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(str(tmp_path), ready, done))
    holder.start()
    assert ready.wait(30)
    if how != "left":
        (tmp_path / "lock").unlink()
    if how == "replaced":
        (tmp_path / "lock").touch()
    with WriterLock(tmp_path).hold(0.2) as ours:
        assert not ours
    done.set()
    holder.join()
    assert holder.exitcode == 0
    with WriterLock(tmp_path).hold(0) as ours:
        assert ours


def test_the_lock_goes_with_a_killed_process(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(str(tmp_path), ready, done))
    holder.start()
    assert ready.wait(30)
    holder.kill()
    holder.join()
    with WriterLock(tmp_path).hold(0) as ours:
        assert ours


def test_who_holds_a_lock_sees_that_the_folder_was_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    lock = WriterLock(folder)
    with lock.hold(0) as ours:
        assert ours
        lock.check()
        (folder / "lock").unlink()
        lock.check()  # the second guard is held
        os.rename(folder, tmp_path / "elsewhere")
        (folder / "versions").mkdir(parents=True)
        with pytest.raises(InputError, match="moved or replaced"):
            lock.check()


def test_one_object_holds_it_once(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path)
    with lock.hold(0) as ours:
        assert ours
        with lock.hold(0.1) as again:
            assert not again
        lock.check()
