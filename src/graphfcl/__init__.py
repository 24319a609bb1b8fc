"""Graph few-shot class-incremental learning.

>>> from graphfcl import load_dataset, make_stream
>>> graph, protocol = load_dataset("debian")
>>> stream = make_stream(graph, protocol, seed=0)
>>> for session in stream:
...     print(session.number, session.new_classes, session.visible_graph)
"""

from graphfcl.runtime.lazy_names import names_of_stub
from graphfcl.version import __version__ as __version__

__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
