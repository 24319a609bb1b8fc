"""LPMC: micro-clusters, contrastive pre-training, pseudo-incremental episodes. The formulas are in ``learner.py``."""

from graphfcl.methods.lpmc.learner import Lpmc
from graphfcl.methods.lpmc.network import LpmcSettings

__all__ = ["Lpmc", "LpmcSettings"]
