"""Run tasks on an engine and return results in order. A task whose worker died is tried again.

To add an engine, write a file with a :class:`Backend` and add one import line below.
"""
# ruff: noqa: F401

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from graphfcl.errors import InputError, did_you_mean
from graphfcl.runtime.tasks.contract import Backend, Engine, Order, Outcome, Tasks, WorkerLost
from graphfcl.runtime.tasks.local import LOCAL
from graphfcl.runtime.tasks.ray_backend import RAY
from graphfcl.runtime.tasks.submitit_backend import SUBMITIT
from graphfcl.runtime.tasks.worker import own_package

# Every backend that is imported above, in the order of the imports.
BACKENDS: tuple[Backend, ...] = tuple(each for each in list(globals().values()) if isinstance(each, Backend))
ATTEMPTS = 3  # a task ends the run when this many of its workers have died
LOOK_EVERY = 1.0  # seconds between two progress reports

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
Lost = Callable[[int, WorkerLost], None]


def find_backend(name: str) -> Backend:
    """Return the backend with this name."""
    by_name = {each.name: each for each in BACKENDS}
    if name not in by_name:
        raise InputError(f"there is no backend {name!r}: {did_you_mean(name, list(by_name))}")
    return by_name[name]


@dataclass(frozen=True, eq=False)
class Workers:
    """Running workers and their settings, for several calls of :func:`run_tasks`."""

    tasks: Tasks
    engine: Engine


@contextmanager
def start_workers(tasks: Tasks) -> Iterator[Workers]:
    """Start workers once for several calls of :func:`run_tasks`.

    Use it in a ``with`` statement; the workers stop at its end.

    Args:
        tasks: Where and how tasks run.

    Returns:
        Context manager with the running workers.

    Raises:
        InputError: If the backend is unknown, not installed or cannot start workers.

    Examples:
        >>> from graphfcl import Tasks, run_tasks, start_workers
        >>> with start_workers(Tasks(workers=1)) as workers:
        ...     print(run_tasks(abs, [-1, 2], workers), run_tasks(len, ["abc"], workers))
        [1, 2] [3]
    """
    engine = find_backend(tasks.backend).start(tasks)
    try:
        yield Workers(tasks, engine)
    finally:
        engine.close()


def run_tasks(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    tasks: Tasks | Workers = Tasks(),  # noqa: B008  # it is frozen
    *,
    progress: Progress | None = None,
    lost: Lost | None = None,
) -> list[Result]:
    """Call a function on each item in worker processes.

    The first error ends the run: other tasks are stopped, and files that they wrote stay.

    Args:
        function: Function defined at the top level of a module, or a ``functools.partial`` of one.
        items: Arguments, one for each call. They are pickled and may be sent to other machines, so pass paths and
            numbers, and large data through files.
        tasks: Where and how tasks run, or running workers (:func:`start_workers`). Default: one after the other in
            this process.
        progress: Called with the number of finished tasks and the number of all tasks, after each task and about once
            per second.
        lost: Called when a worker died, with the index of its item and the :class:`WorkerLost` error. If it raises,
            the run ends. By default a task is tried again until three of its workers have died.

    Returns:
        Results in the order of the items.

    Raises:
        InputError: If workers cannot start, or three workers died in the same task.
        TypeError: If the function is a lambda or defined inside another function.
        TaskError: If the function raised an unexpected exception. Errors of graphfcl are raised as they are.

    Examples:
        >>> from graphfcl import run_tasks
        >>> run_tasks(len, ["one", "three"])
        [3, 5]
    """
    _refuse_inner(function)
    if not items:
        return []
    if isinstance(tasks, Workers):
        return _run(function, items, tasks, progress, lost or _Patience(tasks.tasks))
    with start_workers(replace(tasks, workers=min(tasks.workers, len(items)))) as workers:
        return _run(function, items, workers, progress, lost or _Patience(tasks))


def _run(
    function: Callable[[Any], Any], items: Sequence[Any], workers: Workers, progress: Progress | None, lost: Lost
) -> list[Any]:
    engine, waiting = workers.engine, deque(range(len(items)))
    running: dict[Any, int] = {}
    results: dict[int, Any] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers.tasks.workers:
                index = waiting.popleft()
                order = Order(function, items[index], own_package(), engine.threads, os.getcwd())
                running[engine.submit(order)] = index
            for handle in engine.wait(list(running), LOOK_EVERY):
                index = running.pop(handle)
                try:
                    results[index] = _value(engine.outcome(handle))
                except WorkerLost as error:
                    lost(index, error)
                    waiting.appendleft(index)
            if progress is not None:
                progress(len(results), len(items))
    finally:
        engine.cancel(list(running))
    return [results[index] for index in range(len(items))]


class _Patience:
    """Ends the run when three workers have died in the same task."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks, self.deaths = tasks, Counter[int]()

    def __call__(self, index: int, error: WorkerLost) -> None:
        self.deaths[index] += 1
        if self.deaths[index] >= ATTEMPTS:
            raise InputError(
                f"{ATTEMPTS} workers of the backend {self.tasks.backend} died in the same task, the last one by this: "
                f"{str(error).rstrip('.')}; give workers more memory or start fewer of them; finished "
                "tasks stay finished."
            ) from error


def _value(outcome: Outcome) -> Any:
    """Return the result of a task, or raise its error with the worker's traceback as a note for ``--debug``."""
    if outcome.error is None:
        return outcome.value
    if outcome.traceback:
        outcome.error.add_note(f"In the worker:\n{outcome.traceback}")
    raise outcome.error


def _refuse_inner(function: Callable[..., Any]) -> None:
    """Raise a TypeError for functions that cannot be pickled by name, even if they would run in this process."""
    while isinstance(function, partial):
        function = function.func
    if "<" in getattr(function, "__qualname__", ""):  # <locals>, <lambda>
        raise TypeError(f"{function.__qualname__} cannot be sent to a worker: define it at the top level of a module")
