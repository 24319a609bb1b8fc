"""Parts of a version: JSON values and named arrays. Arrays are stored in chunks; versions share equal chunks."""

import math
import re
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from graphfcl.production.store.checks import Damaged, need, read_json, whole_number
from graphfcl.production.store.database import Database, NotKept

CHUNK = 1 << 20  # most bytes of a chunk that is written
LARGEST_CHUNK = 1 << 23  # most bytes of a chunk that is read
LARGEST_PART = 1 << 24  # most bytes of a part's description, which takes much more memory once it is parsed
DTYPES = ("|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8")
AXES = 8
KEPT = 16  # chunks of an array that stay in memory
HEXADECIMAL = re.compile(r"[0-9a-f]*")
FREE = 1 << 26  # arrays up to this many bytes are always accepted
SPREAD = 64  # a larger array may have at most this many times the bytes of the file


@dataclass(frozen=True, eq=False)
class Part:
    """Values and arrays of a part of a model.

    Attributes:
        values: JSON values.
        arrays: Arrays by name. Arrays of a stored part are read when they are used.
        cuts: For some arrays, rows at which a chunk ends in any case, so that equal rows give equal chunks.
        chunk: Most bytes of a chunk.
    """

    values: dict[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, "np.ndarray | StoredArray"] = field(default_factory=dict)
    cuts: Mapping[str, np.ndarray] = field(default_factory=dict)
    chunk: int = CHUNK

    def value(self, name: str) -> Any:
        """Return a value; raises :class:`Damaged` if it is missing."""
        if name not in self.values:
            raise Damaged(f"it lacks the value {name!r}")
        return self.values[name]

    def stored(self, name: str) -> Any:
        """Return an array without reading it; raises :class:`Damaged` if it is missing."""
        if name not in self.arrays:
            raise Damaged(f"it lacks the array {name!r}")
        return self.arrays[name]

    def array(self, name: str) -> np.ndarray:
        """Return an array, which the caller may change; raises :class:`Damaged` if it is missing."""
        array = self.stored(name)
        return array.read() if isinstance(array, StoredArray) else array.copy()

    def length(self, name: str) -> int:
        """Return the length of a one-dimensional array."""
        shape = self.stored(name).shape
        need(len(shape) == 1, f"its {name} are not a list of numbers")
        return shape[0]

    def all_arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays, which the caller may change."""
        stored = [array for array in self.arrays.values() if isinstance(array, StoredArray)]
        if stored:
            _refuse_inflated(sum(size for array in stored for _, size in array.sizes()), stored[0].database.size())
        return {name: self.array(name) for name in self.arrays}

    def chunks(self) -> dict[str, int]:
        """Return name and bytes of all chunks of its stored arrays."""
        stored = (array for array in self.arrays.values() if isinstance(array, StoredArray))
        return {name: size for array in stored for name, size in array.sizes()}


def read_part(database: Database, name: str) -> Part:
    """Read a part by its name; its arrays are read when they are used."""
    description = database.chunk(name, is_text=True)
    need(len(description) <= LARGEST_PART, "the description of a part is too long")
    stored = read_json(description)
    if not isinstance(stored, dict) or not all(isinstance(stored.get(key), dict) for key in ("values", "arrays")):
        raise Damaged("the description of a part is invalid")
    return Part(stored["values"], {key: StoredArray(database, how) for key, how in stored["arrays"].items()})


@dataclass(frozen=True, eq=False)
class PartSource:
    """A part that is made only if it is not stored yet. ``made_of``: immutable objects that determine the part."""

    make: Callable[[], Part]
    made_of: tuple[Any, ...] = ()


class StoredArray:
    """An array in chunks, described as ``{"dtype": "<f4", "shape": [n, d], "items": [per chunk], "chunks":
    checksums}``.
    """

    def __init__(self, database: Database, description: Any) -> None:
        self.database, self._description = database, description
        self._kept: dict[int, np.ndarray] = {}  # the last few chunks, for callers that read many single rows

    @cached_property
    def _checked(self) -> tuple[np.dtype[Any], tuple[int, ...], list[int], list[str]]:
        """Type, shape, and items and names of the chunks, checked."""
        how = self._description
        need(isinstance(how, dict) and how.get("dtype") in DTYPES, "an array has an unknown type")
        shape, items, names = how.get("shape"), how.get("items"), how.get("chunks")
        need(
            isinstance(shape, list) and len(shape) <= AXES and isinstance(items, list), "an array has an invalid shape"
        )
        dtype = np.dtype(how["dtype"])
        most = LARGEST_CHUNK // dtype.itemsize
        need(all(type(each) is int and 0 < each <= most for each in items), "the length of a chunk is invalid")
        size = math.prod(whole_number(axis, "the shape of an array") for axis in shape)
        need(size == sum(items), "the shape of an array and its chunks differ")
        need(size > 0 or math.prod(axis for axis in shape if axis) < 2**62, "an array has a shape that is too large")
        if not isinstance(names, str) or len(names) != 64 * len(items) or not HEXADECIMAL.fullmatch(names):
            raise Damaged("an array has an invalid list of chunks")
        return dtype, tuple(shape), items, [names[start : start + 64] for start in range(0, len(names), 64)]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._checked[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return self._checked[1]

    def sizes(self) -> list[tuple[str, int]]:
        """Return name and bytes of each chunk."""
        dtype, _, items, names = self._checked
        return [(name, count * dtype.itemsize) for name, count in zip(names, items, strict=True)]

    def read(self) -> np.ndarray:
        """Return the whole array; raises :class:`Damaged` before it takes more memory than the file can account for."""
        dtype, shape, items, _ = self._checked
        _refuse_inflated(dtype.itemsize * sum(items), self.database.size())
        try:
            flat, start = np.empty(sum(items), dtype), 0
        except MemoryError as error:
            raise Damaged("an array of it does not fit into memory") from error
        for number, count in enumerate(items):
            flat[start : start + count] = self._read_chunk(number)
            start += count
        return flat.reshape(shape)

    def rows(self, start: int, end: int) -> np.ndarray:
        """Return consecutive rows; only the chunks that hold them are read."""
        need(len(self.shape) > 0 and 0 <= start <= end <= self.shape[0], "rows beyond its end were requested")
        width = math.prod(self.shape[1:])
        ends = self._ends
        first, last = np.searchsorted(ends, [start * width, max(start, end) * width - 1], side="right").tolist()
        blocks = [self._chunk(number) for number in range(first, min(last + 1, ends.size))] if end > start else []
        before = int(ends[first - 1]) if first else 0
        flat = np.concatenate(blocks) if len(blocks) > 1 else (blocks[0] if blocks else np.empty(0, self.dtype))
        return flat[start * width - before : end * width - before].reshape(end - start, *self.shape[1:])

    def take(self, rows: Iterable[int]) -> np.ndarray:
        """Return some rows."""
        return np.concatenate([self.rows(0, 0), *(self.rows(row, row + 1) for row in rows)])

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.array(list(accumulate(self._checked[2])), dtype=np.int64)

    def _chunk(self, number: int) -> np.ndarray:
        if number not in self._kept:
            while len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)), None)
            self._kept[number] = self._read_chunk(number)
        return self._kept[number]

    def _read_chunk(self, number: int) -> np.ndarray:
        dtype, _, items, names = self._checked
        content = self.database.chunk(names[number])
        need(len(content) == items[number] * dtype.itemsize, "a chunk has the wrong length")
        if dtype.kind == "b":
            need(max(content) <= 1, "a truth value is neither 0 nor 1")
        return np.frombuffer(content, dtype)


class Parts:
    """Writes parts to a database. A part that was written or read before is recognised by the objects that it was made
    of.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._known: dict[int, tuple[weakref.ref[Any], tuple[Any, ...], str]] = {}

    def write(self, source: PartSource) -> str:
        """Store a part unless it is stored already; returns its name."""
        owner, *others = source.made_of or (None,)
        ref, before, name = self._known.get(id(owner), (None, (), ""))
        same = ref is not None and ref() is owner and all(a is b for a, b in zip(before, others, strict=True))
        # If the description of a part is stored, so are its chunks: all of them are deleted together.
        if not same or self.database.chunk_size(name) is None:
            name = write_part(self.database, source.make())
            self.remember(source.made_of, name)
        return name

    def remember(self, made_of: tuple[Any, ...], name: str) -> None:
        """Note under which name the part made of these objects is stored."""
        if made_of:
            key = id(made_of[0])
            forget = weakref.ref(made_of[0], lambda _: self._known.pop(key, None))
            self._known[key] = (forget, made_of[1:], name)


