"""LPMC: micro-clusters, contrastive pre-training, pseudo-incremental episodes. The formulas are in ``learner.py``."""
