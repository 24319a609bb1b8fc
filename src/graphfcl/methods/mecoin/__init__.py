"""Mecoin; start reading in ``learner.py``."""

from graphfcl.methods.mecoin.learner import Mecoin
from graphfcl.methods.mecoin.memory import MecoinSettings

__all__ = ["Mecoin", "MecoinSettings"]
