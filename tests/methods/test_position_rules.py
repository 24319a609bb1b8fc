"""The rules on positions: a learner that reads node numbers or the order of columns breaks them, whatever it states."""

from typing import Any, ClassVar

import numpy as np
import pytest

from graphfcl import NO_STORE, SILENT, BaseSession, EncoderStore, Learner, Progress, Session, VisibleGraph, VisibleNodes
from graphfcl.methods.testing import Subject, broken_rules
from graphfcl.methods.testing.position_rules import (
    Rearranged,
    column_order_means_nothing,
    node_numbers_mean_nothing,
    scores_of_rearranged,
)
from graphfcl.methods.testing.subject import stream_of


class ByMeans(Learner):
    """Nearest class mean of some vectors of nodes; ``vectors`` says which."""

    def fit(
        self,
        base: BaseSession,
        progress: Progress = SILENT,  # noqa: ARG002
        encoders: EncoderStore = NO_STORE,  # noqa: ARG002
    ) -> None:
        self.classes_ = base.classes
        self.points_ = self.vectors(base.visible_graph.loaded())[base.visible_graph.rows(base.train)]
        self.labels_ = base.train_labels

    def learn(self, session: Session) -> None:
        visible = session.visible_graph
        self.classes_ += session.new_classes
        self.points_ = np.concatenate([self.points_, self.vectors(visible.loaded())[visible.rows(session.supports)]])
        self.labels_ = np.concatenate([self.labels_, session.support_labels])

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        means = np.stack([self.points_[self.labels_ == c].mean(axis=0) for c in range(len(self.classes_))])
        vectors = self.vectors(visible.loaded())[visible.rows(nodes)]
        return -((vectors[:, None] - means) ** 2).sum(axis=2)

    def vectors(self, visible: VisibleGraph) -> np.ndarray:
        return (visible.normalised @ visible.features).toarray()


class NearestNumber(ByMeans):
    """The class of the labelled node with the nearest number."""

    def vectors(self, visible: VisibleGraph) -> np.ndarray:
        return visible.nodes[:, None].astype(np.float64)

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        apart = np.abs(self.vectors(visible.loaded())[visible.rows(nodes)] - self.points_.T)
        return -np.stack([apart[:, self.labels_ == c].min(axis=1) for c in range(len(self.classes_))], axis=1)


class NearestNumberOrGuess(NearestNumber):
    """For half of the nodes a guess, so that its answers change with the seed too."""

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        random = np.random.default_rng(self.seed).random((10_000, len(self.classes_) + 1))[nodes]
        found = super().scores(visible, nodes)
        return np.where(random[:, :1] < 0.5, random[:, 1:], found)


class ByColumnPosition(ByMeans):
    """The mean position of the columns that a node has."""

    def vectors(self, visible: VisibleGraph) -> np.ndarray:
        near = super().vectors(visible)
        return (near @ np.arange(near.shape[1]) / np.maximum(near.sum(axis=1), 1e-9))[:, None]


class Projected(ByMeans):
    """A random projection: a fair method whose draws are over columns."""

    def vectors(self, visible: VisibleGraph) -> np.ndarray:
        near = super().vectors(visible)
        return near @ np.random.default_rng(self.seed).standard_normal((near.shape[1], 40))


def broken(learner: type[Learner], rule: Any, randomness: tuple[str, ...] = ()) -> str | None:
    stated = type(learner.__name__, (learner,), {"randomness": randomness})
    ((_, why),) = broken_rules(stated, rules=[rule])
    return why


def test_a_fair_learner_without_randomness_has_the_same_scores() -> None:
    assert broken(ByMeans, node_numbers_mean_nothing) is None
    assert broken(ByMeans, column_order_means_nothing) is None
    assert broken(ByMeans, node_numbers_mean_nothing, ("nodes", "columns")) is None


@pytest.mark.parametrize("learner", [NearestNumber, NearestNumberOrGuess])
def test_a_learner_that_reads_numbers_is_noticed_whatever_it_states(learner: type[Learner]) -> None:
    why = broken(learner, node_numbers_mean_nothing)
    assert why is not None
    assert "nodes are renumbered, scores differ" in why
    why = broken(learner, node_numbers_mean_nothing, ("nodes",))
    assert why is not None
    assert ("predictions stay" if learner is NearestNumber else "its accuracy is") in why


def test_a_learner_that_reads_the_order_of_columns_is_noticed_whatever_it_states() -> None:
    why = broken(ByColumnPosition, column_order_means_nothing)
    assert why is not None
    assert "columns are reordered, scores differ" in why
    why = broken(ByColumnPosition, column_order_means_nothing, ("columns",))
    assert why is not None
    assert "predictions stay" in why


def test_randomness_over_columns_is_fair_if_it_is_stated() -> None:
    assert broken(Projected, column_order_means_nothing) is not None
    assert broken(Projected, column_order_means_nothing, ("columns",)) is None
    assert broken(Projected, node_numbers_mean_nothing, ("columns",)) is None


def test_randomness_names_nodes_and_columns_only() -> None:
    why = broken(ByMeans, node_numbers_mean_nothing, ("rows",))
    assert why == "randomness contains 'rows'; it may only contain 'nodes' and 'columns'."


class Watching(ByMeans):
    """Keeps what it is handed."""

    handed: ClassVar[list[Any]] = []

    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:
        self.handed.append(base)
        super().fit(base, progress, encoders)


@pytest.mark.parametrize("what", ["nodes", "columns"])
def test_a_rearranged_stream_differs_in_the_arrangement_alone(what: str) -> None:
    stream = stream_of()
    rearranged = Rearranged.by_class(stream, **{what: True})
    Watching.handed.clear()
    scores_of_rearranged(Subject(Watching), rearranged)
    base, (other,) = stream.base, Watching.handed
    old, new = base.visible_graph, other.visible_graph
    rows = new.rows(rearranged.numbers[old.nodes])
    np.testing.assert_array_equal(new.adjacency.toarray()[np.ix_(rows, rows)], old.loaded().adjacency.toarray())
    np.testing.assert_array_equal(new.features.toarray()[rows], old.loaded().features.toarray()[:, rearranged.columns])
    assert (np.diff(new.nodes) > 0).all()
    for nodes, labels in (("train", "train_labels"), ("validation", "validation_labels")):
        pairs = zip(rearranged.numbers[getattr(base, nodes)].tolist(), getattr(base, labels).tolist(), strict=True)
        assert dict(pairs) == dict(zip(getattr(other, nodes).tolist(), getattr(other, labels).tolist(), strict=True))
    same = {"nodes": np.array_equal(rearranged.numbers, np.arange(360))}
    same["columns"] = np.array_equal(rearranged.columns, np.arange(old.loaded().features.shape[1]))
    assert [name for name, is_same in same.items() if not is_same] == [what]
