"""Ctrl-C and SIGTERM: what is said, and that it is true."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from graphfcl import ModelFolder
from graphfcl.cli import how_to_go_on

GRAPH = "synthetic:nodes=600,edges=2400,classes=10,features=200,signal=0.3"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["run", "--graph", "my graph"],
            "stopped: continue with `graphfcl run --graph 'my graph' --resume`.",
        ),
        (["fit", "--resume"], "stopped: continue with `graphfcl fit --resume`."),
        (["bench", "table2"], "stopped: continue with `graphfcl bench table2`."),
        (["--debug", "predict", "--out", "-"], "stopped: start again with `graphfcl --debug predict --out -`."),
        (
            ["learn", "s.csv"],
            "stopped: `graphfcl history` shows whether the change was made; if not, make it with "
            "`graphfcl learn s.csv`.",
        ),
        (
            ["erase", "n.csv"],
            "stopped: `graphfcl history` shows whether the change was made; if not, make it with "
            "`graphfcl erase n.csv`.",
        ),
    ],
)
def test_the_command_that_goes_on(words: list[str], expected: str) -> None:
    assert how_to_go_on(words) == expected


@contextmanager
def started(words: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """A command in a process group of its own, which takes Ctrl-C as one in a terminal does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "graphfcl", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module", params=[signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def stopped_fit(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[str], list[str]]:
    """Stop a fit with a signal; what was typed, and the command that it says goes on."""
    model = tmp_path_factory.mktemp("stopped") / "m"
    words = ["fit", "--graph", GRAPH, "--model", str(model), "--method", "proto-gcn", "--device", "cpu"]
    words += ["--set", "pretraining.epochs=100000", "--set", "pretraining.patience=100000"]
    with started(words) as process:
        deadline = time.monotonic() + 100
        while not (model / "lock").exists():  # the folder is claimed: the fit has begun
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(process.pid, request.param)
        out, err = process.communicate(timeout=100)
    # Python lets the signal end a process that was stopped while it imported; a shell calls both 130, or 143.
    assert process.returncode in (128 + request.param, -request.param), err
    assert out == ""
    assert "Traceback" not in err
    last = err.rstrip().splitlines()[-1]
    assert last.startswith("stopped: continue with `graphfcl fit ")
    assert not ModelFolder(model).exists(), "a model is whole or not there"
    return words, shlex.split(last.partition("`")[2].partition("`")[0])[1:]


def test_a_fit_that_was_stopped_names_the_command_that_goes_on(stopped_fit: tuple[list[str], list[str]]) -> None:
    words, again = stopped_fit
    assert again == [*words, "--resume"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_run_that_was_stopped_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    words = ["run", "--graph", GRAPH, "--out", str(tmp_path / "run"), "--method", "proto-gcn", "--device", "cpu"]
    words += ["--set", "pretraining.epochs=100000", "--set", "pretraining.patience=100000"]
    with started(words) as process:
        deadline = time.monotonic() + 100
        while not any((tmp_path / "run").glob("*")):  # it has begun
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        time.sleep(1)
        os.kill(process.pid, number)
        _, err = process.communicate(timeout=100)
    assert process.returncode == 128 + number, err
    assert "Traceback" not in err
    said = f"stopped: continue with `{shlex.join(['graphfcl', *words, '--resume'])}`."
    assert err.rstrip().splitlines()[-1] == said
    assert not (tmp_path / "run" / "result.json").exists()


GRID = f"""
name = "slow"
graphs = ["{GRAPH}"]
seeds = 2
base = 4
pseudo_novel = 3
[[variants]]
name = "slow"
method = "proto-gcn"
settings = {{"pretraining.epochs" = 100000, "pretraining.patience" = 100000}}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "send"), [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.killpg), (signal.SIGTERM, os.kill)]
)
def test_a_grid_that_was_stopped_leaves_no_process_and_no_traceback(
    tmp_path: Path, number: signal.Signals, send: Callable[[int, int], None]
) -> None:
    """A terminal sends Ctrl-C to the command and to its workers, Slurm SIGTERM; a container to the command alone."""
    (tmp_path / "slow.toml").write_text(GRID)
    words = ["bench", str(tmp_path / "slow.toml"), "--device", "cpu", "--jobs", "2", "--out", str(tmp_path / "out")]
    with started(words) as process:
        deadline = time.monotonic() + 100
        while len([*tmp_path.glob("out/state/*.lock")]) < 2:  # both cells are claimed
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        time.sleep(2)
        send(process.pid, number)
        _, err = process.communicate(timeout=100)
        assert process.returncode == 128 + number, err
        assert "Traceback" not in err
        last = err.rstrip().splitlines()[-1]
        assert last == f"stopped: continue with `{shlex.join(['graphfcl', *words])}`."
        while time.monotonic() < deadline:
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.1)
        else:
            pytest.fail("a worker is still there")


@pytest.mark.long
def test_that_command_goes_on(stopped_fit: tuple[list[str], list[str]]) -> None:
    again = list(stopped_fit[1])
    again[again.index("pretraining.epochs=100000")] = "pretraining.epochs=2"  # the other fit would take long
    done = subprocess.run([sys.executable, "-m", "graphfcl", *again], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "is version 1 of" in done.stdout
