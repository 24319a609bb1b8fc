"""Which node is labelled with which class, and what the classes are called now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from graphfcl.errors import InputError, did_you_mean
from graphfcl.methods.learner import Labelled
from graphfcl.production.growing_graph import GrowingGraph

LISTED = 20  # offending lines named in a message


class LabelRole(IntEnum):
    """What a labelled node is for: training session 0, validation, or a class learned later."""

    TRAIN = 0
    VALIDATION = 1
    SUPPORT = 2


@dataclass(frozen=True)
class Support:
    """A node to learn, its class, and where both were written (``place``, for messages)."""

    node: Any
    class_name: str
    place: str


@dataclass(frozen=True, eq=False)
class Ledger:
    """Immutable: every change makes a new ledger.

    nodes, columns, parts: (m,) the labelled nodes, the learner's columns of their classes, and :class:`LabelRole`.
    names: what the class of each column is called; None if it is retired. Two columns of one name are one class: that
        is how classes are merged if the learner cannot be restated.
    session_zero_columns: how many of the columns are of session 0; they come first.
    """

    nodes: np.ndarray
    columns: np.ndarray
    parts: np.ndarray
    names: tuple[str | None, ...]
    session_zero_columns: int

    @classmethod
    def of(cls, train: Labelled, validation: Labelled, names: Sequence[str]) -> "Ledger":
        """The ledger after session 0."""
        parts = [
            np.full(part[0].size, kind) for kind, part in ((LabelRole.TRAIN, train), (LabelRole.VALIDATION, validation))
        ]
        return cls(
            nodes=np.concatenate([train[0], validation[0]]),
            columns=np.concatenate([train[1], validation[1]]),
            parts=np.concatenate(parts).astype(np.int8),
            names=tuple(names),
            session_zero_columns=len(names),
        )

    # Reading

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes in use, in the order in which they were learned."""
        return tuple(dict.fromkeys(name for name in self.names if name is not None))

    def class_of_column(self) -> np.ndarray:
        """(columns,) position in ``classes``; -1 where a column is retired."""
        position = {name: number for number, name in enumerate(self.classes)}
        return np.array([-1 if name is None else position[name] for name in self.names], dtype=np.int64)

    def column_of(self, name: str) -> int | None:
        """The column that further supports of a class join."""
        return self.names.index(name) if name in self.names else None

    def require(self, name: str) -> int:
        """The column of a class; a class that is not there is an error."""
        column = self.column_of(name)
        if column is None:
            listed = f"there are {', '.join(self.classes[:12])}."
            hint = did_you_mean(name, self.classes, listed, cutoff=0.6)
            raise InputError(f"the model knows no class {name!r}: {hint}")
        return column

    def of_part(self, part: LabelRole) -> Labelled:
        """Nodes and columns of one part."""
        here = self.parts == part
        return self.nodes[here], self.columns[here]

    def knowledge(self) -> tuple[Labelled, Labelled]:
        """What a learner is restated with: labelled nodes of the columns of session 0, and those of later columns."""
        used = self.parts != LabelRole.VALIDATION
        first = used & (self.columns < self.session_zero_columns)
        later = used & (self.columns >= self.session_zero_columns)
        return (self.nodes[first], self.columns[first]), (self.nodes[later], self.columns[later])

    # Changes

    def check(self, supports: Sequence[Support], graph: GrowingGraph) -> np.ndarray:
        """(supports,) node numbers; refuses all of them if one is wrong, and names each that is."""
        if not supports:
            raise InputError("there is nothing to learn: give at least one node and its class.")
        rows = graph.rows_of_ids([str(support.node) for support in supports])
        numbers = np.where(rows >= 0, graph.numbers[rows.clip(min=0)], -1)
        known = dict(zip(self.nodes.tolist(), self.columns.tolist(), strict=True))
        seen: dict[int, Support] = {}
        wrong = []
        for support, number in zip(supports, numbers.tolist(), strict=True):
            fault = self._fault(support, number, known, seen)
            if fault:
                wrong.append(f"{support.place}: {fault}")
            seen.setdefault(number, support)
        if wrong:
            more = f"; and {len(wrong) - LISTED} more" if len(wrong) > LISTED else ""
            raise InputError(f"{'; '.join(wrong[:LISTED])}{more}. Mend these; nothing was learned.")
        return numbers

    def _fault(self, support: Support, number: int, known: Mapping[int, int], seen: Mapping[int, Support]) -> str:
        if not support.class_name.strip():
            return f"node {str(support.node)!r} has an empty class"
        if number < 0:
            return f"node {str(support.node)!r} is not in the graph"
        if number in seen:
            other = seen[number]
            again = "again" if other.class_name == support.class_name else f"and has the class {other.class_name!r}"
            return f"node {str(support.node)!r} stands in {other.place} {again}"
        if number in known:
            name = self.names[known[number]]
            return f"node {str(support.node)!r} is labelled {name!r} already"
        return ""

    def with_supports(self, nodes: np.ndarray, columns: np.ndarray, new_names: Sequence[str]) -> "Ledger":
        """More labelled nodes, and more classes, whose columns follow the last one."""
        return replace(
            self,
            nodes=np.concatenate([self.nodes, nodes]),
            columns=np.concatenate([self.columns, columns]),
            parts=np.concatenate([self.parts, np.full(nodes.size, LabelRole.SUPPORT, dtype=np.int8)]),
            names=(*self.names, *new_names),
        )

    def without_nodes(self, nodes: np.ndarray) -> "Ledger":
        """Some nodes are labelled no more."""
        return self._kept(~np.isin(self.nodes, nodes))

    def _kept(self, kept: np.ndarray) -> "Ledger":
        return replace(self, nodes=self.nodes[kept], columns=self.columns[kept], parts=self.parts[kept])

    def renamed(self, old: str, new: str) -> "Ledger":
        """A class is called otherwise."""
        self.require(old)
        if not new.strip():
            raise InputError("the new name is empty: give the class a name.")
        if new in self.names:
            raise InputError(f"there is a class {new!r} already: merge the two, or choose another name.")
        return replace(self, names=tuple(new if name == old else name for name in self.names))

    def merged(self, source: str, into: str) -> "Ledger":
        """All labelled nodes of one class become another's, and its columns are retired."""
        target = self.require(into)
        self.require(source)
        if source == into:
            raise InputError(f"{source!r} cannot be merged into itself.")
        of_source = np.isin(self.columns, self._columns_named(source))
        columns = np.where(of_source, target, self.columns)
        return replace(self, columns=columns, names=tuple(None if name == source else name for name in self.names))

    def united(self, source: str, into: str) -> "Ledger":
        """One class of several columns: for learners that cannot be restated."""
        self.require(into)
        self.require(source)
        if source == into:
            raise InputError(f"{source!r} cannot be merged into itself.")
        return replace(self, names=tuple(into if name == source else name for name in self.names))

    def retired(self, name: str) -> "Ledger":
        """The class is not answered any more, and its nodes are labelled no more."""
        self.require(name)
        if len(self.classes) == 1:
            raise InputError(f"{name!r} is the only class left: a model needs one.")
        kept = self._kept(~np.isin(self.columns, self._columns_named(name)))
        return replace(kept, names=tuple(None if other == name else other for other in self.names))

    def without_empty_classes(self) -> tuple["Ledger", list[str]]:
        """Classes that no labelled node stands for any more are retired; their names."""
        train, supports = self.knowledge()
        present = {self.names[column] for column in np.concatenate([train[1], supports[1]]).tolist()}
        emptied = [name for name in self.classes if name not in present]
        ledger = self
        for name in emptied:
            ledger = ledger.retired(name)
        return ledger, emptied

    def _columns_named(self, name: str) -> list[int]:
        return [column for column, other in enumerate(self.names) if other == name]