def write_part(database: Database, part: Part) -> str:
    """Store a part; returns its name."""
    indexes = {name: _write(database, part, name) for name in part.arrays}
    content = database.described({"values": part.values, "arrays": indexes}, LARGEST_PART)
    return database.put_chunk(content, is_text=True)


def _write(database: Database, part: Part, name: str) -> dict[str, Any]:
    array = part.stored(name)
    plain = np.ascontiguousarray(array).reshape(array.shape)
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    if plain.dtype.str not in DTYPES:
        raise TypeError(f"arrays of {plain.dtype} are not stored")
    row, flat = math.prod(plain.shape[1:]), plain.reshape(-1)
    size = row * plain.itemsize
    step = row * (part.chunk // size) if 0 < size <= part.chunk else part.chunk // plain.itemsize
    cuts = sorted({int(cut) * row for cut in part.cuts.get(name, ()) if 0 < int(cut) * row < flat.size})
    names, items, start = [], [], 0
    for end in (*cuts, flat.size):
        for low in range(start, end, step):
            high = min(low + step, end)
            names.append(database.put_chunk(flat[low:high].tobytes()))
            items.append(high - low)
        start = end
    stored = plain.itemsize * sum(dict(zip(names, items, strict=True)).values())
    if plain.nbytes > FREE + SPREAD * stored:
        raise NotKept(
            f"the change cannot be stored in {database.path.parent}: an array repeats itself too often; nothing was "
            "changed."
        )
    return {"dtype": plain.dtype.str, "shape": list(plain.shape), "items": items, "chunks": "".join(names)}


def _refuse_inflated(size: int, stored: int) -> None:
    """Refuse an array that is much larger than the file: a chunk named a million times must not become a terabyte."""
    need(size <= FREE + SPREAD * stored, "an array repeats itself too often")
