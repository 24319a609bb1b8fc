"""Fitting a model for production."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph import VisibleNodes
from graphfcl.graph.ids import ClassLabel
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.methods import Learner, Progress, find_method
from graphfcl.methods.learner import EncoderStore, Labelled, Tensors
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.graph import ModelGraph, kind_of
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.fit_checkpoints import FitCheckpoints
from graphfcl.production.model.held_out_run import run_held_out
from graphfcl.production.model.parts import Configuration, ModelParts
from graphfcl.runtime.arrays import rank_in_run
from graphfcl.runtime.files import SharedLock
from graphfcl.stream import BaseSession, Session
from graphfcl.stream.split import draw_tasks, draw_validation_columns

BASE_SHARE = 0.55
VALIDATION_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Start:
    """What a production learner starts with.

    base: session 0, its largest classes first (``base``), then the others (``pseudo-novel``).
    few: (nodes, columns) of the classes with too few labels for session 0. They are learned right after it, and their
        columns follow those of session 0.
    few_classes: their names.
    """

    base: BaseSession
    few: Labelled
    few_classes: tuple[str, ...]


def make_start(
    visible: VisibleNodes,
    nodes: np.ndarray,
    labels: np.ndarray,
    names: tuple[str, ...],
    *,
    way: int,
    shot: int,
    seed: int,
    held_out: np.ndarray | None = None,
) -> Start:
    """Split classes and nodes into the parts of session 0.

    nodes, labels: all labelled nodes and their classes, as positions in ``names``. held_out: nodes that are for
    validation before others of their class are.

    The largest 55 % of the classes are base. A fifth of the nodes per class is held out for validation. A class of
    session 0 needs K + 2 labelled nodes, so that pseudo-incremental training can draw K supports and ask about another.
    """
    sizes = np.bincount(labels, minlength=len(names))
    usable = [c for c in np.argsort(-sizes, kind="stable").tolist() if sizes[c] >= shot + 2]
    few = [c for c in range(len(names)) if 0 < sizes[c] < shot + 2]
    if len(usable) < 2:
        raise InputError(
            f"{len(usable)} classes have {shot + 2} labelled nodes or more; training with {shot} shots needs two: "
            "label more nodes, or take fewer shots."
        )
    base_count = max(1, round(len(usable) * BASE_SHARE))
    order = [*sorted(usable[:base_count]), *sorted(usable[base_count:]), *few]
    column_of = np.full(len(names), -1, dtype=np.int64)
    column_of[order] = np.arange(len(order))
    columns = column_of[labels]
    count = len(usable)
    first = np.zeros(nodes.size, dtype=bool) if held_out is None else np.isin(nodes, held_out)
    validates = _held_out(columns, count, seed, first)
    in_session_zero = columns < count
    trained = in_session_zero & ~validates
    pseudo_novel = np.arange(base_count, count)
    base = BaseSession(
        base_classes=tuple(names[c] for c in order[:base_count]),
        pseudo_novel_classes=tuple(names[c] for c in order[base_count:count]),
        train=nodes[trained],
        train_labels=columns[trained],
        validation=nodes[validates],
        validation_labels=columns[validates],
        validation_columns=draw_validation_columns(pseudo_novel, way, seed),
        pseudo_novel_tasks=draw_tasks(pseudo_novel, way, seed),
        visible_graph=visible,
        way=way,
        shot=shot,
        track="open",
    )
    later = ~in_session_zero
    return Start(base, (nodes[later], columns[later]), tuple(names[c] for c in few))


def _held_out(columns: np.ndarray, count: int, seed: int, first: np.ndarray) -> np.ndarray:
    """(nodes,) whether a node is for validation: a fifth per class, at least one, of the first ``count`` columns.

    first: (nodes,) whether a node is taken before the others of its class.
    """
    random = np.random.default_rng([seed, 7])
    order = np.lexsort((random.random(columns.size), ~first, columns))
    ordered = columns[order]
    sizes = np.bincount(columns, minlength=int(columns.max()) + 1)
    wanted = np.maximum(1, np.round(sizes * VALIDATION_SHARE)).astype(np.int64)
    wanted[count:] = 0
    held_out = np.zeros(columns.size, dtype=bool)
    held_out[order] = rank_in_run(ordered) < wanted[ordered]
    return held_out


@dataclass(frozen=True, eq=False)
class Fitted:
    """A new model, and what its history says of the fit."""

    parts: ModelParts
    change: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Labels:
    """What is trained on. nodes: (m,) numbers. classes: (m,) positions in ``names``.

    held_out: numbers of nodes that are for validation before others are. integers: as in :class:`LabelStore`.
    """

    nodes: np.ndarray
    classes: np.ndarray
    names: tuple[str, ...]
    held_out: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    integers: bool = False


def fit_model(
    graph: AnyGraph,
    configuration: Configuration,
    *,
    hide_classes: Sequence[ClassLabel],
    device: str,
    progress: Progress,
    checkpoints: FitCheckpoints,
) -> Fitted:
    """See :meth:`GraphClassifier.fit`."""
    kind_of(graph).refuse_method(configuration.method)
    checkpoints.begin(identity_of(graph, configuration, hide_classes))
    labels = shown_labels(graph, hide_classes)
    nodes = np.flatnonzero(labels >= 0)
    growing = kind_of(graph).of(graph)
    shown = Labels(nodes, labels[nodes], graph.class_names, integers=graph.integer_classes)
    fitted = train_model(growing, shown, configuration, device=device, progress=progress, checkpoints=checkpoints)
    hidden = [graph.class_labels[number] for number in _numbers(graph, hide_classes)]
    said = {"what": "fit", "graph": graph.name, **fitted.change, "hidden": hidden}
    return Fitted(fitted.parts, said)


def train_model(
    growing: ModelGraph,
    labels: Labels,
    configuration: Configuration,
    *,
    device: str,
    progress: Progress,
    checkpoints: FitCheckpoints | None = None,
) -> Fitted:
    """A model of a graph and its labels, rehearsed, with the classes of few labels learned."""
    checkpoints = checkpoints or FitCheckpoints()
    with growing.in_use() as lock:
        return _trained(growing, labels, configuration, growing.device(device), progress, checkpoints, lock)


def _trained(
    growing: ModelGraph,
    labels: Labels,
    configuration: Configuration,
    device: str,
    progress: Progress,
    checkpoints: FitCheckpoints,
    lock: SharedLock | None,
) -> Fitted:
    learner = new_learner(configuration, device)
    start = make_start(
        growing.visible,
        labels.nodes,
        labels.classes,
        labels.names,
        way=configuration.way,
        shot=configuration.shot,
        seed=configuration.seed,
        held_out=labels.held_out,
    )
    if configuration.standardise:
        growing = growing.standardised(start.base.train)
        start = replace(start, base=replace(start.base, visible_graph=growing.visible))
    encoders = SharedEncoders()
    checkpoints.restore("learner", learner)
    learner.fit(start.base, checkpoints.watching("learner", progress), encoders)
    checkpoints.keep("learner", learner)
    another = new_learner(configuration, device)
    with growing.cleared(lock, checkpoints.remember):
        rehearsed, separations = run_held_out(start.base, learner, another, encoders, progress, checkpoints)
    label_store = learn_few(start, learner, integers=labels.integers)
    change = {
        "nodes": growing.node_count,
        "edges": growing.edge_count,
        "labelled": int(labels.nodes.size),
        "classes": list(label_store.labels),
        **growing.all_words(),
        "unknown_auroc": {name: round(value, 4) for name, value in separations.items()},
        "chosen": learner.chosen(),
    }
    return Fitted(ModelParts(configuration, growing, learner, label_store, Calibration(rehearsed)), change)


def identity_of(graph: AnyGraph, configuration: Configuration, hide_classes: Sequence[ClassLabel]) -> dict[str, Any]:
    """What two fits must have in common for one to go on where the other stopped, as JSON values."""
    learner = new_learner(configuration, "cpu")
    return {
        "graph": graph.sha256,
        "method": configuration.method,
        "code": find_method(configuration.method).source,
        "settings": learner.settings_as_json(),
        "way": configuration.way,
        "shot": configuration.shot,
        "seed": configuration.seed,
        "standardise": configuration.standardise,
        "hidden": [graph.class_names[number] for number in _numbers(graph, hide_classes)],
    }


def new_learner(configuration: Configuration, device: str) -> Learner:
    """A learner with the user's settings, and where they are silent those of its method for production."""
    method = find_method(configuration.method)
    settings = {**method.learner.production_settings, **configuration.settings}
    return method.make(settings, seed=configuration.seed, device=device)


