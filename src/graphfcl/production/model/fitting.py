"""Fit a model for production: train on every label, and run once more with some classes held out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph import VisibleNodes
from graphfcl.graph.ids import ClassLabel
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.methods import Learner, Progress, find_method
from graphfcl.methods.state import EncoderStore, Labelled, Tensors
from graphfcl.production.answers.calibration import Calibration, HeldOutResult
from graphfcl.production.graph import ModelGraph, kind_of
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.fit_checkpoints import FitCheckpoints
from graphfcl.production.model.held_out_run import run_held_out
from graphfcl.production.model.parts import Configuration, ModelParts
from graphfcl.runtime.arrays import rank_in_run
from graphfcl.stream import BaseSession, Session
from graphfcl.stream.split import draw_tasks

BASE_SHARE = 0.55
VALIDATION_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Fitted:
    """A new model, and the entry of its history."""

    parts: ModelParts
    change: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels to train on.

    Attributes:
        nodes: (m,) node numbers.
        classes: (m,) positions in ``names``.
        names: Names of the classes.
        held_out: Numbers of nodes that are used for validation before others.
        integers: As in :class:`LabelStore`.
    """

    nodes: np.ndarray
    classes: np.ndarray
    names: tuple[str, ...]
    held_out: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    integers: bool = False


@dataclass(frozen=True, eq=False)
class Start:
    """The first sessions of a learner in production.

    Attributes:
        base: Session 0: its largest classes (``base``), then the others (``pseudo-novel``).
        few: Nodes and columns of the classes with too few labels for session 0. They are learned right after it, and
            their columns follow the columns of session 0.
        few_classes: Names of these classes.
    """

    base: BaseSession
    few: Labelled
    few_classes: tuple[str, ...]


def fit_model(
    graph: AnyGraph,
    configuration: Configuration,
    hide_classes: Sequence[ClassLabel],
    device: str,
    progress: Progress,
    checkpoints: FitCheckpoints,
) -> Fitted:
    """See :meth:`GraphClassifier.fit`."""
    kind_of(graph).refuse_method(configuration.method)
    hidden = [_class_number(graph, label) for label in hide_classes]
    checkpoints.begin(identity_of(graph, configuration, hidden))
    nodes = np.flatnonzero((graph.labels >= 0) & ~np.isin(graph.labels, hidden))
    labels = Labels(nodes, graph.labels[nodes], graph.class_names, integers=graph.integer_classes)
    growing = kind_of(graph).of(graph)
    fitted = train_model(growing, labels, configuration, device=device, progress=progress, checkpoints=checkpoints)
    hidden_labels = [graph.class_labels[number] for number in hidden]
    return replace(fitted, change={"what": "fit", "graph": graph.name, **fitted.change, "hidden": hidden_labels})


def train_model(
    growing: ModelGraph,
    labels: Labels,
    configuration: Configuration,
    *,
    device: str,
    progress: Progress,
    checkpoints: FitCheckpoints | None = None,
    calibration_run: bool = True,
) -> Fitted:
    """Train a model on a graph and its labels, calibrate it with a held-out run, and learn the few-shot classes.

    ``calibration_run``: False leaves out the held-out run, and with it all measurements of classes that come later.
    """
    checkpoints = checkpoints or FitCheckpoints()
    device = growing.device(device)
    with growing.in_use() as lock:
        learner = new_learner(configuration, device)
        start = make_start(growing.visible, labels, configuration)
        if configuration.standardise:
            growing = growing.standardised(start.base.train)
            start = replace(start, base=replace(start.base, visible_graph=growing.visible))
        encoders = SharedEncoders()
        checkpoints.restore("learner", learner)
        learner.fit(start.base, checkpoints.watching("learner", progress), encoders)
        checkpoints.keep("learner", learner)
        held_out, separations = HeldOutResult(), dict[str, float]()
        if calibration_run:
            another = new_learner(configuration, device)
            with growing.cleared(lock, checkpoints.remember):
                held_out, separations = run_held_out(start.base, learner, another, encoders, progress, checkpoints)
        store = learn_few(start, learner, integers=labels.integers, fold=configuration.fold)
        change = {
            "nodes": growing.node_count,
            "edges": growing.edge_count,
            "labelled": int(labels.nodes.size),
            "classes": list(store.labels),
            **growing.all_words(),
            "unknown_auroc": {name: round(value, 4) for name, value in separations.items()},
            "chosen": learner.chosen(),
        }
        return Fitted(ModelParts(configuration, growing, learner, store, Calibration(held_out)), change)


