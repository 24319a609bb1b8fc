"""What the fuzzer needs to know of a format: its parts, and how one is read as a tree of values and written back.

A folder with a changed part has right checksums everywhere: what is wrong with it is what it says.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from graphfcl.graph.folder.blocks import DIGEST
from graphfcl.production.model.codec import PARTS
from graphfcl.runtime.files import canonical_json, sha256_of
from tests.fuzzing.mutators import Tree
from tests.production.crafting import CraftedDatabase, CraftedFolder

Operations = Mapping[str, Callable[[], object]]


class Format(Protocol):
    """A format that is fuzzed: adapters of it are all that a new format has to bring."""

    def copy(self, to: Path) -> "Copy":
        """A whole copy that may be changed."""
        ...


class Copy(Protocol):
    """A folder or a file that is changed part by part."""

    def parts(self) -> list[str]:
        """The names of its parts."""
        ...

    def read(self, part: str) -> Tree:
        """A part as dictionaries, lists, plain values and arrays."""
        ...

    def write(self, part: str, tree: Tree) -> None:
        """Write a part, and every checksum that depends on it."""
        ...

    def operations(self) -> Operations:
        """What is tried with it, by name, in this order."""
        ...


def as_json(tree: Tree) -> bytes:
    """JSON of a tree that mutators changed: arrays as lists, and numbers that JSON does not know as Python has them."""
    return json.dumps(tree, default=_plain, sort_keys=True, separators=(",", ":")).encode()


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, complex) else value.tolist()


class ModelCopy:
    """The newest version of a model folder: its manifest, its parts, where its graph is, and the cache.

    A part is there twice: with its arrays, and as it is stored, with the names of their chunks. ``operations``: what is
    tried with the folder.
    """

    def __init__(self, folder: CraftedFolder, operations: Callable[[Path], Operations]) -> None:
        self.folder, self._operations = folder, operations

    def operations(self) -> Operations:
        return self._operations(self.folder.folder)

    def parts(self) -> list[str]:
        parts = [name for part in PARTS for name in (part, f"{part} as stored")]
        cache = (
            ["cache", "cache rows", "cache rows as stored", "cache table"] if self.folder.cache.path.exists() else []
        )
        return ["manifest", "place", *parts, *cache]

    def read(self, part: str) -> Tree:
        if part == "manifest":
            return self.folder.manifest()
        if part == "place":
            path = self.folder.folder / "graph.json"
            return json.loads(path.read_bytes()) if path.exists() else {"graph": {"beside": "x", "full": "/x"}}
        if part == "cache":
            return self.folder.cache.document("cache", 0)
        if part.startswith("cache"):
            database: CraftedDatabase = self.folder.cache
            stored = database.description(database.document("cache", 0)[part.split()[1]])
        else:
            database, stored = self.folder, self.folder.part(part.split()[0])
        if part.endswith("as stored"):
            return stored
        arrays = {name: database.array(index) for name, index in stored["arrays"].items()}
        return {"arrays": arrays, "values": stored["values"]}

    def write(self, part: str, tree: Tree) -> None:
        if part == "manifest":
            self.folder.write_document("version", self.folder.number, as_json(tree))
        elif part == "place":
            (self.folder.folder / "graph.json").write_bytes(as_json(tree))
        elif part == "cache":
            self.folder.cache.write_document("cache", 0, as_json(tree))
        elif part.startswith("cache"):
            database = self.folder.cache
            content = as_json(tree if part.endswith("as stored") else _stored(database, tree))
            document = database.document("cache", 0)
            document[part.split()[1]] = database.put(content)
            database.write_document("cache", 0, as_json(document))
        elif part.endswith("as stored"):
            self.folder.write_part(part.split()[0], as_json(tree))
        else:
            self.folder.write_part(part, as_json(_stored(self.folder, tree)))


def _stored(database: CraftedDatabase, tree: Tree) -> Tree:
    """A part with arrays as it is stored; where it is none any more, as it is."""
    contents = tree.get("arrays") if isinstance(tree, dict) else None
    if not isinstance(contents, dict):
        return tree
    stored = {
        name: database.index_of(each) if isinstance(each, np.ndarray) and each.dtype.kind not in "cU" else each
        for name, each in contents.items()
    }
    return {**tree, "arrays": stored}


class ModelFormat:
    """Model folders, as graphfcl writes them today."""

    def __init__(self, source: Path, operations: Callable[[Path], Operations]) -> None:
        self._source, self._operations = source, operations

    def copy(self, to: Path) -> ModelCopy:
        return ModelCopy(CraftedFolder(self._source, to, with_cache=True), self._operations)


class GraphCopy:
    """A graph folder: its manifest, and the files of its numbers."""

    def __init__(self, folder: Path, operations: Callable[[Path], Operations]) -> None:
        self.folder, self._operations = folder, operations

    def operations(self) -> Operations:
        return self._operations(self.folder)

    def parts(self) -> list[str]:
        return ["manifest", "manifest", *sorted(self._manifest()["files"])]

    def _manifest(self) -> dict[str, Any]:
        return json.loads((self.folder / "manifest.json").read_bytes())

    def read(self, part: str) -> Tree:
        manifest = self._manifest()
        if part == "manifest":
            return {key: value for key, value in manifest.items() if key != "checksum"}
        return {"numbers": np.frombuffer((self.folder / part).read_bytes(), manifest["files"][part]["dtype"])}

    def write(self, part: str, tree: Tree) -> None:
        if part != "manifest":
            array, manifest = tree.get("numbers"), self._manifest()
            array = array if isinstance(array, np.ndarray) else np.zeros(0, np.uint8)
            content, entry = array.tobytes(), manifest["files"][part]
            (self.folder / part).unlink()
            (self.folder / part).write_bytes(content)
            starts = range(0, len(content), entry["block"])
            digests = [sha256_of(content[start : start + entry["block"]])[: 2 * DIGEST] for start in starts]
            manifest["files"][part] = {**entry, "dtype": array.dtype.str, "items": array.size, "checksums": digests}
            tree = {key: value for key, value in manifest.items() if key != "checksum"}
        if isinstance(tree, dict):
            plain = json.loads(as_json(tree))
            tree = {**plain, "checksum": sha256_of(canonical_json(plain))}
        (self.folder / "manifest.json").unlink()
        (self.folder / "manifest.json").write_bytes(json.dumps(tree).encode())


class StreamCopy:
    """A saved stream: one JSON file."""

    def __init__(self, path: Path, operations: Callable[[Path], Operations]) -> None:
        self.path, self._operations = path, operations

    def operations(self) -> Operations:
        return self._operations(self.path)

    def parts(self) -> list[str]:
        return ["stream"]

    def read(self, part: str) -> Tree:  # noqa: ARG002
        return {key: value for key, value in json.loads(self.path.read_bytes()).items() if key != "sha256"}

    def write(self, part: str, tree: Tree) -> None:  # noqa: ARG002
        if isinstance(tree, dict):
            plain = json.loads(as_json(tree))
            try:
                digest = sha256_of(canonical_json(plain, ascii_only=False))
            except UnicodeEncodeError:  # a text that no encoding has
                digest = ""
            tree = {**plain, "sha256": digest}
        self.path.write_bytes(json.dumps(tree).encode())


class CopiedFormat:
    """A format whose copies need no more than the files: those of ``GraphCopy`` and ``StreamCopy``."""

    def __init__(
        self,
        source: Path,
        adapter: Callable[[Path, Callable[[Path], Operations]], Copy],
        operations: Callable[[Path], Operations],
    ) -> None:
        self._source, self._adapter, self._operations = source, adapter, operations

    def copy(self, to: Path) -> Copy:
        copied = shutil.copytree(self._source, to) if self._source.is_dir() else shutil.copy2(self._source, to)
        return self._adapter(Path(copied), self._operations)
