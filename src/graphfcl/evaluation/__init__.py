"""Walk a learner through a stream and measure it."""

from graphfcl.evaluation.asked import OF_EACH_CLASS, asked_record, evaluate_asked, find_chooser, needs_oracle
from graphfcl.evaluation.evaluate import Evaluation, ask, evaluate

__all__ = [
    "OF_EACH_CLASS",
    "Evaluation",
    "ask",
    "asked_record",
    "evaluate",
    "evaluate_asked",
    "find_chooser",
    "needs_oracle",
]
