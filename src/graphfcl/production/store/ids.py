"""Ids of nodes in a tree: whole numbers, or text as UTF-8 bytes and lengths; no array as wide as the longest one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphfcl.production.store.block_arrays import BlockArrays, Index
from graphfcl.production.store.damage import Damaged, need

LONGEST = 1 << 20  # bytes of one id


def write_ids(arrays: BlockArrays, ids: np.ndarray | Sequence[str], cuts: np.ndarray) -> dict[str, Index]:
    """Indexes of the arrays that hold some ids: int64, or any sequence of text. cuts: as in ``BlockArrays.write``."""
    if isinstance(ids, np.ndarray) and ids.dtype.kind == "i":
        return {"ids": arrays.write(ids.astype(np.int64, copy=False), cuts)}
    texts = [str(text).encode("utf-8", "surrogatepass") for text in ids]
    lengths = np.array([len(text) for text in texts], dtype=np.int32)
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    letters = np.frombuffer(b"".join(texts), dtype=np.uint8)
    return {
        "ids.lengths": arrays.write(lengths, cuts),
        "ids.letters": arrays.write(letters, ends[np.asarray(cuts, dtype=np.int64).clip(max=len(texts))]),
    }


def read_ids(arrays: BlockArrays, indexes: dict[str, Any]) -> np.ndarray | list[str]:
    """The reverse: an int64 array, or a list of text."""
    if "ids" in indexes:
        found = arrays.read(indexes["ids"])
        need(found.dtype == np.int64 and found.ndim == 1, "its ids are no whole numbers")
        return found
    if not {"ids.lengths", "ids.letters"} <= indexes.keys():
        raise Damaged("it lacks the ids of its nodes")
    lengths, letters = arrays.read(indexes["ids.lengths"]), arrays.read(indexes["ids.letters"])
    need(lengths.dtype == np.int32 and lengths.ndim == 1 and letters.dtype == np.uint8, "its ids are no text")
    need(bool(((lengths >= 0) & (lengths <= LONGEST)).all()), "an id has no length that can be")
    need(int(lengths.sum(dtype=np.int64)) == letters.size, "its ids are longer or shorter than they say")
    content = letters.tobytes()
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    starts = [0, *ends][:-1]
    try:
        return [content[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends, strict=True)]
    except UnicodeDecodeError as error:
        raise Damaged("an id is no text") from error
