"""Arrays in blocks: a version that changed a few rows writes the blocks of these rows, and shares all others.

An array is described by its *index*, plain values: ``{"dtype": "<f4", "shape": [n, d], "blocks": [[name, items], …]}``.
A block holds so many items of the array in C order, little endian.
"""

import math
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphfcl.production.store.damage import Damaged, need
from graphfcl.production.store.objects import Objects
from graphfcl.production.store.strict_json import whole_number

Index = dict[str, Any]

BLOCK = 1 << 20  # bytes of a block at most, as they are written
LARGEST = 1 << 23  # and as they are read
DTYPES = ("|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8")
AXES = 8
FREE = 1 << 26  # bytes that any array may have
SPREAD = 128  # times the bytes on the disk that a larger one may have


class BlockArrays:
    """Writes arrays to objects and reads them back; an array that it wrote or read before is known by its identity."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self._known: dict[int, tuple[weakref.ref[Any], Any]] = {}

    # What is known

    def remember(self, array: Any, described: Any) -> None:
        """``described`` says how this very object is stored; the object never changes."""
        key = id(array)
        self._known[key] = (weakref.ref(array, lambda _: self._known.pop(key, None)), described)

    def recall(self, array: Any) -> Any:
        """What :meth:`remember` was told of this very object; None if nothing."""
        found = self._known.get(id(array))
        return found[1] if found is not None and found[0]() is array else None

    # Writing

    def write(self, array: np.ndarray, cuts: Sequence[int] | np.ndarray = (), *, block: int = BLOCK) -> Index:
        """Store an array; its index.

        cuts: rows at which a block ends in any case. What lies between two of them and is longer than ``block`` bytes
        is cut further, so that the same rows give the same blocks.
        """
        plain = np.ascontiguousarray(array).reshape(array.shape)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
        kind = plain.dtype.str
        if kind not in DTYPES:
            raise TypeError(f"arrays of {plain.dtype} are not stored")
        row = math.prod(plain.shape[1:])
        size = row * plain.itemsize
        step = row * max(1, block // size) if 0 < size <= block else max(1, block // plain.itemsize)
        flat = plain.reshape(-1)
        blocks = []
        for start, end in _pieces(flat.size, [int(cut) * row for cut in cuts], step):
            blocks.append([self.objects.put(flat[start:end].tobytes()), end - start])
        index = {"dtype": kind, "shape": list(plain.shape), "blocks": blocks}
        _refuse_thin_air(self.objects, index)
        return index

    # Reading

    def read(self, index: Any) -> np.ndarray:
        """The array of an index; :class:`Damaged` before more memory is taken than its files account for."""
        dtype, shape, blocks = checked(index)
        _refuse_thin_air(self.objects, index)
        flat = np.empty(sum(items for _, items in blocks), dtype=dtype)
        start = 0
        for name, items in blocks:
            content = self.objects.get(name, items * dtype.itemsize)
            flat[start : start + items] = np.frombuffer(content, dtype=dtype)
            start += items
        if dtype.kind == "b":
            need(bool((flat.view(np.uint8) <= 1).all()), "a truth value is neither 0 nor 1")
        return flat.reshape(shape)


def checked(index: Any) -> tuple[np.dtype[Any], tuple[int, ...], list[tuple[str, int]]]:
    """Type, shape and blocks of an index."""
    need(isinstance(index, dict) and {"dtype", "shape", "blocks"} <= index.keys(), "an array lacks its description")
    need(index["dtype"] in DTYPES, "an array has a type that is not known")
    dtype, shape, blocks = np.dtype(index["dtype"]), index["shape"], index["blocks"]
    need(isinstance(shape, list) and len(shape) <= AXES and isinstance(blocks, list), "an array has no shape")
    found = []
    for each in blocks:
        need(isinstance(each, list) and len(each) == 2 and isinstance(each[0], str), "an array has no list of blocks")
        found.append((each[0], whole_number(each[1], "the length of a block", 0, LARGEST // dtype.itemsize)))
    size = math.prod(whole_number(axis, "the shape of an array") for axis in shape)
    need(size == sum(items for _, items in found), "the shape of an array and its blocks differ")
    need(size > 0 or math.prod(axis for axis in shape if axis) < 2**62, "an array has a shape that is too large")
    return dtype, tuple(shape), found


def block_names(index: Any) -> set[str]:
    """The objects that an index names."""
    return {name for name, _ in checked(index)[2]}


def _pieces(size: int, cuts: list[int], step: int) -> list[tuple[int, int]]:
    """(start, end) of blocks that follow each other from 0 to ``size``."""
    ends = sorted({cut for cut in cuts if 0 < cut < size} | ({size} if size else set()))
    pieces, start = [], 0
    for end in ends:
        pieces += [(place, min(place + step, end)) for place in range(start, end, step)]
        start = end
    return pieces


def _refuse_thin_air(objects: Objects, index: Index) -> None:
    """One small block that is named a million times must not become an array of a terabyte."""
    size = np.dtype(index["dtype"]).itemsize * sum(items for _, items in index["blocks"])
    if size <= FREE:
        return
    names = {name for name, _ in index["blocks"]}
    if size > FREE + SPREAD * objects.stored_bytes(names):
        raise Damaged("an array repeats itself too often")
