"""Processes that start warm: each is forked from one that has imported torch and its like, but nothing of graphfcl.

``run_warm("-m", "graphfcl", "run")`` does what ``python -m graphfcl run`` does, in a process of its own with its own
working directory and environment, and saves the seconds that imports of others' packages take. What commands import is
the matter of ``tests/cli/test_start_up.py``, which starts them cold.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SERVER = Path(__file__).with_name("warm_server.py")


@dataclass(frozen=True)
class Done:
    """What a process left behind, named as :mod:`subprocess` names it."""

    returncode: int
    stdout: str
    stderr: str


def run_warm(*words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, seconds: int = 300) -> Done:
    """``python WORDS`` with ``-m module``, ``-c code`` or a script; killed after some seconds."""
    server = _server()
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        order = {
            "words": [str(word) for word in words],
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
            "out": str(out),
            "err": str(err),
            "seconds": seconds,
        }
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return Done(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


@cache
def _server() -> subprocess.Popen[str]:
    """One for each process of the tests; it ends with that, when there is nobody left to write to it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(
        [sys.executable, "-P", str(SERVER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
    )
