"""Explain the predicted class of a node in ids, class names and feature names of the user."""

from dataclasses import replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.methods import METHODS, Learner
from graphfcl.production.answers.answers import class_probabilities
from graphfcl.production.model.state import ModelState

LEAST = 1e-12  # the smallest probability of a class


def explain_node(state: ModelState, node: Any, top: int) -> dict[str, Any]:
    """Explain the predicted class of a node as JSON values.

    Probabilities are the probabilities of ``predict``, with the node's own temperature.
    """
    graph, labels = state.parts.graph, state.parts.label_store
    numbers = graph.numbers_of([node])
    answer = state.answering.answers_at(graph.visible.rows(numbers))
    explained = state.answering.using(lambda learner: learner.explain(graph.visible, int(numbers[0]), top))
    if explained is None:
        method = state.parts.configuration.method
        able = " or ".join(repr(each.name) for each in METHODS if each.learner.explain is not Learner.explain)
        raise InputError(f"the method {method!r} cannot explain predictions: fit one of {able}.")
    alone = replace(answer, scores=np.log(np.maximum(np.array([explained.before_smoothing]), LEAST)))
    probabilities, own = (class_probabilities(labels, each)[0] for each in (answer, alone))
    named = np.unique([numbers[0], *(other for other, *_ in (*explained.around, *explained.neighbours))])
    ids = dict(zip(named.tolist(), graph.ids_at(graph.visible.rows(named)).tolist(), strict=True))
    class_of_column = labels.class_of_column()
    around = graph.visible.rows(np.array([other for other, *_ in explained.neighbours], dtype=np.int64))
    answered = class_probabilities(labels, state.answering.answers_at(around))
    first = int(class_of_column[explained.classes[0][0]])
    places = dict.fromkeys(int(class_of_column[column]) for column, _ in explained.classes)
    return {
        "node": ids[int(numbers[0])],
        "classes": [
            {
                "class": labels.labels[place],
                "probability": float(probabilities[place]),
                "by_itself": float(own[place]),
            }
            for place in places
            if place >= 0
        ],
        "blocks": explained.blocks,
        "features": {graph.columns.name(column): value for column, value in explained.features},
        "around": {ids[other]: value for other, value in explained.around},
        "neighbours": [
            {
                "node": ids[other],
                "share": share,
                "probability": float(by_model) if probability is None else probability,
                "adds": adds,
            }
            for (other, share, probability, adds), by_model in zip(
                explained.neighbours, answered[:, first], strict=True
            )
        ],
    }
