"""Files of a model on disk that can be computed again: answers in its work folder, and leftovers of a refused fit.

A pass over the graph folder writes the learner's scores (n, C) and readings (n, 2) as tables into the work folder. A
small file names both, and holds the calibration and accuracy that follow from them.
"""

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.blocks.tile_files import DiskFull
from graphfcl.methods.blocks.work_folder import COMPUTING, IN_USE, WorkFolder, alone_in, key_of
from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.answers.calibration import Calibration
from graphfcl.runtime.files import canonical_json, file_lock, make_folder, shared_lock, write_bytes

KEPT = 2  # versions whose answers stay on disk


def write_answers(
    work: Path, scores: StoredTable, readings: np.ndarray, calibration: Calibration, accuracy: dict[str, Any] | None
) -> ModelAnswers:
    """Write the readings beside the scores. ``work``: work folder of one state of the graph."""
    key = key_of(readings=scores.key, calibration=calibration.as_json())
    table = WorkFolder(work).table("readings", key, scores.rows, 2, kind="<f8", by="parts")
    for number in table.missing():
        file = table.files[number]
        file.write(readings[low:high] for low, high in file.blocks)
    return ModelAnswers(scores, table, calibration, accuracy)


def keep_answers(answers: ModelAnswers, work: Path, version: str) -> None:
    """Store the answers of a version for later readers. ``work``: work folder of the model. ``version``: key of the
    version.
    """
    tables: dict[str, StoredTable] = {"scores": answers.scores, "readings": answers.readings}
    content = {
        "version": version,
        "tables": {name: _as_json(table, work) for name, table in tables.items()},
        "calibration": answers.calibration.as_json(),
        "accuracy": answers.accuracy,
    }
    make_folder(work)
    write_bytes(_path(work, version), canonical_json(content))
    _forget_old(work, {table.folder for table in tables.values()})


def find_answers(work: Path, version: str, rows: int, columns: int) -> ModelAnswers | None:
    """Return the answers of a version; None if they are missing, incomplete, or have another size."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        stored = json.loads(_path(work, version).read_bytes())
        if stored["version"] != version:
            return None
        scores, readings = (_table(stored["tables"][name], work) for name in ("scores", "readings"))
        if (scores.rows, scores.columns) != (rows, columns) or (readings.rows, readings.columns) != (rows, 2):
            return None
        if not scores.missing() and not readings.missing():
            return ModelAnswers(scores, readings, Calibration.from_json(stored["calibration"]), stored["accuracy"])
    return None


def clear_work(work: Path) -> None:
    """Delete everything computed from a model's graph, which may contain features of erased nodes.

    A folder in which graphfcl never computed is not touched, whatever folder a model names.
    """
    if work.is_symlink() or not (work / COMPUTING).is_file():
        return
    with alone_in(work):
        for path in work.glob("answers-*.json"):
            path.unlink(missing_ok=True)
        for state in work.glob("graph-*"):
            if not _remove_state(state, work):
                raise InputError(
                    f"another process computes in {state}: wait until it has finished; the next command that changes "
                    "the model deletes what is left."
                )
        for grown in work.glob("grown-*"):
            shutil.rmtree(grown)


def _path(work: Path, version: str) -> Path:
    return work / f"answers-{version[:16]}.json"


def _as_json(table: StoredTable, work: Path) -> dict[str, Any]:
    values = {key: value for key, value in asdict(table).items() if key != "folder"}
    return {**values, "folder": table.folder.absolute().relative_to(work.absolute()).as_posix()}


def _table(stored: dict[str, Any], work: Path) -> StoredTable:
    place = Path(stored["folder"])
    if place.is_absolute() or ".." in place.parts:
        raise ValueError("a table lies outside of the work folder")
    return StoredTable(
        work / place, stored["key"], int(stored["rows"]), int(stored["columns"]), stored["kind"], stored["by"]
    )


def _forget_old(work: Path, used: set[Path]) -> None:
    """Delete the answers of all but the newest few versions, and states of the graph that only these used.

    A state in which a process computes stays, and so does one that never had answers, because its computation may be
    resumed there.
    """
    with suppress(OSError, InputError):
        paths = sorted(work.glob("answers-*.json"), key=lambda path: path.stat().st_mtime_ns)
        used = used | {table.folder for path in paths[-KEPT:] for table in _named_tables(path, work)}
        for path in paths[:-KEPT]:
            old = [table for table in _named_tables(path, work) if table.folder not in used]
            path.unlink(missing_ok=True)
            for table in old:
                table.remove()
            for state in {table.folder.parent for table in old} - {folder.parent for folder in used}:
                _remove_state(state, work)


def _remove_state(state: Path, work: Path) -> bool:
    """Delete the folder of a state of the graph and its grown graph; False if a process computes there."""
    name = state.name.removeprefix("graph-")
    if state.parent != work or name == state.name:
        return True
    with shared_lock(state / IN_USE) as lock, lock.alone() as free:
        if free:
            for path in (state, work / f"grown-{name}"):
                shutil.rmtree(path, ignore_errors=True)
        return free


def _named_tables(path: Path, work: Path) -> list[StoredTable]:
    """Return the tables that a file of answers names; none if the file cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        stored = json.loads(path.read_bytes())
        return [_table(stored["tables"][name], work) for name in ("scores", "readings")]
    return []


class CleanUpOnRefusal:
    """Context that deletes everything made below a folder since its creation, if an :class:`InputError` ends it.

    Parent folders that did not exist are deleted, too. The caller ensures that no other process writes there. Nothing
    is deleted if ``keep`` returns True, because a fit can be resumed, or if the disk is full.
    """

    def __init__(self, folder: Path, *, keep: Callable[[], bool]) -> None:
        self._folder, self._keep = folder, keep
        self._missing = [each for each in (folder, *folder.parents) if not each.exists()]
        self._before = set(folder.rglob("*"))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, InputError) or isinstance(error, DiskFull) or self._keep():
            return
        made = set(self._folder.rglob("*")) - self._before
        for path in made:
            if path.parent in made:  # deleted with its folder
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        with suppress(OSError):  # a folder that is not empty stays
            for each in self._missing:
                each.rmdir()


def tidy_work(work: Path | None, keep: Callable[[], bool]) -> AbstractContextManager[None]:
    """Do the same for a work folder that does not exist yet; it stays if another process computes in it by then."""
    if work is None or work.exists():
        return nullcontext()
    return CleanUpOnRefusal(work, keep=lambda: keep() or _is_in_use(work))


def _is_in_use(work: Path) -> bool:
    if not (work / COMPUTING).exists():
        return False
    with file_lock(work / COMPUTING, wait=0) as free:
        return not free
