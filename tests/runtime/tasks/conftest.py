"""Engines that are started once for all tests of a process."""

import warnings
from collections.abc import Iterator

import pytest

from graphfcl import GraphfclWarning, Tasks, start_workers
from graphfcl.runtime.tasks import Workers
from tests.runtime.tasks.engines import ON_THIS_MACHINE, needs


@pytest.fixture(scope="session")
def on_ray() -> Iterator[Workers]:
    """Two workers of a real Ray on this machine."""
    needs("ray")
    with start_workers(Tasks("ray", workers=2)) as workers:
        yield workers


@pytest.fixture(scope="session")
def on_submitit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Two workers of submitit's local executor."""
    needs("submitit")
    tasks = Tasks("submitit", 2, submitit_options=ON_THIS_MACHINE, folder=tmp_path_factory.mktemp("jobs"))
    with warnings.catch_warnings(), start_workers(tasks) as workers:
        warnings.simplefilter("ignore", GraphfclWarning)  # it tells of jobs that were killed, as they are here
        yield workers
