"""Where finished cells land: a folder with one Parquet file per cell.

Parquet, because ``pandas.read_parquet("DIR/cells")`` and DuckDB's ``select * from 'DIR/cells/*.parquet'`` read the
folder as one table with a row for every session; one file per cell, because each is written whole or not at all, nobody
waits for anybody, and a damaged one costs one cell. The whole result is in the first row's column ``result`` as JSON.
Locks, failures and files set aside are in the folder ``state`` beside it.
"""

import hashlib
import json
import os
import socket
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.experiments.cells import OTHER_FOLDER, Cell
from graphfcl.metrics import active_metrics, session_metrics, stream_metrics
from graphfcl.runtime.files import file_lock, read_bytes, write_bytes, write_durably
from graphfcl.stream import refuse_other_version

FORMAT = "graphfcl cell 1"
ACTIVE_SESSION_COLUMNS = ("labels", "novel_classes_found")  # of the track ``active`` alone


class CellStore:
    """The cells of a folder. Any number of processes may use it at once."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.cells, self.notes = self.folder / "cells", self.folder / "state"
        try:
            self.cells.mkdir(parents=True, exist_ok=True)
            self.notes.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder} is no usable folder ({error.strerror}): choose another --out.") from error

    def path(self, cell: Cell) -> Path:
        return self.cells / f"{cell.key}.parquet"

    def note(self, cell: Cell, kind: str) -> Path:
        return self.notes / f"{cell.key}.{kind}"

    def done(self, cell: Cell) -> bool:
        return self.path(cell).exists()

    def error(self, cell: Cell) -> str | None:
        """Why a cell failed, if it did."""
        path = self.note(cell, "failed.json")
        if self.done(cell) or not path.exists():
            return None
        try:
            return str(json.loads(path.read_bytes())["error"])
        except (ValueError, KeyError, OSError):
            return "unknown (its record is damaged)"

    def settled(self, cell: Cell) -> bool:
        return self.done(cell) or self.error(cell) is not None

    @contextmanager
    def claim(self, cell: Cell) -> Iterator[bool]:
        """Whether the cell is ours while the context lasts; a claim goes with the process that holds it."""
        with file_lock(self.note(cell, "lock"), wait=0) as ours:
            yield ours

    def save(self, cell: Cell, result: dict[str, Any]) -> None:
        """Store the result of a cell at once."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        sessions = result["sessions"]
        columns: dict[str, list[Any]] = {
            name: [value] * len(sessions)
            for name, value in (
                ("dataset", cell.dataset),
                ("method", cell.method),
                ("variant", cell.row),
                ("seed", cell.seed),
                ("protocol_version", cell.protocol_version),
                ("protocol", result["protocol"]["name"]),
                ("track", result["protocol"]["track"]),
                ("way", result["protocol"]["way"]),
                ("shot", result["protocol"]["shot"]),
                *((("strategy", cell.strategy),) if cell.strategy else ()),
            )
        }
        of_sessions = [metric.name for metric in session_metrics() if "column" in metric.places]
        columns |= {name: [s.get(name) for s in sessions] for name in ("session", "classes", *of_sessions, "seconds")}
        of_runs = [metric.name for metric in stream_metrics() if "column" in metric.places]
        of_runs += ["stored_bytes", "peak_memory_mb", "total_seconds"]
        columns |= {name: [result.get(name)] * len(sessions) for name in of_runs}
        if cell.strategy:
            columns |= {name: [session[name] for session in sessions] for name in ACTIVE_SESSION_COLUMNS}
            columns |= {metric.name: [result[metric.name]] * len(sessions) for metric in active_metrics()}
        whole = json.dumps({"cell": cell.as_json(), "result": result})
        columns["result"] = [whole, *[None] * (len(sessions) - 1)]
        table = pa.table(columns).replace_schema_metadata(
            {"format": FORMAT, "sha256": hashlib.sha256(whole.encode()).hexdigest()}
        )
        write = partial(pq.write_table, table, compression="zstd", compression_level=15, write_page_checksum=True)
        write_durably(self.path(cell), write)
        self.note(cell, "failed.json").unlink(missing_ok=True)

    def fail(self, cell: Cell, error: str, traceback: str = "") -> None:
        """Record that a cell failed, and why."""
        text = json.dumps({"cell": cell.as_json(), "error": error, "traceback": traceback}, indent=1)
        write_bytes(self.note(cell, "failed.json"), text.encode())

    def note_start(self, cell: Cell, call: str) -> None:
        """Note that a worker of a call begins a cell; the note stays if the worker dies."""
        who = {"host": socket.gethostname(), "process": os.getpid()}
        values = {"call": call, "starts": self.starts(cell, call) + 1, **who}
        write_bytes(self.note(cell, "started.json"), json.dumps(values).encode())

    def starts(self, cell: Cell, call: str) -> int:
        """How often workers of a call began a cell that none of them has settled."""
        try:
            found = json.loads(self.note(cell, "started.json").read_bytes())
            return int(found["starts"]) if found["call"] == call else 0
        except (OSError, ValueError, KeyError, TypeError):  # there is none, or it is damaged
            return 0

    def forget_start(self, cell: Cell) -> None:
        self.note(cell, "started.json").unlink(missing_ok=True)

    def forget_failures(self, cells: Iterable[Cell]) -> None:
        """Let failed cells run again."""
        for cell in cells:
            self.note(cell, "failed.json").unlink(missing_ok=True)

    def read(self, cell: Cell) -> dict[str, Any] | None:
        """The result of a cell; None if there is none or it is damaged, in which case the file is set aside."""
        path = self.path(cell)
        if not path.exists():
            return None
        found = read_cell(path)
        if found is None:
            self._set_aside(cell, "damaged")
            warnings.warn(f"{path.name} is damaged: it was set aside and its cell runs again.", GraphfclWarning, 2)
            return None
        return found[1]

    def set_outdated_aside(self, cell: Cell, graph_sha256: str) -> bool:
        """Set the result of a cell aside if it is of another graph than this one; whether it was."""
        with self.claim(cell) as ours:
            # Another process may have done so and run the cell again meanwhile: what counts is what is there now.
            result = self.read(cell) if ours else None
            if result is None or result["graph_sha256"] == graph_sha256:
                return False
            self._set_aside(cell, "outdated")
            return True

    def _set_aside(self, cell: Cell, kind: str) -> None:
        with suppress(FileNotFoundError):  # another process was faster
            self.path(cell).replace(self.note(cell, kind))


def read_cell(path: Path) -> tuple[Cell, dict[str, Any]] | None:
    """A cell and its result, or None if the file is damaged. A cell of another protocol version is refused."""
    values = read_values(path)
    if values is None:
        return None
    refuse_other_version(values["cell"].get("protocol_version"), str(path), OTHER_FOLDER)
    try:
        return Cell.from_json(values["cell"]), values["result"]
    except TypeError:
        return None


def read_values(path: Path) -> dict[str, Any] | None:
    """``cell`` and ``result`` of a file as plain values, or None if the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        content = read_bytes(path, "the cell")
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
        metadata = {key.decode(): value for key, value in (table.schema.metadata or {}).items()}
        whole = table.column("result")[0].as_py().encode()
        if metadata["format"].decode() != FORMAT or hashlib.sha256(whole).hexdigest() != metadata["sha256"].decode():
            return None
        values = json.loads(whole)
        return values if isinstance(values["cell"], dict) and isinstance(values["result"], dict) else None
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError, AttributeError):
        return None
