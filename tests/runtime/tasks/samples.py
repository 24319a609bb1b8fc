"""Functions that workers run; they must stand at the top of a module."""

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np

from graphfcl import InputError, Tasks, run_tasks
from graphfcl.runtime.files import write_durably
from graphfcl.runtime.tasks import Workers


def square(number: int) -> int:
    return number * number


def slow_for_the_first(number: int) -> int:
    """The first item ends last."""
    time.sleep(0.4 if number == 0 else 0.0)
    return number


def write_product(folder: Path, killer: int | None, seed: int) -> str:
    """A task as they are: reads a file, computes, writes a file, returns its name.

    killer: the item whose worker kills itself in the middle of its file, the first time.
    """
    matrix = np.load(folder / "matrix.npy", allow_pickle=False)
    vectors = np.random.default_rng(seed).normal(size=(matrix.shape[1], 8)).astype(np.float32)
    content = (matrix @ vectors).tobytes()
    out, mark = folder / f"product-{seed}", folder / "killed"

    def write(file: BinaryIO) -> None:
        file.write(content[:100])
        if seed == killer and not mark.exists():
            mark.touch()
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        file.write(content[100:])

    write_durably(out, write)
    return out.name


def dies(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refuses(number: int) -> int:
    if number == 1:
        raise InputError(f"item {number} is bad: fix it.")
    return number


def has_a_fault(number: int) -> float:
    return 1 / (number - 1)


def where(_: int) -> tuple[int, str]:
    """Which process a task runs in, and in which folder."""
    return os.getpid(), os.getcwd()


def threads(_: int) -> set[int]:
    """How many threads libraries may start in a worker."""
    import torch
    from threadpoolctl import threadpool_info

    return {torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())}


def products(folder: Path, workers: Tasks | Workers, killer: int | None = None) -> dict[str, bytes]:
    """What six tasks leave in a folder; a worker of theirs is killed in the middle."""
    folder.mkdir()
    matrix = np.random.default_rng(0).normal(size=(300, 200)).astype(np.float32)
    np.save(folder / "matrix.npy", matrix, allow_pickle=False)
    actual = run_tasks(partial(write_product, folder, killer), range(6), workers)
    assert actual == [f"product-{seed}" for seed in range(6)]
    assert (folder / "killed").exists() == (killer is not None)
    return {name: (folder / name).read_bytes() for name in actual}
