"""Graphs on disk: folders of raw files that are built with bounded memory and read in parts."""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
