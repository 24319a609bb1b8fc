"""Functions that workers run; they must stand at the top of a module."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from graphfcl.errors import InputError
from graphfcl.files import write_bytes


def square(number: int) -> int:
    return number * number


def slow_for_the_first(number: int) -> int:
    """The first item ends last."""
    time.sleep(0.4 if number == 0 else 0.0)
    return os.getpid()


def write_product(folder: Path, seed: int) -> str:
    """A task as they are: reads a file, computes with BLAS, writes a file; returns its name."""
    matrix = np.load(folder / "matrix.npy", allow_pickle=False)
    vectors = np.random.default_rng(seed).normal(size=(matrix.shape[1], 8)).astype(np.float32)
    write_bytes(folder / f"product-{seed}", (matrix @ vectors).tobytes())
    return f"product-{seed}"


def dies_once(folder: Path, number: int) -> int:
    """The worker of the second item kills itself, the first time."""
    mark = folder / "died"
    if number == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / f"ran-{number}-{time.monotonic_ns()}").touch()
    return number


def dies(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def refuses(number: int) -> int:
    if number == 1:
        raise InputError(f"item {number} is bad: mend it.")
    return number


def has_a_fault(number: int) -> float:
    return 1 / (number - 1)
