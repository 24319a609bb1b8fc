"""Train a model again on the current graph and labels, or on a graph that the user provides.

The new model is compared with the old one on nodes that neither was trained on. For one model these are

- its validation nodes,
- the labelled nodes of classes that it learned after session 0, by leave-one-out,
- nodes that have no label in the model.

The two models are compared on the nodes that are in this list for both, and choose among the classes that both know.
The new model takes validation nodes of the old one as its own where it can (``Labels.held_out``), so that there are as
many common nodes as possible.

If a class became large enough for session 0, its new validation nodes are supports of the old model, which leaves them
out one by one. The old model then learns from all other nodes of the class, the new one from four fifths of them, so
the comparison slightly favours the old model. Both models chose their settings by validation nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import ClassLabel
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.graph.labels import natural_order
from graphfcl.methods import Progress
from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.changes.draft import Draft
from graphfcl.production.graph import ModelGraph, kind_of
from graphfcl.production.labels.history import Entry, lineage, written_by_graphfcl
from graphfcl.production.labels.label_store import LabelRole, LabelStore
from graphfcl.production.model.calibrating import left_out_scores
from graphfcl.production.model.fitting import Labels, train_model
from graphfcl.production.model.parts import ModelParts

Positions = np.ndarray  # of classes in a list of names; -1 where a class is not in it


@dataclass(frozen=True)
class ClassComparison:
    """Recall of one class before and after a refit.

    Attributes:
        name: The class.
        before: Recall of the old model.
        after: Recall of the new model.
        nodes: Number of nodes on which both were measured.
    """

    name: ClassLabel
    before: float
    after: float
    nodes: int

    def as_json(self) -> dict[str, Any]:
        recalls = {"before": round(self.before, 4), "after": round(self.after, 4)}
        return {"class": self.name, **recalls, "nodes": self.nodes}


@dataclass(frozen=True)
class Comparison:
    """Comparison of two models.

    Attributes:
        classes: Classes that have nodes to compare on, in the order of the old model.
    """

    classes: tuple[ClassComparison, ...]

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(each.nodes for each in self.classes)

    @property
    def before(self) -> float | None:
        """Balanced accuracy of the old model; None without nodes."""
        return float(np.mean([each.before for each in self.classes])) if self.classes else None

    @property
    def after(self) -> float | None:
        """Balanced accuracy of the new model; None without nodes."""
        return float(np.mean([each.after for each in self.classes])) if self.classes else None

    @property
    def better(self) -> bool:
        """Whether the new model is strictly better."""
        return self.before is not None and self.after is not None and self.after > self.before + 1e-9

    def as_json(self) -> dict[str, Any]:
        both = {"before": self.before, "after": self.after}
        return {
            "nodes": self.nodes,
            **{key: None if value is None else round(value, 4) for key, value in both.items()},
            "classes": [each.as_json() for each in self.classes],
        }


def compare(old: ModelParts, old_scores: Any, new: ModelParts, new_scores: Any) -> Comparison:
    """Compare two models whose graphs have the same nodes by id; node numbers may differ.

    ``old_scores`` and ``new_scores`` are (n, columns) scores of all rows of each graph, as arrays or tables on disk.
    """
    names, labels = old.label_store.classes, old.label_store.labels
    true_nodes, truth = labelled(new.label_store, names)
    unlabelled = np.setdiff1d(translated(true_nodes, new.graph, old.graph), old.label_store.without_accepted().nodes)
    old_nodes, old_answers = _unbiased_answers(old, old_scores, names, unlabelled)
    old_nodes = translated(old_nodes, old.graph, new.graph)
    new_nodes, new_answers = _unbiased_answers(new, new_scores, names, np.zeros(0, dtype=np.int64))
    both, in_old, in_new = np.intersect1d(old_nodes, new_nodes, assume_unique=True, return_indices=True)
    order = np.argsort(true_nodes)
    classes = truth[order][np.searchsorted(true_nodes[order], both)]
    shared = classes >= 0
    sizes = np.bincount(classes[shared], minlength=len(names))
    before, after = (
        np.bincount(classes[shared & (classes == answers)], minlength=len(names)) / np.maximum(sizes, 1)
        for answers in (old_answers[in_old], new_answers[in_new])
    )
    return Comparison(
        tuple(
            ClassComparison(labels[place], float(before[place]), float(after[place]), int(sizes[place]))
            for place in np.flatnonzero(sizes).tolist()
        )
    )


def translated(numbers: np.ndarray, source: ModelGraph, target: ModelGraph) -> np.ndarray:
    """Translate (m,) node numbers of one graph into numbers of another, by ids."""
    return numbers if source.shares_numbers(target) else target.numbers_of(source.ids_of(numbers))


def labelled(labels: LabelStore, names: tuple[str, ...]) -> tuple[np.ndarray, Positions]:
    """Return the labelled nodes, and the positions of their classes in ``names``."""
    return labels.nodes, _positions(labels, names)[labels.columns]


def _positions(labels: LabelStore, names: tuple[str, ...]) -> Positions:
    """(columns,) the position of the class of each column in ``names``; -1 if it is retired or not in ``names``."""
    place = {name: number for number, name in enumerate(names)}
    return np.array([-1 if name is None else place.get(name, -1) for name in labels.names], dtype=np.int64)


def _unbiased_answers(
    parts: ModelParts, scores: Any, names: tuple[str, ...], unlabelled: np.ndarray
) -> tuple[np.ndarray, Positions]:
    """Return nodes that a model was not trained on, and the positions in ``names`` of their predicted classes."""
    visible, labels = parts.graph.visible, parts.label_store
    positions = _positions(labels, names)
    active = np.flatnonzero(positions >= 0)
    nodes = np.concatenate([labels.with_role(LabelRole.VALIDATION)[0], unlabelled])
    best = scores[visible.rows(nodes)][:, active].argmax(axis=1)
    left = left_out_scores(parts.learner, visible, labels, active)
    if left is not None and left[0].size:
        nodes, best = np.concatenate([nodes, left[0]]), np.concatenate([best, left[2].argmax(axis=1)])
    return nodes, positions[active][best]


@dataclass(frozen=True)
class Refit:
    """Outcome of a refit.

    Attributes:
        comparison: Comparison with the previous model, on nodes that neither was trained on.
        taken: Whether the new model is used.
    """

    comparison: Comparison
    taken: bool

    @property
    def why(self) -> str:
        """The outcome in a sentence."""
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


def refit_draft(draft: Draft, graph: AnyGraph | None, *, anyway: bool, device: str, progress: Progress) -> Refit:
    """Train again, and let the draft become the new model if that is better, or if ``anyway`` is set.

    ``graph`` is the graph that the user provides, or None. See :meth:`GraphClassifier.refit`.
    """
    state, configuration = draft.before, draft.configuration
    if draft.graph.restate_due:
        draft.restate()
    before = replace(state.parts.read(), graph=draft.graph, learner=draft.learner, configuration=configuration)
    with written_by_graphfcl():
        decisions = Decisions.of(lineage(state.history.entries()), before.label_store)
    old_scores = state.answering.answers(progress).scores
    growing, old_labels, labels = _material(before, graph, decisions)
    if graph is not None and graph.columns is not None:  # later tables are filled with the medians of this graph
        fold = configuration.fold if graph.columns.fold is None else graph.columns.fold
        configuration = replace(configuration, columns=replace(graph.columns, fold=fold))
    trained = train_model(growing, labels, configuration, device=device, progress=progress)
    new_labels = replace(trained.parts.label_store, statements=old_labels.statements)
    parts = replace(trained.parts, label_store=new_labels)
    with parts.graph.in_use():
        comparison = compare(before, old_scores, parts, parts.graph.all_scores(parts.learner, progress))
    result = Refit(comparison, anyway or comparison.better)
    if result.taken:
        parts = replace(parts, label_store=new_labels.with_accepted_of(old_labels))
        grown = sorted(_few_shot_names(old_labels) - _few_shot_names(new_labels), key=natural_order)
        draft.exchange(parts)
        change = {
            "what": "refit",
            **({} if graph is None else {"graph": graph.name}),
            **trained.change,
            "new": [old_labels.label(name) for name in labels.names if name not in old_labels.classes],
            "grown": [old_labels.label(name) for name in grown],
            "why": result.why,
            "compared": comparison.as_json(),
        }
        # No warning: the comparison shows losses, and the accuracy before was measured on other nodes.
        draft.finalise(change, at_once=True, warn=False, progress=progress)
    return result


def _material(
    before: ModelParts, graph: AnyGraph | None, decisions: "Decisions"
) -> tuple[ModelGraph, LabelStore, Labels]:
    """Return the graph with features fitted again, the label store with node numbers of that graph, and all labels."""
    store, names = before.label_store, before.label_store.classes
    if graph is None:
        growing, numbers = before.graph.with_refitted_features(), None
    else:
        if kind_of(graph) is not type(before.graph):
            where = "on disk: give a graph folder" if before.graph.passes else "in memory: give a graph, not a folder"
            raise InputError(f"the graph of this model is {where}; nothing was changed.")
        growing, numbers = before.graph.replaced_by(graph)
        store = store.renumbered(translated(store.nodes, before.graph, growing))
    given = store.without_accepted()
    nodes, classes = labelled(given, names)
    if graph is not None and numbers is not None:
        more, names_of_more = more_labels(graph, numbers, growing, given, decisions)
        names = tuple(dict.fromkeys([*names, *names_of_more]))
        place = {name: number for number, name in enumerate(names)}
        added = np.array([place[name] for name in names_of_more], dtype=np.int64)
        nodes, classes = np.concatenate([nodes, more]), np.concatenate([classes, added])
    held_out = store.with_role(LabelRole.VALIDATION)[0]
    return growing, store, Labels(nodes, classes, names, held_out, store.integers)


def _few_shot_names(labels: LabelStore) -> set[str]:
    return {name for name, few in zip(labels.classes, few_shot_classes(labels), strict=True) if few}


# A graph that the user provides


@dataclass(frozen=True)
class Decisions:
    """Changes of classes and labels since the first fit, which a graph that the user provides does not contain.

    Attributes:
        names: Current name of each class of that graph.
        retired: Classes that were retired. Names are in the form in which the label store compares them.
        unlearned: Ids of nodes whose label was taken back.
    """

    names: dict[str, str] = field(default_factory=dict)
    retired: frozenset[str] = frozenset()
    unlearned: tuple[Any, ...] = ()

    @classmethod
    def of(cls, entries: Sequence[Entry], labels: LabelStore) -> "Decisions":
        """Collect the decisions from ``entries``, the changes that led to the model, oldest first."""
        names: dict[str, str] = {}
        retired: set[str] = set()
        unlearned: list[Any] = []
        for entry in entries:
            what = entry["what"]
            if what in ("rename", "merge"):
                old, new = labels.form(str(entry["from"])), str(entry["to"] if what == "rename" else entry["into"])
                names = {form: new if labels.form(now) == old else now for form, now in names.items()} | {old: new}
            retired |= {labels.form(str(name)) for name in entry.get("retired") or ()}
            if what == "retire":
                retired.add(labels.form(str(entry["class"])))
            if what == "unlearn":
                unlearned += entry["nodes"]
        return cls(names, frozenset(retired), tuple(unlearned))

    def name_of(self, name: str, labels: LabelStore) -> str | None:
        """Return the current name of a class of the user's graph; None if the class was retired."""
        name = self.names.get(labels.form(name), name)
        return labels.find(name) or (None if labels.form(name) in self.retired else name)


def more_labels(
    graph: AnyGraph, numbers: np.ndarray, growing: ModelGraph, labels: LabelStore, decisions: Decisions
) -> tuple[np.ndarray, list[str]]:
    """Return labels of a provided graph that the model does not have: (k,) node numbers, and their classes.

    ``numbers`` are the (n,) numbers that the rows of ``graph`` have in ``growing``, to which the label store belongs.
    The model takes precedence: labels that were removed and classes that were retired stay so.
    """
    spelled: dict[str, str] = {}  # if the model folds names, spellings of one class are one
    names = [
        name and spelled.setdefault(labels.form(name), name)
        for name in (decisions.name_of(name, labels) for name in graph.class_names)
    ]
    used = np.array([name is not None for name in names] + [False])  # the last entry is for nodes without a label
    free = used[graph.labels] & ~np.isin(numbers, labels.nodes)
    rows = growing.rows_of_ids(list(decisions.unlearned)) if decisions.unlearned else np.zeros(0, dtype=np.int64)
    free &= ~np.isin(numbers, growing.numbers_at(rows[rows >= 0]))
    places = np.flatnonzero(free)
    places = places[np.argsort(numbers[places])]
    return numbers[places], [str(names[label]) for label in graph.labels[places].tolist()]
