"""What stands in a column of a table, and how it becomes numbers. A column is one of Arrow, in chunks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph.tables.table import Table

NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$|^-?(?i:nan|inf|infinity)$"
FLAG = r"^(?i:true|false)$"
DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")  # a whole text, as spreadsheets of many countries write numbers
MICROSECONDS_A_DAY = 86_400_000_000
TOKEN_PATTERN = r"(?u)\b\w\w+\b"


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


def first_word(values: Any, pattern: str = NUMBER) -> tuple[int, str] | None:
    """Row and value of the first text that is no number. pattern: of all that is none of the words."""
    from pyarrow import compute

    texts = trimmed(values)
    words = compute.invert(compute.match_substring_regex(texts, pattern)).fill_null(False)
    found = np.flatnonzero(words.to_numpy())
    return (int(found[0]), str(texts[int(found[0])].as_py())) if found.size else None


def _wrong_word(values: Any) -> tuple[int, str] | None:
    """Row and value that keep a column from being numbers or truth values: a truth value only beside numbers."""
    return first_word(values, f"{NUMBER}|{FLAG}") or first_word(values)


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


def numbers_of(table: Table, columns: list[str]) -> np.ndarray:
    """(rows, columns) float32; a word, an empty place or a number that is not finite is an error."""
    result = np.empty((table.row_count, len(columns)), dtype=np.float32)
    for position, column in enumerate(columns):
        found = as_floats(table.column(column))
        if found is None:
            word = _wrong_word(table.column(column)) if says_text(table.column(column).type) else None
            if word is None:
                raise InputError(f"{table.path}: column {column!r} does not hold numbers: fix it or leave it out.")
            raise InputError(
                f"{table.path}, {table.line(word[0])}: column {column!r} does not hold a number but {word[1]!r}: fix "
                "it or leave the column out."
            )
        result[:, position] = _filled(table, found, column)
    return result


def days_of(table: Table, column: str) -> np.ndarray:
    """(rows,) float32, dates as days since 1970."""
    values = table.column(column)
    found = as_days(values)
    if found is None:
        texts = trimmed(values).to_pylist() if says_text(values.type) else []
        row = next((row for row, text in enumerate(texts) if as_days(_one(text)) is None), None)
        place, said = (table.path, "") if row is None else (table.place(row), f" but {texts[row]!r}")
        raise InputError(
            f"{place}: column {column!r} does not hold dates as 2026-01-31 or 2026-01-31 12:00{said}: write them so, "
            "or leave the column out of dates=."
        )
    return _filled(table, found, column)


def _one(text: str | None) -> Any:
    """A column of one text."""
    import pyarrow as pa

    return pa.chunked_array([[text]], pa.string())


def vectors_of(table: Table, column: str, width: int | None) -> np.ndarray:
    """(rows, width) float32 of a column of lists. width: that of the rows before, if there are any."""
    import pyarrow as pa

    values = table.column(column)
    if declared_kind(values.type) is not Kind.LIST:
        raise InputError(
            f"{table.path}: column {column!r} does not hold lists of numbers, which vectors= needs: write it as a "
            "list column of Parquet, or name an .npy file."
        )
    lengths = list_lengths(values)
    width = int(lengths[0]) if width is None and lengths.size else width or 0
    wrong = np.flatnonzero(lengths != width) if width >= 0 else np.zeros(1, np.int64)
    if lengths.size and wrong.size:
        row = int(wrong[0])
        said = "no list" if lengths[row] < 0 else f"a list of {lengths[row]} numbers"
        raise InputError(
            f"{table.path}, {table.line(row)}: column {column!r} has {said}, all others have {max(width, 0)}: make "
            "all of one length."
        )
    flat = pa.chunked_array([chunk.flatten() for chunk in values.chunks], values.type.value_type)
    numbers = np.asarray(flat.cast(pa.float32(), safe=False).to_numpy(), dtype=np.float32)
    _refuse_strange(table, numbers.reshape(lengths.size, width), column)
    return numbers.reshape(lengths.size, width)


def weights_of(table: Table, column: str) -> np.ndarray:
    """(rows,) float32 weights of edges."""
    values = numbers_of(table, [column])[:, 0]
    if values.size and values.min() < 0:
        row = int(np.flatnonzero(values < 0)[0])
        raise InputError(
            f"{table.path}, {table.line(row)}: the edge has weight {values[row]}, which is below 0: fix it."
        )
    return values


def _filled(table: Table, found: Any, column: str) -> np.ndarray:
    """Arrow's numbers as float32; an empty place is an error."""
    if found.null_count:
        row = int(np.flatnonzero(found.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(
            f"{table.path}, {table.line(row)}: column {column!r} is empty; fill it in or leave the column out."
        )
    values = np.asarray(found.to_numpy()).astype(np.float32)
    _refuse_strange(table, values, column)
    return values


def _refuse_strange(table: Table, values: np.ndarray, column: str) -> None:
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise InputError(
            f"{table.path}, {table.line(row)}: column {column!r} is NaN or infinite; fill it in or leave it out."
        )


def count_words(texts: Sequence[str]) -> tuple[sparse.csr_array, np.ndarray]:
    """Word counts (n, words) float32 of every word that occurs, and the words in alphabetical order."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=TOKEN_PATTERN, dtype=np.float32)
    if not any(texts):
        return sparse.csr_array((len(texts), 0), dtype=np.float32), np.zeros(0, dtype=object)
    try:
        counts = sparse.csr_array(vectorizer.fit_transform(texts))
    except ValueError:  # no text has a word of two letters
        return sparse.csr_array((len(texts), 0), dtype=np.float32), np.zeros(0, dtype=object)
    return counts, vectorizer.get_feature_names_out()


def count_known_words(texts: Sequence[str], words: np.ndarray) -> sparse.csr_array:
    """Word counts (n, words) float32 of words that are known already; all others are passed over."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=TOKEN_PATTERN, dtype=np.float32, vocabulary=words.tolist())
    return sparse.csr_array(vectorizer.transform(texts))


def word_count(texts: Sequence[str]) -> int:
    """How many words there are in some texts; one that occurs twice counts twice."""
    from sklearn.feature_extraction.text import CountVectorizer

    words = CountVectorizer(token_pattern=TOKEN_PATTERN).build_analyzer()
    return sum(len(words(text)) for text in texts)
