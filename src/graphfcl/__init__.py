"""Graph few-shot class-incremental learning.

>>> from graphfcl import load_dataset, make_stream
>>> graph, protocol = load_dataset("debian")
>>> stream = make_stream(graph, protocol, seed=0)
>>> for session in stream:
...     print(session.number, session.new_classes, session.visible_graph)
"""

from typing import TYPE_CHECKING

from graphfcl.lazy_names import lazy_names
from graphfcl.version import __version__ as __version__

if TYPE_CHECKING:
    from graphfcl.asking import Situation, Strategy, Wish, find_strategy, register_strategy
    from graphfcl.datasets import load_dataset
    from graphfcl.datasets.importing import import_graph
    from graphfcl.errors import DivergenceError, GraphfclWarning, InputError
    from graphfcl.evaluation import evaluate_asked
    from graphfcl.evaluation.evaluate import evaluate
    from graphfcl.graph import (
        Graph,
        VisibleGraph,
        build_graph,
        from_networkx,
        from_pyg,
        from_scipy,
        read_npz,
        read_tables,
    )
    from graphfcl.graph.folder import GraphFolder
    from graphfcl.measures import measure_stream, summarise_seeds
    from graphfcl.methods import (
        NO_STORE,
        SILENT,
        Anchor,
        EncoderStore,
        Explanation,
        HagMeta,
        HagMetaSettings,
        Learner,
        LearnerState,
        Progress,
        find_method,
        register_method,
    )
    from graphfcl.production import GraphClassifier, Group, ModelFolder, Spread, Suggestion, suggest_for_graph
    from graphfcl.stream import (
        BaseSession,
        PaperSession,
        PooledSession,
        Protocol,
        Session,
        Stream,
        load_stream,
        make_stream,
        save_stream,
    )

# Where each public name lives. Nothing is imported before it is asked for, so that `graphfcl --help` answers at once.
_PLACES = {
    "DivergenceError": "errors",
    "GraphfclWarning": "errors",
    "InputError": "errors",
    "Graph": "graph",
    "VisibleGraph": "graph",
    "build_graph": "graph",
    "from_networkx": "graph",
    "from_pyg": "graph",
    "from_scipy": "graph",
    "read_npz": "graph",
    "read_tables": "graph",
    "GraphFolder": "graph.folder",
    "import_graph": "datasets.importing",
    "load_dataset": "datasets",
    "BaseSession": "stream",
    "PaperSession": "stream",
    "PooledSession": "stream",
    "Protocol": "stream",
    "Session": "stream",
    "Stream": "stream",
    "load_stream": "stream",
    "make_stream": "stream",
    "save_stream": "stream",
    "evaluate": "evaluation",
    "evaluate_asked": "evaluation",
    "Situation": "asking",
    "Strategy": "asking",
    "Wish": "asking",
    "find_strategy": "asking",
    "register_strategy": "asking",
    "NO_STORE": "methods",
    "SILENT": "methods",
    "Anchor": "methods",
    "EncoderStore": "methods",
    "Explanation": "methods",
    "HagMeta": "methods",
    "HagMetaSettings": "methods",
    "Learner": "methods",
    "LearnerState": "methods",
    "Progress": "methods",
    "find_method": "methods",
    "register_method": "methods",
    "GraphClassifier": "production",
    "Group": "production",
    "ModelFolder": "production",
    "Spread": "production",
    "Suggestion": "production",
    "suggest_for_graph": "production",
    "measure_stream": "measures",
    "summarise_seeds": "measures",
}

__all__ = [
    "NO_STORE",
    "SILENT",
    "Anchor",
    "BaseSession",
    "DivergenceError",
    "EncoderStore",
    "Explanation",
    "Graph",
    "GraphClassifier",
    "GraphFolder",
    "GraphfclWarning",
    "Group",
    "HagMeta",
    "HagMetaSettings",
    "InputError",
    "Learner",
    "LearnerState",
    "ModelFolder",
    "PaperSession",
    "PooledSession",
    "Progress",
    "Protocol",
    "Session",
    "Situation",
    "Spread",
    "Strategy",
    "Stream",
    "Suggestion",
    "VisibleGraph",
    "Wish",
    "build_graph",
    "evaluate",
    "evaluate_asked",
    "find_method",
    "find_strategy",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "import_graph",
    "load_dataset",
    "load_stream",
    "make_stream",
    "measure_stream",
    "read_npz",
    "read_tables",
    "register_method",
    "register_strategy",
    "save_stream",
    "suggest_for_graph",
    "summarise_seeds",
]


__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
