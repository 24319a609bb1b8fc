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
    from graphfcl.datasets import Dataset, find_dataset, load_dataset, register_dataset
    from graphfcl.datasets.importing import import_graph
    from graphfcl.errors import DivergenceError, GraphfclWarning, InputError
    from graphfcl.evaluation import Evaluation, evaluate_asked
    from graphfcl.evaluation.evaluate import evaluate
    from graphfcl.experiments import load_grids, run_grid
    from graphfcl.graph import (
        Graph,
        TableColumns,
        VisibleGraph,
        build_graph,
        from_frames,
        from_networkx,
        from_pyg,
        from_scipy,
        read_npz,
        read_tables,
        to_networkx,
        to_pyg,
        to_scipy,
        write_npz,
        write_tables,
    )
    from graphfcl.graph.folder import GraphFolder
    from graphfcl.graph.folder_graph import FolderGraph
    from graphfcl.graph.visible_folder import Means
    from graphfcl.measures import find_metric, measure_stream, register_metric, summarise_seeds
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
    from graphfcl.tasks import Tasks, run_tasks, start_workers
    from graphfcl.trackers import MLflowTracker, TensorBoardTracker

# Where each public name lives. Nothing is imported before it is asked for, so that `graphfcl --help` answers at once.
_PLACES = {
    "DivergenceError": "errors",
    "GraphfclWarning": "errors",
    "InputError": "errors",
    "Graph": "graph",
    "TableColumns": "graph",
    "VisibleGraph": "graph",
    "build_graph": "graph",
    "from_frames": "graph",
    "from_networkx": "graph",
    "from_pyg": "graph",
    "from_scipy": "graph",
    "read_npz": "graph",
    "read_tables": "graph",
    "to_networkx": "graph",
    "to_pyg": "graph",
    "to_scipy": "graph",
    "write_npz": "graph",
    "write_tables": "graph",
    "GraphFolder": "graph.folder",
    "FolderGraph": "graph.folder_graph",
    "Means": "graph.visible_folder",
    "import_graph": "datasets.importing",
    "Dataset": "datasets",
    "find_dataset": "datasets",
    "load_dataset": "datasets",
    "register_dataset": "datasets",
    "BaseSession": "stream",
    "PaperSession": "stream",
    "PooledSession": "stream",
    "Protocol": "stream",
    "Session": "stream",
    "Stream": "stream",
    "load_stream": "stream",
    "make_stream": "stream",
    "save_stream": "stream",
    "Evaluation": "evaluation",
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
    "Tasks": "tasks",
    "run_tasks": "tasks",
    "start_workers": "tasks",
    "load_grids": "experiments",
    "run_grid": "experiments",
    "MLflowTracker": "trackers",
    "TensorBoardTracker": "trackers",
    "find_metric": "measures",
    "measure_stream": "measures",
    "register_metric": "measures",
    "summarise_seeds": "measures",
}

__all__ = [
    "NO_STORE",
    "SILENT",
    "Anchor",
    "BaseSession",
    "Dataset",
    "DivergenceError",
    "EncoderStore",
    "Evaluation",
    "Explanation",
    "FolderGraph",
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
    "MLflowTracker",
    "Means",
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
    "TableColumns",
    "Tasks",
    "TensorBoardTracker",
    "VisibleGraph",
    "Wish",
    "build_graph",
    "evaluate",
    "evaluate_asked",
    "find_dataset",
    "find_method",
    "find_metric",
    "find_strategy",
    "from_frames",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "import_graph",
    "load_dataset",
    "load_grids",
    "load_stream",
    "make_stream",
    "measure_stream",
    "read_npz",
    "read_tables",
    "register_dataset",
    "register_method",
    "register_metric",
    "register_strategy",
    "run_grid",
    "run_tasks",
    "save_stream",
    "start_workers",
    "suggest_for_graph",
    "summarise_seeds",
    "to_networkx",
    "to_pyg",
    "to_scipy",
    "write_npz",
    "write_tables",
]


__getattr__ = lazy_names(__name__, _PLACES)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
