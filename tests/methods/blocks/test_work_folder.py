"""Who computes in a work folder is alone there."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphfcl import GraphfclWarning, InputError
from graphfcl.methods.blocks.work_folder import COMPUTING, alone_in
from graphfcl.runtime.files import file_lock, temporary_beside

HOLDS = """
import sys
from pathlib import Path
from graphfcl.methods.blocks.work_folder import alone_in
with alone_in(Path(sys.argv[1])):
    print("inside", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(work: Path) -> Iterator["subprocess.Popen[str]"]:
    """One that is alone in the folder."""
    command = [sys.executable, "-c", HOLDS, str(work)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        yield process
        process.kill()


def is_free(work: Path) -> bool:
    with file_lock(work / COMPUTING, wait=0) as free:
        return free


def enter(work: Path, before: "subprocess.Popen[str]") -> None:
    with alone_in(work):
        assert before.wait() != 0
        assert not is_free(work)


def test_the_second_waits_and_is_told_so_once(tmp_path: Path) -> None:
    work = tmp_path / "work"
    with another_process(work) as process:
        assert not is_free(work)
        ending = threading.Timer(0.3, process.kill)  # its lock goes with it
        ending.start()
        with pytest.warns(GraphfclWarning, match="another process is using .*work: waiting") as told:
            enter(work, process)
        assert len(told) == 1
    assert is_free(work)


def test_who_is_alone_may_ask_again(tmp_path: Path) -> None:
    with alone_in(tmp_path), alone_in(tmp_path / "." / "below" / ".."):
        assert not is_free(tmp_path)
    assert is_free(tmp_path)


def test_threads_wait_for_each_other(tmp_path: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with alone_in(tmp_path):
            entered.set()

    with alone_in(tmp_path):
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.wait(0.1)
    thread.join(10)
    assert entered.is_set()


def test_half_written_files_go_and_others_stay(tmp_path: Path) -> None:
    table = tmp_path / "x-0123456789abcdef"
    table.mkdir()
    half = [temporary_beside(table / "part-0000"), temporary_beside(table / "slice-0012")]
    half.append(temporary_beside(tmp_path / "given-0123456789abcdef.arrays"))
    others = [table / "part-0001", tmp_path / ".mine.tmp", temporary_beside(tmp_path / "notes.txt")]
    for path in (*half, *others):
        path.write_bytes(b"half")
    with alone_in(tmp_path):
        assert not any(path.exists() for path in half)
        with alone_in(tmp_path):
            assert all(path.exists() for path in others)


def test_a_work_folder_that_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    refused = pytest.raises(
        InputError, match=r"the work folder .*file/work cannot be written \(Not a directory\): name one"
    )
    with refused, alone_in(tmp_path / "file" / "work"):
        pass
