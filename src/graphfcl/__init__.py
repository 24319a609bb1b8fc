"""Graph few-shot class-incremental learning.

>>> from graphfcl import load_dataset, make_stream
>>> graph, protocol = load_dataset("debian")
>>> stream = make_stream(graph, protocol, seed=0)
>>> for session in stream:
...     print(session.number, session.new_classes, session.visible_graph)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphfcl.version import __version__ as __version__

if TYPE_CHECKING:
    from graphfcl.datasets import load_dataset
    from graphfcl.errors import GraphfclWarning, InputError
    from graphfcl.evaluation import evaluate
    from graphfcl.graph import Graph, build_graph, from_networkx, from_pyg, from_scipy, read_npz, read_tables
    from graphfcl.measures import measure_stream, summarise_seeds
    from graphfcl.methods import HagMeta, HagMetaSettings
    from graphfcl.production import GraphClassifier, ModelFolder
    from graphfcl.stream import Protocol, Stream, load_stream, make_stream, save_stream

# Where each public name lives. Nothing is imported before it is asked for, so that `graphfcl --help` answers at once.
_PLACES = {
    "GraphfclWarning": "errors",
    "InputError": "errors",
    "Graph": "graph",
    "build_graph": "graph",
    "from_networkx": "graph",
    "from_pyg": "graph",
    "from_scipy": "graph",
    "read_npz": "graph",
    "read_tables": "graph",
    "load_dataset": "datasets",
    "Protocol": "stream",
    "Stream": "stream",
    "load_stream": "stream",
    "make_stream": "stream",
    "save_stream": "stream",
    "evaluate": "evaluation",
    "HagMeta": "methods",
    "HagMetaSettings": "methods",
    "GraphClassifier": "production",
    "ModelFolder": "production",
    "measure_stream": "measures",
    "summarise_seeds": "measures",
}

__all__ = [
    "Graph",
    "GraphClassifier",
    "GraphfclWarning",
    "HagMeta",
    "HagMetaSettings",
    "InputError",
    "ModelFolder",
    "Protocol",
    "Stream",
    "build_graph",
    "evaluate",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "load_dataset",
    "load_stream",
    "make_stream",
    "measure_stream",
    "read_npz",
    "read_tables",
    "save_stream",
    "summarise_seeds",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
