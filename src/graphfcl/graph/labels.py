"""Turn labels as users write them into class numbers: unknown labels, and different spellings of one class."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError, quoted
from graphfcl.graph.graph import UNKNOWN
from graphfcl.graph.ids import (
    CLASS_NAME,
    ClassLabel,
    Place,
    bare_name,
    class_names_of,
    fold_names,
    is_whole,
    listed,
    normal,
    text_array,
    text_of,
    whole_number,
)
from graphfcl.graph.tables.columns import label_key, unknown_keys

LISTED = 5  # groups of similar names that a note lists
FOLDED = 20  # groups of merged spellings that a note lists


@dataclass(frozen=True, eq=False)
class CleanLabels:
    """Labels as class numbers.

    Args:
        numbers: (n,) int64 Positions in ``names``; -1 where the class is not known.
        names: Names of the classes.
        changed: Number of names that were cleaned.
        notes: Sentences about anything that users may not expect.
        integers: Whether the user's classes are integers. All names are then integers in text form.
    """

    numbers: np.ndarray
    names: tuple[str, ...]
    changed: int = 0
    notes: tuple[str, ...] = ()
    integers: bool = False


def clean_labels(
    labels: Any,
    class_names: Sequence[ClassLabel] | None,
    count: int,
    where: str,
    place: Place,
    *,
    missing: Iterable[str] | None = None,
    known: Iterable[str] | None = None,
    fold: bool = False,
    counts: np.ndarray | None = None,
    read_numbers: bool = False,
) -> CleanLabels:
    """Turn the labels of ``count`` nodes into class numbers.

    Without ``class_names``, numbers are the classes themselves: integers, floats such as 3.0 (which pandas makes where
    labels are missing), and booleans as 0 and 1. A negative number means that the class is not known.

    Args:
        labels: (count,) Numbers or texts.
        class_names: Names of the class numbers.
        count: Number of labels.
        where: Name of the source in messages.
        place: Name of a row in messages.
        missing: Further names that mean unknown, in any case.
        known: Usual names of unknown classes that are classes here.
        fold: Whether names that differ only by case, white space or accents are one class.
        counts: (count,) Number of nodes with each label, if each label is listed once.
        read_numbers: Whether texts are integers if all of them are whole numbers ("7" but not "007").
    """
    if sparse.issparse(labels):
        raise InputError(f"{where}: the labels are a matrix (multi-label); choose one class per node.")
    labels = _label_array(labels, where)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim == 0:
        raise InputError(f"{where}: there is no list of labels; give one label per node (-1 where unknown).")
    if labels.ndim != 1:
        raise InputError(
            f"{where}: the labels have shape {labels.shape}, so nodes have several (multi-label); choose one class "
            "per node."
        )
    if labels.size != count:
        raise InputError(f"{where}: {labels.size} labels for {count} nodes; give one per node (-1 where unknown).")
    names, changed, integers = None, 0, False
    if class_names is not None:
        integers = len(class_names) > 0 and all(map(is_whole, listed(class_names)))
        names, changed = class_names_of(class_names, where)
    if labels.dtype.kind in "OU":
        spelled = _Spelled.of(labels, where, counts)
        keys = missing_keys(missing, known, where)
        numbers, names, spelling_changes, folded = spelled.classes(names, keys, where, place, fold=fold)
        alike = folded if fold else alike_note(names) if class_names is None else []
        notes = (*spelled.unknown_note(numbers), *alike)
        _refuse_mixed(labels, names, where)
        integers |= read_numbers and bool(names) and all(whole_number(name) is not None for name in names)
        return CleanLabels(numbers[spelled.codes], tuple(names), changed + spelling_changes, notes, integers)
    numbers = _whole_numbers(labels, where)
    if names is None:
        present = np.unique(numbers[numbers >= 0])
        dense = np.searchsorted(present, numbers).astype(np.int64)
        own = tuple(map(str, present.tolist()))
        return CleanLabels(np.where(numbers < 0, UNKNOWN, dense), own, integers=True)
    if numbers.size and numbers.max() >= len(names):
        raise InputError(f"{where}: label {numbers.max()} has no name, there are {len(names)} class names.")
    return CleanLabels(np.where(numbers < 0, UNKNOWN, numbers), tuple(names), changed, integers=integers)


def _refuse_mixed(labels: np.ndarray, names: Sequence[str], where: str) -> None:
    """Raise an InputError for integers among names, because predictions would be texts in their place."""
    kinds = {type(label) for label in labels.tolist()} if labels.dtype.kind == "O" else set()
    text = next((name for name in names if whole_number(name) is None), None)
    if text is not None and any(issubclass(kind, int) for kind in kinds):
        raise InputError(
            f"{where}: the labels mix integers and texts such as {quoted(text)}; give all of them as texts."
        )


def missing_keys(missing: Iterable[str] | None, known: Iterable[str] | None, where: str) -> frozenset[str]:
    """Return keys of the names that mean unknown, including the blank."""
    if isinstance(missing, str):
        raise InputError(f"{where}: the missing names are the text {quoted(missing)}: give a list of names.")
    return unknown_keys(missing, known)


def means_unknown(name: str) -> bool:
    """Tell whether a table with default options reads a label of this name as unknown."""
    return label_key(name) in unknown_keys(None)


@dataclass(frozen=True, eq=False)
class _Spelled:
    """Labels that are texts.

    Args:
        different: Each spelling once, in the order of first occurrence.
        codes: (n,) Position of each label in ``different``.
        first: Row of the first label with each spelling.
        counts: Number of labels with each spelling.
    """

    different: list[str]
    codes: np.ndarray
    first: list[int]
    counts: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray, where: str, counts: np.ndarray | None) -> "_Spelled":
        values = labels.tolist()
        if any(isinstance(label, list | tuple | set | dict | np.ndarray) for label in values):
            raise InputError(f"{where}: a node has several labels (multi-label); choose one class per node.")
        codes: dict[str, int] = {}
        texts = ["" if label is None or label != label else str(label) for label in values]
        numbers = np.array([codes.setdefault(text, len(codes)) for text in texts], dtype=np.int64)
        first = np.unique(numbers, return_index=True)[1]
        weights = None if counts is None else counts.astype(np.float64)
        spelling_counts = np.bincount(numbers, weights=weights, minlength=len(codes)).astype(np.int64)
        return cls(list(codes), numbers, first.tolist(), spelling_counts)

    def classes(
        self, declared: list[str] | None, missing: frozenset[str], where: str, place: Place, *, fold: bool
    ) -> tuple[np.ndarray, list[str], int, list[str]]:
        """Return the class of each spelling, class names, the number of cleaned spellings, and a note on folding.

        Spellings that are equal after cleaning are one class. ``declared`` are the class names, if the user gave them.
        """
        labelled = [
            at
            for at, text in enumerate(self.different)
            if label_key(text) and (label_key(text) not in missing or normal(text) in (declared or ()))
        ]
        spelled = [self.different[at] for at in labelled]
        cleaned = CLASS_NAME.clean_all(spelled, lambda at: place(self.first[labelled[at]]))
        changed = sum(spelling != name for spelling, name in zip(spelled, cleaned, strict=True))
        note: list[str] = []
        if fold:
            counts: dict[str, int] = {}
            for name, count in zip(cleaned, self.counts[labelled].tolist(), strict=True):
                counts[name] = counts.get(name, 0) + count
            class_of = fold_names(counts, declared or ())
            cleaned, note = [class_of[name] for name in cleaned], fold_note(class_of, counts)
        names = sorted(set(cleaned), key=natural_order) if declared is None else declared
        position = {name: number for number, name in enumerate(names)}
        undeclared = [name for name in cleaned if name not in position]
        if undeclared:
            raise InputError(f"{where}: label {quoted(undeclared[0])} is not among the class names; add it there.")
        numbers = np.full(len(self.different), UNKNOWN, dtype=np.int64)
        numbers[labelled] = [position[name] for name in cleaned]
        return numbers, names, changed, note

    def unknown_note(self, numbers: np.ndarray) -> list[str]:
        """Return a note on labels that mean unknown; ``numbers`` are the classes of the spellings."""
        counted: dict[str, int] = {}
        for text, number, count in zip(self.different, numbers.tolist(), self.counts.tolist(), strict=True):
            if number == UNKNOWN and normal(text):
                counted[normal(text)] = counted.get(normal(text), 0) + count
        if not counted:
            return []
        shown = ", ".join(f"{count:,} {quoted(text)}" for text, count in counted.items())
        return [
            f"{sum(counted.values()):,} labels count as unknown ({shown}): missing=NAME adds to "
            "them, known=NAME makes a class of one in tables."
        ]


def alike_names(names: Sequence[str]) -> list[list[str]]:
    """Group names that differ only by case, accents or spaces."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(bare_name(name), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def alike_note(names: Sequence[str]) -> list[str]:
    """Return a note on names that differ only by case, accents or spaces and stay different classes."""
    alike = [" and ".join(quoted(name) for name in group) for group in alike_names(names)]
    if not alike:
        return []
    more = [f"{len(alike) - LISTED} more"] if len(alike) > LISTED else []
    return [
        "Class names that differ only by case, accents or spaces are different classes: "
        f"{', '.join([*alike[:LISTED], *more])}; if they are one, write them alike, or fold=yes in tables."
    ]


