"""The one place where a learner keeps what it computed for a graph."""

from collections.abc import Callable

import numpy as np
import torch

from graphfcl.graph import VisibleGraph
from graphfcl.nn import GraphInputs


class EmbeddingCache:
    """The graph a learner was asked about last, on its device, with the embeddings and scores of its nodes.

    Whoever changes weights calls :meth:`weights_changed`, whoever changes what classes are known by
    :meth:`classes_changed`. prepare: puts a graph on the device.
    """

    def __init__(self, prepare: Callable[[VisibleGraph], GraphInputs]) -> None:
        self._prepare = prepare
        self._visible: VisibleGraph | None = None
        self._inputs: GraphInputs | None = None
        self._embeddings: torch.Tensor | None = None
        self._scores: np.ndarray | None = None

    def inputs(self, visible: VisibleGraph) -> GraphInputs:
        """The graph on the device."""
        if self._inputs is None or self._visible is not visible:
            self._visible = self._inputs = None  # make room before the next one
            self.weights_changed()
            self._inputs = self._prepare(visible)
            self._visible = visible
        return self._inputs

    def embeddings(self, inputs: GraphInputs) -> torch.Tensor | None:
        """(n, width) of every node, if they are known."""
        return self._embeddings if inputs is self._inputs else None

    def keep_embeddings(self, visible: VisibleGraph, embeddings: torch.Tensor) -> None:
        """They hold until weights change."""
        self.inputs(visible)
        self._embeddings = embeddings

    def scores(self, visible: VisibleGraph, compute: Callable[[GraphInputs], torch.Tensor]) -> np.ndarray:
        """(n, classes) of every node; computed once for a graph and a state of the learner."""
        inputs = self.inputs(visible)
        if self._scores is None:
            self._scores = compute(inputs).cpu().numpy()
        return self._scores

    def weights_changed(self) -> None:
        """Neither embeddings nor scores hold any more."""
        self._embeddings = self._scores = None

    def classes_changed(self) -> None:
        """Scores do not hold any more; embeddings do."""
        self._scores = None
