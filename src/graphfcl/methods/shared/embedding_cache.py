"""The cache of everything that a learner computed for the latest graph."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from graphfcl.graph.interfaces import VisibleNodes


@dataclass(frozen=True, eq=False)
class Computed:
    """Cached results for one graph.

    Args:
        visible: The graph.
        inputs: The graph on the device, or the tables of a graph folder.
        embeddings: (n, width) embeddings, or a table on disk.
        scores: (n, classes) scores, or a table on disk.
        intermediate: Intermediate results behind the scores, if the learner caches any.
    """

    visible: VisibleNodes
    inputs: Any
    embeddings: Any = None
    scores: Any = None
    intermediate: Any = None


class EmbeddingCache:
    """The latest graph of a learner on its device, with the embeddings and scores of its nodes.

    Code that changes weights must call :meth:`weights_changed`. Code that changes class memories must call
    :meth:`classes_changed`. ``prepare`` puts a graph on the device. Cached results are immutable and replaced as a
    whole, so copies of a learner can share them.
    """

    def __init__(self, prepare: Callable[..., Any]) -> None:
        self._prepare = prepare
        self._kept: Computed | None = None

    def share(self, other: "EmbeddingCache") -> None:
        """Take over the results of another cache. Later changes of either do not affect the other."""
        self._kept = other._kept

    def inputs(self, visible: VisibleNodes) -> Any:
        """Return the graph on the device."""
        return self._computed(visible).inputs

    def _computed(self, visible: VisibleNodes) -> Computed:
        kept = self._kept
        if kept is None or kept.visible is not visible:
            self._kept = kept = None  # free the memory before the next graph is prepared
            self._kept = kept = Computed(visible, self._prepare(visible))
        return kept

    def embeddings(self, inputs: Any) -> Any:
        """Return the (n, width) embeddings of all nodes if they are cached, else None."""
        kept = self._kept
        return None if kept is None or kept.inputs is not inputs else kept.embeddings

    def keep_embeddings(self, visible: VisibleNodes, embeddings: Any) -> None:
        """Cache embeddings until weights change."""
        self._kept = replace(self._computed(visible), embeddings=embeddings)

    def scores(self, visible: VisibleNodes, compute: Callable[[Any], Any]) -> Any:
        """Return the (n, classes) scores of all nodes; compute them once per graph and state of the learner."""
        kept = self._computed(visible)
        if kept.scores is not None:
            return kept.scores
        computed = compute(kept.inputs)
        scores = computed.cpu().numpy() if isinstance(computed, torch.Tensor) else computed
        self._kept = replace(self._computed(visible), scores=scores)
        return scores

    def intermediate(self, inputs: Any) -> Any:
        """Return the intermediate results cached by :meth:`keep_intermediate`; None once classes have changed."""
        kept = self._kept
        return None if kept is None or kept.inputs is not inputs else kept.intermediate

    def keep_intermediate(self, inputs: Any, value: Any) -> None:
        """Cache intermediate results that stay valid as long as the scores."""
        if self._kept is not None and self._kept.inputs is inputs:
            self._kept = replace(self._kept, intermediate=value)

    def weights_changed(self) -> None:
        """Discard embeddings and scores."""
        if self._kept is not None:
            self._kept = Computed(self._kept.visible, self._kept.inputs)

    def classes_changed(self) -> None:
        """Discard scores, and keep embeddings."""
        if self._kept is not None:
            self._kept = replace(self._kept, scores=None, intermediate=None)
