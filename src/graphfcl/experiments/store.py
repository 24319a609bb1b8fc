"""Store the results of finished cells as Parquet files.

While a grid runs, each cell is one file in ``DIR/cells``. Files are written atomically, workers do not wait for each
other, and a damaged file loses only one cell. :meth:`CellStore.pack` joins the files of each finished grid into one
file, ``DIR/grids/NAME.parquet``. Both kinds have a row for every session, so pandas and DuckDB read them as one table.
The complete result is JSON in the column ``result`` of a cell's first row, and the column ``sha256`` is its hash.
Locks, failures and files set aside are in the folder ``state``.
"""

import hashlib
import json
import os
import socket
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.experiments.cells import OTHER_FOLDER, Cell, cell_key
from graphfcl.metrics import active_metrics, session_metrics, stream_metrics
from graphfcl.runtime.files import file_lock, make_folder, read_bytes, write_bytes, write_durably
from graphfcl.stream import refuse_other_version

ACTIVE_SESSION_COLUMNS = ("labels", "novel_classes_found")  # only under the track ``active``


class CellStore:
    """The cells of a folder. Several processes may use it at once."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.cells, self.notes = self.folder / "cells", self.folder / "state"

    def path(self, cell: Cell) -> Path:
        return self.cells / f"{cell.key}.parquet"

    def note(self, cell: Cell, kind: str) -> Path:
        return self.notes / f"{cell.key}.{kind}"

    def done(self, cell: Cell) -> bool:
        return self.path(cell).exists()

    def error(self, cell: Cell) -> str | None:
        """The error of a cell that failed; None if it did not fail."""
        path = self.note(cell, "failed.json")
        if self.done(cell) or not path.exists():
            return None
        try:
            return str(json.loads(path.read_bytes())["error"])
        except (ValueError, KeyError, OSError):
            return "unknown (its record is damaged)"

    def settled(self, cell: Cell) -> bool:
        """Whether a cell is done or has failed."""
        return self.done(cell) or self.error(cell) is not None

    @contextmanager
    def claim(self, cell: Cell) -> Iterator[bool]:
        """Try to claim a cell for this process; yield whether it succeeded. The claim ends with context or process."""
        with usable(self.folder):
            make_folder(self.notes)
        with file_lock(self.note(cell, "lock"), wait=0) as ours:
            yield ours

    def save(self, cell: Cell, result: dict[str, Any]) -> None:
        """Store the result of a cell atomically."""
        import pyarrow as pa

        text = json.dumps({"cell": cell.as_json(), "result": result})
        other_rows = [None] * (len(result["sessions"]) - 1)
        columns = {
            "key": [cell.key] * len(result["sessions"]),
            **_session_columns(cell, result),
            "result": [text, *other_rows],
            "sha256": [hashlib.sha256(text.encode()).hexdigest(), *other_rows],
        }
        _write(pa.table(columns), self.path(cell))
        self.note(cell, "failed.json").unlink(missing_ok=True)

    def fail(self, cell: Cell, error: str, traceback: str = "") -> None:
        """Record the error of a cell that failed."""
        text = json.dumps({"cell": cell.as_json(), "error": error, "traceback": traceback}, indent=1)
        write_bytes(self.note(cell, "failed.json"), text.encode())

    def note_start(self, cell: Cell, call: str) -> None:
        """Record that a worker of a call begins a cell. The record remains if the worker dies."""
        worker = {"host": socket.gethostname(), "process": os.getpid()}
        values = {"call": call, "starts": self.starts(cell, call) + 1, **worker}
        write_bytes(self.note(cell, "started.json"), json.dumps(values).encode())

    def starts(self, cell: Cell, call: str) -> int:
        """How often workers of a call began a cell that is not settled yet."""
        try:
            values = json.loads(self.note(cell, "started.json").read_bytes())
            return int(values["starts"]) if values["call"] == call else 0
        except (OSError, ValueError, KeyError, TypeError):  # the record is missing or damaged
            return 0

    def forget_start(self, cell: Cell) -> None:
        self.note(cell, "started.json").unlink(missing_ok=True)

    def forget_failures(self, cells: Iterable[Cell]) -> None:
        """Let failed cells run again."""
        for cell in cells:
            self.note(cell, "failed.json").unlink(missing_ok=True)

    def read(self, cell: Cell) -> dict[str, Any] | None:
        """The result of a cell; None if it is missing or damaged. A damaged file is set aside."""
        values = self._read_values(cell.key)
        if values is not None:
            return values["result"]
        if self.done(cell):
            self._set_aside(cell, "damaged")
            name = self.path(cell).name
            warnings.warn(f"{name} is damaged: it was set aside and its cell runs again.", GraphfclWarning, 2)
        return None

    def _read_values(self, key: str) -> dict[str, Any] | None:
        """``cell`` and ``result`` of a key as plain values; None if it is missing or its file is damaged."""
        path = self.cells / f"{key}.parquet"
        texts = (_read_texts(path) or {}) if path.exists() else self._packed
        return json.loads(texts[key]) if key in texts else None

    def set_outdated_aside(self, cell: Cell, graph_sha256: str) -> bool:
        """Set aside the result of a cell if it was computed on another graph. Return whether it was set aside."""
        with self.claim(cell) as ours:
            # Read again: another process may have set it aside and run the cell again meanwhile.
            result = self.read(cell) if ours else None
            if result is None or result["graph_sha256"] == graph_sha256:
                return False
            self._set_aside(cell, "outdated")
            return True

    def _set_aside(self, cell: Cell, kind: str) -> None:
        with suppress(FileNotFoundError):  # another process was faster
            self.path(cell).replace(self.note(cell, kind))

    def pack(self) -> None:
        """Join the files of each grid's cells into one file. All cells must be done."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.unpack()
        with grids_locked(self.folder):
            files: dict[Path, Path] = {}  # file of a cell → file of the first grid that contains it
            for path in sorted((self.folder / "grids").glob("*.json")):
                cells = sorted(json.loads(path.read_bytes())["cells"], key=lambda cell: (cell["dataset"], cell["seed"]))
                for cell in cells:
                    files.setdefault(self.cells / f"{cell_key(cell)}.parquet", path.with_suffix(".parquet"))
            missing = sum(not path.exists() for path in files)
            if missing:
                raise InputError(f"{missing} cells of {self.folder} have no result: finish its grids first.")
            for pack in dict.fromkeys(files.values()):
                tables = [pq.read_table(path) for path, target in files.items() if target == pack]
                _write(pa.concat_tables(tables, promote_options="permissive"), pack)
            for path in files:
                path.unlink()
        self.__dict__.pop("_packed", None)

    def unpack(self) -> None:
        """Split the joined files into one file per cell, which workers need."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        with grids_locked(self.folder):
            for path in self._packs():
                keys = _texts_of_pack(path)
                table = pq.read_table(path)
                for key in keys:
                    _write(table.filter(pc.equal(table["key"], key)), self.cells / f"{key}.parquet")
                path.unlink()
        self.__dict__.pop("_packed", None)

    def _packs(self) -> list[Path]:
        return sorted((self.folder / "grids").glob("*.parquet"))

    @cached_property
    def _packed(self) -> dict[str, str]:
        """JSON of the cells in joined files, by key."""
        return {key: text for path in self._packs() for key, text in _texts_of_pack(path).items()}


@contextmanager
def usable(folder: str | Path) -> Iterator[None]:
    """Turn an OSError in a folder into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{folder} cannot be used as a folder ({error.strerror}): choose another --out.") from error


