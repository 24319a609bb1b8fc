"""Pre-trained encoders as files, computed once for a session 0 and a seed and shared by all methods."""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.methods.shared.checkpoint import load_checkpoint, save_checkpoint
from graphfcl.methods.state import EncoderStore, LearnerState, Tensors
from graphfcl.runtime.files import file_lock
from graphfcl.stream import Stream, session_zero_hash, stream_hash
from graphfcl.version import __version__


class EncoderFolder(EncoderStore):
    """A folder with one file per encoder. The first process that needs an encoder computes it; others wait."""

    def __init__(self, folder: str | Path, stream: Stream, source: str = "") -> None:
        import torch

        self.folder = Path(folder)
        self.stream_key = {
            "graph": stream.graph.sha256,
            "protocol_version": stream.protocol.protocol_version,
            # The package's methods pre-train on session 0 independently of K. Other code may depend on K.
            "stream": stream_hash(stream) if source else session_zero_hash(stream),
            "stream_seed": stream.seed,
            "graphfcl": __version__,
            "torch": torch.__version__,
            **({"source": source} if source else {}),
        }

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:
        full_key = {**self.stream_key, **key}
        digest = hashlib.sha256(json.dumps(full_key, sort_keys=True).encode()).hexdigest()
        path = self.folder / f"{digest[:16]}.safetensors"
        with self._locked(path):
            tensors = self._read(path, full_key)
            if tensors is None:
                tensors = compute()
                save_checkpoint(path, LearnerState(tensors), full_key)
        return tensors

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        """Hold the lock of an encoder. It is released at the latest when the process ends."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".lock").touch()
        except OSError as error:
            raise InputError(
                f"{self.folder} cannot be written ({error.strerror}): choose another folder with --encoders."
            ) from error
        with file_lock(path.with_suffix(".lock")):
            yield

    def _read(self, path: Path, key: dict[str, Any]) -> Tensors | None:
        """Read an encoder; None if it is missing, damaged or has another key. A damaged file is set aside."""
        if not path.exists():
            return None
        try:
            state, stored_key = load_checkpoint(path)
        except InputError:
            aside = path.with_suffix(".damaged")
            path.replace(aside)
            warnings.warn(
                f"{path} is damaged: it was set aside as {aside.name} and is computed again.", GraphfclWarning, 2
            )
            return None
        return state.tensors if stored_key == key else None
