"""Geometer; start reading in ``learner.py``."""
