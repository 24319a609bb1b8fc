"""Geometer; start reading in ``learner.py``."""

from graphfcl.methods.geometer.learner import Geometer, GeometerSettings

__all__ = ["Geometer", "GeometerSettings"]
