"""Node ids and class names: which are valid, how they are cleaned, and how they are stored.

Ids in memory are an int64 array, or an object array of Python texts if any id is not a whole number. NumPy's
fixed-width texts would need the space of the longest id for each, and its variable-width texts can neither be saved
without pickle nor searched.
"""

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from graphfcl.errors import CONTROL, InputError, quoted, shown

Place = Callable[[int], str]  # name of a row in messages
LISTED = 5  # duplicate ids that a message lists
ClassLabel: TypeAlias = str | int  # a class as the user writes it; the package stores its name as a text


def normal(text: str) -> str:
    """Normalise a text for comparison: Unicode NFC, without white space at the ends."""
    return unicodedata.normalize("NFC", text).strip()


def bare_name(name: str) -> str:
    """Return a name without case, accents and white space.

    Only marks on Latin and Greek letters are removed. In other scripts a mark makes another letter (バス and パス).
    """
    kept, base = [], ""
    for letter in unicodedata.normalize("NFD", name.casefold()):
        if not "\u0300" <= letter <= "\u036f":
            base = unicodedata.name(letter, "")
        elif base.startswith(("LATIN ", "GREEK ")):
            continue
        kept.append(letter)
    return "".join(unicodedata.normalize("NFC", "".join(kept)).split())


def fold_names(counts: Mapping[str, int], classes: Iterable[str] = ()) -> dict[str, str]:
    """Map each spelling to one name: the name of a class, else the most frequent spelling, else the first.

    Spellings belong together if they differ only by case, white space or accents.
    """
    chosen = {bare_name(name): name for name in classes}
    for name in sorted(counts, key=lambda name: -counts[name]):
        chosen.setdefault(bare_name(name), name)
    return {name: chosen[bare_name(name)] for name in counts}


@dataclass(frozen=True)
class TextRule:
    """Rule for valid ids or names: ``what`` is their name in messages, ``longest`` the maximum number of characters."""

    what: str
    longest: int

    def clean(self, text: str, where: str) -> str:
        """Return the cleaned text; an InputError names ``where`` if it is not valid."""
        fault = self.fault(text)
        if fault:
            raise InputError(f"{where}: {fault}.")
        return normal(text)

    def fault(self, text: str) -> str:
        """Say why a text is not valid; "" if it is."""
        fault = self._fault(normal(text))
        return f"the {self.what} {quoted(text)} {fault}" if fault else ""

    def clean_all(self, texts: Sequence[str], place: Place) -> list[str]:
        """Return many cleaned texts; an InputError names the place of the first that is not valid."""
        cleaned = [normal(text) for text in texts]
        # Search all texts at once, and single texts only if something is wrong.
        wrong = CONTROL.search("".join(cleaned)) or not all(cleaned) or max(map(len, cleaned), default=0) > self.longest
        if wrong:
            row = next(row for row, text in enumerate(cleaned) if self._fault(text))
            self.clean(texts[row], place(row))
        return cleaned

    def _fault(self, cleaned: str) -> str:
        if not cleaned:
            return "is empty: give it one"
        control = CONTROL.search(cleaned)
        if control and "\ud800" <= control.group() <= "\udfff":
            return "holds half of a surrogate pair, which cannot be written to a file: write it as UTF-8"
        if control:
            return f"holds the control character U+{ord(control.group()):04X}: take it out"
        if len(cleaned) > self.longest:
            return f"is longer than {self.longest:,} characters: shorten it"
        return ""


NODE_ID = TextRule("node id", 1_000)
CLASS_NAME = TextRule("class name", 200)


def text_of(value: Any, where: str = "") -> str:
    """Convert an id or name to text. Bytes are read as UTF-8, and 3.0, as pandas writes it, becomes "3"."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{where or 'an id'}: {value[:60]!r} is not UTF-8: write it again.") from error
    return str(value)


def is_nothing(value: Any) -> bool:
    """Tell whether a value is missing: None, NaN, or pandas' NA."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and math.isnan(value))


def listed(values: Any) -> list[Any]:
    """Return the plain Python values of a list, an array or a tensor."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def list_of_nodes(values: Any, what: str = "the nodes") -> Any:
    """Return ids as a sized collection; an InputError, which names them ``what``, unless they are one-dimensional."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        example = f", such as [{shown(values)}]" if isinstance(values, str | Integral) else ""
        raise InputError(f"{what} are {shown(values)}: give a list of ids{example}.")
    shape = tuple(getattr(values, "shape", (1,)))
    if len(shape) != 1:
        raise InputError(f"{what} are an array of shape {shape}: give a list of ids, such as its ravel().")
    return values if isinstance(values, Sized) else list(values)


