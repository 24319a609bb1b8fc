"""The track ``active``: candidates that say nothing about their class, and all else as under ``open``."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from graphfcl import Graph, InputError, Protocol, Stream, load_stream, make_stream, save_stream
from graphfcl.stream import stream_hash
from tests.graphs import random_graph

SIZES = [90, 80, 70, 61, 52, 43, 34, 33, 27, 21, 20, 20]
RULES = Protocol(base=3, pseudo_novel=3, way=2, shot=5)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return random_graph(0, SIZES, density=0.01)


def active(graph: Graph, seed: int = 0, **changes: Any) -> Stream:
    return make_stream(graph, RULES, seed=seed, track="active", **changes)


def label_columns(stream: Stream) -> np.ndarray:
    """(n,) the column of every node, by number."""
    place = {number: column for column, number in enumerate(stream.split.classes)}
    return np.array([place.get(int(label), -1) for label in stream.graph.labels[stream.node_of_number]])


def test_three_tenths_of_every_class_are_candidates(graph: Graph) -> None:
    for seed in range(5):
        stream = active(graph, seed)
        columns = label_columns(stream)
        for column in range(len(stream.classes)):
            size = int((columns == column).sum())
            assert int((columns[stream.candidates] == column).sum()) == round(0.3 * size)


def test_being_a_candidate_says_nothing_about_the_class(graph: Graph) -> None:
    """Pearson's test of candidates against classes, base and novel, over 30 seeds."""
    statistic, freedom = 0.0, 0
    for seed in range(30):
        stream = active(graph, seed)
        columns = label_columns(stream)
        sizes = np.bincount(columns[columns >= 0])
        found = np.bincount(columns[stream.candidates], minlength=sizes.size)
        share = found.sum() / sizes.sum()
        statistic += (((found - share * sizes) ** 2) / (share * (1 - share) * sizes)).sum()
        freedom += sizes.size - 1
    assert statistic < chi2.ppf(0.5, freedom), "rounding aside, shares are equal"


def test_all_else_is_as_under_open(graph: Graph) -> None:
    for seed in range(3):
        stream, plain = active(graph, seed), make_stream(graph, RULES, seed=seed, track="open")
        last = len(plain)
        assert stream.classes == plain.classes
        assert len(stream) == last
        for session in range(last + 1):
            np.testing.assert_array_equal(stream.queries(session).nodes, plain.queries(last).nodes)
            np.testing.assert_array_equal(stream.queries(session).labels, plain.queries(last).labels)
        np.testing.assert_array_equal(stream.base.validation, plain.base.validation)
        assert stream.base.visible_graph.node_count == graph.node_count
        withheld = np.setdiff1d(plain.base.train, stream.base.train)
        columns = label_columns(stream)
        np.testing.assert_array_equal(withheld, stream.candidates[columns[stream.candidates] < 6])
        assert not np.isin(stream.candidates, np.r_[stream.base.train, stream.base.validation]).any()
        assert not np.isin(stream.candidates, stream.queries(0).nodes).any()
        assert [stream.budget(t) for t in range(1, last + 1)] == [plain.session(t).supports.size for t in range(1, 4)]


def test_a_small_class_keeps_the_train_nodes_it_needs() -> None:
    small = random_graph(1, [40, 8, 12, 11, 10, 9], density=0.05)
    stream = make_stream(small, Protocol(base=2, pseudo_novel=2, way=1, shot=5, track="active"), seed=0)
    counts = np.bincount(stream.base.train_labels)
    assert (counts[2:] >= 6).all()
    assert (counts[:2] >= 2).all()


def test_other_tracks_have_no_candidates_and_keep_their_hashes(graph: Graph) -> None:
    stream = make_stream(graph, RULES, seed=0)
    assert stream.candidates.size == 0
    hashes = {stream_hash(make_stream(graph, RULES, seed=0, track=track)) for track in ("open", "active", "isolated")}
    assert len(hashes) == 3


def test_sessions_are_made_of_answers(graph: Graph) -> None:
    stream = active(graph)
    with pytest.raises(InputError, match="a strategy chooses"):
        stream.session(1)
    nodes = stream.candidates[:3]
    session = stream.active_session(1, ("new",), nodes.copy(), np.array([0, 6, 6]))
    assert session.new_classes == ("new",)
    assert session.track == "active"
    assert session.visible_graph.node_count == graph.node_count
    with pytest.raises(ValueError, match="read-only"):
        session.supports[0] = 1


def test_saved_and_loaded(graph: Graph, tmp_path: Path) -> None:
    stream = active(graph, 3)
    save_stream(stream, tmp_path / "stream.json")
    again = load_stream(tmp_path / "stream.json", graph)
    assert stream_hash(again) == stream_hash(stream)
    np.testing.assert_array_equal(again.candidates, stream.candidates)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "paper"}, "no sessions with query labels"),
        ({"pool_share": 0.2}, "pool_share is 0.2"),
        ({"train_share": 0.2}, "train_share is 0.2"),
    ],
)
def test_rules_that_do_not_fit(graph: Graph, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        active(graph, **changes)
