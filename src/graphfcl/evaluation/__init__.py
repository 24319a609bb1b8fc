"""Evaluate a learner on a stream."""

from graphfcl.evaluation.active import OF_EACH_CLASS, active_record, evaluate_active, find_chooser, needs_oracle
from graphfcl.evaluation.evaluate import Evaluation, compute_confusion, evaluate

__all__ = [
    "OF_EACH_CLASS",
    "Evaluation",
    "active_record",
    "compute_confusion",
    "evaluate",
    "evaluate_active",
    "find_chooser",
    "needs_oracle",
]
