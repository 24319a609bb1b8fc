"""An explanation of an answer in the user's own words: ids, class names and feature names."""

from dataclasses import replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods import METHODS, Learner
from graphfcl.production.answers.answers import class_probabilities
from graphfcl.production.model.state import ModelState

LEAST = 1e-12  # probability that a class has at least


def explain_node(state: ModelState, node: Any, top: int) -> dict[str, Any]:
    """Why a node got its class, as JSON values. See :meth:`GraphClassifier.explain`.

    Probabilities are those that ``predict`` answers, with the node's own temperature.
    """
    parts = state.parts
    graph, names, classes, labels = (
        parts.graph,
        parts.label_store.names,
        parts.label_store.classes,
        parts.label_store.labels,
    )
    numbers = graph.numbers_of([node])
    answer = state.asked.answers_at(graph.visible.rows(numbers))
    found = state.asked.using(lambda learner: learner.explain(graph.visible, int(numbers[0]), top))
    if found is None:
        method = parts.configuration.method
        able = " or ".join(repr(each.name) for each in METHODS if each.learner.explain is not Learner.explain)
        raise InputError(f"a model of the method {method!r} cannot explain itself: fit one of {able}.")
    alone = replace(answer, scores=np.log(np.maximum(np.array([found.before_smoothing]), LEAST)))
    probabilities, own = (class_probabilities(parts.label_store, each)[0] for each in (answer, alone))
    said = np.unique([numbers[0], *(other for other, *_ in (*found.around, *found.neighbours))])
    ids = dict(zip(said.tolist(), graph.ids_at(graph.visible.rows(said)).tolist(), strict=True))
    shown = dict.fromkeys(names[column] for column, _ in found.classes)
    return {
        "node": ids[int(numbers[0])],
        "classes": [
            {"class": labels[place], "probability": float(probabilities[place]), "by_itself": float(own[place])}
            for name in shown
            if name is not None
            for place in (classes.index(name),)
        ],
        "blocks": found.blocks,
        "features": {graph.columns.name(column): value for column, value in found.features},
        "around": {ids[other]: value for other, value in found.around},
        "neighbours": [
            {"node": ids[other], "share": share, "probability": probability, "adds": adds}
            for other, share, probability, adds in found.neighbours
        ],
    }
