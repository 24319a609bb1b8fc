"""Learners.

The door: ``learner.py`` is the contract, ``registry.py`` knows the methods by name, ``settings.py`` is what all
settings share, ``testing.py`` holds a learner to the contract. Then the methods, one file or folder each; ``bases/`` is
what they grow from, ``shared/`` the parts that they have.
"""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
