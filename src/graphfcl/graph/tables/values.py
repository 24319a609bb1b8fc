"""Recognise the kind of a table column and convert its values to numbers. Columns are chunked Arrow arrays."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from graphfcl.errors import InputError
from graphfcl.graph.tables.columns import Notation
from graphfcl.graph.tables.table import Table

NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$|^-?(?i:nan|inf|infinity)$"
FLAG = r"^(?i:true|false)$"
THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(,[0-9]{3})+")  # matches a whole text; a single comma may also be decimal
THOUSANDS_FIX = "the comma may separate thousands (write it without) or be a decimal comma (decimal=comma)"
DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")  # matches a whole text
MICROSECONDS_A_DAY = 86_400_000_000


class Kind(Enum):
    """Kind of a column."""

    NUMBER = "numbers"
    DATE = "dates"
    TEXT = "words"
    LIST = "lists of numbers"
    EMPTY = "nothing"
    OTHER = "other values"


def says_text(kind: Any) -> bool:
    """Tell whether an Arrow type is text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)


def _is_number(kind: Any) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def trimmed(values: Any) -> Any:
    """Strip white space at the ends of texts; texts without other characters become null."""
    texts = compute.utf8_trim_whitespace(values.cast(pa.string()))
    return compute.if_else(compute.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def present(texts: Any, notation: Notation) -> Any:
    """Replace trimmed texts that mean a missing value by null."""
    words = pa.array(sorted(notation.missing), pa.string())
    return compute.if_else(compute.is_in(compute.utf8_lower(texts), words), pa.scalar(None, pa.string()), texts)


def _with_point(texts: Any, notation: Notation) -> Any:
    """Write numbers with a decimal point.

    With ``decimal=comma``, a text with a point is no number, because the point may separate thousands.
    """
    if notation.decimal == "point":
        return texts
    return compute.replace_substring(compute.replace_substring(texts, ".", "·"), ",", ".")


def _cast(texts: Any, notation: Notation, kind: Any) -> Any | None:
    """Cast trimmed texts to a type, with null for missing values; None if a text cannot be cast."""
    for read in (lambda: texts, lambda: present(texts, notation)):  # try first without replacing missing values
        try:
            return (_with_point(read(), notation) if pa.types.is_floating(kind) else read()).cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def _numbers_in(texts: Any, notation: Notation) -> Any | None:
    """Cast trimmed texts to float64, with null for missing values; None if a text is no number."""
    numbers = _cast(texts, notation, pa.float64())
    return None if numbers is None else _without(numbers, notation.missing_numbers)


def _without(values: Any, missing: Sequence[float]) -> Any:
    """Replace numbers that mean a missing value by null."""
    if not missing:
        return values
    return compute.if_else(
        compute.is_in(values, pa.array(missing, pa.float64())), pa.scalar(None, pa.float64()), values
    )


@cache
def _missing_days(missing: frozenset[str]) -> tuple[float, ...]:
    """Return the dates among keys of missing values, as days since 1970."""
    days = [as_days(pa.chunked_array([[key]]), Notation(frozenset())) for key in sorted(missing)]
    return tuple(each[0].as_py() for each in days if each is not None)


def as_floats(values: Any, notation: Notation) -> Any | None:
    """Convert numbers and booleans, also in text form, to float64; None if a value is neither.

    Missing values become null or NaN.
    """
    kind = values.type
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(values), pa.float64())])
    if pa.types.is_boolean(kind):
        return values.cast(pa.uint8()).cast(pa.float64())
    if _is_number(kind):
        missing = np.array(notation.missing_numbers)
        with np.errstate(over="ignore"):  # round a value such as -999.9 as a float32 column does
            missing = missing.astype(np.float32) if pa.types.is_float32(kind) else missing
        return _without(values.cast(pa.float64(), safe=False), missing.tolist())
    if not says_text(kind):
        return None
    texts = trimmed(values)
    numbers = _numbers_in(texts, notation)
    if numbers is not None:
        return numbers
    flags = _cast(present(texts, notation), notation, pa.bool_())  # replace first: 0 or 1 may mean a missing value
    return None if flags is None else flags.cast(pa.uint8()).cast(pa.float64())


