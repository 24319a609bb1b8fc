"""Mecoin; start reading in ``learner.py``."""
