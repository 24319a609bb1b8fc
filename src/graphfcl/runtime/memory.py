"""Memory sizes as text, memory that this process uses, and memory that it may use."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from graphfcl.errors import InputError

UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
CONTROL_GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
STATUS = Path("/proc/self/statm")
UNKNOWN = 250 << 20  # assumed size of a process if the system does not report it


def parse_bytes(text: str, option: str) -> int:
    """Convert a text such as ``4GB`` to bytes. Units are binary; ``4 gb`` and ``4GiB`` mean the same."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(I?B)?\s*", text.upper())
    if match is None or not float(match[1]):
        raise InputError(f"{option} is {text!r}; write it as 4GB or 800MB.")
    return int(float(match[1]) * UNITS[f"{match[2]}B"])


def format_bytes(count: int) -> str:
    """Convert bytes to a text such as ``4GB``, rounded up to a tenth."""
    for unit in ("TB", "GB", "MB", "KB"):
        if count >= UNITS[unit]:
            tenths = -(-count * 10 // UNITS[unit])
            return f"{tenths / 10:g}{unit}"
    return f"{count}B"


def resident_bytes() -> int:
    """Return the memory of this process, or its peak if the system does not report the current size."""
    try:
        return int(STATUS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak_bytes() or UNKNOWN


def peak_bytes() -> int:
    """Return the peak memory of this process, or 0 if the system does not report it (Windows)."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


def usable_bytes() -> int | None:
    """Return the memory that this process may use: the minimum of the machine's and its control groups' limits.

    Return None if the system does not report its memory (Windows).
    """
    if not hasattr(os, "sysconf"):
        return None
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for folder in group_folders("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):  # control groups version 2 and 1
            with suppress(OSError, ValueError):  # no such group, or no limit: "max"
                limits.append(int((folder / name).read_text()))
    return min(limit for limit in limits if limit > 0)


@cache
def process_bytes() -> int:
    """Return the memory of a process that has imported torch and SciPy, measured in this process at the first call."""
    import scipy.sparse
    import torch

    _ = scipy.sparse, torch
    return resident_bytes()


def group_folders(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's Linux control groups and their parents, versions 1 and 2.

    ``controller`` is cpu or memory. In a container the own group is the root.
    """
    yield from (CONTROL_GROUPS, CONTROL_GROUPS / controller)
    with suppress(OSError):
        for line in OWN_GROUPS.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers or controller in controllers.split(","):
                root = CONTROL_GROUPS / controller if controllers else CONTROL_GROUPS
                inner = root / group.strip("/")
                yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(root))
