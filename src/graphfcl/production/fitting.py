"""Fitting a model for production: rehearse without the held-out classes, then train on every label there is."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.errors import DivergenceError, GraphfclWarning, InputError
from graphfcl.graph import Graph
from graphfcl.methods import Learner, Progress, find_method
from graphfcl.methods.learner import EncoderStore, Tensors
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.production.calibration import Calibration, learn_from_rehearsal
from graphfcl.production.growing_graph import GrowingGraph
from graphfcl.production.ledger import Ledger
from graphfcl.production.model_parts import Configuration, ModelParts
from graphfcl.production.session_zero import Start, make_start, with_validation_classes
from graphfcl.stream import Session


@dataclass(frozen=True, eq=False)
class Fitted:
    """A new model, and what its history says of the fit."""

    parts: ModelParts
    change: dict[str, Any]


def fit_model(
    graph: Graph, configuration: Configuration, *, hide_classes: Sequence[str], device: str, progress: Progress
) -> Fitted:
    """See :meth:`GraphClassifier.fit`."""
    learner, growing = new_learner(configuration, device), GrowingGraph.of(graph)
    labels = shown_labels(graph, hide_classes)
    nodes = np.flatnonzero(labels >= 0)
    start = make_start(
        growing.visible,
        nodes,
        labels[nodes],
        graph.class_names,
        way=configuration.way,
        shot=configuration.shot,
        seed=configuration.seed,
    )
    if configuration.standardise:
        growing = growing.standardised(start.base.train)
        start = replace(start, base=replace(start.base, visible_graph=growing.visible))
    encoders = SharedEncoders()
    rehearsing = new_learner(configuration, device)
    calibration, separations = rehearse(start, rehearsing, configuration.seed, encoders, progress)
    learner.fit(start.base, progress, encoders)
    ledger = learn_few(start, learner)
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
    return Fitted(ModelParts(configuration, growing, learner, ledger, calibration), change)


def new_learner(configuration: Configuration, device: str) -> Learner:
    """A learner with the user's settings, and where they are silent those of its method for production."""
    method = find_method(configuration.method)
    settings = {**method.learner.production_settings, **configuration.settings}
    return method.make(settings, seed=configuration.seed, device=device)


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
    """Fit a learner without the held-out classes, ask it, teach it those, ask again.

    Returns the calibration, and the AUROC of each strangeness score; none if no class can be held out.
    """
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
    nodes, columns = validation.asked
    visible = start.base.visible_graph
    before = learner.scores(visible, nodes)
    for session in sessions:
        learner.learn(session)
    after = learner.scores(visible, nodes)
    return learn_from_rehearsal((before, columns), (after, columns), validation.known_count)


def learn_few(start: Start, learner: Learner) -> Ledger:
    """Teach a fitted learner the classes with too few labels for session 0; the ledger of all labels."""
    base = start.base
    ledger = Ledger.of((base.train, base.train_labels), (base.validation, base.validation_labels), base.classes)
    if not start.few_classes:
        return ledger
    learner.learn(Session(1, start.few_classes, *start.few, base.visible_graph, "open"))
    return ledger.with_supports(*start.few, start.few_classes)


class SharedEncoders(EncoderStore):
    """The rehearsal and the fit share their pre-trained encoder: it sees base classes only, which are the same."""

    def __init__(self) -> None:
        self.found: dict[str, Tensors] = {}

    def get(self, key: dict[str, Any], compute: Callable[[], Tensors]) -> Tensors:
        name = repr(sorted(key.items()))
        if name not in self.found:
            self.found[name] = compute()
        return self.found[name]
