"""Folders that somebody wrote by hand: any part of a version changed, and every checksum put right."""

import hashlib
import json
import shutil
import sqlite3
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from graphfcl.runtime.files import canonical_json
from tests.cli.command import assert_one_sentence, graphfcl_inside


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A database, by SQLite alone; what is done to it is committed."""
    with closing(sqlite3.connect(path)) as connection:
        yield connection
        connection.commit()


def digest_of(kind: str, number: Any, content: bytes) -> bytes:
    return hashlib.sha256(f"{kind} {number}\n".encode() + content).digest()


def stored_chunks(folder: Path) -> set[str]:
    """Names of all chunks of a model."""
    with opened(folder / "model.sqlite") as connection:
        return {name.hex() for (name,) in connection.execute("SELECT sha256 FROM chunk")}


class CraftedDatabase:
    """A database of a model or of its cache, which is changed by plain functions."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with opened(self.path) as connection:
            return connection.execute(sql, values).fetchall()

    def document(self, kind: str, number: int) -> Any:
        return json.loads(self.query("SELECT content FROM document WHERE kind = ? AND number = ?", kind, number)[0][0])

    def write_document(self, kind: str, number: int, content: bytes) -> None:
        """Any content, with the right checksum."""
        row = (kind, number, content, digest_of(kind, number, content))
        self.query("INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?)", *row)

    def put(self, content: bytes, *, instead: bytes | None = None) -> str:
        """A chunk with the right name; ``instead``: what it holds in place of the content."""
        digest = hashlib.sha256(content).digest()
        data = zlib.compress(content) if instead is None else instead
        data = data if len(data) < len(content) or instead is not None else content
        self.query("INSERT OR REPLACE INTO chunk VALUES (?, ?, ?)", digest, len(content), data)
        return digest.hex()

    def chunk(self, name: str) -> bytes:
        size, data = self.query("SELECT size, data FROM chunk WHERE sha256 = ?", bytes.fromhex(name))[0]
        return data if len(data) == size else zlib.decompress(data)

    def description(self, name: str) -> Any:
        """What a part lists."""
        return json.loads(self.chunk(name))

    def array(self, index: dict[str, Any]) -> np.ndarray:
        """The array of an index."""
        names = [index["chunks"][start : start + 64] for start in range(0, len(index["chunks"]), 64)]
        content = b"".join(self.chunk(name) for name in names)
        return np.frombuffer(content, index["dtype"]).reshape(index["shape"]).copy()

    def index_of(self, array: np.ndarray) -> dict[str, Any]:
        """Store an array in one chunk; its index."""
        return {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "items": [array.size] if array.size else [],
            "chunks": self.put(array.tobytes()) if array.size else "",
        }


class CraftedFolder(CraftedDatabase):
    """A copy of a folder, whose newest version is changed."""

    def __init__(self, source: Path, copy: Path, *, with_cache: bool = False) -> None:
        self.folder = Path(shutil.copytree(source, copy))
        super().__init__(self.folder / "model.sqlite")
        self.cache = CraftedDatabase(self.folder / "cache.sqlite")
        if not with_cache:
            self.cache.path.unlink(missing_ok=True)
        self.number = self.query("SELECT max(number) FROM document WHERE kind = 'version'")[0][0]

    def manifest(self) -> dict[str, Any]:
        return self.document("version", self.number)

    def write_manifest(self, manifest: Any) -> None:
        """Write a manifest with the right checksum."""
        self.write_document("version", self.number, canonical_json(manifest))

    def change_manifest(self, change: Callable[[dict[str, Any]], Any]) -> None:
        manifest = self.manifest()
        change(manifest)
        self.write_manifest(manifest)

    def part(self, name: str) -> dict[str, Any]:
        return self.description(self.manifest()["parts"][name])

    def write_part(self, name: str, content: bytes) -> None:
        stored = self.put(content)
        self.change_manifest(lambda manifest: manifest["parts"].update({name: stored}))

    def change_part(self, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
        part = self.part(name)
        change(part)
        self.write_part(name, canonical_json(part))

    def change_array(self, part: str, array: str, change: Callable[[Any], Any]) -> None:
        """Write another array in the place of one, in one chunk."""
        old = self.array(self.part(part)["arrays"][array])
        self.set_array(part, array, np.ascontiguousarray(change(old)))

    def set_array(self, part: str, name: str, array: Any) -> None:
        """Have an array in a part."""
        index = self.index_of(array)
        self.change_part(part, lambda stored: stored["arrays"].update({name: index}))


def refused(folder: CraftedFolder, *words: str) -> None:
    """Refused in one sentence by everything that reads it, in a moment and in little memory."""
    start = time.perf_counter()
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            GraphClassifier.load(folder.folder).prediction_columns()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)
    assert peak < 300e6, f"it took {peak / 1e6:.0f} MB"
    assert time.perf_counter() - start < 10
    with pytest.raises(InputError), ModelFolder(folder.folder).editing():
        raise AssertionError("it was opened to be changed")
    done = graphfcl_inside("predict", "--model", folder.folder, "--out", folder.folder / "out.csv")
    assert_one_sentence(done, *words)


def stored_versions(folder: Path) -> list[Any]:
    """All documents of versions."""
    sql = "SELECT * FROM document WHERE kind = 'version' ORDER BY number"
    return CraftedDatabase(folder / "model.sqlite").query(sql)
