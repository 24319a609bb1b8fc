"""The one place where a learner keeps what it computed for a graph."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from graphfcl.graph.interfaces import VisibleNodes


@dataclass(frozen=True, eq=False)
class Computed:
    """What is known of one graph.

    inputs: the graph on the device. embeddings: (n, width). scores: (n, classes). Those of a graph folder are its
    phases, and tables on disk. beside: what else the scores were made from, where a learner keeps that.
    """

    visible: VisibleNodes
    inputs: Any
    embeddings: Any = None
    scores: Any = None
    beside: Any = None


class EmbeddingCache:
    """The graph a learner was asked about last, on its device, with the embeddings and scores of its nodes.

    Whoever changes weights calls :meth:`weights_changed`, whoever changes what classes are known by
    :meth:`classes_changed`. prepare: puts a graph on the device.

    What is kept is immutable and replaced as a whole, so that a copy of a learner can share it.
    """

    def __init__(self, prepare: Callable[..., Any]) -> None:
        self._prepare = prepare
        self._kept: Computed | None = None

    def share(self, other: "EmbeddingCache") -> None:
        """Know what another cache knows; from then on both go on by themselves."""
        self._kept = other._kept

    def inputs(self, visible: VisibleNodes) -> Any:
        """The graph on the device."""
        return self._computed(visible).inputs

    def _computed(self, visible: VisibleNodes) -> Computed:
        kept = self._kept
        if kept is None or kept.visible is not visible:
            self._kept = kept = None  # make room before the next one
            self._kept = kept = Computed(visible, self._prepare(visible))
        return kept

    def embeddings(self, inputs: Any) -> Any:
        """(n, width) of every node, if they are known."""
        kept = self._kept
        return None if kept is None or kept.inputs is not inputs else kept.embeddings

    def keep_embeddings(self, visible: VisibleNodes, embeddings: Any) -> None:
        """They hold until weights change."""
        self._kept = replace(self._computed(visible), embeddings=embeddings)

    def scores(self, visible: VisibleNodes, compute: Callable[[Any], Any]) -> Any:
        """(n, classes) of every node; computed once for a graph and a state of the learner."""
        kept = self._computed(visible)
        if kept.scores is not None:
            return kept.scores
        computed = compute(kept.inputs)
        scores = computed.cpu().numpy() if isinstance(computed, torch.Tensor) else computed
        self._kept = replace(self._computed(visible), scores=scores)
        return scores

    def beside(self, inputs: Any) -> Any:
        """What :meth:`keep_beside` was given for this graph; None once classes have changed."""
        kept = self._kept
        return None if kept is None or kept.inputs is not inputs else kept.beside

    def keep_beside(self, inputs: Any, value: Any) -> None:
        """Keep something that holds as long as scores do."""
        if self._kept is not None and self._kept.inputs is inputs:
            self._kept = replace(self._kept, beside=value)

    def weights_changed(self) -> None:
        """Neither embeddings nor scores hold any more."""
        if self._kept is not None:
            self._kept = Computed(self._kept.visible, self._kept.inputs)

    def classes_changed(self) -> None:
        """Scores do not hold any more; embeddings do."""
        if self._kept is not None:
            self._kept = replace(self._kept, scores=None, beside=None)