def as_days(values: Any, notation: Notation) -> Any | None:
    """Convert dates, also in text form (ISO 8601), to days since 1970; None if a value is no date.

    Missing values become null.
    """
    kind = values.type
    if pa.types.is_null(kind):
        return as_floats(values, notation)
    try:
        if pa.types.is_date(kind):
            moments = values.cast(pa.timestamp("us"))
        elif pa.types.is_timestamp(kind):
            moments = values.cast(pa.timestamp("us", kind.tz), safe=False)
        elif says_text(kind):
            texts = trimmed(values)
            moments = _cast(texts, notation, pa.timestamp("us"))
            if moments is None:
                moments = _cast(texts, notation, pa.timestamp("us", "UTC"))
        else:
            return None
    except pa.ArrowInvalid:
        return None
    if moments is None:
        return None
    days = compute.divide(moments.cast(pa.int64()).cast(pa.float64(), safe=False), float(MICROSECONDS_A_DAY))
    return _without(days, _missing_days(notation.missing) if notation.missing else ())


def first_word(values: Any, notation: Notation, pattern: str = NUMBER) -> tuple[int, str] | None:
    """Return row and value of the first text that does not match ``pattern``; by default, of the first non-number."""
    texts = trimmed(values)
    numbers = _with_point(present(texts, notation), notation)
    is_word = compute.invert(compute.match_substring_regex(numbers, pattern)).fill_null(False)
    rows = np.flatnonzero(is_word.to_numpy())
    return (int(rows[0]), str(texts[int(rows[0])].as_py())) if rows.size else None


@dataclass
class KindOfTexts:
    """Finds the kind of a text column in blocks; ``word`` is row and value of the first text that is no number."""

    notation: Notation
    numbers: bool = True
    flags: bool = True
    dates: bool = True
    some: bool = False
    some_numbers: bool = False
    word: tuple[int, str] | None = None

    def add(self, values: Any, first: int) -> None:
        """Add the next texts; ``first`` is the number of rows before them."""
        texts = trimmed(values)
        floats = _numbers_in(texts, self.notation)
        if floats is not None:
            numbers = floats.drop_null().to_numpy()
            numbers = numbers[~np.isnan(numbers)]
            if numbers.size:
                self.some, self.some_numbers, self.dates = True, True, False
                self.flags = self.flags and bool(np.isin(numbers, (0, 1)).all())
            return
        self.some, self.numbers = True, False
        self.flags = self.flags and as_floats(texts, self.notation) is not None
        self.dates = self.dates and as_days(texts, self.notation) is not None
        if self.word is None:
            word = first_word(texts, self.notation)
            self.word = None if word is None else (first + word[0], word[1])
        values = _with_point(present(texts, self.notation), self.notation)
        has_numbers = compute.any(compute.match_substring_regex(values, NUMBER)).as_py()
        self.some_numbers = self.some_numbers or bool(has_numbers)

    @property
    def kind(self) -> Kind:
        if not self.some:
            return Kind.EMPTY
        return Kind.NUMBER if self.numbers or self.flags else Kind.DATE if self.dates else Kind.TEXT


def declared_kind(kind: Any) -> Kind | None:
    """Return the kind of a column with an Arrow type; None for texts, whose kind depends on the values."""
    if pa.types.is_null(kind):
        return Kind.EMPTY
    if pa.types.is_boolean(kind) or _is_number(kind):
        return Kind.NUMBER
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Kind.DATE
    if says_text(kind):
        return None
    if is_list(kind) and declared_kind(kind.value_type) is Kind.NUMBER:
        return Kind.LIST
    return Kind.OTHER


