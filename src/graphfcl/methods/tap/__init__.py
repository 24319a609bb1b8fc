"""TAP; start reading in ``learner.py``."""
