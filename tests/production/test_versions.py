"""What is on the disk: versions, rollback, damage, full disks, the order of writes."""

import os
import re
import resource
import shutil
import signal
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from graphfcl.production.store.database import Database
from tests.production.crafting import CraftedDatabase, CraftedFolder, opened
from tests.production.models import everything, members, same_answers


def test_versions_are_numbered_and_share_what_did_not_change(folder: Path) -> None:
    model = ModelFolder(folder)
    manifests = [model.manifest(number) for number in (1, 2, 3)]
    assert model.current() == 3
    assert [manifest["parent"] for manifest in manifests] == [None, 1, 2]
    parts = [manifest["parts"] for manifest in manifests]
    assert parts[0]["network"] == parts[1]["network"] == parts[2]["network"]
    assert parts[0]["edges"] == parts[1]["edges"] != parts[2]["edges"]
    assert parts[1]["features"] == parts[2]["features"]
    assert parts[0]["label_store"] != parts[1]["label_store"]
    entries = model.history()
    assert [(entry["version"], entry["what"]) for entry in entries] == [(1, "fit"), (2, "learn"), (3, "grow")]
    assert entries[1]["supports"] == {"eight": members("class-08")[:5]}
    assert entries[1]["accuracy"]["leave_one_out"] is not None


def test_rollback_is_a_new_version_equal_to_the_old(folder: Path) -> None:
    first, before = GraphClassifier.load(folder, version=1), rows(folder)
    assert ModelFolder(folder).rollback(1) == 4
    model = GraphClassifier.load(folder)
    same_answers(model, first, 1e-6)
    assert [entry["what"] for entry in model.history] == ["fit", "learn", "grow", "rollback"]
    assert rows(folder)[:3] == before, "nothing that was there has changed"
    model.learn({"nine": members("class-09")[:5]})
    assert model.save(folder) == 5
    with pytest.raises(InputError, match="no version 9"):
        ModelFolder(folder).rollback(9)


def rows(folder: Path) -> list[Any]:
    """All documents of versions."""
    sql = "SELECT * FROM document WHERE kind = 'version' ORDER BY number"
    return CraftedDatabase(folder / "model.sqlite").query(sql)


def read(folder: Path, version: int | None = None) -> GraphClassifier:
    """A version of which every part has been read."""
    model = GraphClassifier.load(folder, version=version)
    model.parts().read()
    return model


PART_NAMES = ("nodes", "edges", "features", "network", "knowledge", "label_store")
PLACES = [*((name, True) for name in PART_NAMES), *((name, False) for name in (*PART_NAMES, "answers"))]
HARM = {
    "flipped": lambda content: content[:-1] + bytes([content[-1] ^ 4]),
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "text": lambda _: "text",
}


@pytest.mark.parametrize(("name", "chunk"), [*PLACES, ("manifest", False)])
@pytest.mark.parametrize("how", [*HARM, "missing"])
def test_damage_is_said_in_a_sentence_and_the_last_good_version_loads(
    folder: Path, tmp_path: Path, name: str, chunk: bool, how: str
) -> None:
    crafted = CraftedFolder(folder, tmp_path / "crafted")
    folder = crafted.folder
    if name == "manifest":
        place, key = "document", "kind = 'version' AND number = ?"
        column, value = "content", crafted.number
    else:
        stored = crafted.manifest()["parts"][name]
        if chunk:
            stored = next(index["chunks"][:64] for index in crafted.part(name)["arrays"].values() if index["chunks"])
        place, key, column, value = "chunk", "sha256 = ?", "data", bytes.fromhex(stored)
    if how == "missing":
        crafted.query(f"DELETE FROM {place} WHERE {key}", value)
    else:
        content = crafted.query(f"SELECT {column} FROM {place} WHERE {key}", value)[0][0]
        crafted.query(f"UPDATE {place} SET {column} = ? WHERE {key}", HARM[how](content), value)
    model = ModelFolder(folder)
    if name == "manifest" and how == "missing":
        assert model.current() == 2, "it is as if it had never been written"
        return
    with pytest.raises(InputError) as caught:
        read(folder)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError), model.editing():
        raise AssertionError("a damaged version must not be changed")
    if name not in ("features", "network", "nodes"):  # which all versions share
        number = re.search(r"rollback --model \S+ (\d)", str(caught.value))
        assert number is not None
        good = read(folder, int(number[1]))
        assert model.rollback(int(number[1])) == 4
        same_answers(read(folder), good, 1e-6)


