"""What ANCHOR promises: its state, sessions, explanations and choices."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from graphfcl import (
    Anchor,
    Protocol,
    Session,
    Stream,
    build_graph,
    evaluate,
    find_method,
    load_dataset,
    make_stream,
)
from graphfcl.methods.anchor import choosing
from graphfcl.methods.anchor.class_sums import class_sums
from graphfcl.methods.anchor.frame import Blocks
from graphfcl.methods.anchor.rounds import answers
from graphfcl.methods.shared.untrained_features import (
    WIDEST,
    around_rows,
    prepare,
)
from tests.methods.anchor.whole_rounds import links_of, posteriors, ratios_of

GRAPH = "synthetic:nodes=700,edges=2800,classes=10,features=300,signal=0.6,skew=0.5"
QUICK: dict[str, Any] = {"pretraining.epochs": 5, "hidden": 32, "size": 16, "rank": 32}


def stream_of(**changes: Any) -> Stream:
    return make_stream(load_dataset(GRAPH)[0], Protocol(base=4, pseudo_novel=3, way=1, shot=5), seed=0, **changes)


@pytest.fixture(scope="module")
def learner() -> Anchor:
    made = find_method("anchor").make(QUICK, seed=0)
    assert isinstance(made, Anchor)
    made.fit(stream_of().base)
    return made


def test_sessions_one_by_one_in_any_order_or_at_once_give_the_same_state() -> None:
    """On fixed features."""
    stream = stream_of(track="open")
    open_learner = find_method("anchor").make(QUICK, seed=0)
    assert isinstance(open_learner, Anchor)
    open_learner.fit(stream.base)
    state, visible = open_learner.state(), stream.base.visible_graph
    sessions = [stream.session(number) for number in range(1, 4)]
    nodes = np.concatenate([session.supports for session in sessions])
    labels = np.concatenate([session.support_labels for session in sessions])
    names = tuple(name for session in sessions for name in session.new_classes)
    results = []
    for order in ([0, 1, 2], [2, 0, 1], None):
        open_learner.load_state(state)
        if order is None:
            open_learner.learn(Session(1, names, nodes, labels, visible, "open"))
        else:
            open_learner.learn(Session(0, names, nodes[:0], labels[:0], visible, "open"))  # their columns
            for place in order:
                part = sessions[place]
                open_learner.learn(Session(place, (), part.supports, part.support_labels, visible, "open"))
        anchors = open_learner.knowledge.anchors
        results.append((anchors.sums, anchors.products, open_learner.scores(visible, visible.nodes)))
    for sums, products, scores in results[1:]:
        np.testing.assert_allclose(sums, results[0][0], rtol=1e-6)
        np.testing.assert_allclose(products, results[0][1], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(scores, results[0][2], rtol=1e-5, atol=1e-5)
    assert results[0][0].dtype == results[0][1].dtype == torch.float64
    assert results[0][1].abs().max() > 0.01


def test_no_node_is_stored(learner: Anchor) -> None:
    stored = learner.stored()
    assert stored["nodes"] == stored["features"] == 0
    state = learner.state()
    whole = [name for name, tensor in state.tensors.items() if tensor.dtype == torch.int64]
    assert set(whole) <= {"head.counts"}, "how many labels each class has, which names no node"
    counted = sum(tensor.nbytes for name, tensor in state.tensors.items() if name != "generator")
    assert sum(stored.values()) == pytest.approx(counted, rel=0.01)


def test_the_state_stays_small_on_wide_features() -> None:
    random = np.random.default_rng(0)
    features = sparse.random_array((400, 30_000), density=0.001, random_state=random, dtype=np.float32, format="csr")
    labels = np.arange(400) % 8
    hot = sparse.csr_array((np.ones(400, np.float32), (np.arange(400), labels * 3)), shape=(400, 30_000))
    adjacency = sparse.random_array((400, 400), density=0.01, random_state=random)
    graph = build_graph(adjacency, features + 3 * hot, labels)
    stream = make_stream(graph, Protocol(base=3, pseudo_novel=2, way=1), seed=0)
    wide = find_method("anchor").make({"pretraining.epochs": 2}, seed=0)
    measures = evaluate(wide, stream).metrics
    assert measures.sessions[-1].balanced_accuracy > 0.5
    assert sum(wide.stored().values()) < 20_000_000
    assert prepare(graph.features, 0).shape == (400, WIDEST)


def test_edges_that_say_nothing_are_not_listened_to() -> None:
    options = "nodes=1500,classes=12,features=400,signal=0.25,skew=0.3"
    chosen = {}
    for homophily in (0.05, 0.9):
        graph, _ = load_dataset(f"synthetic:{options},homophily={homophily}")
        stream = make_stream(graph, Protocol(base=4, pseudo_novel=4, way=1), seed=0)
        fresh = find_method("anchor").make({"pretraining.epochs": 5, "rank": 128}, seed=0)
        fresh.fit(stream.base)
        chosen[homophily] = fresh.chosen()
    assert chosen[0.05]["hop_weight"] < 1 < chosen[0.9]["hop_weight"]
    assert chosen[0.05]["smoothing"] < chosen[0.9]["smoothing"]


def test_an_explanation_adds_up(learner: Anchor) -> None:
    stream = stream_of()
    visible = stream.base.visible_graph
    table = torch.from_numpy(learner.embeddings(visible))
    known = learner.knowledge
    posterior, directions = posteriors(known.anchors, table, visible.loaded(), known.neighbourhood, learner.settings)
    tensors = known.answer_tensors()
    answer = answers(posterior, table.float(), tensors, 0.5)
    for node in stream.base.validation[:5].tolist():
        actual = learner.explain(visible, node, top=10_000)
        assert actual is not None
        (first, p), (second, q) = actual.classes[:2]
        assert p >= q
        row = int(visible.rows(np.array([node]))[0])
        difference = float(learner.settings.temperature * table[row].float() @ (directions[first] - directions[second]))
        by_both = torch.log(answer[row].clamp(min=1e-12) / posterior[row].clamp(min=1e-12))
        difference += float(by_both[first] - by_both[second])
        assert p == pytest.approx(float(answer[row].max()))
        assert sum(actual.blocks.values()) == pytest.approx(difference, rel=0.01, abs=0.05)
        named = {column for column, _ in actual.features}
        assert named == set(visible.loaded().features[[row]].indices.tolist())
        assert {number for number, *_ in actual.neighbours} <= set(visible.nodes.tolist()) - {node}
    sums, counts = class_sums(table, torch.zeros(len(table), dtype=torch.int64), 1)
    assert counts.item() == len(table)
    assert sums.shape == (1, table.shape[1])


@pytest.mark.parametrize("changes", [{"shot": 1}, {"shot": 20}, {"way": 3}, {"track": "isolated"}, {"track": "open"}])
def test_it_is_ahead_of_prototypes_on_the_plain_encoder(changes: dict[str, Any]) -> None:
    stream = stream_of(**changes)
    ours = evaluate(find_method("anchor").make({**QUICK, "rank": 128}, seed=0), stream).metrics
    plain = evaluate(find_method("proto-gcn").make({"pretraining.epochs": 8}, seed=0), stream).metrics
    assert ours.average > plain.average


def test_few_rows_are_added_up_first_to_the_same_numbers(learner: Anchor, monkeypatch: pytest.MonkeyPatch) -> None:
    visible = stream_of().base.visible_graph
    inputs = learner.cache.inputs(visible).whole
    rows = np.array([3, 500, 7])
    for hops in (1, 2, 4):
        expected = inputs.raw() @ learner.knowledge.frame["basis"]
        for _ in range(hops):
            expected = inputs.adjacency @ expected
        expected = expected[rows]
        for few in (0, 256):
            monkeypatch.setattr("graphfcl.methods.shared.untrained_features.AGGREGATE_FIRST_UP_TO", few)
            actual = around_rows(inputs.visible, rows, hops, learner.knowledge.frame["basis"])
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


def test_classes_without_any_spread_are_told_apart() -> None:
    """Every node of a class has the same features: the root of the covariance is scaled to what 16 bits hold."""
    labels = np.arange(300) % 6
    features = sparse.csr_array(np.eye(6, dtype=np.float32)[labels] + np.float32(1e-6) * labels[:, None])
    graph = build_graph(sparse.csr_array((300, 300), dtype=np.float32), features, labels)
    stream = make_stream(graph, Protocol(base=3, pseudo_novel=1, way=1), seed=0)
    plain = find_method("anchor").make(QUICK, seed=0)
    assert evaluate(plain, stream).metrics.sessions[-1].balanced_accuracy > 0.9


def test_what_links_add_is_the_evidence_of_the_neighbours() -> None:
    stream = stream_of()
    visible = stream.base.visible_graph
    listening = find_method("anchor").make({**QUICK, "smoothing": 0.0, "links": 0.5}, seed=0)
    assert isinstance(listening, Anchor)
    listening.fit(stream.base)
    table, known = torch.from_numpy(listening.embeddings(visible)), listening.knowledge
    posterior = (
        posteriors(known.anchors, table, visible.loaded(), known.neighbourhood, listening.settings)[0].double().numpy()
    )
    evidence = 0.5 * (links_of(visible.loaded()) @ posterior) @ ratios_of(visible.loaded(), posterior).T
    for node in stream.base.validation[:5].tolist():
        actual = listening.explain(visible, node, top=10_000)
        assert actual is not None
        (first, _), (second, _) = actual.classes[:2]
        row = int(visible.rows(np.array([node]))[0])
        added = sum(adds for *_, adds in actual.neighbours)
        assert added == pytest.approx(float(evidence[row, first] - evidence[row, second]), rel=1e-3, abs=1e-4)


def test_a_learner_that_was_saved_and_loaded_is_the_same_to_the_last_digit(learner: Anchor) -> None:
    visible = stream_of().base.visible_graph
    again = find_method("anchor").make(QUICK, seed=0)
    again.load_state(learner.state())
    np.testing.assert_array_equal(again.embeddings(visible), learner.embeddings(visible))
    np.testing.assert_array_equal(again.scores(visible, visible.nodes), learner.scores(visible, visible.nodes))


def test_the_same_labels_again_give_the_same_sums() -> None:
    """As unlearning and merging do it in production: sums and products are made again from labelled nodes."""
    stream = stream_of(track="open")
    base, visible = stream.base, stream.base.visible_graph
    learner = find_method("anchor").make(QUICK, seed=0)
    assert isinstance(learner, Anchor)
    learner.fit(base)
    for number in (1, 2, 3):
        session = stream.session(number)
        learner.learn(Session(number, session.new_classes, session.supports, session.support_labels, visible, "open"))
    before, scores = learner.knowledge.anchors, learner.scores(visible, visible.nodes)
    parts = [stream.session(number) for number in (1, 2, 3)]
    supports = tuple(np.concatenate([getattr(each, name) for each in parts]) for name in ("supports", "support_labels"))
    train = (base.train, base.train_labels)
    learner.restate(visible, train, (supports[0][:-1], supports[1][:-1]))
    assert not torch.allclose(learner.knowledge.anchors.products, before.products, rtol=0, atol=1e-6)
    learner.restate(visible, train, (supports[0], supports[1]))
    after = learner.knowledge.anchors
    np.testing.assert_allclose(after.sums, before.sums, atol=1e-6)
    np.testing.assert_allclose(after.products, before.products, atol=1e-6)
    np.testing.assert_allclose(learner.scores(visible, visible.nodes), scores, atol=1e-4)


def test_the_same_labels_again_give_the_same_head(learner: Anchor) -> None:
    """As unlearning and merging do it in production: sums and head are made again from labelled nodes."""
    stream = stream_of()
    base, none = stream.base, np.zeros(0, dtype=np.int64)
    fresh = find_method("anchor").make(QUICK, seed=0)
    assert isinstance(fresh, Anchor)
    fresh.load_state(learner.state())
    half = (base.train[::2], base.train_labels[::2])
    fresh.restate(base.visible_graph, half, (none, none))
    other = fresh.knowledge.head
    assert not torch.equal(other, learner.knowledge.head)
    fresh.restate(base.visible_graph, (base.train, base.train_labels), (none, none))
    np.testing.assert_array_equal(fresh.knowledge.head, learner.knowledge.head)
    fresh.knowledge.head = other
    fresh.restate(stream.visible_graph(1), (base.train, base.train_labels), (none, none))
    assert torch.equal(fresh.knowledge.head, other)  # the same labels on a larger graph do not train it


def test_a_label_that_is_left_out_has_no_part_in_its_scores() -> None:
    """Neither in the mean of its class nor in the covariance, which would know its noise."""
    stream = stream_of(track="open")
    visible, session = stream.base.visible_graph, stream.session(1)
    learners = [find_method("anchor").make(QUICK, seed=0) for _ in range(2)]
    for learner, count in zip(learners, (5, 4), strict=True):
        learner.fit(stream.base)
        nodes, labels = session.supports[:count], session.support_labels[:count]
        learner.learn(Session(1, session.new_classes, nodes, labels, visible, "open"))
    one, train = (session.supports[4:5], session.support_labels[4:5]), (stream.base.train, stream.base.train_labels)
    whole, never = learners
    assert isinstance(never, Anchor)
    actual = whole.scores_without(visible, one, train, (session.supports, session.support_labels))
    assert actual is not None
    x = never._vectors(never.cache.inputs(visible), one[0])
    expected = never.knowledge.anchors.logits(x, never.settings)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_an_explanation_of_a_new_class_against_one_of_session_0_adds_up() -> None:
    stream = stream_of()
    made = find_method("anchor").make(QUICK, seed=0)
    assert isinstance(made, Anchor)
    made.fit(stream.base)
    many = len(stream.base.classes)
    for number in (1, 2):
        made.learn(stream.session(number))
    visible = stream.visible_graph(2)
    table = torch.from_numpy(made.embeddings(visible))
    known = made.knowledge
    posterior, directions = posteriors(known.anchors, table, visible.loaded(), known.neighbourhood, made.settings)
    tensors = known.answer_tensors()
    answer = answers(posterior, table.float(), tensors, 0.5)
    first, second = answer.topk(2, dim=1).indices.T
    mixed = np.flatnonzero(((first < many) != (second < many)).numpy())[:4]
    assert mixed.size
    for row in mixed.tolist():
        actual = made.explain(visible, int(visible.nodes[row]))
        assert actual is not None
        (a, _), (b, _) = actual.classes[:2]
        by_both = torch.log(answer[row] / posterior[row])
        logits = float(made.settings.temperature * table[row].float() @ (directions[a] - directions[b]))
        expected = logits + float(by_both[a] - by_both[b])
        assert sum(actual.blocks.values()) == pytest.approx(expected, rel=0.01, abs=0.05)


def test_one_candidate_or_no_pseudo_novel_class_leaves_nothing_to_choose() -> None:
    only = find_method("anchor").make({**QUICK, "candidates": ((0.5, 2, 0.3, 3, 0.0),)}, seed=0)
    only.fit(stream_of().base)
    assert only.chosen()["hop_weight"] == 0.5
    graph = load_dataset(GRAPH)[0]
    stream = make_stream(graph, Protocol(base=6, pseudo_novel=0, way=1, shot=5), seed=0)
    plain = find_method("anchor").make(QUICK, seed=0)
    plain.fit(stream.base)
    assert plain.chosen()["hop_weight"] == 2.0


def test_every_candidate_is_tried_once_with_its_own_features_around(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[Any, float]] = []
    weights: list[float] = []
    vectors = Blocks.vectors

    def noted(blocks: Any, frame: Any, **options: Any) -> Any:
        weights.append(blocks.weights[1])
        return vectors(blocks, frame, **options)

    def score(*values: Any) -> float:
        tried.append((values[-1], weights[-1]))
        return 0.5

    monkeypatch.setattr(Blocks, "vectors", noted)
    monkeypatch.setattr(choosing._Trials, "_score", score)
    some = ((2.0, 2, 0.3, 3, 0.0), (0.5, 2, 0.3, 3, 0.0), (0.5, 1, 0.3, 3, 0.0), (2.0, 2, 0.0, 1, 0.0))
    learner = find_method("anchor").make({**QUICK, "candidates": some}, seed=0)
    learner.fit(stream_of().base)
    assert len(tried) == len({candidate for candidate, _ in tried}) == 4
    assert all(candidate.hop_weight == hop_weight for candidate, hop_weight in tried)


def test_a_calibration_run_shares_the_graph_and_no_embedding() -> None:
    stream = stream_of()
    learner = find_method("anchor").make(QUICK, seed=0)
    assert isinstance(learner, Anchor)
    learner.fit(stream.base)
    visible = stream.base.visible_graph
    learner.scores(visible, visible.nodes)
    again = learner.calibration_learner()
    assert isinstance(again, Anchor)
    inputs = again.cache.inputs(visible)
    assert inputs is learner.cache.inputs(visible)
    assert learner.cache.embeddings(inputs) is not None
    assert again.cache.embeddings(inputs) is None


def test_hardly_any_shrinkage_is_no_error() -> None:
    stream = stream_of()
    thin = find_method("anchor").make({**QUICK, "rank": 128, "shrinkage": 1e-12}, seed=0)
    thin.fit(stream.base)
    actual = thin.scores(stream.base.visible_graph, stream.base.validation)
    assert np.isfinite(actual).all()
