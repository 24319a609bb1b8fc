"""The public names of ``graphfcl.production``: type checkers and the package itself read this list."""

from graphfcl.production.classifier import GraphClassifier as GraphClassifier
from graphfcl.production.folder import ModelFolder as ModelFolder
from graphfcl.production.labelling.groups import Group as Group
from graphfcl.production.labelling.spreading import Spread as Spread
from graphfcl.production.labelling.suggestions import Suggestion as Suggestion, suggest_for_graph as suggest_for_graph

__all__: list[str]
