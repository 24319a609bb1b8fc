"""Mecoin; start reading in ``learner.py``."""

from graphfcl.methods.mecoin.learner import Mecoin
from graphfcl.methods.mecoin.settings import MecoinSettings

__all__ = ["Mecoin", "MecoinSettings"]
