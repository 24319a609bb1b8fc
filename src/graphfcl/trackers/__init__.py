"""Figures of a training, while it works, for programs that keep and draw them."""

from graphfcl.trackers.mlflow import MLflowTracker
from graphfcl.trackers.tensorboard import TensorBoardTracker

__all__ = ["MLflowTracker", "TensorBoardTracker"]
