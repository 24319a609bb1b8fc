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
from graphfcl.production.model.codec import TREES
from graphfcl.production.store.chunked_file import ChunkedFile, write_chunked
from graphfcl.production.store.objects import ReadCounter
from graphfcl.runtime.files import canonical_json, sha256_of
from tests.fuzzing.mutators import Tree
from tests.production.crafting import CraftedFolder

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
    """The newest version of a model folder: its manifest, the pointer, its trees, and the cache.

    A tree is a part twice: with its arrays, and as it is stored, with the indexes of their blocks. ``operations``: what
    is tried with the folder.
    """

    def __init__(self, folder: CraftedFolder, operations: Callable[[Path], Operations]) -> None:
        self.folder, self._operations = folder, operations

    def operations(self) -> Operations:
        return self._operations(self.folder.path)

    def parts(self) -> list[str]:
        trees = [name for tree in TREES for name in (tree, f"{tree} as stored")]
        cache = ["cache"] if self._cache.exists() else []
        return ["manifest", "pointer", "place", *trees, *cache]

    def read(self, part: str) -> Tree:
        if part == "manifest":
            return {key: value for key, value in self.folder.manifest().items() if key != "sha256"}
        if part in ("pointer", "place"):
            path = self._file(part)
            return json.loads(path.read_bytes()) if path.exists() else {"graph": {"beside": "x", "full": "/x"}}
        if part == "cache":
            file = ChunkedFile(self._cache, ReadCounter())
            return {"values": file.values, "arrays": {name: file[name].whole().copy() for name in file._arrays}}
        tree = self.folder.tree(part.split()[0])
        if part.endswith("as stored"):
            return tree
        arrays = {name: self.folder.array(index) for name, index in tree["arrays"].items()}
        tensors = tree["values"].get("tensors", {})
        values = {key: value for key, value in tree["values"].items() if key != "tensors"}
        if "pack" in arrays:  # tensors, small ones of which lie in one array
            pack = arrays.pop("pack").tobytes()
            arrays = {name: _unpacked(how, pack, arrays.get(f"tensor {name}")) for name, how in tensors.items()}
            return {"tensors": arrays, "values": values}
        return {"arrays": arrays, "values": values}

    def write(self, part: str, tree: Tree) -> None:
        if part == "manifest":
            self.folder.write_manifest(json.loads(as_json(tree)))
        elif part in ("pointer", "place"):
            self._file(part).unlink(missing_ok=True)
            self._file(part).write_bytes(as_json(tree))
        elif part == "cache":
            _write_cache(self._cache, tree)
        elif part.endswith("as stored"):
            self.folder.write_tree(part.split()[0], as_json(tree))
        else:
            self.folder.write_tree(part, as_json(_stored(self.folder, tree)))

    @property
    def _cache(self) -> Path:
        return self.folder.path / "cache" / "newest.cache"

    def _file(self, part: str) -> Path:
        return self.folder.path / {"pointer": "current", "place": "graph.json"}[part]


def _unpacked(how: list[Any], pack: bytes, large: np.ndarray | None) -> np.ndarray:
    kind = np.dtype("<i2" if how[0] == "bfloat16" else how[0])
    if large is not None:
        return large
    size = kind.itemsize * int(np.prod(how[1], dtype=np.int64))
    return np.frombuffer(pack[how[2] : how[2] + size], kind).reshape(how[1])


def _stored(folder: CraftedFolder, tree: Tree) -> Tree:
    """A tree with arrays as it is stored; where it is none any more, as it is."""
    if not isinstance(tree, dict):
        return tree
    values = tree.get("values")
    if "tensors" in tree:
        tensors = tree["tensors"]
        if not isinstance(tensors, dict):
            return {"arrays": {}, "values": {**_dict(values), "tensors": tensors}}
        said, arrays, pack = {}, {}, b""
        for name, value in tensors.items():
            if not isinstance(value, np.ndarray) or value.dtype.kind in "cU":
                said[name] = value.tolist() if isinstance(value, np.ndarray) and value.dtype.kind == "U" else str(value)
            elif len(value.tobytes()) < 1 << 15:
                said[name] = [value.dtype.name, list(value.shape), len(pack)]
                pack += value.tobytes()
            else:
                said[name] = [value.dtype.name, list(value.shape)]
                arrays[f"tensor {name}"] = folder.index_of(value)
        arrays["pack"] = folder.index_of(np.frombuffer(pack, np.uint8))
        return {"arrays": arrays, "values": {**_dict(values), "tensors": said}}
    contents = tree.get("arrays")
    if isinstance(contents, dict):
        stored = {
            name: folder.index_of(each) if isinstance(each, np.ndarray) else each for name, each in contents.items()
        }
        tree = {**tree, "arrays": stored}
    return tree


def _dict(values: Any) -> dict[str, Any]:
    return values if isinstance(values, dict) else {"values": values}


def _write_cache(path: Path, tree: Tree) -> None:
    """A cache with right checksums; arrays that it cannot hold are left out."""
    arrays = tree.get("arrays") if isinstance(tree, dict) else None
    known = {name: each for name, each in _dict(arrays).items() if isinstance(each, np.ndarray)}
    path.unlink()
    values: Any = tree.get("values") if isinstance(tree, dict) else tree
    write_chunked(path, values, known)


class ModelFormat:
    """Model folders, as graphfcl writes them today."""

    def __init__(self, source: Path, operations: Callable[[Path], Operations]) -> None:
        self._source, self._operations = source, operations

    def copy(self, to: Path) -> ModelCopy:
        return ModelCopy(CraftedFolder(self._source, to, with_cache=True, linked=True), self._operations)


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
