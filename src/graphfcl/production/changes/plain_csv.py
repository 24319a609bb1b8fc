"""A CSV file of texts and whole numbers, written as Arrow writes it, without waiting for the import of Arrow."""

from collections.abc import Mapping, Sequence

import numpy as np


def is_plain(column: object) -> bool:
    """Whether a column holds texts or whole numbers alone; what floats look like is Arrow's business."""
    return isinstance(column, np.ndarray) and column.dtype.kind in "iO" and _are_texts_or_numbers(column)


def plain_csv(columns: Mapping[str, np.ndarray]) -> bytes:
    """The file: a header and rows. Texts stand in quotes; surrogates, which only an old file has, are escaped."""
    rows = zip(*(_cells(values) for values in columns.values()), strict=True)
    lines = [",".join(_quoted(list(columns))), *(",".join(row) for row in rows), ""]
    return "\n".join(lines).encode("utf-8", "backslashreplace")


def _are_texts_or_numbers(column: np.ndarray) -> bool:
    return column.dtype.kind == "i" or all(isinstance(value, str) for value in column.tolist())


def _cells(values: np.ndarray) -> Sequence[str]:
    return [str(value) for value in values.tolist()] if values.dtype.kind == "i" else _quoted(values.tolist())


def _quoted(texts: Sequence[str]) -> list[str]:
    return ['"' + text.replace('"', '""') + '"' for text in texts]
