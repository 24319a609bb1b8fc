"""TAP; start reading in ``learner.py``."""

from graphfcl.methods.tap.learner import Tap
from graphfcl.methods.tap.settings import TapSettings

__all__ = ["Tap", "TapSettings"]
