"""Two rules of the contract: a learner must not use node numbers or positions of feature columns as information.

The learner is run on a second stream in which nodes or columns are sorted by class, so that a learner that uses
positions would be more accurate. Without declared randomness, scores must be the same on both streams. A learner that
draws random numbers for nodes or columns may change its predictions as much as with another seed, but must not be more
accurate.
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
)  # fields of sessions with node numbers, and with their labels


@dataclass(frozen=True, eq=False)
class Rearranged:
    """A renumbering of the nodes and feature columns of a stream.

    Args:
        numbers: (n,) new number of each node of the stream.
        columns: (d,) column of the stream behind each new column.
    """

    numbers: np.ndarray
    columns: np.ndarray

    @classmethod
    def by_class(cls, stream: Stream, *, nodes: bool = False, columns: bool = False) -> "Rearranged":
        """Sort nodes or columns by class, in random order within a class.

        A column belongs to the class whose nodes have the largest mean absolute value in it.
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
        """Renumber the labelled nodes of a session, in ascending order as in a stream."""
        fields: dict[str, Any] = {}
        for nodes, labels in LABELLED:
            if hasattr(session, nodes):
                numbers = self.numbers[getattr(session, nodes)]
                order = np.argsort(numbers)
                fields |= {nodes: numbers[order], labels: getattr(session, labels)[order]}
        return fields


SLACK = 0.15  # tolerance for agreement and accuracy of a learner with randomness, as a fraction of all visible nodes
OTHER_SEEDS = (1, 2)  # the second is used if the agreement with the first is too high


def node_numbers_mean_nothing(subject: Subject) -> None:
    """Renumbering the nodes does not change scores. If randomness contains "nodes", predictions may change as much as
    with another seed, but must not become more accurate when nodes are sorted by class."""
    _same_when_rearranged(subject, "nodes", "nodes are renumbered")


def column_order_means_nothing(subject: Subject) -> None:
    """Reordering the feature columns does not change scores. If randomness contains "columns", predictions may change
    as much as with another seed, but must not become more accurate when columns are sorted by class."""
    _same_when_rearranged(subject, "columns", "feature columns are reordered")


def scores_of_rearranged(subject: Subject, rearranged: Rearranged) -> np.ndarray:
    """Compute (n, C) scores of a learner on the rearranged stream, with rows in the original order."""
    stream, learner = stream_of(), subject.make()
    learner.fit(rearranged.base(stream.base))
    learner.learn(rearranged.session(subject.session(stream, 1)))
    visible = stream.evaluation_graph(1)
    return learner.scores(rearranged.graph(visible), rearranged.numbers[visible.nodes])


def _same_when_rearranged(subject: Subject, what: Literal["nodes", "columns"], when: str) -> None:
    stream, stated = stream_of(), subject.learner.randomness
    unknown = sorted(set(stated) - {"nodes", "columns"})
    if unknown:
        raise Broken(f"randomness contains {unknown[0]!r}; it may only contain 'nodes' and 'columns'.")
    expected, rearranged = subject.answers, scores_of_rearranged(subject, Rearranged.by_class(stream, **{what: True}))
    if what not in stated:
        fix = f"do not use their positions, or add {what!r} to randomness if random numbers are drawn for {what}"
        same(rearranged, expected, f"if {when}, scores differ: {fix}")
        return
    agreement = agreement_of(expected, rearranged)
    for seed in OTHER_SEEDS:
        other = subject.answers_of_seed(seed)
        usual = agreement_of(expected, other)
        if agreement >= usual - SLACK:
            break
    else:
        raise Broken(
            f"if {when}, only {agreement:.0%} of its predictions stay the same; with another seed, {usual:.0%} do, so "
            "the declared randomness does not explain the difference."
        )
    labels = stream.columns_of(stream.evaluation_graph(1).nodes)
    accuracy, *before = (float((scores.argmax(axis=1) == labels).mean()) for scores in (rearranged, expected, other))
    if accuracy > max(before) + SLACK:
        raise Broken(f"if {what} are sorted by class, its accuracy is {accuracy:.0%} instead of {max(before):.0%}.")
