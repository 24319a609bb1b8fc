"""Folders that somebody wrote by hand: any part of a version changed, and every checksum put right."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.files import canonical_json, sha256_of
from graphfcl.production.storage.objects import packed, unpacked


class CraftedFolder:
    """A copy of a folder, whose newest version is changed by plain functions."""

    def __init__(self, source: Path, copy: Path) -> None:
        self.path = Path(shutil.copytree(source, copy))
        shutil.rmtree(self.path / "cache", ignore_errors=True)
        self.number = json.loads((self.path / "current").read_bytes())["version"]

    @property
    def manifest_path(self) -> Path:
        return self.path / "versions" / f"{self.number:06d}.json"

    def manifest(self) -> dict[str, Any]:
        return json.loads(self.manifest_path.read_bytes())

    def write_manifest(self, manifest: Any, content: bytes | None = None) -> None:
        """Write a manifest with the right checksum, and the pointer to it. content: what is to stand there instead."""
        manifest.pop("sha256", None)
        digest = sha256_of(canonical_json(manifest))
        self.manifest_path.write_bytes(content or canonical_json({**manifest, "sha256": digest}))
        (self.path / "current").write_bytes(canonical_json({"version": self.number, "sha256": digest}))

    def change_manifest(self, change: Callable[[dict[str, Any]], Any]) -> None:
        manifest = self.manifest()
        change(manifest)
        self.write_manifest(manifest)

    def put(self, content: bytes, *, as_file: bytes | None = None) -> str:
        """An object with the right name; ``as_file`` is what its file holds instead of the content."""
        name = sha256_of(content)
        (self.path / "objects" / name).write_bytes(packed(content) if as_file is None else as_file)
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

    def change_array(self, tree: str, array: str, change: Callable[[Any], Any]) -> None:
        """Write another array in the place of one, in one block."""
        index = self.tree(tree)["arrays"][array]
        size = np.dtype(index["dtype"]).itemsize
        blocks = [
            unpacked((self.path / "objects" / name).read_bytes(), items * size) or b""
            for name, items in index["blocks"]
        ]
        old = np.frombuffer(b"".join(blocks), index["dtype"]).reshape(index["shape"]).copy()
        self.set_array(tree, array, np.ascontiguousarray(change(old)))

    def set_array(self, tree: str, name: str, array: Any) -> None:
        """Have an array in a tree."""
        index = {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "blocks": [[self.put(array.tobytes()), array.size]],
        }
        self.change_tree(tree, lambda found: found["arrays"].update({name: index}))
