"""Checkpoints of a fit: the states of its two learners, stored beside the new model, so that it can be resumed."""

import json
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from graphfcl.errors import InputError
from graphfcl.methods import Learner, Progress
from graphfcl.runtime.files import canonical_json, make_folder, write_bytes

SECONDS_BETWEEN = 10.0
WORK = "work.json"


class FitCheckpoints:
    """States of learners that are being fitted, by name. Without a folder, nothing is stored.

    Args:
        folder: Folder of the checkpoints.
        resume: Resume from the states in the folder.

    Attributes:
        identity: Values that two fits must have in common for one to resume the other: graph, method, settings.
        work: Work folder of a graph on disk, or a value that stands for it in memory; None: it is not stored.
    """

    def __init__(self, folder: Path | None = None, *, resume: bool = False) -> None:
        self.folder = folder
        self.resume = resume
        self.identity: dict[str, Any] = {}
        self.work: str | None = None

    def begin(self, identity: dict[str, Any]) -> None:
        """Begin a fit; refuses to overwrite the states of an interrupted one."""
        self.identity = identity
        if self.folder is None:
            return
        if not self.resume and self.has_states():
            raise InputError(
                f"{self.folder.parent} holds a fit that was stopped: go on with --resume, or delete {self.folder} to "
                "begin again."
            )
        if self.work is not None:
            write_bytes(self.folder / WORK, canonical_json(self.work))

    def has_states(self) -> bool:
        """Return whether there are states to resume from."""
        return self.folder is not None and any(self.folder.glob("*.safetensors"))

    def work_before(self) -> str | None:
        """Return ``work`` of the fit that is resumed; None if it is not known."""
        if self.folder is None or not self.resume:
            return None
        with suppress(OSError, ValueError):
            work = json.loads((self.folder / WORK).read_bytes())
            return work if isinstance(work, str) else None
        return None

    def restore(self, name: str, learner: Learner) -> None:
        """Load the stored state of a learner, if there is one."""
        from graphfcl.methods.shared.checkpoint import load_checkpoint

        path = self._path(name)
        if path is None or not self.resume or not path.exists():
            return
        state, identity = load_checkpoint(path)
        if identity != self.identity:
            other = [key for key, value in self.identity.items() if identity.get(key) != value]
            raise InputError(
                f"{self.folder} belongs to a fit with another {other[0] if other else 'identity'}: repeat its options, "
                f"or delete {self.folder} to begin again."
            )
        learner.load_state(state)

    def watching(self, name: str, progress: Progress, prefix: str = "") -> Progress:
        """Return progress that also stores the learner from time to time. ``prefix`` precedes the names of stages."""
        return _CheckpointingProgress(self, name, progress, prefix)

    def keep(self, name: str, learner: Learner) -> None:
        """Store the state of a learner now."""
        from graphfcl.methods.shared.checkpoint import save_checkpoint

        path = self._path(name)
        if path is not None:
            make_folder(path.parent)
            save_checkpoint(path, learner.state(), self.identity)

    def remember(self, name: str, values: list[str]) -> list[str]:
        """Return the values that were stored under this name when the fit first called this; the first call stores
        ``values``.
        """
        if self.folder is None:
            return values
        path = self.folder / f"{name}.json"
        with suppress(OSError, ValueError):
            if self.resume:
                return [str(each) for each in json.loads(path.read_bytes())]
        write_bytes(path, canonical_json(values))
        return values

    def clear(self) -> None:
        """Delete the checkpoints, because the fit is complete."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{name}.safetensors"


class _CheckpointingProgress(Progress):
    def __init__(self, checkpoints: FitCheckpoints, name: str, outer: Progress, prefix: str) -> None:
        self.checkpoints, self.name, self.outer, self.prefix = checkpoints, name, outer, prefix
        self.kept = time.perf_counter()

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        self.outer.step(self.prefix + stage, step, total, loss=loss, score=score)

    def checkpoint(self, learner: Learner) -> None:
        if time.perf_counter() - self.kept >= SECONDS_BETWEEN:
            self.checkpoints.keep(self.name, learner)
            self.kept = time.perf_counter()
        self.outer.checkpoint(learner)
