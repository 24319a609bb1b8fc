"""Which node is labelled with which class, and what the classes are called now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph.ids import CLASS_NAME, normal
from graphfcl.methods.learner import Labelled
from graphfcl.printing import quoted
from graphfcl.production.supports import Statement

Statements = Mapping[int, tuple[Statement, ...]]  # node number → who gave its label, the first first


class LabelRole(IntEnum):
    """What a labelled node is for: training session 0, validation, or a class learned later."""

    TRAIN = 0
    VALIDATION = 1
    SUPPORT = 2


@dataclass(frozen=True, eq=False)
class Ledger:
    """Immutable: every change makes a new ledger.

    nodes, columns, parts: (m,) the labelled nodes, the learner's columns of their classes, and :class:`LabelRole`.
    names: what the class of each column is called; None if it is retired. Two columns of one name are one class: that
        is how classes are merged if the learner cannot be restated.
    session_zero_columns: how many of the columns are of session 0; they come first.
    statements: who gave a label and when, of the nodes for which somebody said so.
    """

    nodes: np.ndarray
    columns: np.ndarray
    parts: np.ndarray
    names: tuple[str | None, ...]
    session_zero_columns: int
    statements: Statements = field(default_factory=dict)

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

    def found(self, name: str) -> str | None:
        """The class that a user calls so: as it is stored, or else by its cleaned form, if only one has that form."""
        if name in self.names:
            return name
        same = [other for other in self.classes if normal(other) == normal(name)]
        if len(same) > 1:
            both = " or ".join(map(quoted, same[:2]))
            raise InputError(
                f"class {quoted(name)} may be {both}, which differ in spaces or accents: write it exactly."
            )
        return same[0] if same else None

    def resolved(self, name: str) -> str:
        """The same; a class that is not there is an error."""
        known = self.found(name)
        if known is None:
            listed = f"there are {', '.join(self.classes[:12])}."
            hint = did_you_mean(name, self.classes, listed, cutoff=0.6)
            raise InputError(f"the model knows no class {quoted(name)}: {hint}")
        return known

    def require(self, name: str) -> int:
        """The column of a class; a class that is not there is an error."""
        return self.names.index(self.resolved(name))

    def of_part(self, part: LabelRole) -> Labelled:
        """Nodes and columns of one part."""
        here = self.parts == part
        return self.nodes[here], self.columns[here]

    def knowledge(self) -> tuple[Labelled, Labelled]:
        """What a learner is restated with: labels that session 0 trained on, and labels learned later."""
        return self.of_part(LabelRole.TRAIN), self.of_part(LabelRole.SUPPORT)

    def labels_of_columns(self, columns: np.ndarray) -> Labelled:
        """Nodes and columns of all labels of some columns that a learner has learned."""
        here = np.isin(self.columns, columns) & (self.parts != LabelRole.VALIDATION)
        return self.nodes[here], self.columns[here]

    def trained_on(self, nodes: np.ndarray) -> int:
        """How many of some labelled nodes session 0 was trained or validated on."""
        return int((np.isin(self.nodes, nodes) & (self.parts != LabelRole.SUPPORT)).sum())

    # Changes

    def with_supports(self, nodes: np.ndarray, columns: np.ndarray, new_names: Sequence[str]) -> "Ledger":
        """More labelled nodes, and more classes, whose columns follow the last one."""
        return replace(
            self,
            nodes=np.concatenate([self.nodes, nodes]),
            columns=np.concatenate([self.columns, columns]),
            parts=np.concatenate([self.parts, np.full(nodes.size, LabelRole.SUPPORT, dtype=np.int8)]),
            names=(*self.names, *new_names),
        )

    def with_statements(self, statements: Statements) -> "Ledger":
        """More is said of some labels."""
        more = {node: (*self.statements.get(node, ()), *said) for node, said in statements.items()}
        return replace(self, statements={**self.statements, **more})

    def without_nodes(self, nodes: np.ndarray) -> "Ledger":
        """Some nodes are labelled no more."""
        return self._kept(~np.isin(self.nodes, nodes))

    def _kept(self, kept: np.ndarray) -> "Ledger":
        gone = set(self.nodes[~kept].tolist())
        said = {node: statements for node, statements in self.statements.items() if node not in gone}
        return replace(
            self, nodes=self.nodes[kept], columns=self.columns[kept], parts=self.parts[kept], statements=said
        )

    def renamed(self, old: str, new: str) -> "Ledger":
        """A class is called otherwise; the new name is cleaned."""
        old, new = self.resolved(old), CLASS_NAME.clean(new, "the new name")
        same = self.found(new)
        if same is not None and (same != old or new == old):
            raise InputError(f"there is a class {quoted(same)} already: merge the two, or choose another name.")
        return replace(self, names=tuple(new if name == old else name for name in self.names))

    def merged(self, source: str, into: str) -> "Ledger":
        """All labelled nodes of one class become another's, and its columns are retired."""
        source, into = self._two(source, into)
        target = self.require(into)
        of_source = np.isin(self.columns, self._columns_named(source))
        columns = np.where(of_source, target, self.columns)
        return replace(self, columns=columns, names=tuple(None if name == source else name for name in self.names))

    def united(self, source: str, into: str) -> "Ledger":
        """One class of several columns: for learners that cannot be restated."""
        source, into = self._two(source, into)
        return replace(self, names=tuple(into if name == source else name for name in self.names))

    def retired(self, name: str) -> "Ledger":
        """The class is not answered any more, and its nodes are labelled no more."""
        name = self.resolved(name)
        if len(self.classes) == 1:
            raise InputError(f"{quoted(name)} is the only class left: a model needs one.")
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

    def _two(self, source: str, into: str) -> tuple[str, str]:
        source, into = self.resolved(source), self.resolved(into)
        if source == into:
            raise InputError(f"{quoted(source)} cannot be merged into itself.")
        return source, into

    def _columns_named(self, name: str) -> list[int]:
        return [column for column, other in enumerate(self.names) if other == name]
