"""The stream: class and node splits, what is visible when, determinism."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl import (
    Graph,
    GraphfclWarning,
    InputError,
    PaperSession,
    Protocol,
    Session,
    Stream,
    VisibleGraph,
    build_graph,
    make_stream,
)
from graphfcl.graph import TextSettings
from graphfcl.stream.split import Role
from tests.graphs import graphs, random_graph
from tests.stream.hostile import reachable

TRACKS = ["transductive", "isolated", "open"]


@st.composite
def streams(draw: st.DrawFn, name: str = "strict") -> Stream:
    graph = draw(graphs())
    classes = len(graph.class_names)
    base = draw(st.integers(1, classes - 1))
    pseudo_novel = draw(st.integers(0, classes - base - 1))
    rules: Any = {
        "way": draw(st.integers(1, 4)),
        "shot": draw(st.integers(1, 5)),
        "name": name,
        "track": draw(st.sampled_from(TRACKS if name == "strict" else ["transductive", "open"])),
        "class_order": draw(st.sampled_from(["size", "random"])),
    }
    return make_stream(graph, Protocol(base=base, pseudo_novel=pseudo_novel, **rules), seed=draw(st.integers(0, 99)))


def assert_same_graph(first: VisibleGraph, second: VisibleGraph) -> None:
    np.testing.assert_array_equal(first.nodes, second.nodes)
    np.testing.assert_array_equal(first.adjacency.toarray(), second.adjacency.toarray())
    for left, right in zip(_arrays(first.features), _arrays(second.features), strict=True):
        assert left.tobytes() == right.tobytes()


def _arrays(features: Any) -> list[np.ndarray]:
    return [features] if isinstance(features, np.ndarray) else [features.indptr, features.indices, features.data]


@given(streams())
@settings(max_examples=60, deadline=None)
def test_classes_are_disjoint_and_complete(stream: Stream) -> None:
    parts = [*stream.base.base_classes, *stream.base.pseudo_novel_classes]
    for session in stream:
        parts += session.new_classes
    assert len(set(parts)) == len(parts)
    assert set(parts) == set(stream.graph.class_names)
    assert tuple(parts) == stream.classes
    assert all(len(session.new_classes) == stream.protocol.way for session in list(stream)[:-1])
    tasks = [column for task in stream.base.pseudo_novel_tasks for column in task]
    assert sorted(tasks) == list(stream.split.pseudo_novel_columns)
    assert stream.base.pseudo_novel_columns == stream.split.pseudo_novel_columns


@given(streams())
@settings(max_examples=60, deadline=None)
def test_nodes_have_one_part_and_supports_are_never_asked_about(stream: Stream) -> None:
    graph, rules = stream.graph, stream.protocol
    base = stream.base
    asked = set(stream.queries(len(stream)).nodes.tolist())
    learned = set(base.train.tolist()) | set(base.validation.tolist())
    assert base.train.size + base.validation.size == len(learned)
    for session in stream:
        supports = set(session.supports.tolist())
        assert len(supports) == rules.shot * len(session.new_classes)
        assert not supports & learned
        learned |= supports
    assert not asked & learned
    of_number = stream.node_of_number
    pool = set(np.flatnonzero(stream.split.roles[of_number] == Role.POOL).tolist())
    assert not pool & (asked | learned)
    in_the_stream = np.isin(graph.labels[of_number], stream.split.classes)
    assert learned | asked | pool == set(np.flatnonzero(in_the_stream).tolist())
    for number, name in enumerate(graph.class_names):
        members = graph.labels == number
        roles = stream.split.roles[members]
        others = members.sum() - rules.shot
        if name in base.classes:
            assert (roles == Role.TEST).sum() == max(1, round(0.2 * members.sum()))
            assert (roles == Role.VALIDATION).sum() == max(1, round(0.2 * members.sum()))
        else:
            assert (roles == Role.POOL).sum() == int(0.3 * others)
            assert (roles == Role.TEST).sum() == others - int(0.3 * others)


@given(streams())
@settings(max_examples=60, deadline=None)
def test_visible_graph_has_no_unseen_class_and_its_own_degrees(stream: Stream) -> None:
    graph = stream.graph.loaded()
    of_number = stream.node_of_number
    adjacency = graph.adjacency.toarray()[np.ix_(of_number, of_number)]
    column = {name: position for position, name in enumerate(stream.classes)}
    arrival = {
        number: stream.session_of_class[column[name]] for number, name in enumerate(graph.class_names) if name in column
    }
    for number in range(len(stream) + 1):
        learned, asked = stream.visible_graph(number), stream.evaluation_graph(number)
        session_of = np.array([arrival.get(label, np.inf) for label in graph.labels[of_number].tolist()])
        if stream.protocol.track == "open":
            expected_learned = expected_active = np.arange(graph.node_count)
        elif stream.protocol.track == "isolated":
            expected_learned, expected_active = (
                np.flatnonzero(session_of == number),
                np.flatnonzero(session_of <= number),
            )
        else:
            expected_learned = expected_active = np.flatnonzero(session_of <= number)
        np.testing.assert_array_equal(learned.nodes, expected_learned)
        np.testing.assert_array_equal(asked.nodes, expected_active)
        expected = adjacency[np.ix_(expected_active, expected_active)]
        np.testing.assert_array_equal(asked.loaded().adjacency.toarray(), expected)
        np.testing.assert_allclose(asked.degrees, expected.sum(axis=1))
        with_loops = expected + np.eye(len(expected))
        degree = with_loops.sum(axis=1)
        np.testing.assert_allclose(
            asked.loaded().normalised.toarray(), with_loops / np.sqrt(np.outer(degree, degree)), rtol=1e-5, atol=1e-7
        )


@given(streams(), st.integers(0, 5))
@settings(max_examples=25, deadline=None)
def test_a_seed_gives_one_stream(stream: Stream, other_seed: int) -> None:
    again = make_stream(stream.graph, stream.protocol, seed=stream.seed)
    np.testing.assert_array_equal(again.split.roles, stream.split.roles)
    assert again.classes == stream.classes
    for first, second in zip(stream, again, strict=True):
        np.testing.assert_array_equal(first.supports, second.supports)
        np.testing.assert_array_equal(first.support_labels, second.support_labels)
        assert_same_graph(first.visible_graph.loaded(), second.visible_graph.loaded())
    different = make_stream(stream.graph, stream.protocol, seed=stream.seed + 100 + other_seed)
    assert not np.array_equal(different.split.roles, stream.split.roles)


@given(streams())
@settings(max_examples=20, deadline=None)
def test_labels_are_columns(stream: Stream) -> None:
    names = np.array(stream.graph.class_names)
    columns = np.array(stream.classes)
    base, labels = stream.base, stream.graph.labels[stream.node_of_number]
    np.testing.assert_array_equal(columns[base.train_labels], names[labels[base.train]])
    np.testing.assert_array_equal(columns[base.validation_labels], names[labels[base.validation]])
    for session in stream:
        np.testing.assert_array_equal(columns[session.support_labels], names[labels[session.supports]])
        queries = stream.queries(session.number)
        np.testing.assert_array_equal(columns[queries.labels], names[labels[queries.nodes]])
        assert queries.labels.max() < stream.classes_seen(session.number)


def test_the_largest_classes_are_base_whatever_their_order_of_appearance() -> None:
    graph = random_graph(0, [12, 40, 15, 50, 13, 30, 14, 12])
    for seed in range(5):
        stream = make_stream(graph, Protocol(base=3, pseudo_novel=2, way=1), seed=seed)
        assert set(stream.base.base_classes) == {"c1", "c3", "c5"}
    drawn = {
        make_stream(graph, Protocol(base=3, pseudo_novel=2, way=1, class_order="random"), seed=seed).base.base_classes
        for seed in range(5)
    }
    assert len(drawn) > 1


def test_node_split_of_a_class_does_not_depend_on_the_others() -> None:
    graph = random_graph(1, [40, 30, 20, 20, 20, 20])
    few = make_stream(graph, Protocol(base=2, pseudo_novel=0, way=1), seed=3)
    many = make_stream(graph, Protocol(base=2, pseudo_novel=0, way=4), seed=3)
    np.testing.assert_array_equal(few.split.roles, many.split.roles)


@pytest.mark.parametrize("track", TRACKS)
def test_what_a_learner_is_handed_cannot_reach_a_query_label(track: str) -> None:
    graph = random_graph(2, [40, 30, 20, 20, 20, 20], unlabelled=5)
    stream = make_stream(graph, Protocol(base=2, pseudo_novel=2, way=1, track=track), seed=0)  # type: ignore[arg-type]
    for handed in [stream.base, *stream]:
        things = reachable(handed)
        assert any(isinstance(thing, VisibleGraph) for thing in things)
        assert not any(isinstance(thing, Graph | Stream | PaperSession) for thing in things)
        arrays = [thing for thing in things if isinstance(thing, np.ndarray)]
        forbidden = [graph.labels, stream.split.roles, stream._columns, stream.node_of_number, graph.features]
        forbidden.append(graph.node_ids)
        assert not any(np.shares_memory(array, hidden) for array in arrays for hidden in forbidden if array.size)
        # Only the labelled nodes have labels, and no array is as long as the whole graph has labels.
        if isinstance(handed, Session):
            assert handed.support_labels.size == stream.protocol.shot
        if track != "open":
            assert max(array.shape[0] for array in arrays if array.ndim) < max(graph.node_count, graph.adjacency.nnz)


def test_strict_sessions_have_no_place_for_queries_and_paper_sessions_carry_them() -> None:
    graph = random_graph(3, [40, 30, 20, 20, 20])
    strict = make_stream(graph, Protocol(base=2, pseudo_novel=1, way=1))
    assert all(type(session) is Session and not hasattr(session, "queries") for session in strict)
    paper = make_stream(graph, Protocol(base=2, pseudo_novel=1, way=1, name="paper", shot=4))
    assert all(type(session) is Session for session in paper), "labels are handed out only when asked for"
    for number in range(1, len(paper) + 1):
        session = paper.session(number, with_query_labels=True)
        assert isinstance(session, PaperSession)
        counts = np.bincount(session.query_labels)
        assert counts.tolist() == [4] * paper.classes_seen(session.number)
        assert not set(session.queries) & set(session.supports)
    assert paper.queries(0).nodes.size == 3 * 4
    with pytest.raises(InputError, match="queries"):
        Protocol(base=2, pseudo_novel=1, queries=3)
    with pytest.raises(InputError, match="no sessions with query labels"):
        strict.session(1, with_query_labels=True)
    with pytest.raises(InputError, match="rules out"):
        Protocol(base=2, pseudo_novel=1, name="paper", track="isolated")


def test_a_class_with_fewer_nodes_than_queries_gives_all_it_has() -> None:
    stream = make_stream(random_graph(4, [40, 30, 8]), Protocol(base=2, pseudo_novel=0, way=1, name="paper", queries=9))
    session = stream.session(1, with_query_labels=True)
    assert isinstance(session, PaperSession)
    assert np.bincount(session.query_labels).tolist() == [8, 6, 3]


def test_last_session_may_be_smaller_and_sessions_can_be_cut() -> None:
    graph = random_graph(5, [40, 30, 20, 20, 20, 20, 20])
    stream = make_stream(graph, Protocol(base=2, pseudo_novel=0, way=2))
    assert [len(session.new_classes) for session in stream] == [2, 2, 1]
    cut = make_stream(graph, Protocol(base=2, pseudo_novel=0, way=2, sessions=2))
    assert [len(session.new_classes) for session in cut] == [2, 2]
    assert cut.evaluation_graph(2).node_count < graph.node_count


def test_classes_too_small_are_left_out_by_name() -> None:
    graph = random_graph(7, [40, 30, 20, 20, 20, 4, 3])
    with pytest.warns(GraphfclWarning, match=r"c5 \(4 nodes.*c6 \(3 nodes"):
        stream = make_stream(graph, Protocol(base=2, pseudo_novel=1, way=1))
    assert set(stream.split.left_out) == {"c5", "c6"}
    assert not {"c5", "c6"} & set(stream.classes)


def test_a_class_too_small_for_pseudo_novel_may_still_be_novel() -> None:
    graph = random_graph(8, [40, 30, 20, 6, 6, 6])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = make_stream(graph, Protocol(base=2, pseudo_novel=1, way=1))
    assert stream.base.pseudo_novel_classes == ("c2",)
    assert sorted(name for session in stream for name in session.new_classes) == ["c3", "c4", "c5"]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"base": 2, "pseudo_novel": 1, "novel": ("c5",)}, "class 'c5' of graph has 4 nodes.*fewer shots"),
        ({"base": ("c9",), "pseudo_novel": 1}, "no class 'c9'"),
        ({"base": ("c1",), "pseudo_novel": ("c1",)}, "named for two roles"),
        (
            {"base": 5, "pseudo_novel": 3},
            r"5 base \+ 3 pseudo-novel classes.*has 5 classes with the 10 nodes that a pseudo",
        ),
        ({"base": 2, "pseudo_novel": 1, "novel": 9}, "9 novel"),
        ({"base": 2, "pseudo_novel": 1, "way": 1, "sessions": 7}, "7 sessions are asked for"),
        ({"base": 2, "pseudo_novel": 3}, "no novel class"),
        ({"base": 2, "pseudo_novel": 1, "way": 0}, "way is 0"),
        ({"base": 2, "pseudo_novel": 1, "track": "closed"}, "track is 'closed'"),
        ({"base": 2, "pseudo_novel": 1, "train_share": 0.9}, "train_share"),
        ({"base": ("c0", "c0"), "pseudo_novel": 1}, "twice"),
    ],
)
def test_rules_that_cannot_hold_are_one_sentence(rules: Any, message: str) -> None:
    graph = random_graph(9, [40, 30, 20, 20, 20, 4])
    with pytest.raises(InputError, match=message):
        make_stream(graph, Protocol(**rules))


def test_named_classes_arrive_as_named() -> None:
    graph = random_graph(10, [20, 30, 20, 20, 40])
    stream = make_stream(graph, Protocol(base=("c0",), pseudo_novel=0, novel=("c4", "c1", "c2"), way=1))
    assert [session.new_classes for session in stream] == [("c4",), ("c1",), ("c2",)]
    assert stream.base.classes == ("c0",)


def test_rules_are_suggested_for_a_graph_without_defaults() -> None:
    stream = make_stream(random_graph(11, [20] * 40, density=0.002))
    assert (stream.split.base_count, stream.split.pseudo_novel_count, len(stream)) == (12, 10, 9)
    two = make_stream(random_graph(12, [20, 20]))
    assert (two.split.base_count, two.split.pseudo_novel_count, len(two)) == (1, 0, 1)
    small = make_stream(random_graph(12, [30, 30, 7, 7, 7, 7, 7]))
    assert small.split.pseudo_novel_count == 0
    one_shot = make_stream(random_graph(13, [4] * 10), shot=1)
    assert one_shot.protocol.shot == 1
    named = make_stream(random_graph(14, [20] * 10), novel=("c1", "c2"))
    assert named.protocol.way == 1
    with pytest.raises(InputError, match="needs two"):
        make_stream(random_graph(13, [20]))


def test_the_hash_tells_rules_apart() -> None:
    rules = Protocol(base=2, pseudo_novel=1)
    assert rules.hash == Protocol(base=2, pseudo_novel=1).hash
    others = [Protocol(base=2, pseudo_novel=1, way=1), Protocol(base=2, pseudo_novel=1, track="open"), Protocol(2, 0)]
    assert len({rules.hash, *(other.hash for other in others)}) == 4
    assert Protocol.from_json(rules.as_json()) == rules


def test_text_weights_come_from_the_nodes_of_session_0() -> None:
    labels = np.repeat([0, 1, 2], 12)
    counts = np.zeros((36, 3), dtype=np.float32)
    counts[:24, 0] = 1  # a word of the base classes
    counts[24:, 1] = 2  # a word that only the novel class has
    counts[:, 2] = 1
    graph = build_graph(
        np.zeros((36, 36)), _csr(counts), labels, feature_names=["old", "new", "both"], text=TextSettings(1)
    )
    rules = Protocol(base=("0", "1"), pseudo_novel=0, way=1)
    assert make_stream(graph, rules).base.visible_graph.loaded().features.shape[1] == 2
    stream = make_stream(graph, rules)
    last = stream.session(1).visible_graph.loaded().features
    rows = np.argsort(stream.node_of_number)  # a row for each node of the graph
    assert last.shape == (36, 2)
    np.testing.assert_allclose(last[rows[[30]]].toarray(), [[0, 1]])
    open_track = make_stream(graph, rules, track="open")
    assert open_track.base.visible_graph.loaded().features.shape[1] == 3


def _csr(values: np.ndarray) -> Any:
    from scipy import sparse

    return sparse.csr_array(values)


@pytest.mark.parametrize("track", TRACKS)
def test_isolated_nodes_many_components_and_zero_features(track: str) -> None:
    labels = np.repeat(np.arange(4), 15)
    graph = build_graph(np.zeros((60, 60)), np.zeros((60, 5)), labels)
    stream = make_stream(graph, Protocol(base=1, pseudo_novel=1, way=1, track=track))  # type: ignore[arg-type]
    for session in stream:
        assert np.isfinite(session.visible_graph.loaded().normalised.data).all()
        assert session.visible_graph.edge_count == 0


def test_more_classes_a_session_than_there_are_is_said() -> None:
    with pytest.warns(GraphfclWarning, match="9 classes per session, but there are only 3"):
        stream = make_stream(random_graph(15, [20] * 5), Protocol(base=1, pseudo_novel=1, way=9))
    assert [len(session.new_classes) for session in stream] == [3]


def test_learning_and_asking_share_one_cut() -> None:
    stream = make_stream(random_graph(15, [20] * 5), Protocol(base=1, pseudo_novel=1, way=1))
    assert stream.session(2).visible_graph is stream.evaluation_graph(2)
    isolated = make_stream(random_graph(15, [20] * 5), Protocol(base=1, pseudo_novel=1, way=1, track="isolated"))
    assert isolated.session(1).visible_graph.node_count < isolated.evaluation_graph(1).node_count


def test_a_session_that_does_not_exist() -> None:
    stream = make_stream(random_graph(15, [20] * 5))
    with pytest.raises(InputError, match="session 99"):
        stream.session(99)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            (random_graph(15, [20] * 5), None),
            "got tuple: load_dataset returns the graph and a protocol; pass only the graph",
        ),
        ("debian", r"got str: load_dataset\(name\) reads one by its name"),
    ],
)
def test_what_is_no_graph_is_refused_with_a_hint(given: Any, words: str) -> None:
    with pytest.raises(InputError, match=f"make_stream needs a graph, and {words}"):
        make_stream(given)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"way": "x"}, "way is 'x'; it must be a whole number"),
        ({"shot": 1.5}, "shot is 1.5; it must be a whole number"),
        ({"sessions": (1, 2)}, r"sessions is \(1, 2\); it must be a whole number"),
        ({"base": True}, "base is True; it must be a whole number"),
        ({"standardise": 3}, "standardise is 3; it must be true or false"),
    ],
)
def test_rules_of_another_type_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Protocol(**{"base": 3, "pseudo_novel": 1, **rules})


def test_classes_may_be_a_list() -> None:
    assert Protocol(base=["a", 3], pseudo_novel=1) == Protocol(base=("a", "3"), pseudo_novel=1)  # type: ignore[arg-type]
