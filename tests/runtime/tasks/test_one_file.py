"""A backend is added by one file and one line: tried on a copy of the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import graphfcl

BACKEND = '''"""Tasks that run when somebody waits for them."""

from graphfcl.runtime.tasks.contract import Backend, Outcome
from graphfcl.runtime.tasks.worker import call


class Later:
    threads = None

    def submit(self, order): return order
    def wait(self, running, seconds): return running[:1]
    def outcome(self, handle): return Outcome(["later", call(handle).value])
    def cancel(self, running): pass
    def close(self): print("closed")


LATER = Backend("later", "tasks that run when somebody waits", lambda tasks: Later())
'''
USE = "from graphfcl.runtime.tasks import Tasks, run_tasks; print(run_tasks(abs, [-1, 2], Tasks('later', workers=2)))"


def test_a_backend_of_one_file_and_one_line(tmp_path: Path) -> None:
    package = tmp_path / "graphfcl"
    shutil.copytree(Path(graphfcl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "runtime" / "tasks" / "later.py").write_text(BACKEND)
    listed = package / "runtime" / "tasks" / "running.py"
    first, line, rest = listed.read_text().partition("from graphfcl.runtime.tasks.local import LOCAL\n")
    listed.write_text(f"{first}from graphfcl.runtime.tasks.later import LATER\n{line}{rest}")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", USE], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "closed\n[['later', 1], ['later', 2]]\n"
