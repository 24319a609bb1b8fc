"""LPMC: micro-clusters, contrastive pre-training and pseudo-incremental episodes; ``learner.py`` has the formulas."""
