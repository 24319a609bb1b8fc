"""The public names of ``graphfcl.metrics``: type checkers and the package itself read this list."""

from graphfcl.metrics.built_in import (
    active_metrics as active_metrics,
    compute_active_metrics as compute_active_metrics,
    compute_session_metrics as compute_session_metrics,
    compute_stream_metrics as compute_stream_metrics,
    find_metric as find_metric,
    outside_metrics as outside_metrics,
    register_metric as register_metric,
    session_metrics as session_metrics,
    stream_metrics as stream_metrics,
)
from graphfcl.metrics.confusion import (
    accuracy as accuracy,
    balanced_accuracy as balanced_accuracy,
    confusion_matrix as confusion_matrix,
    harmonic_mean as harmonic_mean,
    macro_f1 as macro_f1,
    recalls as recalls,
)
from graphfcl.metrics.metric import (
    EVERYWHERE as EVERYWHERE,
    ActiveMetric as ActiveMetric,
    ActiveRecord as ActiveRecord,
    Place as Place,
    SessionMetric as SessionMetric,
    SessionMetrics as SessionMetrics,
    StreamMetric as StreamMetric,
    StreamMetrics as StreamMetrics,
    StreamRecord as StreamRecord,
)
from graphfcl.metrics.statistics import (
    FEWEST_SEEDS as FEWEST_SEEDS,
    PairedDifference as PairedDifference,
    SeedSummary as SeedSummary,
    average_ranks as average_ranks,
    holm as holm,
    paired_difference as paired_difference,
    summarise_seeds as summarise_seeds,
)

__all__: list[str]
