"""One SQLite file: JSON documents by kind and number, and chunks of bytes by their SHA-256.

A transaction is in the file completely or not at all, even if its process is killed: SQLite's rollback journal is
flushed before a commit. Every row is verified by its checksum when it is read.

The file may come from a stranger: it must have exactly these tables, without triggers and views, and a journal that
names another file is refused before SQLite sees it.
"""

import hashlib
import os
import sqlite3
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from graphfcl.errors import InputError
from graphfcl.production.store.checks import Damaged, need, read_json, refuse_files_beside, refuse_journal
from graphfcl.production.store.compression import LARGEST, packed, unpacked
from graphfcl.runtime.files import canonical_json, make_folder

FORMAT = 4
TABLES = {
    "document": "CREATE TABLE document (kind TEXT NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL, "
    "sha256 BLOB NOT NULL, PRIMARY KEY (kind, number))",
    "chunk": "CREATE TABLE chunk (sha256 BLOB NOT NULL PRIMARY KEY, size INTEGER NOT NULL, data BLOB NOT NULL)",
}
SCHEMA = [
    row
    for name, sql in TABLES.items()
    for row in (("table", name, name, sql), ("index", f"sqlite_autoindex_{name}_1", name, None))
]
READING = ("trusted_schema=OFF", "cell_size_check=ON")
WRITING = (
    "secure_delete=ON",  # deleted content is overwritten with zeros
    "temp_store=MEMORY",
    "cache_size=-65536",  # KiB: readers wait for a writer only while it commits, unless it writes more than this
)
ROW = 8  # least bytes of a row
BUSY = 60.0  # seconds that a query waits while another process commits
LONGEST_QUERY = 200  # million steps of SQLite's virtual machine, so that no crafted file can run a query for ever

_TURNS: dict[str, threading.RLock] = defaultdict(threading.RLock)
_DATABASES: weakref.WeakSet["Database"] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """Let a forked process begin without locks and connections.

    A thread that holds a lock has no copy in the child. Closing a connection would end the transaction of the parent,
    so connections are never freed.
    """
    import ctypes

    _TURNS.clear()
    for database in list(_DATABASES):
        for connection in database._connections.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        database._connections.clear()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_leave_to_the_parent)


class _Connection(sqlite3.Connection):
    """Connection of one thread.

    Attributes:
        file: Device and inode of the file.
        size: Bytes of the file.
        has_tables: Whether the tables were checked.
        ticks: Million steps of the current query.
    """

    file: tuple[int, ...] = ()
    size = 0
    has_tables = False
    ticks = 0

    def tick(self) -> bool:
        """Count steps; returns whether a query takes so many that its file must have been crafted for that."""
        self.ticks += 1
        return self.ticks > LONGEST_QUERY


class NotKept(InputError):
    """A change that no version can store; the folder is intact."""


class Newer(InputError):
    """A file whose format is newer than this graphfcl."""


class Busy(InputError):
    """Another process writes to the folder."""

    @classmethod
    def waited(cls, folder: Path, wait: float) -> "Busy":
        """Make the error after waiting for some seconds."""
        return cls(
            f"{folder} is being changed by another process (waited {wait:g} s): try again later, or wait longer with "
            "--wait; nothing was changed."
        )


