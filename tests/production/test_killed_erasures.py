"""An erasure that is killed: all versions have the nodes or none has, and the next writer finishes it."""

import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, ModelFolder
from graphfcl.production.store.database import Database
from tests.production.crafting import stored_chunks
from tests.production.erasures import GONE, TRAINED, holding, in_a_file, row_of, stored_as, told


@pytest.fixture
def folder(six: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(six, tmp_path / "model"))


def _erase(folder: str) -> None:
    ModelFolder(folder).erase([GONE, TRAINED])


def _write(folder: str) -> None:
    """What any verb that writes begins with."""
    with ModelFolder(folder).writing():
        pass


def _killed_at(work: Callable[[str], None], folder: str, statement: int) -> None:
    """Die at the so-manieth statement that writes, or file that goes."""
    left = statement

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os._exit(9)

    def mortal(plain: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            count()
            done = plain(*arguments, **options)
            count()
            return done

        return called

    Database._write = mortal(Database._write)  # type: ignore[method-assign]
    os.unlink = mortal(os.unlink)
    work(folder)
    os._exit(0)


def _killed(work: Callable[[str], None], folder: Path, statement: int) -> bool:
    process = multiprocessing.get_context("fork").Process(target=_killed_at, args=(work, str(folder), statement))
    process.start()
    process.join()
    assert process.exitcode in (0, 9)
    return process.exitcode == 9


@pytest.fixture
def two(folder: Path) -> Path:
    """A folder with two versions, and what four others told."""
    ModelFolder(folder).prune(2)
    return folder


@pytest.fixture
def clean(two: Path, tmp_path: Path) -> set[str]:
    """The chunks that are left if no process is killed."""
    done = Path(shutil.copytree(two, tmp_path / "clean"))
    _erase(str(done))
    return stored_chunks(done)


def _check_done(folder: Path, clean: set[str]) -> None:
    assert told(folder)[5:] == [(6, "shrink"), (7, "erase")]
    assert stored_chunks(folder) == clean
    assert not ModelFolder(folder)._versions.database.numbers("erasure")
    assert holding(folder, GONE.encode()) == holding(folder, TRAINED.encode()) == set()
    assert holding(folder, row_of(TRAINED)) == set()


@pytest.mark.long
def test_killed_anywhere_all_versions_have_the_nodes_or_none_has(two: Path, clean: set[str], tmp_path: Path) -> None:
    """The next writer finishes what was committed; erasing again says what the one that was killed did."""
    before, statement, outcomes = told(two), 0, {6: 0, 7: 0}
    while True:
        statement += 7 if outcomes[7] == 0 else 1
        folder = Path(shutil.copytree(two, tmp_path / f"killed {statement}"))
        if not _killed(_erase, folder, statement):
            break
        versions = [GraphClassifier.load(folder, version=version) for version in (None, 5, 6)]
        newest = versions[0].version
        assert newest in (6, 7)
        assert told(folder)[:6] == before
        for model in versions:
            model.parts().read()
            assert (TRAINED in model.node_ids_.tolist()) == (newest == 6)
        outcomes[newest] += 1
        pending = bool(ModelFolder(folder)._versions.database.numbers("erasure"))
        if newest == 7 and (statement % 2 or not pending):
            _write(str(folder))
        else:
            done = ModelFolder(folder).erase([GONE, TRAINED])
            assert (done.nodes, done.versions, done.version) == (2, (5, 6), 7)
        _check_done(folder, clean)
        shutil.rmtree(folder, ignore_errors=True)  # a thread of a model may still write its cache
    assert outcomes[6] > 10
    assert outcomes[7] >= 3


def test_killed_before_the_commit_nothing_has_changed(two: Path, clean: set[str], tmp_path: Path) -> None:
    before = told(two)
    for statement in (1, 2, 20, 60):
        folder = Path(shutil.copytree(two, tmp_path / f"killed {statement}"))
        assert _killed(_erase, folder, statement)
        assert told(folder) == before
        assert TRAINED in GraphClassifier.load(folder).node_ids_.tolist()
        _erase(str(folder))
        _check_done(folder, clean)


def test_bytes_are_gone_even_before_the_file_is_written_anew(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed right after the commit leaves no byte in free pages: deleted rows are overwritten."""
    monkeypatch.setattr(Database, "vacuum", lambda _: None)
    traces = stored_as(two, row_of(TRAINED)) + stored_as(two, TRAINED.encode())
    assert in_a_file(two, traces) == traces != []
    _erase(str(two))
    assert in_a_file(two, traces) == []
    assert holding(two, GONE.encode()) == holding(two, TRAINED.encode()) == holding(two, row_of(TRAINED)) == set()
