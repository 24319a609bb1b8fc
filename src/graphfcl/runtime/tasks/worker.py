"""How workers run orders, and helpers for engines of other packages."""

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
    """Return version and digest of the graphfcl in this process."""
    return Package(__version__, package_digest())


def carry_out(order: Order) -> Outcome:
    """Run a task in a worker, with its number of threads, after checking that the worker has the same graphfcl."""
    mismatch = _mismatch(order.package, own_package())
    if mismatch:
        return Outcome(error=InputError(mismatch))
    with suppress(OSError):  # if the folder does not exist here, absolute paths still work
        os.chdir(order.folder)
    limit_threads(order.threads or usable_cores())
    return call(order)


def call(order: Order) -> Outcome:
    """Run a task and return its result or error as an outcome."""
    try:
        return Outcome(order.function(order.item))
    except GraphfclError as error:
        return Outcome(error=error, traceback=traceback.format_exc())
    except Exception as error:  # send every error to the process that waits for the task
        sentence = f"a task failed on {socket.gethostname()} ({in_one_line(error)}): --debug shows where."
        return Outcome(error=TaskError(sentence), traceback=traceback.format_exc())


def unreadable(error: BaseException) -> Outcome:
    """Return the outcome of an order that a worker could not read, mostly because a module is missing there."""
    return Outcome(
        error=InputError(
            f"a worker cannot read its task ({in_one_line(error)}): install graphfcl {__version__} and your own "
            "modules where workers run."
        )
    )


def search_path() -> str:
    """Return the module search path of this process in the format of PYTHONPATH."""
    return os.pathsep.join(os.path.abspath(entry) for entry in sys.path)


@contextmanager
def changed_variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable until the context ends."""
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
    """Say how the graphfcl of a worker differs from the wanted one; empty if they are the same."""
    host = socket.gethostname()
    if wanted.version != own.version:
        return (
            f"the worker on {host} has graphfcl {own.version}, but its task comes from {wanted.version}: install the "
            "same version everywhere."
        )
    if wanted.digest != own.digest:
        return (
            f"the worker on {host} has other files of graphfcl {own.version} than the process that started the run: "
            "install the same files everywhere, and start again if they were edited during the run."
        )
    return ""
