"""The command line, run as a user runs it or, where that would take long, inside the process of the tests."""

import io
import os
import subprocess
import sys
import warnings
from collections.abc import Collection
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from graphfcl.cli import main
from graphfcl.datasets import DATA_VARIABLE
from tests.warm import run_warm


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str


def run_python(*arguments: object) -> Result:
    """Python in a process that has imported nothing."""
    environment = _environment()
    finished = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
        timeout=120,
        check=False,
    )
    return Result(finished.returncode, finished.stdout, finished.stderr)


def graphfcl(*arguments: object) -> Result:
    """A command in a process of its own."""
    done = run_warm("-m", "graphfcl", *arguments, env=_environment(), seconds=120)
    return Result(done.returncode, done.stdout, done.stderr)


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != DATA_VARIABLE}


def graphfcl_inside(*arguments: object) -> Result:
    """The same without a process of its own."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        patch.delenv(DATA_VARIABLE, raising=False)
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Result(code, out.getvalue(), err.getvalue())


def run_all(commands: dict[str, list[object]], outside: Collection[str]) -> dict[str, Result]:
    """Several commands, those named in ``outside`` as processes of their own."""
    return {
        name: (graphfcl if name in outside else graphfcl_inside)(*arguments) for name, arguments in commands.items()
    }


def assert_one_sentence(result: Result, *words: str) -> None:
    """Bad input ends with exit code 2 and one line that names the culprit."""
    assert result.code == 2, result.err
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]


def succeeded(*arguments: object) -> str:
    """What a command prints that must end well, inside this process."""
    done = graphfcl_inside(*arguments)
    assert done.code == 0, done.err
    return str(done.out)
