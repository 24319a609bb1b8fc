"""Sizes as text, and how much memory this process has."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphfcl import InputError
from graphfcl.experiments.graph_folders import usual_memory
from graphfcl.runtime import memory
from graphfcl.runtime.memory import format_bytes, parse_bytes, process_bytes, usable_bytes
from tests.cli.command import run_python

HOLD = """
import numpy as np
from graphfcl.runtime.memory import resident_bytes
before = resident_bytes()
held = np.ones(8_000_000)
print(resident_bytes() - before)
"""


def test_what_is_held_counts() -> None:
    # In a process of its own: one that has done much may take the array from what it has let go of.
    assert 60e6 < int(run_python("-c", HOLD).out) < 100e6


def test_a_process_is_measured_once() -> None:
    first = process_bytes()
    assert 50e6 < first < 20e9
    held = np.ones(1_000_000)
    assert process_bytes() == first
    del held


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of control groups of a machine of 16 GiB, which sets no limits."""
    pages = {"SC_PHYS_PAGES": 4 << 20, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    monkeypatch.setattr(memory, "CONTROL_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")
    return tmp_path / "cgroup"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("file", "text", "gigabytes"),
    [
        ("memory.max", "max\n", 16),
        ("memory.max", f"{8 << 30}\n", 8),
        ("memory.max", f"{64 << 30}\n", 16),
        ("memory.max", "", 16),
        ("memory/memory.limit_in_bytes", f"{4 << 30}\n", 4),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", 16),
        ("memory/memory.limit_in_bytes", "-1\n", 16),
    ],
)
def test_the_limit_of_a_container(groups: Path, file: str, text: str, gigabytes: int) -> None:
    write(groups / file, text)
    assert usable_bytes() == gigabytes << 30
    assert usual_memory() == 3 * (gigabytes << 30) // 4


def test_the_limits_of_a_group_and_of_those_around_it(groups: Path, tmp_path: Path) -> None:
    write(tmp_path / "own", "4:memory:/job/step\n3:cpu:/other\n0::/user/mine\n")
    write(groups / "memory" / "other" / "memory.limit_in_bytes", f"{1 << 30}\n")
    write(groups / "user" / "mine" / "memory.max", f"{9 << 30}\n")
    assert usable_bytes() == 9 << 30
    write(groups / "user" / "memory.max", f"{7 << 30}\n")
    assert usable_bytes() == 7 << 30
    write(groups / "memory" / "job" / "memory.limit_in_bytes", f"{5 << 30}\n")
    assert usable_bytes() == 5 << 30


def test_a_system_that_does_not_say_how_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sysconf")
    assert usable_bytes() is None
    assert usual_memory() == 4 << 30


@pytest.mark.parametrize(
    ("text", "count"), [("4GB", 4 << 30), ("1.5 gb", 3 << 29), ("800MiB", 800 << 20), ("7", 7), ("2k", 2048)]
)
def test_texts_are_read(text: str, count: int) -> None:
    assert parse_bytes(text, "--memory") == count


@pytest.mark.parametrize("text", ["", "GB", "four", "-4GB", "0GB", "4XB", "4 GB 2"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--memory is .*write it as 4GB"):
        parse_bytes(text, "--memory")


@given(st.integers(1, 1 << 45))
def test_what_is_written_is_enough_and_hardly_more(count: int) -> None:
    again = parse_bytes(format_bytes(count), "--memory")
    assert count <= again + 1 <= count * 1.1 + 2