class Database:
    """An SQLite file with these tables; it need not exist.

    Threads may share a database. Each has its own connection, so none sees what another one has not committed. Queries
    of one process on one file take turns. SQLite would let them overlap, but then a writer of another process might
    never find a moment without a reader.

    Args:
        path: Path of the file.
        lasting: Transactions survive a power cut. Otherwise they are quicker, but a power cut may damage the file.

    Attributes:
        bytes_read: Bytes of documents and chunks read so far.
    """

    def __init__(self, path: Path, *, lasting: bool = True) -> None:
        self.path, self._lasting = path, lasting
        self.bytes_read = 0
        self._uri, self._place = path.absolute().as_uri(), os.path.abspath(path)
        self._connections: dict[int, _Connection] = {}  # by thread id; a later thread with the same id reuses it
        self._verified: set[bytes] = set()
        _DATABASES.add(self)

    # Documents

    def numbers(self, kind: str) -> list[int]:
        """Return the numbers of all documents of a kind, damaged ones included, ascending."""
        rows = self._query("SELECT number FROM document WHERE kind = ? ORDER BY number", kind)
        return [number for (number,) in rows if type(number) is int]

    def newest(self, kind: str) -> tuple[int, str] | None:
        """Return the highest number of a kind and the checksum of that document; None if there is none."""
        rows = self._query("SELECT number, sha256 FROM document WHERE kind = ? ORDER BY number DESC LIMIT 1", kind)
        if not rows:
            return None
        (number, digest), *_ = rows
        need(type(number) is int and type(digest) is bytes, "its list of versions is invalid")
        return number, digest.hex()

    def document(self, kind: str, number: int) -> tuple[dict[str, Any], str]:
        """Return a document and its checksum, verified."""
        rows = self._query("SELECT content, sha256 FROM document WHERE kind = ? AND number = ?", kind, number)
        need(len(rows) == 1, "it is missing")
        content, digest = rows[0]
        need(type(content) is bytes and digest == _digest(kind, number, content), "it does not match its checksum")
        self.bytes_read += len(content)
        values = read_json(content)
        need(isinstance(values, dict), "it is not a JSON object")
        return values, digest.hex()

    def put_document(self, kind: str, number: int, values: dict[str, Any]) -> str:
        """Write a document; returns its checksum."""
        content = self.described(values, LARGEST // 2)
        digest = _digest(kind, number, content)
        self._write("INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?)", kind, number, content, digest)
        return digest.hex()

    def described(self, values: dict[str, Any], most: int) -> bytes:
        """Return values as JSON of at most ``most`` bytes that can be read again; raises :class:`NotKept` otherwise."""
        content = canonical_json(values)
        try:
            read_json(content)
            need(len(content) <= most, f"it takes more than {most:,} bytes to describe: make it in several steps")
        except Damaged as error:
            raise NotKept(
                f"the change cannot be stored in {self.path.parent}: {error}; nothing was changed."
            ) from error
        return content

    def delete_document(self, kind: str, number: int) -> None:
        deleted = self._write("DELETE FROM document WHERE kind = ? AND number = ?", kind, number)
        need(deleted == 1, "SQLite cannot find a row that it lists")

    # Chunks

    def chunk(self, name: str, *, is_text: bool = False) -> bytes:
        """Return the content with a checksum, given in hexadecimal digits. ``is_text``: it was stored as text."""
        digest = bytes.fromhex(name)
        rows = self._query("SELECT size, data FROM chunk WHERE sha256 = ?", digest)
        need(len(rows) == 1, f"its chunk {name[:12]} is missing")
        size, data = rows[0]
        content = unpacked(size, data, is_text)
        need(hashlib.sha256(content).digest() == digest, f"its chunk {name[:12]} is damaged")
        self.bytes_read += len(data)
        self._verified.add(digest)
        return content

    def chunk_size(self, name: str) -> int | None:
        """Return the bytes of a chunk without reading it; None if there is none of this name."""
        rows = self._query("SELECT size FROM chunk WHERE sha256 = ?", bytes.fromhex(name))
        return rows[0][0] if rows else None

    def put_chunk(self, content: bytes, *, is_text: bool = False) -> str:
        """Store content unless it is stored already; returns its name. ``is_text``: parsing it makes many objects."""
        digest = hashlib.sha256(content).digest()
        if self.chunk_size(digest.hex()) != len(content) or not self._is_whole(digest):
            data = packed(content, is_text) if self._lasting else content
            self._write("INSERT OR REPLACE INTO chunk VALUES (?, ?, ?)", digest, len(content), data)
        self._verified.add(digest)
        return digest.hex()

    def keep_chunks(self, names: set[str]) -> int:
        """Delete all chunks except these; returns the bytes they had."""
        self._write("REINDEX")  # a damaged index could hide chunks
        going = self.spare_chunks(names)
        for row in going:
            need(self._write("DELETE FROM chunk WHERE rowid = ?", row) == 1, "SQLite cannot find a row that it lists")
        return sum(going.values())

    def spare_chunks(self, names: set[str]) -> dict[int, int]:
        """Return the rows of all chunks except these, and the bytes of each."""
        rows = self._query("SELECT rowid, sha256, length(data) FROM chunk")
        return {row: size or 0 for row, digest, size in rows if type(digest) is not bytes or digest.hex() not in names}

    def _is_whole(self, digest: bytes) -> bool:
        """Return whether a stored chunk matches its name; it is read once."""
        try:
            if digest not in self._verified:
                self.chunk(digest.hex())
        except Damaged:
            return False
        return True

    # Transactions

    def begin(self, wait: float = BUSY) -> None:
        """Begin to write as the only process, unless that was done already. An empty file gets its tables."""
        with self._turn, self._errors(wait):
            make_folder(self.path.parent)
            connection = self._open(create=True)
            if connection.in_transaction:
                return
            if self.path.stat().st_nlink > 1:
                raise self._refused("the file has another name, a hard link, under which it would be changed, too")
            durable = ("synchronous=EXTRA",) if self._lasting else ("journal_mode=MEMORY", "synchronous=OFF")
            for setting in (*WRITING, *durable, f"busy_timeout={int(1000 * wait)}"):
                connection.execute(f"PRAGMA {setting}")
            try:
                connection.execute("BEGIN IMMEDIATE")
            finally:
                connection.execute(f"PRAGMA busy_timeout={int(1000 * BUSY)}")
            if not _has_tables(connection, self.path):  # nor has another process made them meanwhile
                for sql in (*TABLES.values(), f"PRAGMA user_version={FORMAT}"):
                    connection.execute(sql)
            connection.has_tables = True

    def commit(self) -> None:
        """Commit everything written since :meth:`begin`."""
        self._write("COMMIT")

    def rollback(self) -> None:
        """Undo everything written since :meth:`begin` that is not committed."""
        connection = self._connections.get(threading.get_ident())
        with self._turn, suppress(sqlite3.Error):
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
                connection.has_tables = False  # they may have been made since

    def vacuum(self) -> None:
        """Rewrite the file without its free space; the copy is in a temporary file meanwhile."""
        self._write("PRAGMA temp_store=FILE")
        self._write("VACUUM")

    def size(self) -> int:
        """Return the bytes of the file."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    # SQLite

    @property
    def _turn(self) -> threading.RLock:
        return _TURNS[self._place]

    def _query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return all rows; none if there is no file, or one without tables."""
        with self._turn, self._errors(None):
            try:
                connection = self._open()
            except FileNotFoundError:
                return []
            if not connection.has_tables:
                return []
            most = 1000 + connection.size // ROW
            rows = connection.execute(sql, values).fetchmany(most + 1)
            need(len(rows) <= most, "it lists more rows than its size allows")
            return rows

    def _write(self, sql: str, *values: Any) -> int:
        """Run a statement that writes; returns the number of rows written."""
        with self._turn, self._errors(BUSY):
            return self._open().execute(sql, values).rowcount

    @contextmanager
    def _errors(self, wait: float | None) -> Iterator[None]:
        """Translate errors of SQLite. ``wait``: None for a query, otherwise seconds that a writer waits for another
        process.
        """
        reads = wait is None
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_BUSY and wait is None:
                raise Busy(f"{self.path} is being written for longer than {BUSY:g} s: try again later.") from error
            if code == sqlite3.SQLITE_BUSY and wait is not None:
                raise Busy.waited(self.path.parent, wait) from error
            if reads or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise Damaged(f"SQLite cannot {'read' if reads else 'write'} it ({error})") from error
            raise self._refused(str(error)) from error
        except OSError as error:
            why = str(error.strerror or error)
            raise (Damaged(f"it cannot be read ({why})") if reads else self._refused(why)) from error
        except OverflowError as error:
            no_row, no_room = "it has no row with such a number", "there is no room for further versions"
            raise (Damaged(no_row) if reads else self._refused(no_room)) from error

    def _refused(self, why: str) -> InputError:
        return InputError(
            f"{self.path.parent} cannot be written ({why}): choose a folder with free space that you may write to; "
            "nothing was changed."
        )

    def _open(self, *, create: bool = False) -> _Connection:
        """Return this thread's connection to the file that is at the path now."""
        (*file, size), thread = self._file(), threading.get_ident()
        connection = self._connections.get(thread)
        if connection is None or connection.file != tuple(file):
            if connection is not None and connection.in_transaction:
                raise InputError(
                    f"{self.path} was moved or replaced while it was being changed: check what lies there and try "
                    "again; nothing was changed."
                )
            connection = self._connections[thread] = self._connect(create)
            *file, size = self._file()
            connection.file = tuple(file)
        elif not connection.in_transaction:
            refuse_journal(self.path)
        connection.ticks, connection.size = 0, size
        if not connection.has_tables:
            try:
                connection.has_tables = _has_tables(connection, self.path)
            except (Damaged, InputError, sqlite3.Error):
                self._connections.pop(thread).close()
                raise
        return connection

    def _file(self) -> tuple[int, ...]:
        """Return device, inode and bytes of the file; 0 if there is none."""
        try:
            there = os.lstat(self._place)
        except FileNotFoundError:
            return 0, 0, 0
        return there.st_dev, there.st_ino, there.st_size

    def _connect(self, create: bool) -> _Connection:
        refuse_files_beside(self.path)
        if not create:
            self.path.stat()  # FileNotFoundError if there is none
        connection = sqlite3.connect(
            f"{self._uri}?mode={'rwc' if create else 'rw'}",
            timeout=BUSY,
            isolation_level=None,
            check_same_thread=False,
            factory=_Connection,
            uri=True,
        )
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
        connection.set_progress_handler(connection.tick, 1 << 20)
        for setting in READING:
            connection.execute(f"PRAGMA {setting}")
        return connection


def _has_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Return whether a file has the tables; False if it is empty. Raises :class:`Damaged` if it has others."""
    (number,), (mode,) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "journal_mode"))
    if number > FORMAT:
        raise Newer(f"{path} has format {number}; this graphfcl reads {FORMAT}: use the graphfcl that wrote it.")
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema LIMIT 9").fetchall()
    if not rows and number == 0:
        return False
    need(number == FORMAT and rows == SCHEMA, "its tables are not the tables of a model")
    need(mode in ("delete", "memory"), "it has no rollback journal")
    return True


def _digest(kind: str, number: int, content: bytes) -> bytes:
    return hashlib.sha256(f"{kind} {number}\n".encode() + content).digest()
