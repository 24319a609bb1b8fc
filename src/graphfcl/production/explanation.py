"""An explanation of an answer in the user's own words: ids, class names and feature names."""

from dataclasses import replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods import METHODS, Learner
from graphfcl.production.answers import Answers, class_probabilities
from graphfcl.production.model_parts import ModelParts

LEAST = 1e-12  # probability that a class has at least


def explain_node(parts: ModelParts, number: int, answer: Answers, top: int) -> dict[str, Any]:
    """Why a node got its class, as JSON values. See :meth:`GraphClassifier.explain`.

    answer: of this one node. Probabilities are those that ``predict`` answers, with the node's own temperature.
    """
    graph, names, classes, labels = parts.graph, parts.ledger.names, parts.ledger.classes, parts.ledger.labels
    found = parts.learner.explain(graph.visible, number, top)
    if found is None:
        method = parts.configuration.method
        able = " or ".join(repr(each.name) for each in METHODS if each.learner.explain is not Learner.explain)
        raise InputError(f"a model of the method {method!r} cannot explain itself: fit one of {able}.")
    alone = replace(answer, scores=np.log(np.maximum(np.array([found.before_smoothing]), LEAST)))
    probabilities, own = (class_probabilities(parts.ledger, each)[0] for each in (answer, alone))
    shown = dict.fromkeys(names[column] for column, _ in found.classes)
    return {
        "node": graph.id_of(number),
        "classes": [
            {"class": labels[place], "probability": float(probabilities[place]), "by_itself": float(own[place])}
            for name in shown
            if name is not None
            for place in (classes.index(name),)
        ],
        "blocks": found.blocks,
        "features": {graph.columns.name(column): value for column, value in found.features},
        "around": {graph.id_of(other): value for other, value in found.around},
        "neighbours": [
            {"node": graph.id_of(other), "share": share, "probability": probability, "adds": adds}
            for other, share, probability, adds in found.neighbours
        ],
    }
