"""The effect of a change on a model: history entries, classes, accuracy, and nodes whose predicted class changes."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.graph.ids import ClassLabel
from graphfcl.production.answers.answers import class_probabilities
from graphfcl.production.labels.history import Entry
from graphfcl.production.model.label_gain import SUMS
from graphfcl.production.model.state import ModelState


@dataclass(frozen=True)
class Moves:
    """Number of nodes whose predicted class changes from one class to another.

    Attributes:
        before: The old class, by the name that it has after the changes.
        after: The new class.
        nodes: Number of nodes.
    """

    before: ClassLabel
    after: ClassLabel
    nodes: int


@dataclass(frozen=True)
class Effect:
    """Difference between two states of a model.

    Attributes:
        version: Version of the first state.
        changes: History entries that lead to the second state.
        classes: Classes of the second state.
        new_classes: Classes that only the second state has.
        gone_classes: Classes that only the first state has.
        accuracy_before: Accuracy of the first state, as in the history.
        accuracy_after: Accuracy of the second state, as in the history.
        nodes: Number of nodes that both states have.
        moves: Changes of the predicted class of these nodes, most frequent first. A class that is only renamed or
            merged counts as the class that it becomes.
    """

    version: int | None
    changes: tuple[Entry, ...]
    classes: tuple[ClassLabel, ...]
    new_classes: tuple[ClassLabel, ...]
    gone_classes: tuple[ClassLabel, ...]
    accuracy_before: dict[str, Any]
    accuracy_after: dict[str, Any]
    nodes: int
    moves: tuple[Moves, ...]

    @classmethod
    def of(cls, before: ModelState, after: ModelState, changes: list[Entry]) -> "Effect":
        """Compare two states that some changes connect."""
        old, new = before.catalogue().labels, after.catalogue().labels
        nodes, counted = 0, Counter[tuple[int, int]]()
        for pairs in _predictions(before, after):
            nodes += pairs.shape[1]
            different, counts = np.unique(pairs, axis=1, return_counts=True)
            counted.update(dict(zip(map(tuple, different.T.tolist()), counts.tolist(), strict=True)))
        names = later_names(old, changes)
        moves = Counter[tuple[ClassLabel, ClassLabel]]()
        for (first, second), count in counted.items():
            moves[names[old[first]], new[second]] += count
        return cls(
            version=before.version,
            changes=tuple(changes),
            classes=new,
            new_classes=tuple(name for name in new if name not in old),
            gone_classes=tuple(name for name in old if name not in new),
            accuracy_before=_accuracy(before),
            accuracy_after=_accuracy(after),
            nodes=nodes,
            moves=tuple(Moves(*pair, count) for pair, count in moves.most_common() if pair[0] != pair[1]),
        )

    @property
    def nodes_changed(self) -> int:
        """The number of nodes whose predicted class changes."""
        return sum(each.nodes for each in self.moves)


def later_names(classes: Iterable[ClassLabel], changes: Iterable[Entry]) -> dict[ClassLabel, ClassLabel]:
    """Map each class to its name after changes that rename and merge classes."""
    names = {name: name for name in classes}
    for change in changes:
        if change["what"] in ("rename", "merge"):
            later = change["to" if change["what"] == "rename" else "into"]
            names = {name: later if now == change["from"] else now for name, now in names.items()}
    return names


def _predictions(before: ModelState, after: ModelState) -> Iterator[np.ndarray]:
    """Yield (2, m) predicted classes of nodes that both states have, as positions in the classes of each state."""
    names = before.names()
    for ids, answers in after.in_blocks(None):
        rows = names.rows_of_ids(ids)
        new = class_probabilities(after.catalogue(), answers).argmax(axis=1)[rows >= 0]
        answers = before.answering.answers_at(rows[rows >= 0])
        yield np.stack([class_probabilities(before.catalogue(), answers).argmax(axis=1), new])


def _accuracy(state: ModelState) -> dict[str, Any]:
    return {key: value for key, value in state.accuracy().items() if key != SUMS}
