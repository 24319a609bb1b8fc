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
    probabilities, class_of_column = class_probabilities(labels, answer)[0], labels.class_of_column()
    places = np.argsort(-probabilities, kind="stable")[: max(2, top)].tolist()
    # A class that others were merged into has several columns; the best one is explained.
    columns = [
        max(np.flatnonzero(class_of_column == place).tolist(), key=answer.scores[0].__getitem__) for place in places
    ]
    explained = state.answering.using(lambda learner: learner.explain(graph.visible, int(numbers[0]), top, columns))
    if explained is None:
        method = state.parts.configuration.method
        able = " or ".join(repr(each.name) for each in METHODS if each.learner.explain is not Learner.explain)
        raise InputError(f"the method {method!r} cannot explain predictions: fit one of {able}.")
    alone = replace(answer, scores=np.log(np.maximum(np.array([explained.before_smoothing]), LEAST)))
    own = class_probabilities(labels, alone)[0]
    named = np.unique([numbers[0], *(other for other, *_ in (*explained.around, *explained.neighbours))])
    ids = dict(zip(named.tolist(), graph.ids_at(graph.visible.rows(named)).tolist(), strict=True))
    around = graph.visible.rows(np.array([other for other, *_ in explained.neighbours], dtype=np.int64))
    answered = class_probabilities(labels, state.answering.answers_at(around))
    return {
        "node": ids[int(numbers[0])],
        "classes": [
            {
                "class": labels.labels[place],
                "probability": float(probabilities[place]),
                "by_itself": float(own[place]),
            }
            for place in places
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
                explained.neighbours, answered[:, places[0]], strict=True
            )
        ],
    }