def fold_note(class_of: Mapping[str, str], counts: Mapping[str, int]) -> list[str]:
    """Return a note on the spellings that were merged into each class, with the number of labels."""
    groups: dict[str, list[str]] = {}
    for name, own in class_of.items():
        if name != own:
            groups.setdefault(own, []).append(f"{quoted(name)} ({counts[name]:,})")
    listed = [f"{quoted(own)} ← {', '.join(names)}" for own, names in groups.items()]
    more = [f"{len(listed) - FOLDED} more"] if len(listed) > FOLDED else []
    return [f"Spellings that are one class (fold=yes): {'; '.join([*listed[:FOLDED], *more])}."] if listed else []


def _label_array(labels: Any, where: str) -> np.ndarray:
    """Return an array of numbers, or of texts, None and NaN (numpy alone would turn NaN into the text "nan")."""
    named = isinstance(labels, list | tuple) and any(isinstance(label, str) for label in labels)
    try:
        array = np.asarray(labels, dtype=object if named else None)
    except ValueError as error:
        raise InputError(f"{where}: the nodes differ in their number of labels; choose one class per node.") from error
    if array.dtype.kind == "S":
        return text_array([text_of(each, where) for each in array.tolist()]) if array.ndim == 1 else array
    if array.dtype.kind == "O" and array.ndim == 1:
        present = [label for label in array.tolist() if label is not None]
        if present and all(isinstance(label, Real) for label in present):
            return np.array([UNKNOWN if label is None or label != label else label for label in array.tolist()])
    return array


