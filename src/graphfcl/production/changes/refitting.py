"""Training a model again on the current graph and labels, or on a graph that a user brings."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import ClassLabel
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.graph.labels import natural_order
from graphfcl.methods import Progress
from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.graph import ModelGraph, kind_of
from graphfcl.production.labels.history import Entry, lineage, written_by_graphfcl
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.production.model.calibrating import left_out_scores
from graphfcl.production.model.fitting import Labels, train_model
from graphfcl.production.model.parts import Configuration, ModelParts

if TYPE_CHECKING:
    from graphfcl.production.changes.draft import Draft
    from graphfcl.production.model.state import ModelState

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


@dataclass(frozen=True)
class Refit:
    """How a refit went.

    comparison: with the model before, on nodes that neither was trained on. taken: whether the model is the new one.
    """

    comparison: Comparison
    taken: bool

    @property
    def why(self) -> str:
        """The verdict in a sentence."""
        compared = self.comparison
        if compared.before is None or compared.after is None:
            figures = "there is no node to compare both on"
        else:
            verdict = "better" if compared.better else "no better"
            figures = (
                f"the new model is {verdict}: {100 * compared.before:.1f} % balanced accuracy before, "
                f"{100 * compared.after:.1f} % after, on {compared.nodes:,} held-out nodes of "
                f"{len(compared.classes)} classes"
            )
        return f"{figures}; taken anyway" if self.taken and not compared.better else figures

    def as_json(self) -> dict[str, Any]:
        return {"taken": self.taken, "why": self.why, **self.comparison.as_json()}


@dataclass(frozen=True, eq=False)
class Refitted:
    """A model trained anew, its comparison with the one before, and what the history says of it."""

    parts: ModelParts
    comparison: Comparison
    change: dict[str, Any]


def refit_model(
    before: ModelParts,
    scores: Any,
    graph: AnyGraph | None,
    decisions: "Decisions",
    *,
    device: str,
    progress: Progress,
) -> Refitted:
    """See :meth:`GraphClassifier.refit`.

    scores: (n, columns) of every row, by the model before. graph: brought by the user, or None. decisions: what
    the model was told of classes and labels that such a graph does not know.
    """
    growing, label_store, labels = _material(before, graph, decisions)
    trained = train_model(growing, labels, before.configuration, device=device, progress=progress)
    parts = replace(trained.parts, label_store=replace(trained.parts.label_store, statements=label_store.statements))
    with parts.graph.in_use():
        comparison = compare(before, scores, parts, parts.graph.all_scores(parts.learner, progress))
    change = {
        "what": "refit",
        **({} if graph is None else {"graph": graph.name}),
        **trained.change,
        "new": [label_store.label(name) for name in labels.names if name not in label_store.classes],
        "grown": [
            label_store.label(name) for name in sorted(_few(label_store) - _few(parts.label_store), key=natural_order)
        ],
    }
    return Refitted(parts, comparison, change)


def refit_draft(
    draft: "Draft",
    state: "ModelState",
    configuration: Configuration,
    graph: AnyGraph | None,
    *,
    anyway: bool,
    device: str,
    progress: Progress,
) -> Refit:
    """Train anew, and let the draft be the new model if it is better, or ``anyway``."""
    if draft.graph.restate_due:
        draft.restate()
    before = replace(state.parts.read(), graph=draft.graph, learner=draft.learner, configuration=configuration)
    with written_by_graphfcl():
        decisions = Decisions.of(lineage(state.history.entries()))
    scores = state.asked.answers(progress).scores
    found = refit_model(before, scores, graph, decisions, device=device, progress=progress)
    result = Refit(found.comparison, anyway or found.comparison.better)
    if result.taken:
        draft.exchange(found.parts)
        # What older classes lost is in the comparison: the accuracy of before is of other nodes.
        change = {**found.change, "why": result.why, "compared": found.comparison.as_json()}
        draft.settle(change, max_loss=1.0, at_once=True, progress=progress)
    return result


def _material(
    before: ModelParts, graph: AnyGraph | None, decisions: "Decisions"
) -> tuple[ModelGraph, LabelStore, Labels]:
    """The graph with its features fitted again, the label_store with the numbers of that graph, and all labels."""
    label_store, names = before.label_store, before.label_store.classes
    if graph is None:
        growing, numbers = before.graph.fitted_again(), None
    else:
        if kind_of(graph) is not type(before.graph):
            where = "on disk: give a graph folder" if before.graph.passes else "in memory: give a graph, not a folder"
            raise InputError(f"the graph of this model is {where}; nothing was changed.")
        growing, numbers = before.graph.brought(graph)
        moved = translated(label_store.nodes, before.graph, growing)
        label_store = label_store.renumbered(moved)
    nodes, classes = labelled(label_store, names)
    held_out = label_store.of_part(LabelRole.VALIDATION)[0]
    if graph is not None and numbers is not None:
        more, called = more_labels(graph, numbers, growing, label_store, decisions)
        names = tuple(dict.fromkeys([*names, *called]))
        place = {name: number for number, name in enumerate(names)}
        added = np.array([place[name] for name in called], dtype=np.int64)
        nodes, classes = np.concatenate([nodes, more]), np.concatenate([classes, added])
    return growing, label_store, Labels(nodes, classes, names, held_out, label_store.integers)


def _few(label_store: LabelStore) -> set[str]:
    """Classes that were learned after session 0."""
    return {name for name, few in zip(label_store.classes, few_shot_classes(label_store), strict=True) if few}


# A graph that was brought
@dataclass(frozen=True)
class Decisions:
    """What a model was told of classes and labels that a file of the start does not know.

    called: what a class of the file is called by now. gone: classes that were retired. unlearned: ids of nodes whose
    label was taken back.
    """

    called: dict[str, str] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    unlearned: tuple[Any, ...] = ()

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> "Decisions":
        """entries: the changes that led to the model, oldest first."""
        called: dict[str, str] = {}
        gone: set[str] = set()
        unlearned: list[Any] = []
        for entry in entries:
            what = entry["what"]
            if what in ("rename", "merge"):
                old, new = str(entry["from"]), str(entry["to"] if what == "rename" else entry["into"])
                called = {name: new if now == old else now for name, now in called.items()} | {old: new}
            gone |= set(map(str, entry.get("retired") or ())) | ({str(entry["class"])} if what == "retire" else set())
            if what == "unlearn":
                unlearned += entry["nodes"]
        return cls(called, frozenset(gone), tuple(unlearned))


def more_labels(
    graph: AnyGraph, numbers: np.ndarray, growing: ModelGraph, label_store: LabelStore, decisions: Decisions
) -> tuple[np.ndarray, list[str]]:
    """Labels of a graph that was brought which the label_store does not have: (k,) node numbers, and their classes.

    numbers: (n,) of the rows of ``graph`` in ``growing``, which the label store belongs to. The label store wins:
    labels that were taken back and retired classes stay so.
    """
    names = [_name(name, label_store, decisions) for name in graph.class_names]
    used = np.array([name is not None for name in names] + [False])  # the last one: a node without a label
    free = used[graph.labels] & ~np.isin(numbers, label_store.nodes)
    there = growing.rows_of_ids(list(decisions.unlearned)) if decisions.unlearned else np.zeros(0, dtype=np.int64)
    free &= ~np.isin(numbers, growing.numbers_at(there[there >= 0]))
    found = np.flatnonzero(free)
    found = found[np.argsort(numbers[found])]
    return numbers[found], [str(names[label]) for label in graph.labels[found].tolist()]


def _name(name: str, label_store: LabelStore, decisions: Decisions) -> str | None:
    """What the model calls a class of the graph; None if it was retired."""
    name = decisions.called.get(name, name)
    known = label_store.found(name)
    return known if known is not None else None if name in decisions.gone else name
