"""Memory, workers and the work folder that a computation on a graph folder may use."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from graphfcl.errors import InputError
from graphfcl.runtime.memory import format_bytes, process_bytes
from graphfcl.runtime.tasks import Tasks, Workers, start_workers

PER_NODE = 40  # bytes a node that the evaluation of a stream adds: answers, and nodes in other orders
SLACK = 4 << 20  # bytes by which a process may be larger when the same command is given again


@dataclass(frozen=True)
class Need:
    """What is held in memory at a time.

    held: bytes. what: the words for it. here: by the process that hands out the tasks, not by every task.
    """

    held: int
    what: str
    here: bool = False


@dataclass(frozen=True)
class Resources:
    """What may be used to compute on a graph folder.

    work: the folder of slices and blocks. memory: bytes of all processes of this machine together; of each worker if
    workers run elsewhere. tasks: where tasks run, or workers that run already (:meth:`at_work`).
    """

    work: Path
    memory: int
    tasks: Tasks | Workers = Tasks()  # noqa: RUF009  # it is frozen

    @property
    def workers(self) -> int:
        """Tasks at a time."""
        return self._plan.workers

    @property
    def _plan(self) -> Tasks:
        return self.tasks.tasks if isinstance(self.tasks, Workers) else self.tasks

    @property
    def starts_workers(self) -> bool:
        """Whether every phase starts workers of its own: they are not running, and tasks do not run in this process."""
        return isinstance(self.tasks, Tasks) and self._has_processes

    @contextmanager
    def at_work(self) -> "Iterator[Resources]":
        """The same with workers that are started once, for all that is computed inside."""
        if isinstance(self.tasks, Workers):
            yield self
        else:
            with start_workers(self.tasks) as workers:
                yield replace(self, tasks=workers)

    def bytes_of_task(self, nodes: int) -> int:
        """What one task may take, on a graph of so many nodes; below 0 if processes alone take more than there is."""
        if not self._plan.on_this_machine:
            return self.memory - process_bytes()
        left = self.memory - self._around(nodes)
        return left // self.workers - process_bytes() if self._has_processes else left

    def needed_for(self, task: int, nodes: int) -> int:
        """The memory with which one task may take so many bytes."""
        if not self._plan.on_this_machine:
            return task + process_bytes()
        return self._around(nodes) + (self.workers * (task + process_bytes()) if self._has_processes else task)

    def require(self, nodes: int, *needs: Need) -> None:
        """Refuse a limit with which one of these cannot be held; the limit that is named is enough for all of them."""
        needed, largest = max(((self._needed(each, nodes), each) for each in needs), key=lambda pair: pair[0])
        if needed > self.memory:
            several = self._plan.on_this_machine and self.workers > 1
            held = f"{largest.what} in each of {self.workers} workers" * (self.workers > 1 and not largest.here)
            enough = needed + SLACK * (1 + self.workers * (self._plan.on_this_machine and self._has_processes))
            raise InputError(
                f"--memory {format_bytes(self.memory)} is too small: {held or largest.what} needs "
                f"{format_bytes(enough)}; give that much{', or fewer workers' * several}."
            )

    def _needed(self, need: Need, nodes: int) -> int:
        if not need.here:
            return self.needed_for(need.held, nodes)
        waiting = self.workers * process_bytes() if self._has_processes and self._plan.on_this_machine else 0
        return self._around(nodes) + waiting + need.held

    @property
    def _has_processes(self) -> bool:
        """Whether workers are other processes: one local worker is this process itself."""
        return self.workers > 1 or self._plan.backend != "local"

    def _around(self, nodes: int) -> int:
        """What the process that hands out the tasks holds anyway."""
        return process_bytes() + PER_NODE * nodes
