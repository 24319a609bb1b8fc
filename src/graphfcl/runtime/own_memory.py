"""How much memory this process has."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from graphfcl.runtime.control_groups import group_folders

STATUS = Path("/proc/self/statm")
UNKNOWN = 250 << 20  # what such a process holds elsewhere, where the system does not say it


def resident_bytes() -> int:
    """What this process holds of the machine's memory; where the system does not say it, the most it has held."""
    try:
        return int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak_bytes() or UNKNOWN


def peak_bytes() -> int:
    """The most memory this process has held; 0 where the system does not say it (Windows)."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def usable_bytes() -> int | None:
    """The memory that this process may use: the machine's, within the limits of its control groups.

    None where the system does not say how much there is (Windows).
    """
    if not hasattr(os, "sysconf"):
        return None
    return min([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *_limits()])


def _limits() -> Iterator[int]:
    """What the control groups of this process allow, in both forms that Linux has."""
    for folder in group_folders("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            with suppress(OSError, ValueError):  # no such group, or no limit: "max"
                limit = int((folder / name).read_text())
                if limit > 0:
                    yield limit


@cache
def process_bytes() -> int:
    """What a process holds that has the libraries of a computation, measured in this one when it is first asked for."""
    import scipy.sparse
    import torch

    _ = scipy.sparse, torch
    return resident_bytes()