def _whole_numbers(labels: np.ndarray, where: str) -> np.ndarray:
    if labels.dtype.kind == "f":
        labels = np.where(np.isnan(labels), UNKNOWN, labels)
        if not (np.isfinite(labels).all() and (labels == np.round(labels)).all()):
            raise InputError(f"{where}: the labels are not whole numbers; give class numbers or names.")
    elif labels.dtype.kind not in "iub":
        raise InputError(f"{where}: labels of type {labels.dtype} cannot be read; give class numbers or names.")
    if labels.size and int(labels.max()) >= 2**63:
        raise InputError(f"{where}: label {labels.max()} is too large for 64 bits; give smaller numbers, or names.")
    return labels.astype(np.int64)


def natural_order(name: str) -> tuple[int, int, str]:
    """Return a sort key that puts whole numbers first, by value, then words."""
    return (0, int(name), "") if name.isascii() and name.isdigit() else (1, 0, name)


class LabelCoder:
    """Collects labels in blocks, with 4 bytes per node and each different label once."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._first: list[int] = []  # first row with each label
        self._parts: list[np.ndarray] = [np.zeros(0, dtype=np.int32)]
        self._count = 0

    def add(self, different: list[Any], numbers: np.ndarray) -> None:
        """Add the labels ``different[numbers]`` of the next nodes."""
        first = np.full(len(different), numbers.size)
        first[numbers[::-1]] = np.arange(numbers.size)[::-1]
        codes = np.zeros(len(different), dtype=np.int32)
        for place, (label, row) in enumerate(zip(different, first.tolist(), strict=True)):
            if row < numbers.size:
                if label not in self._codes:
                    self._codes[label] = len(self._codes)
                    self._first.append(self._count + row)
                codes[place] = self._codes[label]
        self._parts.append(codes[numbers])
        self._count += numbers.size

    def add_numbers(self, labels: np.ndarray) -> None:
        """Add class numbers of the next nodes; negative or NaN where the class is not known."""
        if labels.dtype.kind == "f":
            labels = np.where(np.isnan(labels), -1, labels)
        different, numbers = np.unique(labels, return_inverse=True)
        self.add(different.tolist(), numbers.reshape(-1))

    def finish(
        self,
        where: str,
        place: Place,
        missing: Iterable[str] | None = None,
        known: Iterable[str] | None = None,
        *,
        fold: bool = False,
        read_numbers: bool = False,
    ) -> CleanLabels:
        """Return the labels of all nodes with int32 class numbers; arguments are as for :func:`clean_labels`."""
        labels = list(self._codes)
        texts = any(isinstance(label, str) for label in labels)
        values = text_array(labels) if texts or not labels else np.array(labels)
        first, codes = self._first, np.concatenate(self._parts)
        self._parts = []
        clean = clean_labels(
            values,
            None,
            len(labels),
            where,
            lambda at: place(first[at]),
            missing=missing,
            known=known,
            fold=fold,
            counts=np.bincount(codes, minlength=len(labels)),
            read_numbers=read_numbers,
        )
        table = clean.numbers.astype(np.int32)
        return replace(clean, numbers=table[codes] if table.size else codes)
