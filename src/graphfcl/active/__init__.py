"""Which nodes to label next.

``contract.py`` defines what a strategy receives and returns, ``registry.py`` knows the strategies by name. They are in
``strategies.py`` and ``covering.py``; ``clusters.py`` and ``untrained.py`` compare nodes, ``grouping.py`` finds groups.
"""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
