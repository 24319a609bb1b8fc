"""Runs, grids of runs, and the files that they write."""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
