"""Embeddings and scores of the newest version, so that asking needs no forward pass. May be deleted at any time."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.files import canonical_json, safetensors_header, sha256_of, write_bytes
from graphfcl.methods import find_method
from graphfcl.production.codec import FILES
from graphfcl.production.model_parts import ModelParts


class VersionCache:
    """One safetensors file. Its header says which model it belongs to, and the checksum of its content."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, manifest: dict[str, Any], parts: ModelParts, scores: np.ndarray) -> None:
        """Keep the embeddings and scores of a version; not an error if that fails."""
        from safetensors.numpy import save

        tensors = {"table": parts.learner.embeddings(parts.graph.visible), "scores": scores}
        tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        digest = sha256_of(b"".join(tensor.tobytes() for tensor in tensors.values()))
        content = save(tensors, {"key": _key(manifest, parts), "sha256": digest})
        with suppress(InputError):  # it can be computed again
            write_bytes(self.path, content)

    def read(self, manifest: dict[str, Any], parts: ModelParts) -> np.ndarray | None:
        """Give the learner its embeddings and answer the scores; None if they are not there or of another version."""
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            content = self.path.read_bytes()
            header = safetensors_header(content)
            if header["key"] != _key(manifest, parts):
                return None
            tensors = load(content)
            if header["sha256"] != sha256_of(tensors["table"].tobytes() + tensors["scores"].tobytes()):
                return None
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):
            return None
        parts.learner.use_embeddings(parts.graph.visible, tensors["table"])
        return tensors["scores"]


def _key(manifest: dict[str, Any], parts: ModelParts) -> str:
    """Equal for versions with equal embeddings and scores; edited code of a method from outside gives others."""
    files = {name: manifest["files"][name] for name in FILES if name != "ledger"}
    source = find_method(parts.configuration.method).source
    known = [files, manifest["values"]["method"], manifest["values"]["learner"], *([source] if source else [])]
    return sha256_of(canonical_json(known))
