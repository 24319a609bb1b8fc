"""Datasets by name. To add one, write a file that makes a ``Dataset``, and add a line to ``registry.py``."""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
