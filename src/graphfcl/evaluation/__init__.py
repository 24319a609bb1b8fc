"""Walk a learner through a stream and measure it."""

from graphfcl.evaluation.evaluate import Evaluation, ask, evaluate

__all__ = ["Evaluation", "ask", "evaluate"]
