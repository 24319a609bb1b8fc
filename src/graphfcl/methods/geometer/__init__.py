"""Geometer; start reading in ``learner.py``."""

from graphfcl.methods.geometer.learner import Geometer
from graphfcl.methods.geometer.settings import GeometerSettings

__all__ = ["Geometer", "GeometerSettings"]
