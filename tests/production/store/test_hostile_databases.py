"""Database files from a stranger: crafted schemas, journals, pages and links are refused in one sentence."""

import os
import struct
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from graphfcl.production.store.checks import JOURNAL_MAGIC
from tests.production.crafting import CraftedFolder, opened, refused

SCHEMAS = {
    "a trigger": "CREATE TRIGGER harm AFTER INSERT ON document BEGIN DELETE FROM chunk; END",
    "a view": "CREATE VIEW harm AS SELECT * FROM document",
    "an index": "CREATE INDEX harm ON document (content)",
    "a table": "CREATE TABLE harm (x)",
    "a virtual table": "CREATE VIRTUAL TABLE harm USING fts5(x)",
    "a column": "ALTER TABLE chunk ADD COLUMN harm",
    "no chunks": "DROP TABLE chunk",
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_tables_that_are_not_those_of_a_model(crafted: CraftedFolder, name: str) -> None:
    crafted.query(SCHEMAS[name])
    refused(crafted, "its tables are not the tables of a model")


def test_a_view_in_the_place_of_a_table(crafted: CraftedFolder) -> None:
    with opened(crafted.path) as connection:
        connection.execute("ALTER TABLE chunk RENAME TO real")
        connection.execute("CREATE VIEW chunk AS SELECT sha256, size, data FROM real")
    refused(crafted, "its tables are not the tables of a model")


def test_a_file_that_is_no_database(crafted: CraftedFolder) -> None:
    for content in (b"nonsense", b"SQLite format 3\0" + bytes(4080), bytes(1 << 16)):
        crafted.path.write_bytes(content)
        refused(crafted, "damaged")


def test_a_write_ahead_log_is_refused(crafted: CraftedFolder) -> None:
    with opened(crafted.path) as connection:
        assert connection.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    refused(crafted, "damaged")
    with opened(crafted.path) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    (crafted.folder / "model.sqlite-wal").write_bytes(b"x" * 100)
    refused(crafted, "model.sqlite-wal", "remove it")


def test_a_journal_that_names_another_file_deletes_nothing(crafted: CraftedFolder, tmp_path: Path) -> None:
    """SQLite deletes the super-journal that a hot journal names, whatever file that is."""
    victim = tmp_path / "victim"
    victim.write_bytes(JOURNAL_MAGIC + b"precious")
    name = str(victim).encode()
    (pages,) = crafted.query("PRAGMA page_count")[0]
    header = JOURNAL_MAGIC + struct.pack(">IIIII", 0, 1, pages, 512, 4096)
    end = struct.pack(">I", 1) + name + struct.pack(">II", len(name), sum(name)) + JOURNAL_MAGIC
    journal = crafted.folder / "model.sqlite-journal"
    journal.write_bytes(header.ljust(512, b"\0") + end)
    refused(crafted, "names another file")
    assert victim.exists()
    assert journal.exists()
    with opened(crafted.path) as connection:  # what SQLite does by itself: the attack is one
        connection.execute("SELECT * FROM document").fetchone()
    assert not victim.exists()


@pytest.mark.parametrize("name", ["model.sqlite", "model.sqlite-journal"])
def test_files_that_lie_elsewhere(crafted: CraftedFolder, tmp_path: Path, name: str) -> None:
    elsewhere, path = tmp_path / "elsewhere", crafted.folder / name
    if path.exists():
        path.rename(elsewhere)
    else:
        elsewhere.write_bytes(b"precious")
    before = elsewhere.read_bytes()
    path.symlink_to(elsewhere)
    refused(crafted, "symbolic link")
    assert elsewhere.read_bytes() == before


def test_a_pipe_in_the_place_of_the_database(crafted: CraftedFolder) -> None:
    crafted.path.unlink()
    os.mkfifo(crafted.path)
    refused(crafted, "not a regular file")


def test_a_tree_of_pages_that_never_ends(crafted: CraftedFolder) -> None:
    """Every page of a table shows the next one hundreds of times: a scan takes for ever, unless it is stopped."""
    with opened(crafted.path) as connection:
        connection.execute("PRAGMA secure_delete=OFF")
        rows = [(b"k%06d" % number * 4, 0, b"") for number in range(20_000)]
        connection.executemany("INSERT INTO chunk VALUES (?, ?, ?)", rows)
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'chunk'").fetchone()[0]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    content = bytearray(crafted.path.read_bytes())
    chain = list(range(pages + 1, pages + 16))
    content += bytes(4096 * len(chain))
    size = 4096

    def interior(page: int, child: int) -> None:
        start = (page - 1) * size
        cells = 400
        content[start : start + size] = bytes(size)
        content[start : start + 12] = struct.pack(">BHHHBI", 5, 0, cells, size - 9 * cells + 0, 0, child)
        for number in range(cells):
            place = size - 9 * (number + 1)
            content[start + 12 + 2 * number : start + 14 + 2 * number] = struct.pack(">H", place)
            content[start + place : start + place + 5] = struct.pack(">IB", child, 1)

    content[28:32] = struct.pack(">I", pages + len(chain))
    for page, child in pairwise([root, *chain, root + 1]):
        interior(page, child)
    crafted.path.write_bytes(content)
    start = time.perf_counter()
    with pytest.raises(InputError):
        ModelFolder(crafted.folder).prune(1)
    assert time.perf_counter() - start < 60


def test_a_file_of_a_terabyte(crafted: CraftedFolder) -> None:
    with open(crafted.path, "r+b") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    start = time.perf_counter()
    with suppress(InputError):
        GraphClassifier.load(crafted.folder).prediction_columns()
    assert time.perf_counter() - start < 10
