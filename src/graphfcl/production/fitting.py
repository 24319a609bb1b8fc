"""Fitting a model for production: train on every label there is, and rehearse without some classes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph import Graph
from graphfcl.methods import Learner, Progress, find_method
from graphfcl.methods.learner import EncoderStore, Tensors
from graphfcl.production.calibration import Calibration
from graphfcl.production.fit_checkpoints import FitCheckpoints
from graphfcl.production.growing_graph import GrowingGraph
from graphfcl.production.ledger import Ledger
from graphfcl.production.model_parts import Configuration, ModelParts
from graphfcl.production.rehearsal import rehearse
from graphfcl.production.session_zero import Start, make_start
from graphfcl.stream import Session


@dataclass(frozen=True, eq=False)
class Fitted:
    """A new model, and what its history says of the fit."""

    parts: ModelParts
    change: dict[str, Any]


def fit_model(
    graph: Graph,
    configuration: Configuration,
    *,
    hide_classes: Sequence[str],
    device: str,
    progress: Progress,
    checkpoints: FitCheckpoints,
) -> Fitted:
    """See :meth:`GraphClassifier.fit`."""
    checkpoints.begin(identity_of(graph, configuration, hide_classes))
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
    checkpoints.restore("learner", learner)
    learner.fit(start.base, checkpoints.watching("learner", progress), encoders)
    checkpoints.keep("learner", learner)
    another = new_learner(configuration, device)
    rehearsed, separations = rehearse(start.base, learner, another, encoders, progress, checkpoints)
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
    return Fitted(ModelParts(configuration, growing, learner, ledger, Calibration(rehearsed)), change)


def identity_of(graph: Graph, configuration: Configuration, hide_classes: Sequence[str]) -> dict[str, Any]:
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
        "hidden": list(hide_classes),
    }


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
