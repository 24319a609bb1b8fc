"""Compare a version with the previous one: nodes whose prediction changed, recalls, and warnings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphfcl.active.contract import ROWS_AT_A_TIME
from graphfcl.errors import counted, quoted
from graphfcl.graph.ids import ClassLabel
from graphfcl.production import GraphClassifier
from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.answers.row_values import node_rows
from graphfcl.production.changes.effects import later_names
from graphfcl.production.labels.history import Entry
from graphfcl.production.model.recalls import Recall, is_loss, measured_recalls

IMPROBABLE = 0.05  # a label with at most this probability looks wrong
LISTED = 20  # maximum number of labels that a warning lists


@dataclass(frozen=True, eq=False)
class Move:
    """Nodes whose prediction changed from ``before`` to ``after``.

    Attributes:
        before: Class in the previous version. None means that the nodes looked unknown.
        after: Class in this version. None means that the nodes look unknown.
        ids: Ids of the nodes.
        labelled: Number of these nodes that have a label in this version.
    """

    before: ClassLabel | None
    after: ClassLabel | None
    ids: np.ndarray
    labelled: int


@dataclass(frozen=True)
class ClassRecalls:
    """Recall of a class in the previous version and in this one; None if it was not measured."""

    name: ClassLabel
    few_shot: bool
    before: Recall | None
    after: Recall | None

    @property
    def worse(self) -> bool:
        """Whether the recall fell by more than chance explains."""
        return self.before is not None and self.after is not None and is_loss(self.before, self.after)


@dataclass(frozen=True)
class Doubt:
    """A new label that looks wrong, because the previous or the current version is confident of another class."""

    id: str
    label: ClassLabel
    guess: ClassLabel
    probability: float


@dataclass(frozen=True, eq=False)
class VersionEffect:
    """The difference between a version and the previous one.

    Attributes:
        nodes: Number of nodes that both versions have.
        moves: Changed predictions, largest group of nodes first.
        classes: Recalls of the classes.
        doubts: New labels that look wrong.
        warnings: Sentences about what may have gone wrong.
    """

    nodes: int
    moves: tuple[Move, ...]
    classes: tuple[ClassRecalls, ...]
    doubts: tuple[Doubt, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    def pooled(self, *, few_shot: bool, after: bool) -> Recall | None:
        """Return the recall over the measured nodes of all few-shot or all other classes, in one of the versions."""
        kind = [each for each in self.classes if each.few_shot == few_shot]
        recalls = [each.after if after else each.before for each in kind]
        measured = [each for each in recalls if each is not None]
        return sum(measured[1:], measured[0]) if measured else None


def compute_effect(before: GraphClassifier, after: GraphClassifier, changes: Sequence[Entry]) -> VersionEffect:
    """Compute the effect of the changes of one version.

    The prediction for a node is the likeliest class, or that the node looks unknown. Renaming a class or merging it
    into another one does not count as a changed prediction.
    """
    names, old_places = _common_names(before, after, changes)
    nodes, moves = _moves(before, after, names, old_places)
    classes = _recalls(before, after, changes)
    doubts = tuple(_doubts(before, after, changes))
    return VersionEffect(nodes, moves, classes, doubts, tuple(_warnings(classes, doubts, changes)))


def _common_names(
    before: GraphClassifier, after: GraphClassifier, changes: Sequence[Entry]
) -> tuple[list[ClassLabel], np.ndarray]:
    """Return the classes of both versions, and the (classes before,) positions of the earlier classes among them."""
    later = later_names(before.classes_, changes)
    names = list(dict.fromkeys([*after.classes_, *later.values()]))
    place = {name: number for number, name in enumerate(names)}
    return names, np.array([place[later[name]] for name in before.classes_], dtype=np.int64)


def _moves(
    before: GraphClassifier, after: GraphClassifier, names: list[ClassLabel], old_places: np.ndarray
) -> tuple[int, tuple[Move, ...]]:
    """Return the number of nodes that both versions have, and the nodes whose prediction differs."""
    labelled = np.zeros(after.graph_.visible.row_count, dtype=bool)
    labelled[after.graph_.visible.rows(after.label_store_.nodes)] = True
    nodes, moved, kinds = 0, [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for rows, old, new in _compared(before, after, old_places):
        changed = old != new
        nodes += rows.size
        moved.append(rows[changed])
        kinds.append((old[changed] + 1) * (len(names) + 1) + new[changed] + 1)
    rows, kind = np.concatenate(moved), np.concatenate(kinds)
    rows, kind = rows[(order := np.argsort(kind, kind="stable"))], kind[order]
    different, starts = np.unique(kind, return_index=True)
    answers: list[ClassLabel | None] = [None, *names]
    moves = []
    for number, part in zip(different.tolist(), np.split(rows, starts[1:]), strict=different.size > 0):
        first, last = divmod(number, len(answers))
        moves.append(Move(answers[first], answers[last], after.graph_.ids_at(part), int(labelled[part].sum())))
    return nodes, tuple(sorted(moves, key=lambda move: -move.ids.size))


def changed_nodes(before: GraphClassifier, after: GraphClassifier, changes: Sequence[Entry]) -> np.ndarray:
    """Return the (k,) numbers of the nodes that both versions have and whose prediction differs."""
    _, old_places = _common_names(before, after, changes)
    blocks = [rows[old != new] for rows, old, new in _compared(before, after, old_places)]
    return after.graph_.numbers_at(np.concatenate([np.zeros(0, np.int64), *blocks]))


def _compared(
    before: GraphClassifier, after: GraphClassifier, old_places: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield blocks of rows of the nodes that both versions have, with both predictions.

    Predictions are positions among the classes of both versions, -1 if a node looks unknown. Nodes are matched by their
    ids, because a graph folder that a refit brought may have them in other rows.
    """
    every = node_rows(after.graph_.visible)
    for start in range(0, every.size, ROWS_AT_A_TIME):
        rows = every[start : start + ROWS_AT_A_TIME]
        old_rows = rows if before.graph_ is after.graph_ else before.graph_.rows_of_ids(after.graph_.ids_at(rows))
        rows, old_rows = rows[old_rows >= 0], old_rows[old_rows >= 0]
        old = _answers(before, old_rows)
        yield rows, np.where(old < 0, -1, old_places[old]), _answers(after, rows)


