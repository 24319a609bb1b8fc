"""Settings of tasks, and the interface of engines, which run independent tasks in other processes."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from graphfcl.errors import GraphfclError, InputError, did_you_mean

START_METHODS = ("spawn", "forkserver", "fork")


@dataclass(frozen=True)
class Tasks:
    """Where and how independent tasks run.

    Args:
        backend: ``local`` (processes on this machine), ``ray`` or ``submitit`` (Slurm).
        workers: Number of tasks that run at the same time. One local worker is this process itself, unless
            ``start_method`` is set.
        threads: Threads that torch, BLAS and OpenMP may each start in a worker. None divides the cores among workers.
        gpus: GPUs of each worker on Ray or Slurm. On Ray, a fraction lets workers share a GPU.
        ray_address: Address of a running Ray cluster, or ``auto`` for the cluster of this machine. None starts Ray on
            this machine.
        submitit_options: Parameters of submitit (``slurm_partition``, ``timeout_min``, ``mem_gb``, …), and ``cluster``,
            ``slurm`` or ``local``. The default of ``cluster`` is ``slurm`` if this machine has Slurm.
        folder: Folder for tasks and logs of submitit, which every machine must see. None takes a temporary folder, but
            only on the cluster ``local``.
        start_method: How local processes start: ``spawn``, ``forkserver`` or ``fork``. None means ``spawn`` for
            several workers, and no other process for one worker.

    Raises:
        InputError: If a number is below 1, or an option belongs to another backend.

    Examples:
        >>> from graphfcl import Tasks, run_tasks
        >>> run_tasks(abs, [-1, 2, -3], Tasks(workers=1))
        [1, 2, 3]
    """

    backend: str = "local"
    workers: int = 1
    threads: int | None = None
    gpus: float = 0
    ray_address: str | None = None
    submitit_options: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    start_method: str | None = None

    @property
    def on_this_machine(self) -> bool:
        """Whether the workers are processes of this machine and share its memory."""
        if self.backend == "submitit":
            return self.submitit_options.get("cluster", "slurm" if shutil.which("srun") else "local") == "local"
        return self.backend == "local" or (self.backend == "ray" and self.ray_address is None)

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"tasks cannot run on {self.workers} workers: give at least 1.")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"a worker cannot work with {self.threads} threads: give it at least 1.")
        if self.start_method is not None and self.start_method not in START_METHODS:
            hint = did_you_mean(self.start_method, START_METHODS)
            raise InputError(f"processes cannot be started with {self.start_method!r}: {hint}")
        if self.ray_address is not None and self.backend != "ray":
            raise InputError(
                f"an address of Ray is of no use to the backend {self.backend}: take ray, or leave it out."
            )
        if self.submitit_options and self.backend != "submitit":
            raise InputError(
                f"options of submitit are of no use to the backend {self.backend}: take submitit, or leave them out."
            )


@dataclass(frozen=True)
class Package:
    """The graphfcl that a process runs: its version and a digest of its files."""

    version: str
    digest: str


@dataclass(frozen=True)
class Order:
    """A task as it is sent to a worker.

    Args:
        function: Function to call.
        item: Its argument.
        package: The graphfcl that the worker must have.
        threads: Threads that libraries may start. None means as many as there are cores.
        folder: Working folder, from which relative paths start.
    """

    function: Callable[[Any], Any]
    item: Any
    package: Package
    threads: int | None
    folder: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a task, or its error and the traceback of the worker."""

    value: Any = None
    error: GraphfclError | None = None
    traceback: str = ""


class TaskError(GraphfclError):
    """A task raised an unexpected exception (exit code 1)."""


class WorkerLost(Exception):
    """A worker died or was taken away before its task ended. The message gives the known reason."""


class Engine(Protocol):
    """Running workers. A handle identifies a submitted order; it is hashable.

    Attributes:
        threads: Threads of each worker, as in :class:`Order`.
    """

    threads: int | None

    def submit(self, order: Order) -> Any:
        """Start a task and return its handle. Callers never submit more tasks than there are workers."""

    def wait(self, running: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Wait until a task ends, at most ``seconds``, and return the handles of tasks that have ended."""

    def outcome(self, handle: Any) -> Outcome:
        """Return the outcome of a task that has ended; raises :class:`WorkerLost` if its worker died."""

    def cancel(self, running: Sequence[Any]) -> None:
        """Stop tasks, whose outcomes are not needed any more."""

    def close(self) -> None:
        """Stop the workers and release their resources."""


@dataclass(frozen=True)
class Backend:
    """A kind of engine: its name, a description in one line, and the function that starts workers."""

    name: str
    what: str
    start: Callable[[Tasks], Engine]
