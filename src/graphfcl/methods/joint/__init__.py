"""Joint training; start reading in ``learner.py``."""

from graphfcl.methods.joint.learner import Joint
from graphfcl.methods.joint.trunks import JointSettings

__all__ = ["Joint", "JointSettings"]
