"""Which nodes to label next.

The door: ``contract.py`` is what a strategy sees and answers, ``registry.py`` knows the strategies by name. Then the
strategies, one file each; ``clusters.py`` is what those have that look for groups of nodes.
"""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
