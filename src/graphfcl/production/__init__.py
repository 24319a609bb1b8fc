"""A learner that lives for years: a classifier on a growing graph, and the folder that keeps it."""

from typing import TYPE_CHECKING

from graphfcl.lazy_names import lazy_names

if TYPE_CHECKING:
    from graphfcl.production.classifier import GraphClassifier
    from graphfcl.production.folder import ModelFolder
    from graphfcl.production.grouping import Group
    from graphfcl.production.spreading import Spread
    from graphfcl.production.suggesting import Suggestion, suggest_for_graph

# Where each name lives: the history of a folder is read without a classifier.
_PLACES = {
    "GraphClassifier": "classifier",
    "ModelFolder": "folder",
    "Group": "grouping",
    "Spread": "spreading",
    "Suggestion": "suggesting",
    "suggest_for_graph": "suggesting",
}

__all__ = ["GraphClassifier", "Group", "ModelFolder", "Spread", "Suggestion", "suggest_for_graph"]

__getattr__ = lazy_names(__name__, _PLACES)
