"""The same stream with other numbers for its nodes, or with its feature columns in another order."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.graph.visible import VisibleGraph
from graphfcl.stream.sessions import BaseSession, Session
from graphfcl.stream.stream import Stream

LABELLED = (
    ("train", "train_labels"),
    ("validation", "validation_labels"),
    ("supports", "support_labels"),
    ("pool", "pool_labels"),
    ("queries", "query_labels"),
)  # fields of sessions that hold node numbers, and the fields with their labels


@dataclass(frozen=True, eq=False)
class Rearranged:
    """What a learner is handed of a stream, rearranged; supports, labels, edges and features are the same.

    numbers: (n,) the number of each node, by its number in the stream. columns: (d,) the column of the stream that each
    column is.
    """

    numbers: np.ndarray
    columns: np.ndarray

    @classmethod
    def by_class(cls, stream: Stream, *, nodes: bool = False, columns: bool = False) -> "Rearranged":
        """Nodes or columns that follow their classes, so that whoever reads their positions gains by it.

        nodes: numbers ascend by class, in a drawn order within each. columns: each stands by the class whose nodes have
        the largest share of it.
        """
        visible, random = stream.evaluation_graph(len(stream)), np.random.default_rng(0)
        numbers, order = np.arange(stream.graph.node_count), np.arange(visible.features.shape[1])
        if nodes:
            by_class = np.lexsort((random.random(numbers.size), stream.columns_of(numbers)))
            numbers = np.argsort(by_class)
        if columns:
            labels = stream.columns_of(visible.nodes)
            of_class = np.equal.outer(np.arange(len(stream.classes)), labels).astype(np.float64)
            shares = (of_class / np.maximum(1, of_class.sum(axis=1, keepdims=True))) @ np.abs(visible.features)
            order = np.lexsort((random.random(order.size), shares.argmax(axis=0)))
        return cls(numbers, order)

    def graph(self, visible: VisibleGraph) -> VisibleGraph:
        numbers = self.numbers[visible.nodes]
        order = np.argsort(numbers)
        features = visible.features[order][:, self.columns]
        return VisibleGraph(numbers[order], visible.adjacency[order][:, order], features)

    def base(self, base: BaseSession) -> BaseSession:
        return replace(base, **self._labelled(base), visible_graph=self.graph(base.visible_graph))

    def session(self, session: Session) -> Session:
        return replace(session, **self._labelled(session), visible_graph=self.graph(session.visible_graph))

    def _labelled(self, session: Any) -> dict[str, Any]:
        """Node numbers, ascending as a stream has them, and their labels."""
        found: dict[str, Any] = {}
        for nodes, labels in LABELLED:
            if hasattr(session, nodes):
                numbers = self.numbers[getattr(session, nodes)]
                order = np.argsort(numbers)
                found |= {nodes: numbers[order], labels: getattr(session, labels)[order]}
        return found
