"""How a table of text is written: what separates its columns."""

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

from graphfcl.errors import InputError

SEPARATORS = (",", ";", "\t")
TEXT_SUFFIXES = ("csv", "tsv")
LONGEST_HEADER = 1 << 24  # bytes


def separator_of(path: Path) -> str:
    """What stands most often in the first line, outside quotes; a comma if nothing does, a tab in ``.tsv``."""
    try:
        with open(path, "rb") as file:
            header = file.readline(LONGEST_HEADER)
    except OSError:
        header = b""
    if header.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # the "Unicode text" of spreadsheets
        raise InputError(f"{path} is UTF-16: write it as UTF-8.")
    if path.suffix == ".tsv":
        return "\t"
    outside = b"".join(header.split(b'"')[::2]).decode("utf-8", "replace")
    return max(SEPARATORS, key=outside.count)
