"""Run tasks in processes of this machine, or in this process if there is one worker."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection, wait
from typing import Any

from graphfcl.runtime.cores import limited_threads, usable_cores
from graphfcl.runtime.tasks.contract import Backend, Engine, Order, Outcome, Tasks, WorkerLost
from graphfcl.runtime.tasks.worker import call, carry_out, unreadable

SECONDS_TO_END = 5
PRELOADED = ("graphfcl.methods", "graphfcl.experiments", "pyarrow.parquet", "scipy.sparse", "torch")  # for forkserver


class ThisProcess:
    """Engine with one worker, this process. ``submit`` runs the task, and the outcome serves as the handle."""

    def __init__(self, threads: int | None) -> None:
        self.threads = threads
        self.stack = ExitStack()
        if threads is not None:
            self.stack.enter_context(limited_threads(threads))

    def submit(self, order: Order) -> Outcome:
        return call(order)

    def wait(self, running: Sequence[Outcome], seconds: float) -> Sequence[Outcome]:  # noqa: ARG002
        return running

    def outcome(self, handle: Outcome) -> Outcome:
        return handle

    def cancel(self, running: Sequence[Outcome]) -> None:
        """Do nothing: all tasks have ended."""

    def close(self) -> None:
        self.stack.close()


class _Worker:
    """A process that receives orders through a pipe, one at a time."""

    def __init__(self, context: Any) -> None:
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def stop(self) -> None:
        self.process.terminate()
        self.process.join(SECONDS_TO_END)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.connection.close()


class Processes:
    """Engine with processes of this machine. If a task kills its process, the others continue."""

    def __init__(self, threads: int, start_method: str = "spawn") -> None:
        self.threads: int | None = threads
        self.context: Any = multiprocessing.get_context(start_method)
        if start_method == "forkserver":
            self.context.set_forkserver_preload(list(PRELOADED))
        self.idle: list[_Worker] = []
        self.busy: list[_Worker] = []

    def submit(self, order: Order) -> _Worker:
        worker = self.idle.pop() if self.idle else _Worker(self.context)
        self.busy.append(worker)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # a dead worker is noticed by wait()
            worker.connection.send(order)
        return worker

    def wait(self, running: Sequence[_Worker], seconds: float) -> Sequence[_Worker]:
        ready = set(wait([each for one in running for each in (one.connection, one.process.sentinel)], seconds))
        return [one for one in running if {one.connection, one.process.sentinel} & ready]

    def outcome(self, handle: _Worker) -> Outcome:
        self.busy.remove(handle)
        try:
            if handle.connection.poll():
                outcome = handle.connection.recv()
                self.idle.append(handle)
                return outcome
        except (EOFError, ConnectionResetError):
            pass
        handle.stop()
        code = handle.process.exitcode or 0
        raise WorkerLost(f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}")

    def cancel(self, running: Sequence[_Worker]) -> None:
        for worker in running:
            self.busy.remove(worker)
            worker.stop()

    def close(self) -> None:
        for worker in (*self.idle, *self.busy):
            worker.stop()
        self.idle, self.busy = [], []


def _serve(connection: Connection) -> None:
    """Run a worker: receive orders and send outcomes until the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides when to stop
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a forked process inherits the handler of its parent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            order = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        except Exception as error:  # a module that cannot be imported here
            outcome = unreadable(error)
        else:
            outcome = carry_out(order)
        connection.send(outcome)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _start(tasks: Tasks) -> Engine:
    if tasks.workers == 1 and tasks.start_method is None:
        return ThisProcess(tasks.threads)
    return Processes(share_of_cores(tasks), tasks.start_method or "spawn")


def share_of_cores(tasks: Tasks) -> int:
    """Return the number of threads of each worker on this machine."""
    return tasks.threads or max(1, usable_cores() // tasks.workers)


LOCAL = Backend("local", "processes of this machine", _start)
