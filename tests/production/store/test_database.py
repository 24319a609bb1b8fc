"""One writer at a time, transactions, and a file that is replaced, forked or damaged."""

import multiprocessing
import os
import signal
import sqlite3
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from graphfcl import InputError
from graphfcl.production.store.checks import Damaged
from graphfcl.production.store.database import Busy, Database, NotKept
from tests.production.crafting import CraftedDatabase


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(tmp_path / "model" / "model.sqlite")
    database.begin()
    database.put_document("version", 1, {"a": [1, None]})
    database.commit()
    return database


def test_a_file_that_is_not_there_is_empty(tmp_path: Path) -> None:
    database = Database(tmp_path / "none" / "model.sqlite")
    assert database.numbers("version") == []
    assert database.newest("version") is None
    assert not (tmp_path / "none").exists()
    with pytest.raises(Damaged, match="missing"):
        database.chunk("0" * 64)


def test_documents_and_chunks_come_back(database: Database) -> None:
    database.begin()
    name = database.put_chunk(b"content")
    assert database.put_chunk(b"content") == name
    database.put_document("version", 12, {"b": 2})
    database.commit()
    other = Database(database.path)
    assert other.numbers("version") == [1, 12]
    assert other.document("version", 1)[0] == {"a": [1, None]}
    assert other.newest("version") == (12, other.document("version", 12)[1])
    assert other.chunk(name) == b"content"
    assert other.bytes_read == len(b"content") + len(b'{"a":[1,null]}') + len(b'{"b":2}')


def test_what_is_not_committed_is_undone(database: Database) -> None:
    database.begin()
    name = database.put_chunk(b"content")
    database.put_document("version", 2, {})
    assert Database(database.path).numbers("version") == [1], "others do not see it"
    database.rollback()
    assert database.numbers("version") == [1]
    assert database.chunk_size(name) is None
    database.begin()
    assert database.put_chunk(b"content") == name
    database.commit()
    assert database.chunk(name) == b"content", "it is written again"


def test_another_thread_sees_only_what_is_committed(database: Database) -> None:
    database.begin()
    database.put_document("version", 2, {})
    seen: list[list[int]] = []
    thread = threading.Thread(target=lambda: seen.append(database.numbers("version")))
    thread.start()
    thread.join()
    assert seen == [[1]]
    database.commit()
    assert database.numbers("version") == [1, 2]


def test_a_text_is_not_stored_in_much_less_room_than_it_takes(database: Database) -> None:
    """A few kilobytes from a stranger must not become gigabytes of lists."""
    text = b"[" + b"[]," * 500_000 + b"0]"
    database.begin()
    name, other = database.put_chunk(text, is_text=True), database.put_chunk(b"0" * 10**6)
    database.commit()
    crafted = CraftedDatabase(database.path)
    sizes = dict(crafted.query("SELECT lower(hex(sha256)), length(data) FROM chunk"))
    assert sizes[name] == len(text)
    assert sizes[other] < 10_000
    assert database.chunk(name, is_text=True) == text
    crafted.query("UPDATE chunk SET data = ? WHERE size = ?", zlib.compress(text), len(text))
    with pytest.raises(Damaged, match="too long"):
        database.chunk(name, is_text=True)


def test_a_chunk_that_is_damaged_is_written_again(database: Database) -> None:
    database.begin()
    name = database.put_chunk(b"content")
    database.commit()
    CraftedDatabase(database.path).query("UPDATE chunk SET data = ?", b"CONTENT")
    other = Database(database.path)
    with pytest.raises(Damaged, match="is damaged"):
        other.chunk(name)
    other.begin()
    assert other.put_chunk(b"content") == name
    other.commit()
    assert other.chunk(name) == b"content"


def test_rows_in_the_place_of_others_are_damaged(database: Database) -> None:
    database.begin()
    database.put_document("version", 2, {})
    database.commit()
    crafted = CraftedDatabase(database.path)
    crafted.query("UPDATE document SET number = 3 WHERE number = 1")
    with pytest.raises(Damaged, match="checksum"):
        database.document("version", 3)
    crafted.query("UPDATE document SET kind = 'pruned' WHERE number = 2")
    with pytest.raises(Damaged, match="checksum"):
        database.document("pruned", 2)


def test_what_cannot_be_read_again_is_not_written(database: Database) -> None:
    database.begin()
    with pytest.raises(NotKept, match="NaN"):
        database.put_document("version", 2, {"x": float("nan")})
    database.rollback()


