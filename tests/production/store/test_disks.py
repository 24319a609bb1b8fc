"""Full disks, folders that cannot be written, power cuts, and readers beside writers."""

import os
import resource
import shutil
import signal
import stat
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from graphfcl.production.store.database import Database
from tests.production.models import everything, members, read_all, recorded, same_answers


def _learn(folder: Path) -> None:
    with ModelFolder(folder).editing(write_cache=False) as model:
        model.learn({"nine": members("class-09")[:5]})


def in_another_process(work: Any) -> int:
    """Run a function in a forked process; 0 if it said nothing, 2 if it raised an InputError."""
    process = os.fork()
    if process == 0:
        try:
            work()
        except InputError as error:
            os._exit(2 if "cannot be written" in str(error) else 3)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.parametrize("share", [0, 0.1, 0.4, 0.7, 0.99])
@pytest.mark.parametrize("how", ["pages", "bytes"])
def test_a_full_disk_damages_nothing(
    folder: Path, tmp_path: Path, share: float, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pages: SQLite finds no room for one more. bytes: the system refuses to make the file longer."""
    path = folder / "model.sqlite"
    before, size = path.read_bytes(), path.stat().st_size
    twin = Path(shutil.copytree(folder, tmp_path / "twin"))
    _learn(twin)
    needed = size + int(share * ((twin / "model.sqlite").stat().st_size - size))

    def learn() -> None:
        if how == "bytes":
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (needed, needed))
        else:
            plain = Database._connect

            def connect(database: Database, create: bool) -> Any:
                connection = plain(database, create)
                connection.execute(f"PRAGMA max_page_count={needed // 4096}")
                return connection

            monkeypatch.setattr(Database, "_connect", connect)
        _learn(folder)

    assert in_another_process(learn) == 2
    assert GraphClassifier.load(folder).version == 3
    assert path.read_bytes() == before
    _learn(folder)
    assert GraphClassifier.load(folder).version == 4, "with room again it is saved"


def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    (folder / "cache.sqlite").unlink()
    nobody = 65534
    for place in (folder, *folder.iterdir()):
        place.chmod(0o555 if place.is_dir() else 0o444)
    for parent in folder.parents:  # how many are private depends on the number of test processes
        mode = stat.S_IMODE(parent.stat().st_mode)
        if mode & 0o055 != 0o055:
            parent.chmod(mode | 0o055)
    before = everything(folder)

    def work() -> None:
        if os.getuid() == 0:
            os.setgid(nobody)
            os.setuid(nobody)
        model = GraphClassifier.load(folder)
        assert model.predict().size == 500
        model.wait()
        model.learn({"nine": members("class-09")[:5]})
        model.save(folder)

    assert in_another_process(work) == 2
    assert everything(folder) == before
    folder.chmod(0o755)


def test_the_name_of_a_new_folder_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(monkeypatch)
    with ModelFolder(tmp_path / "new").writing():
        assert ("fsync", str(tmp_path)) in calls


@pytest.mark.usefixtures("waiting_for_the_disk")
def test_a_power_cut_loses_no_version_that_was_acknowledged(folder: Path) -> None:
    """SQLite flushes journal, database and folder if it is told so: SIGKILL cannot reveal that it is not."""
    database = Database(folder / "model.sqlite")
    database.begin()
    with database._turn:
        connection = database._open()
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)


def test_the_journal_of_a_killed_writer_is_rolled_back(folder: Path, tmp_path: Path) -> None:
    """A copy taken while a transaction is on the disk in part: SQLite spilled it, and its writer is gone."""
    before = read_all(folder)
    database = Database(folder / "model.sqlite")
    database.begin()
    with database._turn:
        database._open().execute("PRAGMA cache_size=1")
    for number in range(50):
        database.put_chunk(bytes([number]) * 100_000)
    database.delete_document("version", 3)
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    assert (copy / "model.sqlite-journal").stat().st_size > 0
    assert (copy / "model.sqlite").read_bytes() != (folder / "model.sqlite").read_bytes()[:100]
    database.rollback()
    same_answers(read_all(copy), before)
    assert not (copy / "model.sqlite-journal").exists()
    assert ModelFolder(copy).rollback(1) == 4


@pytest.mark.long
def test_copies_taken_during_writes_are_whole_or_said_to_be_damaged(folder: Path, tmp_path: Path) -> None:
    process = os.fork()
    if process == 0:
        for number in range(1000):
            with ModelFolder(folder).editing(write_cache=False) as model:
                model.rename(model.classes_[0], f"name {number}")
        os._exit(0)
    whole = 0
    try:
        for number in range(40):
            copy = tmp_path / f"copy {number}"
            with suppress(shutil.Error):  # a journal that is gone before it is copied
                shutil.copytree(folder, copy)
            try:
                model = read_all(copy)
                assert len(model.predict()) == 500
                whole += 1
            except InputError:
                pass  # a damaged copy is refused
            shutil.rmtree(copy, ignore_errors=True)  # a thread of the model may still write its cache
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    assert whole > 10


@pytest.mark.long
def test_eight_readers_beside_a_writer(folder: Path) -> None:
    """No reader sees half a version, and the writer is not kept waiting."""
    stop = folder.parent / "stop"

    def ask() -> None:
        from concurrent.futures import ThreadPoolExecutor

        def one(_: int) -> None:
            while not stop.exists():
                model = read_all(folder)
                assert len(model.history) >= 3
                assert len(model.predict()) == 500

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(one, range(4)))

    readers = []
    for _ in range(2):  # processes of four threads each
        process = os.fork()
        if process == 0:
            try:
                ask()
            except BaseException:
                traceback.print_exc()  # the parent only sees that it failed
                os._exit(1)
            os._exit(0)
        readers.append(process)
    slowest = 0.0
    for number in range(10):
        start = time.perf_counter()
        with ModelFolder(folder).editing(write_cache=False) as model:
            model.rename(model.classes_[0], f"name {number}")
        slowest = max(slowest, time.perf_counter() - start)
    stop.touch()
    assert [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in readers] == [0, 0]
    assert GraphClassifier.load(folder).version == 13
    assert slowest < 20
