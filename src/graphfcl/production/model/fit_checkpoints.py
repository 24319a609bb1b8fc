"""A fit that was stopped goes on where it was: the states of its two learners, kept beside the model that is to be."""

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
    """States of learners that are being fitted, by name; one without a folder keeps nothing.

    identity: what a fit is the same by: graph, method, settings. resume: go on from what is there. work: the work
    folder of a graph on the disk, or what stands for one in memory; None: it is not kept.
    """

    def __init__(self, folder: Path | None = None, *, resume: bool = False) -> None:
        self.folder = folder
        self.resume = resume
        self.identity: dict[str, Any] = {}
        self.work: str | None = None

    def begin(self, identity: dict[str, Any]) -> None:
        """Refuse to write over the states of a fit that was stopped; where a new one works is kept."""
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
        """Whether there is something to go on from."""
        return self.folder is not None and any(self.folder.glob("*.safetensors"))

    def work_before(self) -> str | None:
        """The ``work`` of the fit that this one goes on with; None if it is not known."""
        if self.folder is None or not self.resume:
            return None
        with suppress(OSError, ValueError):
            work = json.loads((self.folder / WORK).read_bytes())
            return work if isinstance(work, str) else None
        return None

    def restore(self, name: str, learner: Learner) -> None:
        """Let a new learner be what one of this name was when it was last kept."""
        from graphfcl.methods.shared.checkpoint import load_checkpoint

        path = self._path(name)
        if path is None or not self.resume or not path.exists():
            return
        state, identity = load_checkpoint(path)
        if identity != self.identity:
            other = [key for key, value in self.identity.items() if identity.get(key) != value]
            raise InputError(
                f"{self.folder} is of a fit with another {other[0] if other else 'identity'}: repeat its options, or "
                f"delete {self.folder} to begin again."
            )
        learner.load_state(state)

    def watching(self, name: str, progress: Progress, prefix: str = "") -> Progress:
        """Progress that keeps the learner from time to time. prefix: before the names of stages."""
        return _Keeper(self, name, progress, prefix)

    def keep(self, name: str, learner: Learner) -> None:
        """Keep the state of a learner now."""
        from graphfcl.methods.shared.checkpoint import save_checkpoint

        path = self._path(name)
        if path is not None:
            make_folder(path.parent)
            save_checkpoint(path, learner.state(), self.identity)

    def remember(self, name: str, values: list[str]) -> list[str]:
        """The values of this name when the fit first came here; ``values`` if that is now."""
        if self.folder is None:
            return values
        path = self.folder / f"{name}.json"
        with suppress(OSError, ValueError):
            if self.resume:
                return [str(each) for each in json.loads(path.read_bytes())]
        write_bytes(path, canonical_json(values))
        return values

    def clear(self) -> None:
        """The fit is done."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{name}.safetensors"


class _Keeper(Progress):
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
