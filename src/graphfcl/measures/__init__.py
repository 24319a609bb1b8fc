"""Pure functions of confusion matrices.

A measure is one file that makes a ``SessionMeasure`` or a ``StreamMeasure``, and one line here that imports it.
"""
# ruff: noqa: F401 (importing a measure here is what lists it)

from collections.abc import Sequence

import numpy as np

from graphfcl.measures.accuracies import accuracy, balanced_accuracy
from graphfcl.measures.base_and_novel import harmonic_mean
from graphfcl.measures.comparison import (
    FEWEST_SEEDS,
    PairedDifference,
    average_ranks,
    holm,
    paired_difference,
)
from graphfcl.measures.confusion import confusion_matrix, recalls
from graphfcl.measures.f1 import macro_f1
from graphfcl.measures.measure import (
    EVERYWHERE,
    AskedMeasure,
    AskedRecord,
    Place,
    SessionMeasure,
    StreamMeasure,
    StreamRecord,
)
from graphfcl.measures.results import SessionMeasures, StreamMeasures
from graphfcl.measures.seeds import SeedSummary, summarise_seeds

# The measures: their order here is their order in files and tables, so new ones come last.
# isort: off
from graphfcl.measures.accuracies import BALANCED_ACCURACY, ACCURACY
from graphfcl.measures.base_and_novel import BASE, NOVEL, HARMONIC_MEAN
from graphfcl.measures.f1 import MACRO_F1
from graphfcl.measures.performance_drop import PD, RPD
from graphfcl.measures.average_accuracy import AVERAGE
from graphfcl.measures.forgetting import FORGETTING
from graphfcl.measures.performance_drop import PLAIN_PD, PLAIN_RPD
from graphfcl.measures.average_accuracy import PLAIN_AVERAGE
from graphfcl.measures.forgetting import PLAIN_FORGETTING
from graphfcl.measures.label_efficiency import BALANCED_AT_PART, BALANCED_AT_ALL, NOVEL_AT_PART, NOVEL_AT_ALL
from graphfcl.measures.classes_found import CLASSES_FOUND
# isort: on

_EXPORTED = tuple(globals().values())
SESSION_MEASURES = tuple(found for found in _EXPORTED if isinstance(found, SessionMeasure))
STREAM_MEASURES = tuple(found for found in _EXPORTED if isinstance(found, StreamMeasure))
ASKED_MEASURES = tuple(found for found in _EXPORTED if isinstance(found, AskedMeasure))


def measure_session(confusion: np.ndarray, session_of_class: np.ndarray, session: int) -> SessionMeasures:
    """session_of_class: (classes,) arrival of each column; only the classes of the matrix count."""
    arrival = session_of_class[: confusion.shape[0]]
    values = {measure.name: measure.of(confusion, arrival, session) for measure in SESSION_MEASURES}
    return SessionMeasures(session, confusion.shape[0], values)


def measure_stream(confusions: Sequence[np.ndarray], session_of_class: np.ndarray) -> StreamMeasures:
    """confusions: one matrix for each of the sessions 0..T."""
    record = StreamRecord(confusions, session_of_class)
    return StreamMeasures(
        tuple(measure_session(matrix, session_of_class, t) for t, matrix in enumerate(confusions)),
        {measure.name: measure.of(record) for measure in STREAM_MEASURES},
        record.matrix(balanced_accuracy),
        record.matrix(accuracy),
    )


def measure_asked(record: AskedRecord) -> dict[str, float]:
    """Every measure of the track ``asked`` by its name."""
    return {measure.name: measure.of(record) for measure in ASKED_MEASURES}


__all__ = [
    "ASKED_MEASURES",
    "EVERYWHERE",
    "FEWEST_SEEDS",
    "SESSION_MEASURES",
    "STREAM_MEASURES",
    "AskedMeasure",
    "AskedRecord",
    "PairedDifference",
    "Place",
    "SeedSummary",
    "SessionMeasure",
    "SessionMeasures",
    "StreamMeasure",
    "StreamMeasures",
    "StreamRecord",
    "accuracy",
    "average_ranks",
    "balanced_accuracy",
    "confusion_matrix",
    "harmonic_mean",
    "holm",
    "macro_f1",
    "measure_asked",
    "measure_session",
    "measure_stream",
    "paired_difference",
    "recalls",
    "summarise_seeds",
]
