"""Chunks as they are stored: compressed where that makes them shorter, and never more than they say when unpacked."""

import zlib
from contextlib import suppress
from typing import Any

from graphfcl.production.store.checks import need

LARGEST = 1 << 26  # bytes of a row, and of what it becomes when it is unpacked
SAMPLE, WORTH = 1 << 14, 0.9  # bytes that show whether compressing is worth its time
FREE_TEXT, TEXT_SPREAD = 1 << 18, 8  # bytes of any text, and times its stored bytes that a longer one may have


def packed(content: bytes, is_text: bool) -> bytes:
    """Content as it is stored: compressed if that makes it shorter, a text not below what :func:`unpacked` accepts."""
    sample = content[:SAMPLE]
    shorter = zlib.compress(content, 1) if len(zlib.compress(sample, 1)) < WORTH * len(sample) else content
    least = (len(content) - FREE_TEXT) / TEXT_SPREAD if is_text else 0
    return shorter if least <= len(shorter) < WORTH * len(content) else content


def unpacked(size: Any, data: Any, is_text: bool) -> bytes:
    """The reverse; nothing that could be a chunk if it is not of this size. Never makes more than that."""
    if type(size) is not int or type(data) is not bytes or not len(data) <= size <= LARGEST:
        return b""
    if len(data) == size:
        return data
    # A small file must not become gigabytes of objects.
    need(
        not is_text or size <= FREE_TEXT + TEXT_SPREAD * len(data),
        "a description is longer than its stored bytes allow",
    )
    with suppress(zlib.error):
        return zlib.decompressobj().decompress(data, size)
    return b""
