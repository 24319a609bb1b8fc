"""Rows of nodes by their ids, out of a file of which only a few chunks are read.

Ids lie there in order, with the row of each beside it. The header has the first id of every ``STEP`` ids.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from graphfcl.production.store.chunked_file import ChunkedFile
from graphfcl.production.store.damage import need

STEP = 1024


def lookup_arrays(ids: np.ndarray | Sequence[str]) -> tuple[dict[str, np.ndarray], list[Any]]:
    """The arrays of a lookup, and its fence."""
    if isinstance(ids, np.ndarray) and ids.dtype.kind == "i":
        order = np.argsort(ids, kind="stable")
        keys = ids[order].astype(np.int64)
        return {"ids": keys, "rows": order.astype(np.int64)}, keys[::STEP].tolist()
    texts = [_bytes(str(text)) for text in ids]
    order = np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
    ordered = [texts[row] for row in order.tolist()]
    ends = np.concatenate([[0], np.cumsum([len(text) for text in ordered], dtype=np.int64)]).astype(np.int64)
    letters = np.frombuffer(b"".join(ordered), dtype=np.uint8)
    return {"ends": ends, "letters": letters, "rows": order}, [text.hex() for text in ordered[::STEP]]


class IdLookup:
    """Finds ids exactly as they are stored."""

    def __init__(self, file: ChunkedFile, fence: Any) -> None:
        self._file = file
        need(isinstance(fence, list), "it has no fence")
        self.of_numbers = all(type(key) is int for key in fence)
        self._fence: list[Any] = fence if self.of_numbers else [bytes.fromhex(str(key)) for key in fence]

    def find_all(self, wanted: Sequence[Any]) -> list[int] | None:
        """The rows of some ids; None if no node has one of them. Every block is read once."""
        keys = [_whole_number(each) if self.of_numbers else _bytes(str(each)) for each in wanted]
        if any(key is None for key in keys) or (keys and not self._fence):
            return None
        by_block: dict[int, list[int]] = {}
        for place, key in enumerate(keys):
            by_block.setdefault(max(0, bisect_right(self._fence, key) - 1), []).append(place)
        found = [0] * len(keys)
        for block, places in by_block.items():
            start, known = block * STEP, {key: row for row, key in enumerate(self._keys(block))}
            rows = self._file["rows"].rows(start, start + len(known))
            for place in places:
                if keys[place] not in known:
                    return None
                found[place] = int(rows[known[keys[place]]])
        return found

    def _keys(self, block: int) -> list[Any]:
        """The ids of a block, in order."""
        start = block * STEP
        if self.of_numbers:
            array = self._file["ids"]
            return array.rows(start, min(start + STEP, array.shape[0])).tolist()
        array = self._file["ends"]
        ends = array.rows(start, min(start + STEP + 1, array.shape[0])).tolist()
        letters = self._file["letters"].rows(ends[0], ends[-1]).tobytes()
        return [letters[low - ends[0] : high - ends[0]] for low, high in pairwise(ends)]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _whole_number(wanted: Any) -> int | None:
    """The number that is meant, if it is written as numbers are: 7 or "7", but not "007"."""
    text = str(wanted)
    digits = text.removeprefix("-")
    if len(text) > 20 or not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if str(number) == text and -(2**63) <= number < 2**63 else None
