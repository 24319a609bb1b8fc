"""Compute a session metric from predicted and true classes."""

import math

import numpy as np

from graphfcl.errors import InputError, did_you_mean
from graphfcl.metrics import SessionMetric, confusion_matrix, session_metrics
from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.labels.label_store import LabelStore


def named_metric(name: str) -> SessionMetric:
    """Find a session metric by its name, including registered and installed metrics."""
    metrics = {metric.name: metric for metric in session_metrics()}
    if name not in metrics:
        raise InputError(f"there is no session metric {name!r}: {did_you_mean(str(name), [*metrics])}")
    return metrics[name]


def score_of(metric: SessionMetric, true: np.ndarray, predicted: np.ndarray, labels: LabelStore) -> float:
    """Compute a metric from (n,) true and (n,) predicted classes. The result is NaN if the metric has no value.

    The confusion matrix contains the classes that occur. A class that the model does not have counts as a class learned
    after session 0.
    """
    late: dict[object, bool] = dict(zip(labels.labels, few_shot_classes(labels).tolist(), strict=True))
    places: dict[object, int] = {}
    rows, columns = (
        np.array([places.setdefault(label, len(places)) for label in each.tolist()]) for each in (true, predicted)
    )
    arrival = np.array([late.get(label, True) for label in places], dtype=np.int64)
    value = metric.of(confusion_matrix(rows, columns, len(places)), arrival, int(arrival.max()))
    return math.nan if value is None else float(value)
