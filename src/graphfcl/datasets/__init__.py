"""Names to graphs. A dataset is added by one file that makes a ``Dataset``, and one line in ``registry.py``."""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
