"""An explanation of ANCHOR in the user's own words: ids, class names and feature names."""

from typing import TYPE_CHECKING, Any

from graphfcl.errors import InputError
from graphfcl.methods.anchor import Anchor
from graphfcl.methods.anchor_explain import explain

if TYPE_CHECKING:
    from graphfcl.production.classifier import GraphClassifier


def explain_node(model: "GraphClassifier", node: Any, top: int) -> dict[str, Any]:
    """See :meth:`GraphClassifier.explain`."""
    learner, graph, names = model.learner_, model.graph_, model.ledger_.names
    if not isinstance(learner, Anchor):
        raise InputError(f"a model of the method {model.method!r} cannot explain itself: fit one of 'anchor'.")
    number = int(model.numbers_of([node])[0])
    found = explain(learner, graph.visible, number, top)
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
