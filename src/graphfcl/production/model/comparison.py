"""Two models of one graph, asked about nodes that neither of them was trained on.

A model can be asked without having been told the answer about

- its validation nodes,
- the labelled nodes of classes that it learned after session 0, each while it is left out (``monitoring.py``),
- nodes that it has no label of.

Two models are compared on the nodes that both can be asked about so; both choose among the classes that both know. A
new model takes its validation nodes from those of the one before (``Labels.held_out``), so that there are as many as
can be. Of a class with few labels before and many after, the validation nodes after are supports before: the old model
is asked while it leaves them out. It has the rest of the class to learn from then, the new one four fifths; so the
comparison favours the old model, a little. Both chose their settings by validation nodes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.graph.ids import ClassLabel
from graphfcl.production.graph import ModelGraph
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.production.labels.monitoring import left_out_scores
from graphfcl.production.model.parts import ModelParts

Numbers = np.ndarray
Positions = np.ndarray


@dataclass(frozen=True)
class ClassComparison:
    """Recall of one class before and after, on so many nodes."""

    name: ClassLabel
    before: float
    after: float
    nodes: int

    def as_json(self) -> dict[str, Any]:
        return {
            "class": self.name,
            "before": round(self.before, 4),
            "after": round(self.after, 4),
            "nodes": self.nodes,
        }


@dataclass(frozen=True)
class Comparison:
    """classes: those that have nodes to compare on, in the order in which the old model knows them."""

    classes: tuple[ClassComparison, ...]

    @property
    def nodes(self) -> int:
        """On how many nodes."""
        return sum(each.nodes for each in self.classes)

    @property
    def before(self) -> float | None:
        """Balanced accuracy of the old model; None without nodes."""
        return float(np.mean([each.before for each in self.classes])) if self.classes else None

    @property
    def after(self) -> float | None:
        """That of the new one."""
        return float(np.mean([each.after for each in self.classes])) if self.classes else None

    @property
    def better(self) -> bool:
        """Whether the new model is; as good is not better."""
        return self.before is not None and self.after is not None and self.after > self.before + 1e-9

    def as_json(self) -> dict[str, Any]:
        before, after = self.before, self.after
        return {
            "nodes": self.nodes,
            "before": None if before is None else round(before, 4),
            "after": None if after is None else round(after, 4),
            "classes": [each.as_json() for each in self.classes],
        }


def compare(old: ModelParts, old_scores: Any, new: ModelParts, new_scores: Any) -> Comparison:
    """old_scores, new_scores: (n, columns) of every row of the graph of each, arrays or tables on disk.

    Both graphs have the same nodes by id; their numbers may differ.
    """
    names, labels = old.label_store.classes, old.label_store.labels
    true_nodes, truth = labelled(new.label_store, names)
    unlabelled = np.setdiff1d(translated(true_nodes, new.graph, old.graph), old.label_store.nodes)
    first_nodes, first = _told(old, old_scores, names, unlabelled)
    first_nodes = translated(first_nodes, old.graph, new.graph)
    second_nodes, second = _told(new, new_scores, names, np.zeros(0, dtype=np.int64))
    both, in_first, in_second = np.intersect1d(first_nodes, second_nodes, assume_unique=True, return_indices=True)
    order = np.argsort(true_nodes)
    classes = truth[order][np.searchsorted(true_nodes[order], both)]
    known = classes >= 0
    count = len(names)
    asked = np.bincount(classes[known], minlength=count)
    recalls = []
    for answers in (first[in_first], second[in_second]):
        right = np.bincount(classes[known & (classes == answers)], minlength=count)
        recalls.append(right / np.maximum(asked, 1))
    return Comparison(
        tuple(
            ClassComparison(labels[place], float(recalls[0][place]), float(recalls[1][place]), int(asked[place]))
            for place in np.flatnonzero(asked).tolist()
        )
    )


def translated(numbers: np.ndarray, source: ModelGraph, target: ModelGraph) -> np.ndarray:
    """(m,) the numbers in one graph of nodes of another one with the same ids."""
    return numbers if source.shares_numbers(target) else target.numbers_of(source.ids_of(numbers))


def labelled(label_store: LabelStore, names: tuple[str, ...]) -> tuple[Numbers, Positions]:
    """The labelled nodes and their classes, as positions in ``names``; -1 where it is none of these."""
    return label_store.nodes, _positions(label_store, names)[label_store.columns]


def _positions(label_store: LabelStore, names: tuple[str, ...]) -> np.ndarray:
    """(columns,) of the class of each column in ``names``; -1 where it is none of these, or retired."""
    place = {name: number for number, name in enumerate(names)}
    return np.array([-1 if name is None else place.get(name, -1) for name in label_store.names], dtype=np.int64)


def _told(parts: ModelParts, scores: Any, names: tuple[str, ...], unlabelled: np.ndarray) -> tuple[Numbers, Positions]:
    """Nodes that a model can be asked about, and the classes that it answers, as positions in ``names``."""
    visible, label_store = parts.graph.visible, parts.label_store
    positions = _positions(label_store, names)
    active = np.flatnonzero(positions >= 0)
    answered = positions[active]
    nodes = np.concatenate([label_store.of_part(LabelRole.VALIDATION)[0], unlabelled])
    answers = answered[scores[visible.rows(nodes)][:, active].argmax(axis=1)]
    left = left_out_scores(parts.learner, visible, label_store, active)
    if left is None or not left.nodes.size:
        return nodes, answers
    return np.concatenate([nodes, left.nodes]), np.concatenate([answers, answered[left.scores.argmax(axis=1)]])
