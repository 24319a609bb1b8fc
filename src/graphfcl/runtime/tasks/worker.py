"""What every worker does with an order, and what engines from other packages share."""

import os
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

from graphfcl.errors import GraphfclError, InputError, in_one_line
from graphfcl.runtime.cores import limit_threads, usable_cores
from graphfcl.runtime.source_code import package_digest
from graphfcl.runtime.tasks.contract import Order, Outcome, Package, TaskError
from graphfcl.version import __version__


@cache
def own_package() -> Package:
    """The graphfcl of this process."""
    return Package(__version__, package_digest())


def carry_out(order: Order) -> Outcome:
    """Run a task in a worker that has the right package, with its share of the cores."""
    mismatch = _mismatch(order.package, own_package())
    if mismatch:
        return Outcome(error=InputError(mismatch))
    with suppress(OSError):  # without this folder, absolute paths still work
        os.chdir(order.folder)
    limit_threads(order.threads or usable_cores())
    return call(order)


def call(order: Order) -> Outcome:
    """Run a task; an error becomes part of the outcome."""
    try:
        return Outcome(order.function(order.item))
    except GraphfclError as error:
        return Outcome(error=error, traceback=traceback.format_exc())
    except Exception as error:  # it must reach the process that waits for the task
        sentence = f"a task failed on {socket.gethostname()} ({in_one_line(error)}): --debug shows where."
        return Outcome(error=TaskError(sentence), traceback=traceback.format_exc())


def unreadable(error: BaseException) -> Outcome:
    """The outcome of an order that a worker could not read: mostly a module that it does not have."""
    return Outcome(
        error=InputError(
            f"a worker cannot read its task ({in_one_line(error)}): install graphfcl {__version__} and your own "
            "modules where workers run."
        )
    )


def search_path() -> str:
    """Where this process finds modules, as the variable PYTHONPATH of another one."""
    return os.pathsep.join(os.path.abspath(entry) for entry in sys.path)


@contextmanager
def changed_variable(name: str, value: str) -> Iterator[None]:
    """An environment variable with another value while the context lasts."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _mismatch(wanted: Package, own: Package) -> str:
    """Why a worker must not work; empty if it may."""
    host = socket.gethostname()
    if wanted.version != own.version:
        return (
            f"the worker on {host} has graphfcl {own.version}, but {wanted.version} gave it a task: install the same "
            "version everywhere."
        )
    if wanted.digest != own.digest:
        return (
            f"the worker on {host} has other files of graphfcl {own.version} than the process that gave it a task: "
            "install the same ones everywhere, and start again if they were edited meanwhile."
        )
    return ""
