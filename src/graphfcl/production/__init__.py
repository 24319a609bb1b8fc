"""A learner that lives for years: a classifier on a growing graph, and the folder that keeps it."""

from graphfcl.production.classifier import GraphClassifier
from graphfcl.production.folder import ModelFolder

__all__ = ["GraphClassifier", "ModelFolder"]
