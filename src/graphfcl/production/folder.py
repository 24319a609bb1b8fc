"""The folder of one model: locks it, hands out classifiers and keeps what becomes of them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from graphfcl.errors import InputError
from graphfcl.production.classifier import GraphClassifier
from graphfcl.production.history import History, unsaved
from graphfcl.production.versions import Versions


class ModelFolder:
    """A model as numbered versions on disk; ``versions.py`` says how they are kept."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._versions = Versions(self.path)

    # Reading

    def exists(self) -> bool:
        """Whether there is a model in the folder."""
        return self._versions.exists()

    def current(self) -> int:
        """The number of the newest version."""
        return self._versions.current()

    def manifest(self, version: int) -> dict[str, Any]:
        """The verified manifest of a version."""
        return self._versions.manifest(version)

    def load(self, version: int | None = None, *, device: str = "cpu") -> GraphClassifier:
        """A version, the newest if none is named."""
        return GraphClassifier.load(self.path, version=version, device=device)

    def history(self, upto: int | None = None) -> History:
        """Every change, oldest first, with the version that holds it."""
        return self._versions.history(upto)

    # Writing

    def writing(self, wait: float = 60.0) -> AbstractContextManager[None]:
        """Only one process writes at a time; another waits so many seconds, then it is refused."""
        return self._versions.writing(wait)

    @contextmanager
    def editing(self, wait: float = 60.0, *, device: str = "cpu") -> Iterator[GraphClassifier]:
        """The newest version, to be changed; what was changed becomes the next version, or nothing does."""
        self._versions.refuse_lost_pointer()
        if not self.exists():
            raise InputError(f"{self.path} holds no model: make one with `graphfcl fit --model {self.path}`.")
        with self.writing(wait):
            model = self.load(device=device)
            yield model
            if unsaved(model.history):
                model.write_version(self._versions)

    def check_free(self) -> None:
        """Refuse a folder that holds a model, or that cannot be written, before anything is computed for it."""
        self._versions.refuse_lost_pointer()
        if self.exists():
            raise InputError(
                f"{self.path} holds a model already: choose another folder, or `graphfcl learn` to teach it more."
            )
        self._versions.lock_path()

    def save(self, model: GraphClassifier, *, wait: float = 60.0) -> int:
        """Write a model as the next version. Refused if the folder has moved on since the model was loaded."""
        return model.save(self.path, wait=wait)

    def rollback(self, version: int, *, wait: float = 60.0) -> int:
        """Write a new version equal to an old one; returns its number. Works also if newer versions are damaged."""
        return self._versions.rollback(version, wait=wait)