def make_ids(values: Any, place: Place, *, read_numbers: bool = False) -> tuple[np.ndarray, int]:
    """Return (n,) valid ids, int64 if all are whole numbers and text otherwise, and how many were cleaned.

    With ``read_numbers``, texts also become int64 if all of them are whole numbers ("7" but not "007"). An id that
    occurs twice raises an InputError.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind == "i" and np.diff(np.sort(values)).all():
        return values.astype(np.int64), 0
    items = listed(values)
    if all(is_whole(value) for value in items):
        try:
            numbers = np.array(items, dtype=np.int64)
        except OverflowError:
            pass
        else:
            refuse_twice(items, items, place)
            return numbers, 0
    missing = next((row for row, value in enumerate(items) if is_nothing(value)), None)
    if missing is not None:
        raise InputError(f"{place(missing)}: the node id is missing: give it one.")
    texts = [text_of(value, place(row)) if type(value) is not str else value for row, value in enumerate(items)]
    cleaned = NODE_ID.clean_all(texts, place)
    refuse_twice(cleaned, texts, place)
    changed = sum(before != after for before, after in zip(texts, cleaned, strict=True))
    if read_numbers:
        whole = [whole_number(text) for text in cleaned]
        if None not in whole:
            return np.array(whole, dtype=np.int64), changed
    return text_array(cleaned), changed


def whole_number(text: str) -> int | None:
    """Return the int64 whose usual spelling is this text, or None."""
    digits = text[1:] if text.startswith("-") else text
    if len(text) > 20 or not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if str(number) == text and -(2**63) <= number < 2**63 else None


def class_label(name: str, integers: bool) -> ClassLabel:
    """Return a class as the user writes it; with ``integers``, names that are whole numbers become integers."""
    number = whole_number(name) if integers else None
    return name if number is None else number


def class_position(names: Sequence[str], label: ClassLabel) -> int | None:
    """Return the position of a class among names, by its exact or cleaned form, or None."""
    numbers, name = {each: number for number, each in enumerate(names)}, text_of(label)
    return numbers.get(name, numbers.get(normal(name)))


def is_whole(value: Any) -> bool:
    """Tell whether a value is an integer and not a boolean."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def text_array(texts: Sequence[str]) -> np.ndarray:
    """Return (n,) Python texts in an object array."""
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def class_names_of(values: Iterable[Any], where: str) -> tuple[list[str], int]:
    """Return valid class names and how many were cleaned; a name that occurs twice raises an InputError."""
    texts = [text_of(value, where) for value in values]
    cleaned = CLASS_NAME.clean_all(texts, lambda _: where)
    first: dict[str, str] = {}
    for text, name in zip(texts, cleaned, strict=True):
        if name in first:
            raise InputError(
                f"{where}: a class name occurs twice among the class names ({quoted(first[name])}, {quoted(text)}); "
                "give each class one name."
            )
        first[name] = text
    return cleaned, sum(before != after for before, after in zip(texts, cleaned, strict=True))


def refuse_twice(cleaned: Sequence[Any], originals: Sequence[Any], place: Place) -> None:
    """Raise an InputError if cleaned ids are equal; ``originals`` are the ids before cleaning."""
    if len(set(cleaned)) == len(cleaned):
        return
    first: dict[Any, int] = {}
    second: dict[Any, int] = {}
    for row, value in enumerate(cleaned):
        if first.setdefault(value, row) != row:
            second.setdefault(value, row)
    pairs = [(first[value], row) for value, row in islice(second.items(), LISTED)]
    raise same_ids(len(second), pairs, lambda row: cleaned[row], lambda row: originals[row], place)


def same_ids(
    count: int,
    pairs: Sequence[tuple[int, int]],
    cleaned: Callable[[int], Any],
    original: Callable[[int], Any],
    place: Place,
) -> InputError:
    """Make the error for duplicate ids.

    Args:
        count: Number of ids that occur in several rows.
        pairs: First two rows of some of these ids, ordered by the second row.
        cleaned: Cleaned id of a row.
        original: Id of a row before cleaning.
        place: Name of a row in messages.
    """
    if count > 1:
        named = [f"{_shown(cleaned(row))} in {place(row).rpartition(', ')[2]}" for _, row in pairs]
        more = [f"{count - LISTED:,} more"] if count > LISTED else []
        where, comma, _ = place(pairs[0][1]).rpartition(", ")
        cleaning = any(original(first) != original(second) for first, second in pairs)
        once = " once cleaned (spaces at the ends, Unicode NFC)" if cleaning else ""
        return InputError(
            f"{where}{':' * len(comma[:1])} {count:,} node ids occur several times{once}: "
            f"{', '.join([*named, *more])}; a node has one id and one row.".lstrip()
        )
    ((other, row),) = pairs
    if original(other) == original(row):
        return InputError(
            f"{place(row)}: node id {_shown(cleaned(row))} occurs twice, first in {place(other).rpartition(', ')[2]}; "
            "a node has one id and one row."
        )
    return InputError(
        f"{place(row)}: node id {quoted(original(row))} and {quoted(original(other))} ({place(other)}) are the same id "
        f"{quoted(cleaned(row))} once cleaned (spaces at the ends, Unicode NFC): keep one."
    )


