"""Number of cores that this process may use, and of threads that its libraries start."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from graphfcl.runtime.memory import group_folders

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # the first is the default of the others


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1.

    This is the minimum of CPU affinity, Slurm's cores per task and the quota of its control groups, rounded down.
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([bound, *_slurm_cores(), *_quotas()]))


def limit_threads(threads: int) -> None:
    """Let torch, BLAS and OpenMP start at most ``threads`` threads each in this process.

    A library keeps a lower limit from the environment.
    """
    for name in VARIABLES:  # for libraries that are loaded later
        allowed = os.environ.get(name, "" if name == VARIABLES[0] else "1")
        if not (allowed.isdigit() and 0 < int(allowed) <= threads):
            os.environ[name] = str(threads)
    _load_blas()
    import torch
    from threadpoolctl import ThreadpoolController

    torch.set_num_threads(min(threads, torch.get_num_threads()))
    with suppress(RuntimeError):  # torch has started these threads already
        torch.set_num_interop_threads(min(threads, torch.get_num_interop_threads()))
    for library in ThreadpoolController().lib_controllers:
        if (library.num_threads or 0) > threads:
            library.set_num_threads(threads)


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Limit threads as :func:`limit_threads` does until the context ends.

    Torch's inter-operator threads are not limited, because they can be set only once.
    """
    _load_blas()
    import torch
    from threadpoolctl import threadpool_info, threadpool_limits

    before = torch.get_num_threads()
    fewer = {pool["prefix"]: min(threads, pool["num_threads"]) for pool in threadpool_info()}
    torch.set_num_threads(min(threads, before))
    try:
        with threadpool_limits(fewer):
            yield
    finally:
        torch.set_num_threads(before)


def _load_blas() -> None:
    """Load the BLAS libraries of NumPy and of SciPy, which must be loaded before they can be limited."""
    import numpy
    import scipy.linalg

    _ = numpy, scipy.linalg


def _slurm_cores() -> Iterator[int]:
    with suppress(ValueError):
        cores = int(os.environ.get("SLURM_CPUS_PER_TASK", ""))
        if cores > 0:
            yield cores


def _quotas() -> Iterator[int]:
    """Yield the number of whole cores that each control group of this process allows (versions 2 and 1)."""
    for folder in group_folders("cpu"):
        with suppress(OSError, ValueError):  # no such group, or no quota: "max"
            quota, period = (int(word) for word in (folder / "cpu.max").read_text().split())
            yield quota // period
        with suppress(OSError, ValueError):
            quota = int((folder / "cpu.cfs_quota_us").read_text())
            period = int((folder / "cpu.cfs_period_us").read_text())
            if quota > 0:  # -1: no quota
                yield quota // period
