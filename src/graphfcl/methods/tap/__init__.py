"""TAP; start reading in ``learner.py``."""

from graphfcl.methods.tap.learner import Tap
from graphfcl.methods.tap.training import TapSettings

__all__ = ["Tap", "TapSettings"]
