"""The public names of ``graphfcl.production``: type checkers and the package itself read this list."""

from graphfcl.production.classifier import GraphClassifier as GraphClassifier
from graphfcl.production.folder import ModelFolder as ModelFolder
from graphfcl.production.grouping import Group as Group
from graphfcl.production.spreading import Spread as Spread
from graphfcl.production.suggesting import Suggestion as Suggestion, suggest_for_graph as suggest_for_graph

__all__: list[str]
