"""Graphs in memory and on disk, their visible parts, readers, writers and converters."""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
