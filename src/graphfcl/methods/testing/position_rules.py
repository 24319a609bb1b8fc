"""Two rules of the contract: a learner does not read the numbers of nodes, nor the positions of feature columns.

The second stream is arranged by class, so that a learner that reads positions gains by it. A learner without stated
randomness has the same scores on both streams. One that draws random values for nodes or columns cannot: its answers
may change as much as they do with another seed, and it may not be right more often.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.testing.subject import Broken, Subject, agreement_of, same, stream_of
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
        visible, random = stream.evaluation_graph(len(stream)).loaded(), np.random.default_rng(0)
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

    def graph(self, nodes: VisibleNodes) -> VisibleGraph:
        visible = nodes.loaded()
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
        fields: dict[str, Any] = {}
        for nodes, labels in LABELLED:
            if hasattr(session, nodes):
                numbers = self.numbers[getattr(session, nodes)]
                order = np.argsort(numbers)
                fields |= {nodes: numbers[order], labels: getattr(session, labels)[order]}
        return fields


SLACK = 0.15  # of all visible nodes: by how much agreement and accuracy of a learner with randomness may differ
OTHER_SEEDS = (1, 2)  # the second one only where the first agrees too well


def node_numbers_mean_nothing(subject: Subject) -> None:
    """Another numbering of the nodes gives the same scores; a learner that states randomness over nodes keeps as many
    answers as with another seed, and is not right more often where numbers follow classes."""
    _same_when_rearranged(subject, "nodes", "the nodes have other numbers")


def column_order_means_nothing(subject: Subject) -> None:
    """Another order of the feature columns gives the same scores; a learner that states randomness over columns keeps
    as many answers as with another seed, and is not right more often where columns follow classes."""
    _same_when_rearranged(subject, "columns", "feature columns are in another order")


def scores_of_rearranged(subject: Subject, rearranged: Rearranged) -> np.ndarray:
    """(n, C) scores of a learner that is handed the stream rearranged; rows are in the stream's own order."""
    stream, learner = stream_of(), subject.make()
    learner.fit(rearranged.base(stream.base))
    learner.learn(rearranged.session(subject.session(stream, 1)))
    visible = stream.evaluation_graph(1)
    return learner.scores(rearranged.graph(visible), rearranged.numbers[visible.nodes])


def _same_when_rearranged(subject: Subject, what: Literal["nodes", "columns"], when: str) -> None:
    stream, stated = stream_of(), subject.learner.randomness
    unknown = sorted(set(stated) - {"nodes", "columns"})
    if unknown:
        raise Broken(f"randomness names {unknown[0]!r}; it may name 'nodes' and 'columns'.")
    expected, rearranged = subject.answers, scores_of_rearranged(subject, Rearranged.by_class(stream, **{what: True}))
    if what not in stated:
        fix = f"do not use them, or state randomness over {what} if it draws for each of them"
        same(rearranged, expected, f"if {when}, scores are others: {fix}")
        return
    agreement = agreement_of(expected, rearranged)
    for seed in OTHER_SEEDS:
        other = subject.answers_of_seed(seed)
        usual = agreement_of(expected, other)
        if agreement >= usual - SLACK:
            break
    else:
        raise Broken(
            f"if {when}, {agreement:.0%} of its answers stay; with another seed {usual:.0%} do, so it is more than "
            "the randomness that it states."
        )
    labels = stream.columns_of(stream.evaluation_graph(1).nodes)
    accuracy, *before = (float((scores.argmax(axis=1) == labels).mean()) for scores in (rearranged, expected, other))
    if accuracy > max(before) + SLACK:
        raise Broken(f"if {what} are arranged by class, it is right {accuracy:.0%} of the time, not {max(before):.0%}.")