def _answers(model: GraphClassifier, rows: np.ndarray) -> np.ndarray:
    """Return the (r,) positions of the likeliest classes of some rows; -1 if a row looks unknown."""
    probabilities, unknown = model.by_row.with_unknown_scores(rows)
    return np.where(unknown > model.calibration_.threshold, -1, probabilities.argmax(axis=1))


def _recalls(before: GraphClassifier, after: GraphClassifier, changes: Sequence[Entry]) -> tuple[ClassRecalls, ...]:
    """Return the recalls of all measured classes, in the order of the classes of the current version."""
    first, second = (
        {
            model.label_store_.label(name): recall
            for name, recall in measured_recalls(model.label_store_, model.accuracy(), model.graph_.node_count).items()
        }
        for model in (before, after)
    )
    old: dict[ClassLabel, Recall] = {}
    for name, later in later_names(before.classes_, changes).items():
        if name in first:
            old[later] = old[later] + first[name] if later in old else first[name]
    few = few_shot_classes(after.label_store_).tolist()
    both = zip(after.classes_, few, strict=True)
    listed = [ClassRecalls(name, late, old.get(name), second.get(name)) for name, late in both]
    return tuple(each for each in listed if each.before or each.after)


def _doubts(before: GraphClassifier, after: GraphClassifier, changes: Sequence[Entry]) -> Iterator[Doubt]:
    """Yield new labels that look wrong to the previous version, which had not learned them, or to the current one."""
    given = {node: str(name) for entry in changes for name, nodes in _supports(entry) for node in nodes}
    for model, learned in ((before, before.label_store_.nodes), (after, np.zeros(0, dtype=np.int64))):
        disputed = list(_disputed(model, given, learned))
        given = {node: name for node, name in given.items() if str(node) not in {each.id for each in disputed}}
        yield from disputed


def _disputed(model: GraphClassifier, given: dict[Any, str], learned: np.ndarray) -> Iterator[Doubt]:
    """Yield labels that a model is confident are wrong, the least probable label first.

    Args:
        model: Model that judges the labels.
        given: Labels by node.
        learned: Numbers of nodes to skip, because a model agrees with the labels that it has learned.
    """
    store, graph = model.label_store_, model.graph_
    place = {name: number for number, name in enumerate(store.classes)}
    nodes = [node for node, name in given.items() if name in place]
    rows = graph.rows_of_ids(nodes) if nodes else np.zeros(0, np.int64)
    used = np.flatnonzero(rows >= 0)
    used = used[~np.isin(graph.numbers_at(rows[used]), learned)]
    if not used.size:
        return
    rows, label = rows[used], np.array([place[given[nodes[at]]] for at in used.tolist()])
    probabilities, unknown = model.by_row.with_unknown_scores(rows)
    guess, own = probabilities.argmax(axis=1), probabilities[np.arange(label.size), label]
    places = np.flatnonzero((own <= IMPROBABLE) & (unknown <= model.calibration_.threshold) & (guess != label))
    for at in places[np.argsort(own[places], kind="stable")].tolist():
        node, probability = str(nodes[used[at]]), float(probabilities[at, guess[at]])
        yield Doubt(node, store.labels[label[at]], store.labels[guess[at]], probability)


def _supports(entry: Entry) -> Iterator[tuple[str, list[Any]]]:
    if entry["what"] == "learn":
        yield from entry["supports"].items()


def _warnings(classes: Sequence[ClassRecalls], doubts: Sequence[Doubt], changes: Sequence[Entry]) -> Iterator[str]:
    """Yield sentences about what may have gone wrong."""
    for each in classes:
        if each.worse:
            where = "its labels, each left out in turn" if each.few_shot else "its validation nodes"
            yield (
                f"The model recognises {quoted(str(each.name))} less well: {each.after} of {where}, and before "
                f"{each.before}. Chance alone hardly explains this."
            )
    taught = {str(name) for entry in changes for name, _ in _supports(entry)}
    for each in classes:
        if str(each.name) in taught and each.few_shot and each.after and each.after.interval[1] < 0.5:
            yield (
                f"Of the labels of {quoted(str(each.name))}, each left out in turn, the model recognises {each.after}. "
                "Some may be wrong, or they are too few for so varied a class."
            )
    if doubts:
        which = "looks" if len(doubts) == 1 else "look"
        yield f"{counted(len(doubts), 'label')} just given {which} wrong: the model is sure of another class."
