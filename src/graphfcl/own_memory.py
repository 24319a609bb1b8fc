"""How much memory this process has."""

import os
import resource
import sys
from functools import cache
from pathlib import Path

STATUS = Path("/proc/self/statm")


def resident_bytes() -> int:
    """What this process holds of the machine's memory; where the system does not say it, the most it has held."""
    try:
        return int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak << 10


@cache
def process_bytes() -> int:
    """What a process holds that has the libraries of a computation, measured in this one when it is first asked for."""
    import scipy.sparse
    import torch

    _ = scipy.sparse, torch
    return resident_bytes()