@contextmanager
def grids_locked(folder: str | Path) -> Iterator[None]:
    """Hold the lock of the grid files, because merging grids reads a file before it is written."""
    lock = Path(folder) / "state" / "grids.lock"
    with usable(folder):
        make_folder(lock.parent)
        lock.touch()
    with file_lock(lock):
        yield


def read_cell(path: Path) -> tuple[Cell, dict[str, Any]] | None:
    """Read a cell and its result; None if the file is damaged. Refuse a cell of another protocol version."""
    texts = _read_texts(path)
    if not texts:
        return None
    values = json.loads(next(iter(texts.values())))
    refuse_other_version(values["cell"].get("protocol_version"), str(path), OTHER_FOLDER)
    return Cell(**values["cell"]), values["result"]


def _session_columns(cell: Cell, result: dict[str, Any]) -> dict[str, list[Any]]:
    """The columns of a cell's table, without the complete result. Values of the run are repeated in every row."""
    sessions, protocol = result["sessions"], result["protocol"]
    run_values = {
        "dataset": cell.dataset,
        "method": cell.method,
        "variant": cell.row,
        "seed": cell.seed,
        "protocol_version": cell.protocol_version,
        "protocol": protocol["name"],
        **{name: protocol[name] for name in ("track", "way", "shot")},
        "pool_as_supports": protocol.get("pool_as_supports", False),
    }
    session_names = ["session", "classes", *(m.name for m in session_metrics() if "column" in m.places), "seconds"]
    result_names = [metric.name for metric in stream_metrics() if "column" in metric.places]
    result_names += ["stored_bytes", "peak_memory_mb", "total_seconds"]
    if cell.strategy:
        run_values["strategy"] = cell.strategy
        session_names += ACTIVE_SESSION_COLUMNS
        result_names += [metric.name for metric in active_metrics()]
    columns = {name: [value] * len(sessions) for name, value in run_values.items()}
    columns |= {name: [session.get(name) for session in sessions] for name in session_names}
    return columns | {name: [result.get(name)] * len(sessions) for name in result_names}


def _write(table: Any, path: Path) -> None:
    import pyarrow.parquet as pq

    # Large pages compress better, because results resemble each other.
    options = {"compression": "zstd", "compression_level": 15, "data_page_size": 8 << 20, "write_page_checksum": True}
    write_durably(path, partial(pq.write_table, table, **options))


def _texts_of_pack(path: Path) -> dict[str, str]:
    texts = _read_texts(path)
    if texts is None:
        raise InputError(f"{path} is damaged: restore it from a copy, or delete it and run its grid again.")
    return texts


def _read_texts(path: Path) -> dict[str, str] | None:
    """Read the JSON of the cells of a file, by key; None if the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        content = pa.BufferReader(read_bytes(path, "the cells"))
        table = pq.read_table(content, columns=["key", "result", "sha256"], page_checksum_verification=True)
        rows = zip(*(table[name].to_pylist() for name in ("key", "result", "sha256")), strict=True)
        texts = {key: (text, digest) for key, text, digest in rows if text is not None}
        intact = all(hashlib.sha256(text.encode()).hexdigest() == digest for text, digest in texts.values())
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError, AttributeError):
        return None
    return {key: text for key, (text, _) in texts.items()} if intact and texts else None
