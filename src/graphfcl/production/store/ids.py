"""Ids of nodes, whole numbers or texts, as arrays of a part; and lookup of rows by ids that reads only a few chunks."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from graphfcl.graph.ids import text_array
from graphfcl.production.store.checks import Damaged, need
from graphfcl.production.store.parts import Part

LONGEST = 1 << 20  # bytes of one id
STEP = 1024  # the index holds every 1024th id


def id_arrays(ids: np.ndarray | Sequence[str], name: str = "ids") -> dict[str, np.ndarray]:
    """Return arrays that hold ids: int64, or UTF-8 bytes and lengths.

    One long id then does not widen the whole array.
    """
    if isinstance(ids, np.ndarray) and ids.dtype.kind == "i":
        return {name: ids.astype(np.int64, copy=False)}
    texts = [_bytes(str(text)) for text in ids]
    lengths = np.array([len(text) for text in texts], dtype=np.int32)
    return {f"{name}.lengths": lengths, f"{name}.letters": np.frombuffer(b"".join(texts), dtype=np.uint8)}


def id_cuts(arrays: dict[str, np.ndarray], cuts: np.ndarray, name: str = "ids") -> dict[str, np.ndarray]:
    """Convert cut positions in the ids to cut positions in the arrays of :func:`id_arrays`."""
    if name in arrays:
        return {name: cuts}
    lengths = arrays[f"{name}.lengths"]
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return {f"{name}.lengths": cuts, f"{name}.letters": ends[cuts.clip(max=lengths.size)]}


def read_ids(part: Part, name: str = "ids") -> np.ndarray:
    """Return the ids from the arrays of :func:`id_arrays`, as int64 or texts."""
    if name in part.arrays:
        ids = part.array(name)
        need(ids.dtype == np.int64 and ids.ndim == 1, "its ids are not whole numbers")
        return ids
    lengths, letters = part.array(f"{name}.lengths"), part.array(f"{name}.letters")
    need(
        lengths.dtype == np.int32 and lengths.ndim == 1 and letters.dtype == np.uint8, "its ids are not stored as text"
    )
    need(bool(((lengths >= 0) & (lengths <= LONGEST)).all()), "an id has an invalid length")
    need(int(lengths.sum(dtype=np.int64)) == letters.size, "the lengths of its ids do not add up")
    content = letters.tobytes()
    ends = [0, *np.cumsum(lengths, dtype=np.int64).tolist()]
    try:
        return text_array([content[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)])
    except UnicodeDecodeError as error:
        raise Damaged("an id is not valid text") from error


def lookup_part(ids: np.ndarray) -> Part:
    """Make a part with sorted ids, the row of each, and an index (``fence``): every ``STEP``-th id."""
    if ids.dtype.kind == "i":
        order = np.argsort(ids, kind="stable")
        keys = ids[order].astype(np.int64)
        return Part({"fence": keys[::STEP].tolist()}, {"ids": keys, "rows": order.astype(np.int64)})
    texts = [_bytes(str(text)) for text in ids]
    order = np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
    ordered = [texts[row] for row in order.tolist()]
    ends = np.concatenate([[0], np.cumsum([len(text) for text in ordered], dtype=np.int64)]).astype(np.int64)
    letters = np.frombuffer(b"".join(ordered), dtype=np.uint8)
    return Part({"fence": [text.hex() for text in ordered[::STEP]]}, {"ends": ends, "letters": letters, "rows": order})


class IdLookup:
    """Finds the rows of ids in their usual spelling: 7 and ``"7"`` are the same id."""

    def __init__(self, part: Part) -> None:
        self._part, fence = part, part.value("fence")
        need(isinstance(fence, list), "it has no index of ids")
        self.of_numbers = all(type(key) is int for key in fence)
        self._fence: list[Any] = fence if self.of_numbers else [bytes.fromhex(str(key)) for key in fence]

    def find_all(self, wanted: Sequence[Any]) -> list[int] | None:
        """Return the rows of some ids; None if one of them does not exist. Each block that is needed is read once."""
        keys = [_whole_number(each) if self.of_numbers else _bytes(str(each)) for each in wanted]
        if any(key is None for key in keys) or (keys and not self._fence):
            return None
        by_block: dict[int, list[int]] = {}
        for place, key in enumerate(keys):
            by_block.setdefault(max(0, bisect_right(self._fence, key) - 1), []).append(place)
        result = [0] * len(keys)
        for block, places in by_block.items():
            ordered = self._keys(block)
            rows = self._part.stored("rows").rows(block * STEP, block * STEP + len(ordered))
            for place in places:
                at = bisect_left(ordered, keys[place])
                if ordered[at : at + 1] != [keys[place]]:
                    return None
                result[place] = int(rows[at])
        return result

    def _keys(self, block: int) -> list[Any]:
        """Return the ids of a block, sorted."""
        start = block * STEP
        if self.of_numbers:
            array = self._part.stored("ids")
            return array.rows(start, min(start + STEP, array.shape[0])).tolist()
        array = self._part.stored("ends")
        ends = array.rows(start, min(start + STEP + 1, array.shape[0])).tolist()
        letters = self._part.stored("letters").rows(ends[0], ends[-1]).tobytes()
        return [letters[low - ends[0] : high - ends[0]] for low, high in pairwise(ends)]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _whole_number(wanted: Any) -> int | None:
    """Return the number that a value means if it is written as numbers are: 7 or "7", but not "007"."""
    text = str(wanted)
    digits = text.removeprefix("-")
    if len(text) > 20 or not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if str(number) == text and -(2**63) <= number < 2**63 else None
