"""An explanation of an answer in the user's own words: ids, class names and feature names."""

from typing import Any

from graphfcl.errors import InputError
from graphfcl.methods import METHODS, Learner
from graphfcl.production.model_parts import ModelParts


def explain_node(parts: ModelParts, number: int, top: int) -> dict[str, Any]:
    """Why a node got its class, as JSON values. See :meth:`GraphClassifier.explain`."""
    graph, names = parts.graph, parts.ledger.names
    found = parts.learner.explain(graph.visible, number, top)
    if found is None:
        method = parts.configuration.method
        able = " or ".join(repr(each.name) for each in METHODS if each.learner.explain is not Learner.explain)
        raise InputError(f"a model of the method {method!r} cannot explain itself: fit one of {able}.")
    return {
        "node": graph.id_of(number),
        "classes": [
            {"class": names[column], "probability": probability, "by_itself": own}
            for (column, probability), own in zip(found.classes, found.before_smoothing, strict=True)
            if names[column] is not None
        ],
        "blocks": found.blocks,
        "features": {graph.feature_name(column): value for column, value in found.features},
        "around": {graph.id_of(other): value for other, value in found.around},
        "neighbours": [
            {"node": graph.id_of(other), "share": share, "probability": probability, "adds": adds}
            for other, share, probability, adds in found.neighbours
        ],
    }
