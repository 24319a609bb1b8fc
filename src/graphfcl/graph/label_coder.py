"""Labels that come in blocks → class numbers, by the rules of :func:`graphfcl.graph.labels.clean_labels`."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from graphfcl.graph.ids import Place, text_array
from graphfcl.graph.labels import CleanLabels, clean_labels


class LabelCoder:
    """Keeps 4 bytes a node and each different label once."""

    def __init__(self) -> None:
        self._codes: dict[Any, int] = {}
        self._first: list[int] = []  # the row in which each label stands first
        self._parts: list[np.ndarray] = [np.zeros(0, dtype=np.int32)]
        self._count = 0

    def add(self, different: list[Any], numbers: np.ndarray) -> None:
        """Labels of the next nodes: ``different[numbers]``."""
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
        """Class numbers of the next nodes; negative or NaN where the class is not known."""
        if labels.dtype.kind == "f":
            labels = np.where(np.isnan(labels), -1, labels)
        different, numbers = np.unique(labels, return_inverse=True)
        self.add(different.tolist(), numbers.reshape(-1))

    def finish(
        self, where: str, place: Place, missing: Iterable[str] | None = None, *, read_numbers: bool = False
    ) -> CleanLabels:
        """The labels of all nodes, with int32 class numbers. missing, read_numbers: see :func:`clean_labels`."""
        labels = list(self._codes)
        texts = any(isinstance(label, str) for label in labels)
        values = text_array(labels) if texts or not labels else np.array(labels)
        first, codes = self._first, np.concatenate(self._parts)
        self._parts = []
        found = clean_labels(
            values,
            None,
            len(labels),
            where,
            lambda at: place(first[at]),
            missing=missing,
            counts=np.bincount(codes, minlength=len(labels)),
            read_numbers=read_numbers,
        )
        table = found.numbers.astype(np.int32)
        return replace(found, numbers=table[codes] if table.size else codes)
