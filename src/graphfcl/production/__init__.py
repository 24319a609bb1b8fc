"""A model in production: a classifier on a growing graph, and the folder that stores its versions."""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
