"""The label of each node, and the current names of the classes."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from numbers import Integral
from typing import Any

import numpy as np

from graphfcl.errors import InputError, did_you_mean, quoted, shown
from graphfcl.graph.ids import CLASS_NAME, ClassLabel, bare_name, class_label, fold_names, normal, text_of
from graphfcl.methods.state import Labelled
from graphfcl.production.labels.statements import REVIEWED, Statement, Statements

WHOLE_FLOAT = re.compile(r"(-?[0-9]+)\.0+")  # how pandas writes an integer in a column with gaps


class LabelRole(IntEnum):
    """What a label is used for.

    TRAIN and VALIDATION belong to session 0, SUPPORT to classes learned later. ACCEPTED means that a person accepted
    the predicted class: the model does not learn from such a label, and uses it neither for calibration nor for
    accuracy.
    """

    TRAIN = 0
    VALIDATION = 1
    SUPPORT = 2
    ACCEPTED = 3


@dataclass(frozen=True, eq=False)
class LabelStore:
    """The labels of a model. Immutable: every change makes a new label store.

    Attributes:
        nodes: (m,) numbers of the labelled nodes.
        columns: (m,) the learner's columns of their classes.
        parts: (m,) the :class:`LabelRole` of each label.
        names: Class of each column; None if it is retired. After a merge with a learner that cannot be restated, two
            columns may have the same name.
        session_zero_columns: Number of columns of session 0; they come first.
        statements: Who gave a label and when, if that is known.
        integers: The model was fitted with integer classes. Names are texts here; users write and get names that are
            whole numbers as integers. See :meth:`text` and :meth:`label`.
        fold: Names that differ only by case, white space or accents are one class, as in the tables of the fit.
    """

    nodes: np.ndarray
    columns: np.ndarray
    parts: np.ndarray
    names: tuple[str | None, ...]
    session_zero_columns: int
    statements: Statements = field(default_factory=dict)
    integers: bool = False
    fold: bool = False

    @classmethod
    def of(
        cls,
        train: Labelled,
        validation: Labelled,
        names: Sequence[str],
        *,
        integers: bool = False,
        fold: bool = False,
    ) -> "LabelStore":
        """Make the label store after session 0."""
        return cls(
            nodes=np.concatenate([train[0], validation[0]]),
            columns=np.concatenate([train[1], validation[1]]),
            parts=np.repeat([LabelRole.TRAIN, LabelRole.VALIDATION], [len(train[0]), len(validation[0])]).astype(
                np.int8
            ),
            names=tuple(names),
            session_zero_columns=len(names),
            integers=integers,
            fold=fold,
        )

    # Classes as users write them

    def text(self, label: Any) -> str:
        """Return the name of a class that a user wrote as a text or a number.

        In a model with integer classes, "7", 7.0 and "7.0" are the class 7, and False and True the classes 0 and 1.
        """
        if self.integers and isinstance(label, bool | np.bool_):
            label = int(label)
        if not isinstance(label, str | bytes | bool | np.bool_ | Integral) and not _is_whole_float(label):
            raise InputError(f"a class is {shown(label)}: give a name or a whole number.")
        name = text_of(label)
        whole = WHOLE_FLOAT.fullmatch(name.strip()) if self.integers else None
        return whole[1] if whole else name

    def label(self, name: str) -> ClassLabel:
        """Return a name as users write it: an integer if classes are integers and the name is a whole number."""
        return class_label(name, self.integers)

    @property
    def labels(self) -> tuple[ClassLabel, ...]:
        """``classes`` as users write them."""
        return tuple(map(self.label, self.classes))

    def label_array(self) -> np.ndarray:
        """(classes,) ``labels`` as int64 if all are integers, and otherwise as Python objects."""
        labels = self.labels
        whole = self.integers and all(isinstance(label, int) for label in labels)
        return np.array(labels, dtype=np.int64 if whole else object)

    def fault(self, name: str) -> str:
        """Say why a class cannot have this name; empty if it can."""
        label = self.label(normal(name))
        if isinstance(label, int) and label < 0:
            return f"the class {label} is negative, which marks a node without a label: give 0 or a larger number"
        return CLASS_NAME.fault(name)

    # Reading

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes in use, in the order in which they were learned."""
        return tuple(dict.fromkeys(name for name in self.names if name is not None))

    def class_of_column(self) -> np.ndarray:
        """(columns,) position in ``classes`` of the class of each column; -1 if the column is retired."""
        position = {name: number for number, name in enumerate(self.classes)}
        return np.array([-1 if name is None else position[name] for name in self.names], dtype=np.int64)

    def form(self, name: str) -> str:
        """Return the form in which names of classes are compared."""
        return bare_name(name) if self.fold else normal(name)

    def find(self, label: Any) -> str | None:
        """Find the class that a user names, by its stored form, or by its cleaned form if that is unique; None if there
        is none.
        """
        name = self.text(label)
        if name in self.names:
            return name
        form = self.form(name)
        same = [other for other in self.classes if self.form(other) == form]
        if len(same) > 1:
            both = " or ".join(map(quoted, same[:2]))
            raise InputError(
                f"class {quoted(name)} may be {both}, which differ in spaces or accents: write it exactly."
            )
        return same[0] if same else None

    def names_of(self, labels: Sequence[Any]) -> dict[Any, str]:
        """Return for each label the stored name of its class, or its cleaned form if the class is new."""
        stored = {label: self.find(label) for label in dict.fromkeys(labels)}
        cleaned = {label: normal(self.text(label)) for label, name in stored.items() if name is None}
        if self.fold:
            folded = fold_names(Counter(cleaned[label] for label in labels if label in cleaned))
            cleaned = {label: folded[name] for label, name in cleaned.items()}
        return {label: name or cleaned[label] for label, name in stored.items()}

    def resolve(self, label: Any) -> str:
        """Find a class like :meth:`find`; raise an error if there is none."""
        stored, name = self.find(label), self.text(label)
        if stored is None:
            listed = f"there are {', '.join(self.classes[:12])}."
            hint = did_you_mean(name, self.classes, listed, cutoff=0.6)
            raise InputError(f"the model knows no class {quoted(name)}: {hint}")
        return stored

    def with_role(self, part: LabelRole) -> Labelled:
        """Return nodes and columns of the labels with one role."""
        here = self.parts == part
        return self.nodes[here], self.columns[here]

    def knowledge(self) -> tuple[Labelled, Labelled]:
        """Return the labels from which a learner is restated: training labels of session 0, and later labels."""
        return self.with_role(LabelRole.TRAIN), self.with_role(LabelRole.SUPPORT)

    def counts(self, *, validation: bool = False) -> np.ndarray:
        """(classes,) number of labels from which each class was learned, or of its validation nodes."""
        here = self.parts == LabelRole.VALIDATION if validation else self._is_learned()
        classes = self.class_of_column()[self.columns[here]]
        return np.bincount(classes[classes >= 0], minlength=len(self.classes))

    def labels_of_columns(self, columns: np.ndarray) -> Labelled:
        """Return nodes and columns of all labels of some columns that the learner has learned."""
        here = np.isin(self.columns, columns) & self._is_learned()
        return self.nodes[here], self.columns[here]

    def _is_learned(self) -> np.ndarray:
        """(m,) whether the learner has learned a label."""
        return np.isin(self.parts, (LabelRole.TRAIN, LabelRole.SUPPORT))

    def accepted(self) -> np.ndarray:
        """(m,) whether a label is an accepted prediction."""
        return self.parts == LabelRole.ACCEPTED

    def reviewed(self) -> np.ndarray:
        """(r,) the nodes whose labels were reviewed."""
        reviewed = (node for node, each in self.statements.items() if any(REVIEWED in dict(s.kept) for s in each))
        return np.fromiter(reviewed, dtype=np.int64)

    def without_accepted(self) -> "LabelStore":
        """Return the label store without accepted labels."""
        return self.without_nodes(self.nodes[self.accepted()]) if self.accepted().any() else self

    def count_trained(self, nodes: np.ndarray) -> int:
        """Count the nodes that session 0 was trained or validated on, among some labelled nodes."""
        return int((np.isin(self.nodes, nodes) & (self.parts <= LabelRole.VALIDATION)).sum())

    # Changes

    def with_supports(
        self, nodes: np.ndarray, columns: np.ndarray, new_names: Sequence[str], role: LabelRole = LabelRole.SUPPORT
    ) -> "LabelStore":
        """Add labelled nodes, and classes whose columns follow the last one."""
        return replace(
            self,
            nodes=np.concatenate([self.nodes, nodes]),
            columns=np.concatenate([self.columns, columns]),
            parts=np.concatenate([self.parts, np.full(nodes.size, role, dtype=np.int8)]),
            names=(*self.names, *new_names),
        )

    def with_accepted(self, nodes: np.ndarray, classes: np.ndarray, statement: "Statement") -> "LabelStore":
        """Add accepted labels of nodes without a label, with (m,) positions of their classes in ``classes``."""
        columns = np.array([self.names.index(name) for name in self.classes], dtype=np.int64)[classes]
        labels = self.with_supports(nodes, columns, (), LabelRole.ACCEPTED)
        return labels.with_statements(dict.fromkeys(nodes.tolist(), (statement,))) if statement else labels

    def with_accepted_of(self, other: "LabelStore") -> "LabelStore":
        """Add the accepted labels of another label store with the same node numbers, where nodes have no label here."""
        here = other.accepted() & ~np.isin(other.nodes, self.nodes)
        position = np.array([-1 if name not in self.classes else self.names.index(name) for name in other.names])
        columns = position[other.columns[here]]
        return self.with_supports(other.nodes[here][columns >= 0], columns[columns >= 0], (), LabelRole.ACCEPTED)

    def with_statements(self, statements: Statements) -> "LabelStore":
        """Add statements to some labels."""
        more = {node: (*self.statements.get(node, ()), *each) for node, each in statements.items()}
        return replace(self, statements={**self.statements, **more})

    def renumbered(self, numbers: np.ndarray) -> "LabelStore":
        """Return the same labels for nodes with other numbers, (m,) in the order of ``nodes``."""
        moved = dict(zip(self.nodes.tolist(), numbers.tolist(), strict=True))
        statements = {moved[node]: each for node, each in self.statements.items() if node in moved}
        return replace(self, nodes=numbers, statements=statements)

    def without_nodes(self, nodes: np.ndarray) -> "LabelStore":
        """Remove the labels of some nodes."""
        kept = ~np.isin(self.nodes, nodes)
        gone = set(self.nodes[~kept].tolist())
        statements = {node: each for node, each in self.statements.items() if node not in gone}
        return replace(
            self, nodes=self.nodes[kept], columns=self.columns[kept], parts=self.parts[kept], statements=statements
        )

    def renamed(self, old: Any, new: Any) -> "LabelStore":
        """Rename a class; the new name is cleaned."""
        old, new = self.resolve(old), self.text(new)
        fault = self.fault(new)
        if fault:
            raise InputError(f"the new name: {fault}.")
        new = normal(new)
        same = self.find(new)
        if same is not None and (same != old or new == old):
            raise InputError(f"there is a class {quoted(same)} already: merge the two, or choose another name.")
        return replace(self, names=self._with_name(old, new))

    def merged(self, source: str, into: str) -> "LabelStore":
        """Merge a class into another: its nodes get the other class, and its columns are retired."""
        united = self.united(source, into)
        columns = np.where(self._is_of_class(source), self.names.index(into), self.columns)
        return replace(united, columns=columns, names=self._with_name(source, None))

    def united(self, source: str, into: str) -> "LabelStore":
        """Merge two classes into one with the columns of both, for learners that cannot be restated."""
        if source == into:
            raise InputError(f"{quoted(source)} cannot be merged into itself.")
        return replace(self, names=self._with_name(source, into))

    def retired(self, label: Any) -> "LabelStore":
        """Stop predicting a class; its nodes lose their label."""
        name = self.resolve(label)
        if len(self.classes) == 1:
            raise InputError(f"{quoted(name)} is the only class left: a model needs one.")
        kept = self.without_nodes(self.nodes[self._is_of_class(name)])
        return replace(kept, names=self._with_name(name, None))

    def without_empty_classes(self) -> tuple["LabelStore", list[str]]:
        """Retire classes without a labelled node; returns the new label store and the names of these classes."""
        train, supports = self.knowledge()
        present = {self.names[column] for column in np.concatenate([train[1], supports[1]]).tolist()}
        emptied = [name for name in self.classes if name not in present]
        labels = self
        for name in emptied:
            labels = labels.retired(name)
        return labels, emptied

    def _is_of_class(self, name: str) -> np.ndarray:
        """(m,) whether a label has this class."""
        return np.isin(self.columns, [column for column, other in enumerate(self.names) if other == name])

    def _with_name(self, old: str, new: str | None) -> tuple[str | None, ...]:
        return tuple(new if name == old else name for name in self.names)


def _is_whole_float(value: Any) -> bool:
    return isinstance(value, float | np.floating) and float(value).is_integer()