def make_start(visible: VisibleNodes, labels: Labels, configuration: Configuration) -> Start:
    """Split classes and nodes into the parts of session 0.

    The largest 55 % of the classes are base. A fifth of the nodes per class is held out for validation. A class of
    session 0 needs K + 2 labelled nodes, so that pseudo-incremental training can draw K supports and another query.
    """
    names, way, shot, seed = labels.names, configuration.way, configuration.shot, configuration.seed
    sizes = np.bincount(labels.classes, minlength=len(names))
    usable = [c for c in np.argsort(-sizes, kind="stable").tolist() if sizes[c] >= shot + 2]
    few = [c for c in range(len(names)) if 0 < sizes[c] < shot + 2]
    count = len(usable)
    if count < 2:
        raise InputError(
            f"{count} classes have {shot + 2} labelled nodes or more; training with {shot} shots needs two such "
            "classes: label more nodes, or take fewer shots."
        )
    base_count = max(1, round(count * BASE_SHARE))
    order = [*sorted(usable[:base_count]), *sorted(usable[base_count:]), *few]
    column_of = np.full(len(names), -1, dtype=np.int64)
    column_of[order] = np.arange(len(order))
    nodes, columns = labels.nodes, column_of[labels.classes]
    validates = _draw_validation(columns, count, seed, np.isin(nodes, labels.held_out))
    later = columns >= count
    trained = ~later & ~validates
    pseudo_novel = np.arange(base_count, count)
    base = BaseSession(
        base_classes=tuple(names[c] for c in order[:base_count]),
        pseudo_novel_classes=tuple(names[c] for c in order[base_count:count]),
        train=nodes[trained],
        train_labels=columns[trained],
        validation=nodes[validates],
        validation_labels=columns[validates],
        pseudo_novel_tasks=draw_tasks(pseudo_novel, way, seed),
        visible_graph=visible,
        way=way,
        shot=shot,
        track="open",
    )
    return Start(base, (nodes[later], columns[later]), tuple(names[c] for c in few))


def _draw_validation(columns: np.ndarray, count: int, seed: int, first: np.ndarray) -> np.ndarray:
    """Return (nodes,) whether a node is for validation: a fifth per class, at least one, of the first ``count``
    columns.

    ``first``: (nodes,) whether a node is taken before the others of its class.
    """
    random = np.random.default_rng([seed, 7])
    order = np.lexsort((random.random(columns.size), ~first, columns))
    ordered = columns[order]
    sizes = np.bincount(columns, minlength=int(columns.max()) + 1)
    wanted = np.maximum(1, np.round(sizes * VALIDATION_SHARE)).astype(np.int64)
    wanted[count:] = 0
    validates = np.zeros(columns.size, dtype=bool)
    validates[order] = rank_in_run(ordered) < wanted[ordered]
    return validates


def learn_few(start: Start, learner: Learner, *, integers: bool = False, fold: bool = False) -> LabelStore:
    """Teach a fitted learner the classes with too few labels for session 0; returns the store of all labels."""
    base = start.base
    train, validation = (base.train, base.train_labels), (base.validation, base.validation_labels)
    store = LabelStore.of(train, validation, base.classes, integers=integers, fold=fold)
    if not start.few_classes:
        return store
    learner.learn(Session(1, start.few_classes, *start.few, base.visible_graph, "open"))
    return store.with_supports(*start.few, start.few_classes)


def identity_of(graph: AnyGraph, configuration: Configuration, hidden: Sequence[int]) -> dict[str, Any]:
    """Return the values that two fits must have in common for one to resume the other. ``hidden``: class numbers."""
    chosen = configuration.parameters()
    del chosen["max_loss"]  # a fit does not depend on it
    return {
        **chosen,
        "graph": graph.sha256,
        "code": find_method(configuration.method).source,
        "settings": new_learner(configuration, "cpu").settings_as_json(),
        "hidden": [graph.class_names[number] for number in hidden],
    }


def new_learner(configuration: Configuration, device: str) -> Learner:
    """Make a learner with the user's settings, and otherwise the settings of its method for production."""
    method = find_method(configuration.method)
    settings = {**method.learner.production_settings, **configuration.settings}
    return method.make(settings, seed=configuration.seed, device=device)


def _class_number(graph: AnyGraph, label: ClassLabel) -> int:
    number = graph.class_number(label)
    if number is None:
        hint = did_you_mean(str(label), [str(name) for name in graph.class_names], "`graphfcl data show` lists them.")
        raise InputError(f"{graph.name} has no class {label!r} to hide: {hint}")
    return number


class SharedEncoders(EncoderStore):
    """Pre-trained encoders that the fit and the held-out run share: both pre-train on the same base classes."""

    def __init__(self) -> None:
        self._encoders: dict[str, Tensors] = {}

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:
        name = repr(sorted(key.items()))
        if name not in self._encoders:
            self._encoders[name] = compute()
        return self._encoders[name]