def is_list(kind: Any) -> bool:
    """Tell whether an Arrow type is a list, of fixed or variable length."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def has_values(values: Any, notation: Notation) -> bool:
    """Tell whether a column of numbers or dates has at least one value."""
    numbers = as_floats(values, notation)
    numbers = as_days(values, notation) if numbers is None else numbers
    return numbers is None or bool(compute.any(compute.invert(compute.is_nan(numbers))).as_py())


def numbers_of(table: Table, column: str) -> np.ndarray:
    """Return (rows,) float64 with NaN for missing values; a word or an infinite number raises an InputError."""
    values = table.column(column)
    numbers = as_floats(values, table.notation)
    if numbers is not None:
        return _in_range(table, np.asarray(numbers.to_numpy()), column)
    # Name the first word that is neither a number nor a boolean; if there is none, the first boolean among numbers.
    word = None
    if says_text(values.type):
        word = first_word(values, table.notation, f"{NUMBER}|{FLAG}") or first_word(values, table.notation)
    if word is None:
        raise InputError(f"{table.path}: column {column!r} does not hold numbers: fix it or leave it out.")
    fix = "decimal=comma reads it" if DECIMAL_COMMA.fullmatch(word[1]) else "fix it or leave the column out"
    fix = THOUSANDS_FIX if THOUSANDS.fullmatch(word[1]) else fix
    raise InputError(f"{table.place(word[0])}: column {column!r} does not hold a number but {word[1]!r}: {fix}.")


def days_of(table: Table, column: str) -> np.ndarray:
    """Return (rows,) float64 days since 1970 with NaN for missing dates."""
    values = table.column(column)
    days = as_days(values, table.notation)
    if days is not None:
        return np.asarray(days.to_numpy())
    texts = present(trimmed(values), table.notation).to_pylist() if says_text(values.type) else []
    one_by_one = (as_days(pa.chunked_array([[text]], pa.string()), table.notation) for text in texts)
    row = next((row for row, days in enumerate(one_by_one) if days is None), None)
    place, content = (table.path, "") if row is None else (table.place(row), f" but {texts[row]!r}")
    raise InputError(
        f"{place}: column {column!r} does not hold dates as 2026-01-31 or 2026-01-31 12:00{content}: write them so, or "
        "leave the column out of dates=."
    )


def vectors_of(table: Table, column: str, width: int | None) -> np.ndarray:
    """Return (rows, width) float32 of a list column; ``width`` is the length of the lists in earlier rows, if any."""
    values = table.column(column)
    if declared_kind(values.type) is not Kind.LIST:
        raise InputError(
            f"{table.path}: column {column!r} does not hold lists of numbers, which vectors= needs: write it as a "
            "list column of Parquet, or name an .npy file."
        )
    lengths = compute.list_value_length(values).fill_null(-1).to_numpy().astype(np.int64)  # -1: no list
    width = int(lengths[0]) if width is None and lengths.size else width or 0
    wrong = np.flatnonzero(lengths != width) if width >= 0 else np.zeros(1, np.int64)
    if lengths.size and wrong.size:
        row = int(wrong[0])
        content = "no list" if lengths[row] < 0 else f"a list of {lengths[row]} numbers"
        raise InputError(
            f"{table.place(row)}: column {column!r} has {content}, all others have {max(width, 0)}: make all of one "
            "length."
        )
    flat = pa.chunked_array([chunk.flatten() for chunk in values.chunks], values.type.value_type)
    numbers = np.asarray(flat.cast(pa.float32(), safe=False).to_numpy(), dtype=np.float32)
    return _finite(table, numbers.reshape(lengths.size, width), column)


def weights_of(table: Table, column: str) -> np.ndarray:
    """Return (rows,) float32 edge weights; negative or missing weights raise an InputError."""
    values = without_gaps(table, numbers_of(table, column), column)
    if values.size and values.min() < 0:
        row = int(np.flatnonzero(values < 0)[0])
        raise InputError(f"{table.place(row)}: the edge has weight {values[row]}, which is below 0: fix it.")
    return values


def without_gaps(table: Table, numbers: np.ndarray, column: str) -> np.ndarray:
    """Return (rows,) float32 numbers; a missing one raises an InputError."""
    gaps = np.flatnonzero(np.isnan(numbers))
    if gaps.size:
        raise InputError(
            f"{table.place(int(gaps[0]))}: column {column!r} is empty; fill it in or leave the column out."
        )
    return numbers.astype(np.float32)


def _in_range(table: Table, values: np.ndarray, column: str) -> np.ndarray:
    """Return the values; one that is infinite as float32 raises an InputError."""
    wrong = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max)
    if wrong.size:
        raise InputError(
            f"{table.place(int(wrong[0]))}: column {column!r} is infinite or beyond 3.4e38; fix it or leave it out."
        )
    return values


def _finite(table: Table, values: np.ndarray, column: str) -> np.ndarray:
    """Return the values; one that is NaN or infinite raises an InputError."""
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise InputError(f"{table.place(row)}: column {column!r} is NaN or infinite; fill it in or leave it out.")
    return values
