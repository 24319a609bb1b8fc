"""Pure functions of confusion matrices."""

from graphfcl.measures.comparison import PairedDifference, average_ranks, holm, paired_difference
from graphfcl.measures.confusion import (
    accuracy,
    balanced_accuracy,
    confusion_matrix,
    harmonic_mean,
    macro_f1,
    recalls,
)
from graphfcl.measures.seeds import SeedSummary, summarise_seeds
from graphfcl.measures.stream import SessionMeasures, StreamMeasures, measure_session, measure_stream

__all__ = [
    "PairedDifference",
    "SeedSummary",
    "SessionMeasures",
    "StreamMeasures",
    "accuracy",
    "average_ranks",
    "balanced_accuracy",
    "confusion_matrix",
    "harmonic_mean",
    "holm",
    "macro_f1",
    "measure_session",
    "measure_stream",
    "paired_difference",
    "recalls",
    "summarise_seeds",
]
