"""Memory, workers and work folder for computations on a graph folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from graphfcl.errors import InputError
from graphfcl.runtime.memory import format_bytes, process_bytes
from graphfcl.runtime.tasks import Tasks, Workers, start_workers

PER_NODE = 40  # bytes per node that the evaluation of a stream needs for predictions and permutations of nodes
SLACK = 4 << 20  # bytes by which the size of a process may differ between two runs of the same command


@dataclass(frozen=True)
class Need:
    """Memory that a computation needs at one time.

    Args:
        size: Size in bytes.
        what: Name of the data in messages.
        here: Whether only the main process needs it. Otherwise every task does.
    """

    size: int
    what: str
    here: bool = False


@dataclass(frozen=True)
class Resources:
    """Memory, workers and work folder for computations on a :class:`GraphFolder`.

    Args:
        work: Folder for intermediate results, which later computations reuse.
        memory: Bytes for all processes on this machine together. If workers run on other machines: bytes for each
            worker.
        tasks: Where tasks run: settings, or running workers (:func:`start_workers`).

    Examples:
        >>> from pathlib import Path
        >>> from graphfcl import Resources, import_graph, load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> folder = import_graph(graph, "big").with_resources(Resources(Path("work"), memory=2 << 30))
        >>> make_stream(folder).base.visible_graph
        VisibleFolder(163 of 200 nodes)
    """

    work: Path
    memory: int
    tasks: Tasks | Workers = Tasks()  # noqa: RUF009  # it is frozen

    @property
    def workers(self) -> int:
        """Number of tasks that run at the same time."""
        return self._plan.workers

    @property
    def _plan(self) -> Tasks:
        return self.tasks.tasks if isinstance(self.tasks, Workers) else self.tasks

    @property
    def starts_workers(self) -> bool:
        """Whether each computation starts its own worker processes, because no workers are running yet."""
        return isinstance(self.tasks, Tasks) and self._has_processes

    @contextmanager
    def at_work(self) -> "Iterator[Resources]":
        """Return a context with the same resources and running workers, shared by all computations in it."""
        if isinstance(self.tasks, Workers):
            yield self
        else:
            with start_workers(self.tasks) as workers:
                yield replace(self, tasks=workers)

    def bytes_of_task(self, nodes: int) -> int:
        """Return the memory that one task may use for its data.

        Args:
            nodes: Number of nodes of the graph.

        Returns:
            Bytes; negative if the processes alone need more than the limit.
        """
        if not self._plan.on_this_machine:
            return self.memory - process_bytes()
        left = self.memory - self._process_bytes_here(nodes)
        return left // self.workers - process_bytes() if self._has_processes else left

    def needed_for(self, task: int, nodes: int) -> int:
        """Return the limit at which one task may use some memory, the reverse of :meth:`bytes_of_task`.

        Args:
            task: Bytes for the data of one task.
            nodes: Number of nodes of the graph.

        Returns:
            Bytes for :attr:`memory`.
        """
        if not self._plan.on_this_machine:
            return task + process_bytes()
        workers = self.workers * (task + process_bytes()) if self._has_processes else task
        return self._process_bytes_here(nodes) + workers

    def require(self, nodes: int, *needs: Need) -> None:
        """Check that the memory limit is large enough.

        Args:
            nodes: Number of nodes of the graph.
            *needs: Data that a computation keeps in memory, each alone.

        Raises:
            InputError: If the limit is too small. The message names a limit that is enough for all needs.
        """
        needed, largest = max(((self._needed(each, nodes), each) for each in needs), key=lambda pair: pair[0])
        if needed > self.memory:
            several = self._plan.on_this_machine and self.workers > 1
            in_workers = f"{largest.what} in each of {self.workers} workers" * (self.workers > 1 and not largest.here)
            enough = needed + SLACK * (1 + self.workers * (self._plan.on_this_machine and self._has_processes))
            raise InputError(
                f"--memory {format_bytes(self.memory)} is too small: {in_workers or largest.what} needs "
                f"{format_bytes(enough)}; give that much{', or fewer workers' * several}."
            )

    def _needed(self, need: Need, nodes: int) -> int:
        if not need.here:
            return self.needed_for(need.size, nodes)
        waiting = self.workers * process_bytes() if self._has_processes and self._plan.on_this_machine else 0
        return self._process_bytes_here(nodes) + waiting + need.size

    @property
    def _has_processes(self) -> bool:
        """Whether workers are separate processes. One local worker is this process itself."""
        return self.workers > 1 or self._plan.backend != "local"

    def _process_bytes_here(self, nodes: int) -> int:
        """Bytes that the main process needs in any case."""
        return process_bytes() + PER_NODE * nodes
