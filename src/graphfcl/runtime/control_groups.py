"""The control groups of Linux that this process is in, by which containers and schedulers limit it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

CONTROL_GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def group_folders(controller: str) -> Iterator[Path]:
    """The groups of this process and those around them, in both forms; inside a container its own is the root.

    controller: cpu or memory.
    """
    yield from (CONTROL_GROUPS, CONTROL_GROUPS / controller)
    with suppress(OSError):
        for line in OWN_GROUPS.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers or controller in controllers.split(","):
                root = CONTROL_GROUPS / controller if controllers else CONTROL_GROUPS
                inner = root / group.strip("/")
                yield from (folder for folder in (inner, *inner.parents) if folder.is_relative_to(root))
