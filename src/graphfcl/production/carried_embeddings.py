"""Embeddings of nodes that a change of the graph cannot have reached are carried over to the new graph."""

import numpy as np

from graphfcl.methods import Learner
from graphfcl.production.growing_graph import GrowingGraph

WHOLE_ABOVE = 0.5  # share of nodes within reach of a change above which all embeddings are computed again


def carry_embeddings(learner: Learner, old: GrowingGraph, new: GrowingGraph, touched: list[np.ndarray]) -> float:
    """Give the learner the embeddings of the new graph; only those within reach of the change are computed.

    touched: numbers of nodes of the new graph that are new or whose edges changed. Returns the share of nodes within
    reach. Above ``WHOLE_ABOVE`` the learner is given nothing, and computes all embeddings when it is asked.
    """
    before = learner.embeddings(old.visible)
    ends = np.unique(np.concatenate(touched)) if touched else np.zeros(0, np.int64)
    reached = new.reach(ends, learner.reach)
    share = reached.size / max(1, new.node_count)
    if share <= WHOLE_ABOVE and before.shape[1]:
        stayed = np.isin(new.numbers, old.numbers, assume_unique=True)
        moved = np.empty((new.node_count, before.shape[1]), dtype=before.dtype)
        moved[stayed] = before[old.visible.rows(new.numbers[stayed])]
        if reached.size:
            moved[reached] = learner.embeddings_of_rows(new.visible, reached)
        learner.use_embeddings(new.visible, moved)
    return share
