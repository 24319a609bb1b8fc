"""The process that ``tests/warm.py`` forks from: one order per line comes in, one exit code per line goes out."""

import atexit
import gc
import json
import multiprocessing.process
import os
import runpy
import signal
import sys
import threading
import traceback
from importlib import import_module
from typing import Any

PRELOADED = (
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "pyarrow.csv",
    "pyarrow.parquet",
    "rich.progress",
    "safetensors.torch",
    "scipy.sparse",
    "scipy.stats",
    "torch",
    "typer.rich_utils",
)


def serve() -> dict[str, Any] | None:
    """Fork for every order; comes back with it in the new process, and without one when there are no more."""
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        child = os.fork()
        if not child:
            return order
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


def become(order: dict[str, Any]) -> None:
    """Be the process that was asked for: its files, folder, environment and path of imports."""
    for target, (path, flags) in enumerate(
        [(os.devnull, os.O_RDONLY), (order["out"], os.O_WRONLY | os.O_CREAT), (order["err"], os.O_WRONLY | os.O_CREAT)]
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, target)
        os.close(opened)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    multiprocessing.process.ORIGINAL_DIR = order["cwd"]  # type: ignore[attr-defined]  # from where processes start
    script = os.path.dirname(os.path.abspath(order["words"][0]))
    first = "" if order["words"][0] == "-c" else order["cwd"] if order["words"][0] == "-m" else script
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [first, *(path for path in named if path)]
    signal.alarm(order["seconds"])


def work(words: list[str]) -> None:
    if words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(words[1], {"__name__": "__main__"})
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


def exit_code(words: list[str]) -> int:
    """Work as a main program does; what it raises ends as the interpreter would end it."""
    try:
        work(words)
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def leave(code: int) -> None:
    """End without taking thousands of modules apart, which would take a second."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in PRELOADED:
        import_module(name)
    gc.freeze()  # so that no collection in a forked process touches, and so copies, what is here
    asked = serve()
    if asked is not None:
        become(asked)
        leave(exit_code(asked["words"]))
