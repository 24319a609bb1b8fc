"""Run tasks on any engine, in order; a task whose worker died is tried again.

An engine is added by a file with a :class:`Backend` and one import line below.
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

# Every backend that is imported above, in the order of the lines.
BACKENDS: tuple[Backend, ...] = tuple(each for each in list(globals().values()) if isinstance(each, Backend))
ATTEMPTS = 3  # a task whose worker died so often is given up
LOOK_EVERY = 1.0  # seconds

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[int, int], None]
Lost = Callable[[int, WorkerLost], None]


def find_backend(name: str) -> Backend:
    """The backend of a name."""
    by_name = {each.name: each for each in BACKENDS}
    if name not in by_name:
        raise InputError(f"there is no backend {name!r}: {did_you_mean(name, list(by_name))}")
    return by_name[name]


@dataclass(frozen=True, eq=False)
class Workers:
    """Workers that were started, for several calls of :func:`run_tasks`."""

    tasks: Tasks
    engine: Engine


@contextmanager
def start_workers(tasks: Tasks) -> Iterator[Workers]:
    """Workers for several calls of :func:`run_tasks`, which then need not wait for them to start."""
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
    """``function`` of each item, in the order of the items.

    function: defined at the top of a module, or a ``functools.partial`` of such a function. It and the items are sent
        to other processes and machines, so items should be paths and numbers; large data goes through files.
    progress: called with the number of finished tasks and of all tasks, after each task and about once a second.
    lost: called when a worker died, with the number of its item and the reason; what it raises ends the run. By default
        a task is tried again until three of its workers have died.

    An error of a task ends the run: other tasks are stopped, and what they wrote stays.
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
    """Gives up a task when three of its workers have died."""

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
    """What a task returned; its error is raised here, with the worker's traceback for ``--debug``."""
    if outcome.error is None:
        return outcome.value
    if outcome.traceback:
        outcome.error.add_note(f"In the worker:\n{outcome.traceback}")
    raise outcome.error


def _refuse_inner(function: Callable[..., Any]) -> None:
    """Refuse functions that other processes cannot find by module and name, also when this process runs them."""
    while isinstance(function, partial):
        function = function.func
    if "<" in getattr(function, "__qualname__", ""):  # <locals>, <lambda>
        raise TypeError(f"{function.__qualname__} cannot travel to a worker: define it at the top of a module")
