"""HAG-Meta; start reading in ``learner.py``."""

from graphfcl.methods.hag_meta.learner import HagMeta
from graphfcl.methods.hag_meta.settings import HagMetaSettings

__all__ = ["HagMeta", "HagMetaSettings"]