def test_a_flipped_bit_anywhere_is_said_or_harmless(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "model.sqlite").read_bytes()
    expected = read(folder)
    (folder / "cache.sqlite").unlink()
    said = 0
    for case, place in enumerate(range(0, len(whole), len(whole) // 60)):
        copy = tmp_path / f"flipped {case}"
        copy.mkdir()
        content = bytearray(whole)
        content[place] ^= 1 << case % 8
        (copy / "model.sqlite").write_bytes(content)
        try:
            found = read(copy)
            assert found.version in (2, 3)
            if found.version == 3:
                same_answers(found, expected, 1e-5)
            found.wait()
        except InputError as error:
            said += str(error).count("\n") == 0
        shutil.rmtree(copy, ignore_errors=True)  # a thread of the model may still write its cache
    assert said > 20


@pytest.mark.parametrize("share", [0, 0.3, 0.6, 0.9])
def test_a_database_that_is_cut_short(folder: Path, share: float) -> None:
    path = folder / "model.sqlite"
    os.truncate(path, int(share * path.stat().st_size))
    before = path.read_bytes()
    with pytest.raises(InputError) as caught:
        read(folder)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError), ModelFolder(folder).editing():
        raise AssertionError("it was opened to be changed")
    assert path.read_bytes() == before


def test_a_newer_format_is_refused_and_left_alone(folder: Path) -> None:
    with opened(folder / "model.sqlite") as connection:
        connection.execute("PRAGMA user_version=99")
    before = everything(folder)
    with pytest.raises(InputError, match=r"format 99.*use the graphfcl that wrote it"):
        GraphClassifier.load(folder)
    with pytest.raises(InputError, match="format 99"), ModelFolder(folder).editing():
        pass
    assert everything(folder) == before


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


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every fsync and every rename from now on."""
    calls: list[tuple[str, str]] = []
    plain_sync, plain_replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        calls.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))
        plain_sync(descriptor)

    def replace(source: Any, target: Any) -> None:
        calls.append(("rename", f"{source} -> {target}"))
        plain_replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    return calls


def test_the_name_of_a_new_folder_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(monkeypatch)
    with ModelFolder(tmp_path / "new").writing():
        assert ("fsync", str(tmp_path)) in calls


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
    before = read(folder)
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
    same_answers(read(copy), before)
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
                model = read(copy)
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
    """Nobody sees half a version, and the writer is not kept waiting."""
    stop = folder.parent / "stop"

    def ask() -> None:
        from concurrent.futures import ThreadPoolExecutor

        def one(_: int) -> None:
            while not stop.exists():
                model = read(folder)
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


def test_two_thousand_versions_open_like_one(folder: Path) -> None:
    manifest = ModelFolder(folder).manifest(3)
    plain = {key: value for key, value in manifest.items() if key != "sha256"}

    def reads() -> int:
        with open("/proc/self/io") as file:
            return int(file.readline().split()[1])

    def opening() -> tuple[float, int, int]:
        start, before = time.perf_counter(), reads()
        model = GraphClassifier.load(folder)
        assert model.predict([members("class-00")[0]]).size == 1
        return time.perf_counter() - start, reads() - before, model.bytes_read()

    opening()
    few = min(opening() for _ in range(5))
    database = Database(folder / "model.sqlite")
    database.begin()
    for number in range(4, 2001):
        database.put_document("version", number, {**plain, "version": number, "parent": number - 1})
    database.commit()
    model = GraphClassifier.load(folder)
    assert model.version == 2000
    many = min(opening() for _ in range(5))
    assert many[1] < 1.2 * few[1], "bytes that the system was asked for"
    assert many[2] < 1.2 * few[2]
    assert many[0] < 2 * few[0] + 0.005


def test_nothing_is_written_that_could_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits on what is read hold for what is written."""
    from graphfcl.production.store import database, parts

    before = rows(folder)
    for module, name, words in ((parts, "LARGEST_PART", "cannot be kept"), (database, "LARGEST", "several steps")):
        model = GraphClassifier.load(folder)
        model.learn({"nine": members("class-09")[:5]})
        versions = model._versions
        assert versions is not None
        with versions.writing(0), monkeypatch.context() as patch:
            patch.setattr(module, name, 200)
            with pytest.raises(InputError, match=words):
                model.write_version(versions)
    assert rows(folder) == before


def test_a_history_is_that_of_its_version_whatever_becomes_of_the_folder(folder: Path, tmp_path: Path) -> None:
    early = GraphClassifier.load(folder, version=2)
    late = GraphClassifier.load(folder)
    for name in ("a", "b"):
        late.rename(late.classes_[0], name).save(folder)
    late.wait()
    ModelFolder(folder).prune(1)
    assert [entry["version"] for entry in early.history] == [1, 2]
    other = tmp_path / "other"
    assert late.save(other) == 1
    late.wait()
    assert {entry["version"] for entry in late.history} == {1}
    assert GraphClassifier.load(other).history == late.history


def test_what_cannot_be_read_again_is_not_saved(folder: Path) -> None:
    with pytest.raises(InputError, match="max_loss is inf"):
        GraphClassifier("proto-gcn", max_loss=float("inf"))
    before = rows(folder)
    model = GraphClassifier.load(folder).rename("class-00", "zero")
    model.max_loss = float("nan")
    with pytest.raises(InputError, match="holds the number NaN; nothing was changed"):
        model.save(folder)
    assert rows(folder) == before
    assert GraphClassifier.load(folder).classes_[0] == "class-00"
