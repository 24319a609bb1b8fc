"""ANCHOR; start reading in ``learner.py``."""

from graphfcl.methods.anchor.learner import Anchor
from graphfcl.methods.anchor.settings import AnchorSettings

__all__ = ["Anchor", "AnchorSettings"]
