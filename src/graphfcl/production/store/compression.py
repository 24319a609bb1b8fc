"""Compression of chunks, only where it makes them shorter. Unpacking never makes more bytes than a chunk declares."""

import zlib
from contextlib import suppress
from typing import Any

from graphfcl.production.store.checks import need

LARGEST = 1 << 26  # most bytes of a row, stored and unpacked
SAMPLE, WORTH = 1 << 14, 0.9  # content is compressed if its first bytes shrink to less than this share
FREE_TEXT, TEXT_SPREAD = 1 << 18, 8  # a longer text may have at most 8 times the bytes that are stored


def packed(content: bytes, is_text: bool) -> bytes:
    """Return content as it is stored: compressed if that is shorter, but a text only as far as :func:`unpacked`
    accepts.
    """
    sample = content[:SAMPLE]
    shorter = zlib.compress(content, 1) if len(zlib.compress(sample, 1)) < WORTH * len(sample) else content
    least = (len(content) - FREE_TEXT) / TEXT_SPREAD if is_text else 0
    return shorter if least <= len(shorter) < WORTH * len(content) else content


def unpacked(size: Any, data: Any, is_text: bool) -> bytes:
    """Return the content of a stored chunk; empty if it cannot have this size. Never makes more bytes than that."""
    if type(size) is not int or type(data) is not bytes or not len(data) <= size <= LARGEST:
        return b""
    if len(data) == size:
        return data
    # A small file must not become gigabytes of objects.
    need(
        not is_text or size <= FREE_TEXT + TEXT_SPREAD * len(data),
        "a description is too long for its stored bytes",
    )
    with suppress(zlib.error):
        return zlib.decompressobj().decompress(data, size)
    return b""
