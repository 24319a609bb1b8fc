"""Bytes as people write them."""

import re

from graphfcl.errors import InputError

UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def bytes_from(text: str, option: str) -> int:
    """``4GB`` → 4 · 2³⁰; units are those of memory, and a small letter or an i in them changes nothing."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(I?B)?\s*", text.upper())
    if found is None or not float(found[1]):
        raise InputError(f"{option} is {text!r}; write it as 4GB or 800MB.")
    return int(float(found[1]) * UNITS[f"{found[2]}B"])


def in_units(count: int) -> str:
    """The reverse, rounded up to a tenth."""
    for unit in ("TB", "GB", "MB", "KB"):
        if count >= UNITS[unit]:
            tenths = -(-count * 10 // UNITS[unit])
            return f"{tenths / 10:g}{unit}"
    return f"{count}B"
