"""Pure functions of confusion matrices."""

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
    "SeedSummary",
    "SessionMeasures",
    "StreamMeasures",
    "accuracy",
    "balanced_accuracy",
    "confusion_matrix",
    "harmonic_mean",
    "macro_f1",
    "measure_session",
    "measure_stream",
    "recalls",
    "summarise_seeds",
]
