"""Run tasks on Ray: on a running cluster, or on one that is started on this machine and ends with this process.

Only orders and outcomes pass through Ray, so its object store is small. Ray's own retries are off, because
:func:`graphfcl.runtime.tasks.run_tasks` counts how often the workers of a task died.
"""

import os
import socket
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from graphfcl.errors import InputError, in_one_line
from graphfcl.runtime.cores import usable_cores
from graphfcl.runtime.lazy_names import import_extra
from graphfcl.runtime.tasks.contract import Backend, Order, Outcome, Tasks, WorkerLost
from graphfcl.runtime.tasks.worker import carry_out, changed_variable, search_path, unreadable

OBJECT_STORE = 100_000_000  # bytes; Ray needs at least 75 MB
SECONDS_TO_CONNECT = 5.0
TRIES_TO_CONNECT = "1"  # Ray's default is 20 attempts of 40 seconds each


class RayEngine:
    """Engine that runs tasks as remote functions of Ray."""

    def __init__(self, tasks: Tasks) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # Ray leaves CUDA_VISIBLE_DEVICES as it is
        self.started_here = False
        self.ray = _import_ray(tasks.ray_address)
        if not self.ray.is_initialized():
            self._connect(tasks)
            self.started_here = True
        try:
            self.threads: int | None = _threads(tasks, self._cores_of_nodes())
        except InputError:
            self.close()
            raise
        remote = self.ray.remote(max_retries=0, num_cpus=self.threads, num_gpus=tasks.gpus)
        self.carry_out = remote(carry_out)

    def _connect(self, tasks: Tasks) -> None:
        """Connect to a running Ray cluster, or start one on this machine with as many cores as the tasks need."""
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        if tasks.ray_address is not None:
            _refuse_closed_port(tasks.ray_address)
            try:
                self.ray.init(address=tasks.ray_address, **quiet)
            except Exception as error:  # Ray raises many types of errors
                raise _unreachable(tasks.ray_address, in_one_line(error)) from error
            return
        cores = max(usable_cores(), tasks.workers * (tasks.threads or 1))
        environment = {"env_vars": {"PYTHONPATH": search_path()}}
        try:
            self.ray.init(
                address="local",
                num_cpus=cores,
                object_store_memory=OBJECT_STORE,
                include_dashboard=False,
                runtime_env=environment,
                **quiet,
            )
        except Exception as error:
            raise InputError(
                f"Ray could not be started on this machine ({in_one_line(error)}): free memory and space under /tmp, "
                "or take the backend local."
            ) from error

    def _cores_of_nodes(self) -> list[int]:
        return [int(node["Resources"].get("CPU", 0)) for node in self.ray.nodes() if node["Alive"]]

    def submit(self, order: Order) -> Any:
        return self.carry_out.remote(order)

    def wait(self, running: Sequence[Any], seconds: float) -> Sequence[Any]:
        return self.ray.wait(list(running), num_returns=len(running) and 1, timeout=seconds)[0]

    def outcome(self, handle: Any) -> Outcome:
        errors = import_module("ray.exceptions")
        try:
            return self.ray.get(handle)
        except errors.RayTaskError as error:  # carry_out never raises, so the worker could not read its order
            return unreadable(getattr(error, "cause", None) or error)
        except errors.RayError as error:
            raise WorkerLost(in_one_line(error)) from error

    def cancel(self, running: Sequence[Any]) -> None:
        for handle in running:
            self.ray.cancel(handle, force=True)

    def close(self) -> None:
        if self.started_here:
            self.ray.shutdown()


def _import_ray(address: str | None) -> Any:
    name = "RAY_NUM_REDIS_GET_RETRIES"
    if address is None or name in os.environ:
        return import_extra("ray", "ray", "the backend ray")
    with changed_variable(name, TRIES_TO_CONNECT):  # Ray reads the variable when it is imported
        return import_extra("ray", "ray", "the backend ray")


def _threads(tasks: Tasks, nodes: list[int]) -> int:
    """Return the cores of each worker: the requested number, which a node must have, or an equal share."""
    most = max(nodes, default=0)
    if tasks.threads is not None:
        if tasks.threads > most:
            raise InputError(
                f"no node of Ray has {tasks.threads} cores for a worker, the largest has {most}: ask for fewer threads."
            )
        return tasks.threads
    if most < 1:
        raise InputError("this Ray has no node with a core for workers: start one with `ray start`.")
    return max(1, min(most, sum(nodes) // tasks.workers))


def _refuse_closed_port(address: str) -> None:
    """Raise an InputError if no process listens at an address; Ray itself would wait for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # "auto", or an address that Ray refuses at once
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, getattr(error, "strerror", None) or str(error)) from error


def _unreachable(address: str, why: str) -> InputError:
    return InputError(
        f"there is no Ray at {address} ({why}): start one with `ray start --head`, give the address that it prints, or "
        "leave the address out to start one here."
    )


RAY = Backend("ray", "a Ray cluster, or one that is started on this machine", RayEngine)
