"""What a model says of every node of a graph folder, computed once for a version and read by rows.

A pass writes the learner's scores (n, C) and readings (n, 2) as tables into the work folder of the graph, and a small
file that names both, with the calibration and the accuracy that follow from them. All three can be computed again.
"""

import json
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.files import canonical_json, make_folder, shared_lock, write_bytes
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.blocks.tile_files import BLOCK
from graphfcl.methods.blocks.work_folder import IN_USE, WorkFolder, key_of
from graphfcl.production.answers import Answers
from graphfcl.production.calibration import Calibration, Readings

if TYPE_CHECKING:
    from graphfcl.production.folder_model_graph import FolderModelGraph

KEPT = 2  # versions whose answers stay on the disk
SHARE = 4  # answers that are gathered take this part of the memory


@dataclass(frozen=True, eq=False)
class AnswersOnDisk:
    """scores: (n, columns). readings: (n, 2) strangeness and temperatures.

    calibration, accuracy: what the pass found; see ``settling.py``.
    """

    scores: StoredTable
    readings: StoredTable
    calibration: Calibration
    accuracy: dict[str, Any]

    def of(self, rows: np.ndarray) -> Answers:
        """Those of some rows, in any order."""
        readings = self.readings[rows]
        return Answers(self.scores[rows], readings[:, 0], readings[:, 1])

    def parts(self, memory: int) -> list[tuple[int, int]]:
        """(start, stop) of ranges of nodes that are gathered at a time.

        Rows were shuffled, so as many as fit into a quarter of the memory are gathered in one pass over the tables.
        """
        row_bytes = self.scores.columns * 4 + 2 * 8
        size = BLOCK * max(1, memory // SHARE // (BLOCK * row_bytes))
        return [(start, min(start + size, self.scores.rows)) for start in range(0, self.scores.rows, size)]

    def is_whole(self) -> bool:
        return not self.scores.missing() and not self.readings.missing()

    # Keeping

    @classmethod
    def write(
        cls, graph: "FolderModelGraph", scores: StoredTable, readings: Readings, calibration: Calibration, accuracy: Any
    ) -> "AnswersOnDisk":
        """Write the readings beside the scores."""
        key = key_of(readings=scores.key, calibration=calibration.as_json())
        table = WorkFolder(graph.work).table("readings", key, scores.rows, 2, kind="<f8", by="parts")
        for number in table.missing():
            file = table.files[number]
            file.write(
                np.stack([readings.strangeness[low:high], readings.temperatures[low:high]], axis=1)
                for low, high in file.extent.blocks
            )
        return cls(scores, table, calibration, accuracy)

    def keep(self, work: Path, version: str) -> None:
        """Let whoever loads the version find them. work: the model's work folder. version: a key of the version."""
        said = {
            "version": version,
            "calibration": self.calibration.as_json(),
            "accuracy": self.accuracy,
            "tables": {name: _said(getattr(self, name), work) for name in ("scores", "readings")},
        }
        make_folder(work)
        write_bytes(_path(work, version), canonical_json(said))
        _forget_old(work, self)

    @classmethod
    def find(cls, work: Path, version: str, rows: int, columns: int) -> "AnswersOnDisk | None":
        """What was kept of a version; None if it is not there, not whole, or of another size."""
        return _found(_path(work, version), work, version, rows, columns)


def _path(work: Path, version: str) -> Path:
    return work / f"answers-{version[:16]}.json"


def _said(table: StoredTable, work: Path) -> dict[str, Any]:
    values = {key: value for key, value in asdict(table).items() if key != "folder"}
    return {**values, "folder": table.folder.absolute().relative_to(work.absolute()).as_posix()}


def _found(path: Path, work: Path, version: str, rows: int, columns: int) -> AnswersOnDisk | None:
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        said = json.loads(path.read_bytes())
        if said["version"] != version:
            return None
        scores, readings = (_table(said["tables"][name], work) for name in ("scores", "readings"))
        if (scores.rows, scores.columns) != (rows, columns) or readings.rows != rows:
            return None
        found = AnswersOnDisk(scores, readings, Calibration.from_json(said["calibration"]), said["accuracy"])
        return found if found.is_whole() else None
    return None


def _table(said: dict[str, Any], work: Path) -> StoredTable:
    place = Path(said["folder"])
    if place.is_absolute() or ".." in place.parts:
        raise ValueError("a table lies outside of the work folder")
    return StoredTable(work / place, said["key"], int(said["rows"]), int(said["columns"]), said["kind"], said["by"])


def _forget_old(work: Path, kept: AnswersOnDisk) -> None:
    """Delete the answers of all but the newest few versions, and states of the graph that had no others.

    All of it can be computed again. A state in which somebody computes stays, and so does one that never had answers:
    its computation was stopped, and goes on there.
    """
    with suppress(OSError, InputError):
        paths = sorted(work.glob("answers-*.json"), key=lambda path: path.stat().st_mtime_ns)
        used = {table.folder for table in (kept.scores, kept.readings)}
        used |= {table.folder for path in paths[-KEPT:] for table in _tables(path, work)}
        for path in paths[:-KEPT]:
            old = [table for table in _tables(path, work) if table.folder not in used]
            path.unlink(missing_ok=True)
            for table in old:
                table.remove()
            for state in {table.folder.parent for table in old} - {folder.parent for folder in used}:
                _remove_state(state, work)


def _remove_state(state: Path, work: Path) -> None:
    """Delete the folder of a state of the graph, and what it was grown by."""
    name = state.name.removeprefix("graph-")
    if state.parent != work or name == state.name:
        return
    with shared_lock(state / IN_USE) as lock, lock.alone() as free:
        if free:
            for path in (state, work / f"grown-{name}"):
                shutil.rmtree(path, ignore_errors=True)


def _tables(path: Path, work: Path) -> list[StoredTable]:
    """The tables that answers name, whole or not; none if the file cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        said = json.loads(path.read_bytes())
        return [_table(said["tables"][name], work) for name in ("scores", "readings")]
    return []
