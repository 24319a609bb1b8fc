"""What stands in a column of a table, and how it becomes numbers. A column is one of Arrow, in chunks."""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$|^-?(?i:nan|inf|infinity)$"
DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")  # a whole text, as spreadsheets of many countries write numbers
MICROSECONDS_A_DAY = 86_400_000_000


class Kind(Enum):
    """What a column holds."""

    NUMBER = "numbers"
    DATE = "dates"
    TEXT = "words"
    LIST = "lists of numbers"
    EMPTY = "nothing"
    OTHER = "other values"


def says_text(kind: Any) -> bool:
    """Whether an Arrow type is that of texts."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)


def trimmed(values: Any) -> Any:
    """Texts without white space at their ends; null where nothing is left."""
    import pyarrow as pa
    from pyarrow import compute

    texts = compute.utf8_trim_whitespace(values.cast(pa.string()))
    return compute.if_else(compute.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def as_floats(values: Any) -> Any | None:
    """Numbers and truth values, also written as text, as float64, null where there is nothing; None if one is none."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(values), pa.float64())])
    if pa.types.is_boolean(kind):
        return values.cast(pa.uint8()).cast(pa.float64())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return values.cast(pa.float64(), safe=False)
    if not says_text(kind):
        return None
    texts = trimmed(values)
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    try:
        return texts.cast(pa.bool_()).cast(pa.uint8()).cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def as_days(values: Any) -> Any | None:
    """Dates, also written as text (ISO 8601), as days since 1970; null where there is none; None if one is none."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_null(kind):
        return as_floats(values)
    try:
        if pa.types.is_date(kind):
            moments = values.cast(pa.timestamp("us"))
        elif pa.types.is_timestamp(kind):
            moments = values.cast(pa.timestamp("us", kind.tz), safe=False)
        elif says_text(kind):
            texts = trimmed(values)
            try:
                moments = texts.cast(pa.timestamp("us"))
            except pa.ArrowInvalid:
                moments = texts.cast(pa.timestamp("us", "UTC"))
        else:
            return None
    except pa.ArrowInvalid:
        return None
    from pyarrow import compute

    return compute.divide(moments.cast(pa.int64()).cast(pa.float64(), safe=False), float(MICROSECONDS_A_DAY))


def first_word(values: Any) -> tuple[int, str] | None:
    """Row and value of the first text that is no number."""
    from pyarrow import compute

    texts = trimmed(values)
    words = compute.invert(compute.match_substring_regex(texts, NUMBER)).fill_null(False)
    found = np.flatnonzero(words.to_numpy())
    return (int(found[0]), str(texts[int(found[0])].as_py())) if found.size else None


@dataclass
class KindOfTexts:
    """What the texts of a column are, seen in blocks. word: row and value of the first that is no number."""

    numbers: bool = True
    flags: bool = True
    dates: bool = True
    some: bool = False
    some_numbers: bool = False
    word: tuple[int, str] | None = field(default=None)

    def add(self, values: Any, first: int) -> None:
        """The next texts. first: rows before them."""
        import pyarrow as pa

        texts = trimmed(values)
        if texts.null_count == len(texts):
            return
        self.some = True
        try:
            found = texts.cast(pa.float64()).drop_null().to_numpy()
        except pa.ArrowInvalid:
            self.numbers = False
        else:
            self.some_numbers, self.dates = True, False
            self.flags = self.flags and bool(np.isin(found, (0, 1)).all())
            return
        self.flags = self.flags and as_floats(texts) is not None
        self.dates = self.dates and as_days(texts) is not None
        if self.word is None:
            word = first_word(texts)
            self.word = None if word is None else (first + word[0], word[1])
        self.some_numbers = self.some_numbers or _has_numbers(texts)

    @property
    def kind(self) -> Kind:
        if not self.some:
            return Kind.EMPTY
        return Kind.NUMBER if self.numbers or self.flags else Kind.DATE if self.dates else Kind.TEXT


def _has_numbers(texts: Any) -> bool:
    from pyarrow import compute

    return bool(compute.any(compute.match_substring_regex(texts, NUMBER)).as_py())


def declared_kind(kind: Any) -> Kind | None:
    """What an Arrow type says of a column; None for texts, of which CSV says nothing."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return Kind.EMPTY
    if (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
    ):
        return Kind.NUMBER
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Kind.DATE
    if says_text(kind):
        return None
    if is_list(kind) and declared_kind(kind.value_type) is Kind.NUMBER:
        return Kind.LIST
    return Kind.OTHER


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is that of lists, of one length or of several."""
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def list_lengths(values: Any) -> np.ndarray:
    """(rows,) how many values each list has; -1 where there is no list."""
    from pyarrow import compute

    return compute.list_value_length(values).fill_null(-1).to_numpy().astype(np.int64)
