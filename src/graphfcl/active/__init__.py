"""Active learning: choose the nodes to label next, and find groups of unknown nodes.

- ``contract.py`` defines what a strategy receives and returns, and ``registry.py`` finds strategies by name.
- ``strategies.py`` and ``covering.py`` contain the strategies.
- ``clusters.py`` and ``untrained.py`` compare nodes.
- ``grouping.py`` finds groups of similar nodes.
"""

from graphfcl.runtime.lazy_names import names_of_stub

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
