"""Folders that somebody wrote by hand: any part of a version changed, and every checksum put right."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.production.store.objects import packed, unpacked
from graphfcl.runtime.files import canonical_json, sha256_of


class CraftedFolder:
    """A copy of a folder, whose newest version is changed by plain functions."""

    def __init__(self, source: Path, copy: Path, *, with_cache: bool = False, linked: bool = False) -> None:
        """linked: files share their content with the source, which is quicker; none of them is written to."""
        self.path = Path(shutil.copytree(source, copy, copy_function=os.link if linked else shutil.copy2))
        if not with_cache:
            shutil.rmtree(self.path / "cache", ignore_errors=True)
        self.number = json.loads((self.path / "current").read_bytes())["version"]

    @property
    def manifest_path(self) -> Path:
        return self.path / "versions" / f"{self.number:06d}.json"

    def manifest(self) -> dict[str, Any]:
        return json.loads(self.manifest_path.read_bytes())

    def write_manifest(self, manifest: Any, content: bytes | None = None) -> None:
        """Write a manifest with the right checksum, and the pointer to it. content: what is to stand there instead."""
        digest = ""
        if isinstance(manifest, dict):
            manifest = {key: value for key, value in manifest.items() if key != "sha256"}
            digest = sha256_of(canonical_json(manifest))
            manifest["sha256"] = digest
        _replace(self.manifest_path, content or canonical_json(manifest))
        _replace(self.path / "current", canonical_json({"version": self.number, "sha256": digest}))

    def change_manifest(self, change: Callable[[dict[str, Any]], Any]) -> None:
        manifest = self.manifest()
        change(manifest)
        self.write_manifest(manifest)

    def put(self, content: bytes, *, as_file: bytes | None = None) -> str:
        """An object with the right name; ``as_file`` is what its file holds instead of the content."""
        name = sha256_of(content)
        _replace(self.path / "objects" / name, packed(content) if as_file is None else as_file)
        return name

    def tree(self, name: str) -> dict[str, Any]:
        digest, size = self.manifest()["trees"][name]
        return json.loads(unpacked((self.path / "objects" / digest).read_bytes(), size) or b"")

    def write_tree(self, name: str, content: bytes) -> None:
        manifest = self.manifest()
        manifest["trees"][name] = [self.put(content), len(content)]
        self.write_manifest(manifest)

    def change_tree(self, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
        tree = self.tree(name)
        change(tree)
        self.write_tree(name, canonical_json(tree))

    def array(self, index: dict[str, Any]) -> np.ndarray:
        """The array of an index."""
        size = np.dtype(index["dtype"]).itemsize
        blocks = [
            unpacked((self.path / "objects" / name).read_bytes(), items * size) or b""
            for name, items in index["blocks"]
        ]
        return np.frombuffer(b"".join(blocks), index["dtype"]).reshape(index["shape"]).copy()

    def index_of(self, array: np.ndarray) -> dict[str, Any]:
        """Store an array in one block; its index."""
        return {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "blocks": [[self.put(array.tobytes()), array.size]],
        }

    def change_array(self, tree: str, array: str, change: Callable[[Any], Any]) -> None:
        """Write another array in the place of one, in one block."""
        old = self.array(self.tree(tree)["arrays"][array])
        self.set_array(tree, array, np.ascontiguousarray(change(old)))

    def set_array(self, tree: str, name: str, array: Any) -> None:
        """Have an array in a tree."""
        index = self.index_of(array)
        self.change_tree(tree, lambda found: found["arrays"].update({name: index}))


def _replace(path: Path, content: bytes) -> None:
    """Write a file that shares nothing with the one that stood there."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)
