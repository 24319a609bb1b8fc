"""The contract of engines, which run independent tasks in other processes and return their outcomes."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from graphfcl.errors import GraphfclError, InputError, did_you_mean

START_METHODS = ("spawn", "forkserver", "fork")


@dataclass(frozen=True)
class Tasks:
    """Where independent tasks run.

    backend: local (processes of this machine), ray or submitit.
    workers: tasks at a time. One local worker is this process itself, unless a start method is given.
    threads: how many torch, BLAS and OpenMP may each start in a worker; None: its share of the cores.
    gpus: GPUs of each worker elsewhere; on Ray a part of one lets workers share it.
    ray_address: of a Ray that is running, ``auto`` for the one of this node; None starts one on this machine.
    submitit_options: parameters of submitit by their names (``slurm_partition``, ``timeout_min``, ``mem_gb``, …), and
        ``cluster``: slurm or local; where it is not given, Slurm if this machine has it.
    folder: where submitit keeps tasks and logs while they run; every node must see it. None: a temporary folder, for
        the cluster ``local`` alone.
    start_method: how processes of this machine are started: spawn, forkserver or fork. None: spawn, and none for one
        worker.
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
        """Whether the workers are processes of this machine, which share its memory with each other."""
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
    """Which graphfcl a process has: its version, and a digest of its files."""

    version: str
    digest: str


@dataclass(frozen=True)
class Order:
    """A task on its way to a worker.

    package: the one that the worker must have. threads: how many its libraries may start; None: as many as its cores.
    folder: the one that relative paths start from.
    """

    function: Callable[[Any], Any]
    item: Any
    package: Package
    threads: int | None
    folder: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a task returned, or why it failed. traceback: the worker's, for debugging."""

    value: Any = None
    error: GraphfclError | None = None
    traceback: str = ""


class TaskError(GraphfclError):
    """A task failed by a fault of its code (exit code 1)."""


class WorkerLost(Exception):
    """A worker died, or was taken away, before its task was done. The message says what is known."""


class Engine(Protocol):
    """Workers that are at hand. A handle stands for one order; it can be the key of a dictionary.

    threads: of each worker, as in :class:`Order`.
    """

    threads: int | None

    def submit(self, order: Order) -> Any:
        """Start a task; never more at a time than there are workers."""

    def wait(self, running: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Handles whose tasks have ended, as soon as there are some, and after ``seconds`` at the latest."""

    def outcome(self, handle: Any) -> Outcome:
        """What became of a task that has ended; raises :class:`WorkerLost`."""

    def cancel(self, running: Sequence[Any]) -> None:
        """Stop tasks; their outcomes are not requested any more."""

    def close(self) -> None:
        """Give the workers back."""


@dataclass(frozen=True)
class Backend:
    """A kind of engine: its name, one line about it, and how workers are started."""

    name: str
    what: str
    start: Callable[[Tasks], Engine]