def _hold(path: str, ready: Any, done: Any) -> None:
    Database(Path(path)).begin(5)
    ready.set()
    done.wait(30)


@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_a_second_writer_waits_or_is_told(database: Database, how: str) -> None:
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(str(database.path), ready, done))
    holder.start()
    assert ready.wait(30)
    with pytest.raises(Busy, match=r"changed by another process \(waited 0\.2 s\)"):
        database.begin(0.2)
    assert database.numbers("version") == [1], "readers do not wait"
    done.set() if how == "ends" else holder.kill()
    database.begin(20)
    holder.join()
    database.rollback()


def test_a_file_that_is_replaced_is_opened_again(database: Database, tmp_path: Path) -> None:
    other = Database(tmp_path / "other.sqlite")
    other.begin()
    other.put_document("version", 7, {})
    other.commit()
    os.replace(other.path, database.path)
    assert database.numbers("version") == [7]
    database.begin()
    database.path.rename(tmp_path / "moved")
    (tmp_path / "moved").rename(tmp_path / "away")
    database.path.write_bytes((tmp_path / "away").read_bytes())
    with pytest.raises(InputError, match="moved or replaced"):
        database.put_document("version", 8, {})
    database.rollback()


def test_a_forked_process_has_a_connection_of_its_own(database: Database) -> None:
    database.begin()
    database.put_document("version", 2, {})
    process = os.fork()
    if process == 0:
        os._exit(0 if database.numbers("version") == [1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    database.commit()
    assert database.numbers("version") == [1, 2]


def test_a_process_that_is_forked_during_a_query_does_not_wait_for_it(database: Database) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with database._turn:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    process = os.fork()
    if process == 0:
        signal.alarm(20)  # ends a child that waits
        os._exit(0 if database.numbers("version") == [1] else 1)
    status = os.waitpid(process, 0)[1]
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_forked_process_that_ends_leaves_the_transaction_of_its_parent(database: Database) -> None:
    database.begin()
    database.put_document("version", 2, {"a": "b" * 10_000})
    process = os.fork()
    if process == 0:
        database._connections.clear()  # as at the end of an interpreter, which frees what nothing else holds
        os._exit(0)
    os.waitpid(process, 0)
    assert Path(f"{database.path}-journal").exists()
    database.commit()
    assert Database(database.path).numbers("version") == [1, 2]


def test_chunks_that_a_damaged_index_hides_are_deleted(database: Database) -> None:
    database.begin()
    name = database.put_chunk(b"a feature of somebody")
    database.commit()
    with sqlite3.connect(database.path) as connection:
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_chunk_1'"
        (page,) = connection.execute(sql).fetchone()
    connection.close()
    content = bytearray(database.path.read_bytes())
    place = content.index(bytes.fromhex(name), 4096 * (page - 1))
    content[place + 31] ^= 1
    database.path.write_bytes(content)
    again = Database(database.path)
    again.begin()
    again.keep_chunks(set())
    again.commit()
    assert b"somebody" not in database.path.read_bytes()


def test_numbers_that_no_row_has(database: Database) -> None:
    with pytest.raises(Damaged, match="no row"):
        database.document("version", 10**20)
    database.begin()
    with pytest.raises(InputError, match="no room"):
        database.put_document("version", 2**63, {})
    database.rollback()


def test_a_journal_that_appears_later_is_inspected(database: Database) -> None:
    assert database.numbers("version") == [1]
    Path(f"{database.path}-journal").write_bytes(b"\0" * 512 + bytes.fromhex("d9d505f920a163d7"))
    with pytest.raises(InputError, match="names another file"):
        database.numbers("version")


def _read_for_ever(path: str, done: Any) -> None:
    def read() -> None:
        while not done.is_set():
            Database(Path(path)).numbers("version")

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_that_read_do_not_keep_a_writer_waiting(database: Database) -> None:
    """SQLite lets a thread in while another one of its process reads, although another process waits to write."""
    context = multiprocessing.get_context("fork")
    done = context.Event()
    reader = context.Process(target=_read_for_ever, args=(str(database.path), done))
    reader.start()
    time.sleep(0.3)
    start = time.perf_counter()
    for number in range(2, 12):
        database.begin(10)
        database.put_document("version", number, {})
        database.commit()
    seconds = time.perf_counter() - start
    done.set()
    reader.join()
    assert reader.exitcode == 0
    assert seconds < 20