def _shown(value: Any) -> Any:
    return quoted(value) if isinstance(value, str) else value


# Other forms


def as_arrow(values: np.ndarray) -> Any:
    """Convert ids or names to an Arrow column. If integers and texts are mixed, all become texts.

    Surrogates, which Arrow cannot hold, are escaped.
    """
    import pyarrow as pa

    if values.dtype != object:
        return pa.array(values)
    texts = [str(value) if is_whole(value) else value for value in values.tolist()]
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return pa.array([text.encode("utf-8", "backslashreplace").decode() for text in texts], pa.string())


def pack_texts(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Concatenate texts as UTF-8; return the bytes and (m + 1,) the positions where texts begin."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    starts = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in encoded], out=starts[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), starts


def unpack_texts(content: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the (m,) texts that :func:`pack_texts` packed; ``starts`` may begin above 0."""
    plain, cuts = content.tobytes(), (starts - starts[0]).tolist()
    return text_array([plain[low:high].decode("utf-8", "surrogatepass") for low, high in pairwise(cuts)])


def whole_numbers(wanted: Any, *, read_texts: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Convert a user's ids to (m,) int64, and return (m,) bool, False where an id is not a whole number (it becomes 0).

    With ``read_texts``, the ids 7, "7" and 7.0 are the same.
    """
    if isinstance(wanted, np.ndarray) and wanted.dtype.kind == "i":
        return wanted.astype(np.int64), np.ones(wanted.shape, dtype=bool)
    values = [
        each if is_whole(each) else whole_number(normal(text_of(each))) if read_texts else None
        for each in listed(wanted)
    ]
    fits = [value is not None and -(2**63) <= value < 2**63 for value in values]
    numbers = [value if fit else 0 for value, fit in zip(values, fits, strict=True)]
    return np.array(numbers, dtype=np.int64), np.array(fits, dtype=bool)


@dataclass(frozen=True, eq=False)
class IdIndex:
    """Finds rows of nodes by their ids, which :func:`make_ids` made; a stored model may hold texts not cleaned."""

    ids: np.ndarray

    def exact(self, wanted: Any) -> np.ndarray:
        """Return (m,) rows of ids that are stored in exactly this form; -1 where there is none."""
        if self.ids.dtype == object:
            return np.array([self._row_of_text.get(each, -1) for each in listed(wanted)], dtype=np.int64)
        return self._rows_of_numbers(*whole_numbers(wanted, read_texts=False))

    def rows(self, wanted: Any) -> np.ndarray:
        """Return (m,) rows of ids; -1 where there is none.

        The ids 7, "7" and 7.0 are the same. A text matches a stored id exactly, or else by its cleaned form, if only
        one stored id has that form.
        """
        if self.ids.dtype != object:
            return self._rows_of_numbers(*whole_numbers(wanted))
        texts = [self._text_of(each) for each in listed(wanted)]
        rows = self.exact(texts)
        for place in np.flatnonzero(rows < 0).tolist():
            rows[place] = self._row_by_form(texts[place])
        return rows

    def _text_of(self, value: Any) -> str:
        """Convert an id to text; a float keeps its spelling if that is stored, as ids of a table may be "3.0"."""
        spelled = str(value) if isinstance(value, float) else None
        return spelled if spelled in self._row_of_text else text_of(value)

    def _rows_of_numbers(self, numbers: np.ndarray, fits: np.ndarray) -> np.ndarray:
        """Return (m,) rows of the numbers where ``fits`` is true, else -1."""
        if self.ids.size == 0:
            return np.full(numbers.shape, -1, dtype=np.int64)
        positions = np.searchsorted(self.ids, numbers, sorter=self._order).clip(max=self.ids.size - 1)
        rows = self._order[positions]
        return np.where(fits & (self.ids[rows] == numbers), rows, -1)

    def _row_by_form(self, text: str) -> int:
        form = normal(text)
        rows = [*self._rows_by_form.get(form, ()), *([self._row_of_text[form]] if form in self._row_of_text else ())]
        if len(rows) > 1:
            both = " or ".join(quoted(self.ids[row]) for row in rows[:2])
            raise InputError(f"node {quoted(text)} may be {both}, which differ in spaces or accents: write it exactly.")
        return rows[0] if rows else -1

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.ids, kind="stable")

    @cached_property
    def _row_of_text(self) -> dict[str, int]:
        return dict(zip(self.ids.tolist(), range(self.ids.size), strict=True))

    @cached_property
    def _rows_by_form(self) -> dict[str, list[int]]:
        """Rows of stored ids that are not in cleaned form, by their cleaned form."""
        rows: dict[str, list[int]] = {}
        for row, text in enumerate(self.ids.tolist()):
            if normal(text) != text:
                rows.setdefault(normal(text), []).append(row)
        return rows
