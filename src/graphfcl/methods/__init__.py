"""Methods: learners of classes that arrive in sessions.

``learner.py`` is the contract, ``state.py`` is what a learner stores, ``registry.py`` finds methods by name,
``settings.py`` is what all settings share, and ``testing/`` checks a learner against the contract. Each method is one
file or folder; ``bases/`` holds their base classes and ``shared/`` the parts that several of them have.
"""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
