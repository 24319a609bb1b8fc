"""Session 0 of a model in production: rehearse, then train on every label there is."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.errors import DivergenceError, GraphfclWarning, InputError
from graphfcl.graph import Graph
from graphfcl.methods import Learner, Progress, find_method
from graphfcl.methods.learner import EncoderStore, Tensors
from graphfcl.methods.validation import ValidationSessions
from graphfcl.production.calibration import Calibration, learn_from_rehearsal
from graphfcl.production.growing_graph import GrowingGraph
from graphfcl.production.ledger import Ledger
from graphfcl.production.session_zero import Start, make_start, with_validation_classes
from graphfcl.stream import Session

# What a method is set to in production where that differs from its default in experiments.
PRODUCTION_SETTINGS: dict[str, dict[str, Any]] = {"hag-meta": {"tla": "invariant"}}


@dataclass(frozen=True, eq=False)
class Trained:
    """All that a model starts with, and its first entry in the history."""

    graph: GrowingGraph
    learner: Learner
    ledger: Ledger
    calibration: Calibration
    change: dict[str, Any]


def train(
    graph: Graph,
    method: str,
    settings: Mapping[str, Any],
    *,
    hide_classes: Sequence[str],
    way: int,
    shot: int,
    seed: int,
    device: str,
    progress: Progress,
) -> Trained:
    """See :meth:`GraphClassifier.fit`."""

    def new_learner() -> Learner:
        changes = {**PRODUCTION_SETTINGS.get(method, {}), **settings}
        return find_method(method).make(changes, seed=seed, device=device)

    learner, growing = new_learner(), GrowingGraph.of(graph)
    labels = shown_labels(graph, hide_classes)
    nodes = np.flatnonzero(labels >= 0)
    start = make_start(growing.visible, nodes, labels[nodes], graph.class_names, way=way, shot=shot, seed=seed)
    encoders = SharedEncoders()
    calibration, separations = rehearse(start, new_learner(), seed, encoders, progress)
    learner.fit(start.base, progress, encoders)
    base = start.base
    ledger = Ledger.of((base.train, base.train_labels), (base.validation, base.validation_labels), base.classes)
    if start.few_classes:
        learner.learn(Session(1, start.few_classes, *start.few, growing.visible, "open"))
        ledger = ledger.with_supports(*start.few, start.few_classes)
    change = {
        "what": "fit",
        "graph": graph.name,
        "nodes": graph.node_count,
        "edges": graph.edge_count,
        "labelled": int(nodes.size),
        "classes": list(ledger.classes),
        "hidden": list(hide_classes),
        "unknown_auroc": {name: round(value, 4) for name, value in separations.items()},
        "chosen": learner.chosen(),
    }
    return Trained(growing, learner, ledger, calibration, change)


def shown_labels(graph: Graph, hide_classes: Sequence[str]) -> np.ndarray:
    """(n,) the labels, unknown where the class is to be hidden."""
    labels = graph.labels.copy()
    for name in hide_classes:
        number = graph.class_number(name)
        if number is None:
            raise InputError(f"{graph.name} has no class {name!r} to hide: `graphfcl data show` lists them.")
        labels[labels == number] = -1
    return labels


def rehearse(
    start: Start, learner: Learner, seed: int, encoders: EncoderStore, progress: Progress
) -> tuple[Calibration, dict[str, float]]:
    """Fit a learner without the held-out classes, ask it, teach it those, ask again."""
    validation = ValidationSessions.draw(start.base, seed)
    if not validation.has_new_classes:
        return Calibration(), {}
    reduced, sessions = validation.rehearsal(start.base)
    try:
        learner.fit(with_validation_classes(reduced, seed), progress, encoders)
    except DivergenceError as error:
        warnings.warn(
            f"the rehearsal without the held-out classes failed ({error}) Probabilities and thresholds of classes that "
            "are learned later are those of the others: label more nodes of more classes to have them measured.",
            GraphfclWarning,
            2,
        )
        return Calibration(), {}
    nodes, labels = validation.asked
    visible = start.base.visible_graph
    before = learner.scores(visible, nodes)
    for session in sessions:
        learner.learn(session)
    return learn_from_rehearsal((before, labels), (learner.scores(visible, nodes), labels), validation.known_count)


class SharedEncoders(EncoderStore):
    """The rehearsal and the fit share their pre-trained encoder: it sees base classes only, which are the same."""

    def __init__(self) -> None:
        self.found: dict[str, Tensors] = {}

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:
        name = repr(sorted(key.items()))
        if name not in self.found:
            self.found[name] = compute()
        return self.found[name]