def shown_labels(graph: AnyGraph, hide_classes: Sequence[ClassLabel]) -> np.ndarray:
    """(n,) the labels, unknown where the class is to be hidden."""
    return np.where(np.isin(graph.labels, _numbers(graph, hide_classes)), -1, graph.labels)


def _numbers(graph: AnyGraph, classes: Sequence[ClassLabel]) -> list[int]:
    """Class numbers of the classes to hide."""
    numbers = []
    for label in classes:
        number = graph.class_number(label)
        if number is None:
            raise InputError(f"{graph.name} has no class {label!r} to hide: `graphfcl data show` lists them.")
        numbers.append(number)
    return numbers


def learn_few(start: Start, learner: Learner, *, integers: bool = False) -> LabelStore:
    """Teach a fitted learner the classes with too few labels for session 0; the label_store of all labels."""
    base = start.base
    train, validation = (base.train, base.train_labels), (base.validation, base.validation_labels)
    label_store = LabelStore.of(train, validation, base.classes, integers=integers)
    if not start.few_classes:
        return label_store
    learner.learn(Session(1, start.few_classes, *start.few, base.visible_graph, "open"))
    return label_store.with_supports(*start.few, start.few_classes)


class SharedEncoders(EncoderStore):
    """The rehearsal and the fit share their pre-trained encoder: it sees base classes only, which are the same."""

    def __init__(self) -> None:
        self.found: dict[str, Tensors] = {}

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:
        name = repr(sorted(key.items()))
        if name not in self.found:
            self.found[name] = compute()
        return self.found[name]
