"""Commands in forks of one process that has the libraries: each begins at once, and may be killed at any moment.

As a program it is that process: a line asks for a command, and a line answers with its process and one with its code.
"""

import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

SAID = "said.txt"
LIBRARIES = [
    *("graphfcl.methods.anchor.learner", "graphfcl.production.model.calibrating", "graphfcl.production.model.fitting"),
    *("graphfcl.cli.model", "graphfcl.cli.run", "graphfcl.experiments", "matplotlib.pyplot", "pyarrow.parquet"),
]


class Forks:
    """Runs one command at a time, in a folder."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def finish(self, root: Path, words: Sequence[str]) -> None:
        self._start(root, words)
        code = self._line()
        assert code == 0, (root / SAID).read_text()

    def killed(self, root: Path, words: Sequence[str], seconds: float) -> bool:
        """Start a command and kill it after so many seconds, unless it is done by then."""
        process = self._start(root, words)
        assert self._process.stdout is not None
        done, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not done:
            os.killpg(process, signal.SIGKILL)
        code = self._line()
        assert code in (0, -signal.SIGKILL), (root / SAID).read_text()
        return code != 0

    def close(self) -> None:
        self._process.communicate()

    def _start(self, root: Path, words: Sequence[str]) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(root), list(words)]) + "\n")
        return self._line()

    def _line(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


def _run(root: str, words: list[str]) -> int:
    from graphfcl.cli import main

    os.chdir(root)
    messages = os.open(SAID, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(messages, 1)
    os.dup2(messages, 2)
    sys.argv = ["graphfcl", *words]
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _serve() -> None:
    for name in LIBRARIES:
        import_module(name)
    # A kill loses nothing that was handed to the system, and flushing takes most of the time of small graphs.
    os.fsync = lambda fd: None  # noqa: ARG005
    for line in sys.stdin:
        root, words = json.loads(line)
        process = os.fork()
        if process == 0:
            os._exit(_run(root, words))
        os.setpgid(process, process)
        print(process, flush=True)
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _serve()
