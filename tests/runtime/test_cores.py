"""Usable cores under a binding, Slurm and control groups; the command line does not wait for torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphfcl.runtime import memory
from graphfcl.runtime.cores import usable_cores


@pytest.fixture(autouse=True)
def sixteen_free_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 16 cores without Slurm and without quotas; its folder of control groups."""
    groups = tmp_path / "cgroup"
    groups.mkdir()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 32)
    monkeypatch.delenv("SLURM_CPUS_PER_TASK", raising=False)
    monkeypatch.setattr(memory, "CONTROL_GROUPS", groups)
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")
    return groups


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_cores_a_process_is_bound_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usable_cores() == 16
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores() == 32
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores() == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4", 4), ("64", 16), ("0", 16), ("-2", 16), ("", 16), ("four", 16), ("2.5", 16), ("4(x2)", 16)],
)
def test_slurm_s_cores_count_where_they_are_a_positive_number(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: int
) -> None:
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", text)
    assert usable_cores() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("max 100000\n", 16), ("600000 100000\n", 6), ("350000 100000\n", 3), ("50000 100000\n", 1), ("", 16)],
)
def test_the_quota_of_a_container(sixteen_free_cores: Path, text: str, expected: int) -> None:
    write(sixteen_free_cores / "cpu.max", text)
    assert usable_cores() == expected


@pytest.mark.parametrize(("quota", "expected"), [("-1\n", 16), ("0\n", 16), ("500000\n", 5), ("20000\n", 1)])
def test_the_quota_in_its_older_form(sixteen_free_cores: Path, quota: str, expected: int) -> None:
    write(sixteen_free_cores / "cpu" / "cpu.cfs_quota_us", quota)
    write(sixteen_free_cores / "cpu" / "cpu.cfs_period_us", "100000\n")
    assert usable_cores() == expected


def test_the_quotas_of_a_group_and_of_those_around_it(sixteen_free_cores: Path, tmp_path: Path) -> None:
    write(tmp_path / "own", "3:memory:/other\n0::/user/mine\n")
    write(sixteen_free_cores / "cpu" / "other" / "cpu.max", "100000 100000\n")
    write(sixteen_free_cores / "user" / "mine" / "cpu.max", "800000 100000\n")
    assert usable_cores() == 8
    write(sixteen_free_cores / "user" / "cpu.max", "400000 100000\n")
    assert usable_cores() == 4


def test_the_quota_of_a_group_in_its_older_form(sixteen_free_cores: Path, tmp_path: Path) -> None:
    write(tmp_path / "own", "4:cpu,cpuacct:/user/mine\n0::/\n")
    write(sixteen_free_cores / "cpu" / "user" / "mine" / "cpu.cfs_quota_us", "700000\n")
    write(sixteen_free_cores / "cpu" / "user" / "mine" / "cpu.cfs_period_us", "100000\n")
    assert usable_cores() == 7


def test_the_smallest_limit_counts(sixteen_free_cores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(sixteen_free_cores / "cpu.max", "600000 100000\n")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "5")
    assert usable_cores() == 5
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7, 9})
    assert usable_cores() == 2


def test_counting_cores_loads_no_library() -> None:
    code = """
import sys
from graphfcl.cli import bench
from graphfcl.runtime.cores import usable_cores
usable_cores()
assert not {"torch", "numpy", "sklearn", "threadpoolctl"} & sys.modules.keys(), "slow to start"
"""
    subprocess.run([sys.executable, "-c", code], check=True)
