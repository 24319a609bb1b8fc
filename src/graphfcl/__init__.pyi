"""The public names of ``graphfcl``: type checkers and the package itself read this list."""

from graphfcl.active import (
    ActiveLearningState as ActiveLearningState,
    Strategy as Strategy,
    Query as Query,
    find_strategy as find_strategy,
    register_strategy as register_strategy,
)
from graphfcl.datasets import (
    Dataset as Dataset,
    find_dataset as find_dataset,
    load_dataset as load_dataset,
    register_dataset as register_dataset,
)
from graphfcl.datasets.importing import import_graph as import_graph
from graphfcl.errors import (
    AccuracyLossError as AccuracyLossError,
    DivergenceError as DivergenceError,
    GraphfclWarning as GraphfclWarning,
    InputError as InputError,
)
from graphfcl.evaluation import Evaluation as Evaluation, evaluate_active as evaluate_active
from graphfcl.evaluation.evaluate import evaluate as evaluate
from graphfcl.experiments import load_grids as load_grids, run_grid as run_grid
from graphfcl.graph import (
    Graph as Graph,
    TableColumns as TableColumns,
    VisibleGraph as VisibleGraph,
    VisibleNodes as VisibleNodes,
    build_graph as build_graph,
    from_edge_index as from_edge_index,
    from_frames as from_frames,
    from_networkx as from_networkx,
    from_pyg as from_pyg,
    from_scipy as from_scipy,
    open_tables as open_tables,
    read_npz as read_npz,
    read_query as read_query,
    read_tables as read_tables,
    to_networkx as to_networkx,
    to_pyg as to_pyg,
    to_scipy as to_scipy,
    write_npz as write_npz,
    write_tables as write_tables,
)
from graphfcl.graph.folder import GraphFolder as GraphFolder
from graphfcl.runtime.resources import Resources as Resources
from graphfcl.metrics import (
    find_metric as find_metric,
    compute_stream_metrics as compute_stream_metrics,
    register_metric as register_metric,
    summarise_seeds as summarise_seeds,
)
from graphfcl.methods import (
    NO_STORE as NO_STORE,
    SILENT as SILENT,
    Anchor as Anchor,
    EncoderStore as EncoderStore,
    Explanation as Explanation,
    HagMeta as HagMeta,
    HagMetaSettings as HagMetaSettings,
    Learner as Learner,
    LearnerState as LearnerState,
    Progress as Progress,
    find_method as find_method,
    register_method as register_method,
)
from graphfcl.production import (
    GraphClassifier as GraphClassifier,
    Group as Group,
    ModelFolder as ModelFolder,
    Spread as Spread,
    Suggestion as Suggestion,
    suggest_for_graph as suggest_for_graph,
    Finding as Finding,
    check_graph as check_graph,
)
from graphfcl.stream import (
    BaseSession as BaseSession,
    PaperSession as PaperSession,
    PooledSession as PooledSession,
    Protocol as Protocol,
    Session as Session,
    Stream as Stream,
    load_stream as load_stream,
    make_stream as make_stream,
    save_stream as save_stream,
)
from graphfcl.runtime.tasks import Tasks as Tasks, run_tasks as run_tasks, start_workers as start_workers
from graphfcl.trackers import MLflowTracker as MLflowTracker, TensorBoardTracker as TensorBoardTracker
from graphfcl.version import __version__ as __version__

__all__: list[str]
