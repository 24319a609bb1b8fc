"""The contract between a method and everything that runs it."""

from typing import Protocol

import numpy as np

from graphfcl.graph import VisibleGraph
from graphfcl.stream import BaseSession, Session


class Learner(Protocol):
    """A classifier that learns classes session by session.

    Scores are a function of the learner's own state and of the graph visible now: a node's scores do not depend on
    which other nodes are asked about, and asking changes nothing.
    """

    def fit(self, base: BaseSession) -> None:
        """Learn session 0."""

    def learn(self, session: Session) -> None:
        """Learn the new classes of a session from their supports."""

    def scores(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray:
        """(nodes, classes seen): higher is likelier. ``nodes`` are node numbers of the visible graph."""
