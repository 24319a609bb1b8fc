"""What tests of several floors share."""

import os
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings

# How long an example takes depends on what else the machine does.
settings.register_profile("graphfcl", deadline=None)
settings.load_profile("graphfcl")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need Ray stand together and first: one worker starts it, and no other has to steal them in the end."""
    items.sort(key=lambda item: "on_ray" not in getattr(item, "fixturenames", ()))


class UnflushedConnection(sqlite3.Connection):
    """A connection that hands its writes to the system and goes on."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute(sql.replace("synchronous=EXTRA", "synchronous=OFF"), *parameters)


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk() -> Iterator[None]:
    """No test cuts the power, and a kill loses nothing that the system has: let no file wait until a disk has it.

    Tests of what is flushed, and when, record the calls or ask for ``waiting_for_the_disk``.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=UnflushedConnection))
        yield


@pytest.fixture
def waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases are flushed as in production."""
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=sqlite3.Connection))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of genuine research files, which are not part of the repository."""
    named = os.environ.get("GRAPHFCL_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the research files are not here: {folder} does not exist; name their folder with $GRAPHFCL_DATA")
    return folder


@pytest.fixture
def double_precision() -> Iterator[None]:
    """References of formulas are computed in float64."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
