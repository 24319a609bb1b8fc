"""SGC-ridge against plain loops, and what it promises."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import (
    BaseSession,
    DivergenceError,
    GraphClassifier,
    InputError,
    Protocol,
    Session,
    Stream,
    VisibleGraph,
    find_method,
    load_dataset,
    make_stream,
)
from graphfcl.methods.sgc_ridge import SgcRidge
from graphfcl.methods.shared.class_statistics import RidgeSums, counts_with
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions
from tests.methods.closed_forms import plus

GRAPH = "synthetic:nodes=400,edges=1600,classes=9,features=80,signal=0.7,skew=0.5"
QUICK: dict[str, Any] = {"rank": 24}


def stream_of(**changes: Any) -> Stream:
    return make_stream(load_dataset(GRAPH)[0], Protocol(base=3, pseudo_novel=3, way=1, shot=4), seed=0, **changes)


def fitted(base: BaseSession, **changes: Any) -> SgcRidge:
    learner = find_method("sgc-ridge").make({**QUICK, **changes}, seed=0)
    assert isinstance(learner, SgcRidge)
    learner.fit(base)
    return learner


def points_of(count: int = 40, size: int = 6, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(classes - 1, (count,), generator=random)
    labels[:3] = classes - 1  # a small class
    return torch.randn(count, size, generator=random).half(), labels


def gram_by_loop(points: torch.Tensor, labels: torch.Tensor) -> np.ndarray:
    rows, found = points.double().numpy(), np.zeros((points.shape[1],) * 2)
    for row, label in zip(rows, labels.tolist(), strict=True):
        found += np.outer(row, row) / (labels == label).sum().item()
    return found


def weights_by_loop(points: torch.Tensor, labels: torch.Tensor, penalty: float, scales: np.ndarray) -> np.ndarray:
    """Least squares over rows that are weighted and followed by the rows of the penalty."""
    rows, count, size = points.double().numpy() * scales, int(labels.max()) + 1, points.shape[1]
    sizes = np.bincount(labels.numpy(), minlength=count)
    root = np.sqrt(penalty * sum(row @ row / sizes[c] for row, c in zip(rows, labels, strict=True)) / size)
    left = [row / np.sqrt(sizes[c]) for row, c in zip(rows, labels, strict=True)] + list(root * np.eye(size))
    right = [np.eye(count)[c] / np.sqrt(sizes[c]) for c in labels] + [np.zeros(count)] * size
    return np.linalg.lstsq(np.array(left), np.array(right), rcond=None)[0] * scales[:, None]


def test_sums_and_weights_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphfcl.methods.shared.class_statistics.CHUNK", 7)
    points, labels = points_of()
    sums = plus(RidgeSums.empty(6), points, labels, 4)
    np.testing.assert_allclose(sums.gram, gram_by_loop(points, labels), rtol=1e-12, atol=1e-12)
    for c in range(4):
        np.testing.assert_allclose(sums.sums[c], points[labels == c].double().numpy().sum(axis=0), rtol=1e-12)
        assert sums.counts[c] == (labels == c).sum()
    scales = np.array([1.0, 1, 1, 2, 2, 2])
    found = sums.solve(0.3, torch.tensor(scales))
    np.testing.assert_allclose(found, weights_by_loop(points, labels, 0.3, scales), rtol=1e-9)
    again = RidgeSums.empty(6).loaded(sums.tensors(), torch.device("cpu"))
    assert torch.equal(torch.triu(again.gram), torch.triu(sums.gram))
    assert torch.equal(again.gram, again.gram.T)
    assert sums.nbytes == sum(tensor.nbytes for tensor in sums.tensors().values())


def test_a_class_that_gets_more_keeps_the_weight_of_its_first_points() -> None:
    points, labels = points_of()
    first = plus(RidgeSums.empty(6), points[:30], labels[:30], 4)
    both = plus(first, points[30:], labels[30:], 4)
    expected = gram_by_loop(points[:30], labels[:30])
    for row, label in zip(points[30:].double().numpy(), labels[30:].tolist(), strict=True):
        expected += np.outer(row, row) / (labels == label).sum().item()
    np.testing.assert_allclose(both.gram, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(both.sums, plus(RidgeSums.empty(6), points, labels, 4).sums, rtol=1e-12)


def test_a_matrix_that_is_not_positive_definite_is_not_solved() -> None:
    points, labels = points_of()
    sums = plus(RidgeSums.empty(6), points, labels, 4)
    nobody = plus(RidgeSums.empty(6), points[:0], labels[:0], 4)
    twice = plus(RidgeSums.empty(6), 2 * points[:20], labels[:20], 4)
    with pytest.raises(DivergenceError, match="use a larger penalty"):
        sums.exchanged(twice, nobody).solve(0.01, torch.ones(6, dtype=torch.float64))


def blocks_by_loop(visible: VisibleGraph, start: VisibleGraph, basis: np.ndarray) -> np.ndarray:
    """[ n(XB), n(ÂÂXB) ] of every node, with dense matrices."""

    def raw(graph: VisibleGraph) -> list[np.ndarray]:
        features = graph.features.toarray().astype(float)
        own = np.array([row / max(np.linalg.norm(row), 1e-8) for row in features]) @ basis
        loops = graph.adjacency.toarray().astype(float) + np.eye(graph.node_count)
        root = np.diag(1 / np.sqrt(loops.sum(axis=1)))
        smooth = root @ loops @ root
        return [own, smooth @ smooth @ own]

    blocks = []
    for here, then in zip(raw(visible), raw(start), strict=True):
        centred = here - then.mean(axis=0)
        blocks.append(centred / np.linalg.norm(centred, axis=1, keepdims=True).clip(min=1e-8))
    return np.concatenate(blocks, axis=1)


def test_vectors_and_scores_are_those_of_a_loop() -> None:
    stream = stream_of()
    learner = fitted(stream.base, penalty=0.5, hop_weight=2.0)
    learner.learn(stream.session(1))
    visible, start = stream.evaluation_graph(1), stream.base.visible_graph
    basis = learner.blocks.basis.double().numpy()
    np.testing.assert_allclose(basis.T @ basis, np.eye(24), atol=0.02)
    vectors = blocks_by_loop(visible.loaded(), start.loaded(), basis)
    np.testing.assert_allclose(learner.embeddings(visible), vectors, atol=6e-4)
    session = stream.session(1)
    before = blocks_by_loop(start.loaded(), start.loaded(), basis)[start.rows(stream.base.train)]
    after = blocks_by_loop(session.visible_graph.loaded(), start.loaded(), basis)[
        session.visible_graph.rows(session.supports)
    ]
    labels = torch.tensor(np.concatenate([stream.base.train_labels, session.support_labels]))
    scales = np.repeat([1.0, 2.0], 24)
    weights = weights_by_loop(torch.tensor(np.concatenate([before, after])), labels, 0.5, scales)
    found = learner.scores(visible, visible.nodes)
    np.testing.assert_allclose(found, vectors @ weights, atol=2e-3 * np.abs(found).max())


def test_sessions_learned_one_by_one_are_those_learned_at_once() -> None:
    stream = stream_of(track="open")
    sessions = [stream.session(number) for number in (1, 2, 3)]
    visible, many = stream.base.visible_graph, len(stream.base.classes)
    one_by_one, backwards, at_once = (fitted(stream.base) for _ in range(3))
    for session in sessions:
        one_by_one.learn(session)
    nodes, labels = (np.concatenate([getattr(s, name) for s in sessions]) for name in ("supports", "support_labels"))
    names = tuple(name for session in sessions for name in session.new_classes)
    at_once.learn(Session(1, names, nodes, labels, visible, "open"))
    for place, session in enumerate(reversed(sessions)):
        columns = np.full(session.supports.size, many + place)
        backwards.learn(Session(place + 1, session.new_classes, session.supports, columns, visible, "open"))
    found = one_by_one.scores(visible, visible.nodes)
    np.testing.assert_allclose(at_once.scores(visible, visible.nodes), found, atol=1e-6)
    order = [*range(many), many + 2, many + 1, many]
    np.testing.assert_allclose(backwards.scores(visible, visible.nodes)[:, order], found, atol=1e-6)


def test_restated_it_is_what_was_learned_and_without_a_node_what_never_saw_it() -> None:
    stream = stream_of(track="open")
    session, visible = stream.session(1), stream.base.visible_graph
    train, supports = (stream.base.train, stream.base.train_labels), (session.supports, session.support_labels)
    learner, never = fitted(stream.base), fitted(stream.base)
    learner.learn(session)
    expected = learner.memory.now
    assert learner.restate(visible, train, supports)
    for name in ("gram", "sums", "counts"):
        torch.testing.assert_close(getattr(learner.memory.now, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
    fewer = (supports[0][1:], supports[1][1:])
    never.learn(Session(1, session.new_classes, *fewer, visible, "open"))
    found = learner.scores_without(visible, (supports[0][:1], supports[1][:1]), train, supports)
    assert found is not None
    np.testing.assert_allclose(found, never.scores(visible, supports[0][:1]), atol=1e-5)
    for name in ("gram", "sums", "counts"):
        torch.testing.assert_close(getattr(learner.memory.now, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
    nobody = (supports[0][:0], supports[1][:0])
    learner.restate(visible, train, nobody)
    assert np.isneginf(learner.scores(visible, visible.nodes)[:, -1]).all(), "a class without a node is no answer"


def test_without_a_node_it_is_summed_up_again_if_the_graph_moved_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(track="open")
    session, visible = stream.session(1), stream.base.visible_graph
    train, supports = (stream.base.train, stream.base.train_labels), (session.supports, session.support_labels)
    learner = fitted(stream.base)
    learner.learn(session)
    left_out = (supports[0][:1], supports[1][:1])
    expected = learner.scores_without(visible, left_out, train, supports)
    nobody = RidgeSums.empty(learner.blocks.width)
    monkeypatch.setattr(RidgeSums, "exchanged", lambda *_: replace(nobody, gram=nobody.gram - 1))
    found = learner.scores_without(visible, left_out, train, supports)
    assert expected is not None
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_penalty_and_hop_weight_are_those_that_validation_sessions_like_best() -> None:
    stream = stream_of()
    pairs = [(penalty, weight) for penalty in (1e4, 1e-6, 1.0) for weight in (0.0, 1.0)]
    changes: dict[str, Any] = {"penalties": (1e4, 1e-6, 1.0), "hop_weights": (0.0, 1.0)}
    learner = fitted(stream.base, margin=0.0, **changes)
    validation = ValidationSessions.draw(stream.base, stream.base.pseudo_novel_columns, 0)
    assert (validation.known_count, validation.class_count) == (3, 6)
    visible, scores = stream.base.visible_graph, []
    vectors = torch.tensor(learner.embeddings(visible))
    for penalty, weight in pairs:

        def predict(few: Any, how: Any = (penalty, weight)) -> np.ndarray:
            rows = visible.rows(np.concatenate([validation.train[0], few[0]]))
            labels = torch.tensor(np.concatenate([validation.train[1], few[1]]))
            found = weights_by_loop(vectors[rows], labels, how[0], np.repeat([1.0, how[1]], 24))
            assert found.shape[1] == validation.class_count
            return (vectors[visible.rows(validation.queries[0])].double().numpy() @ found).argmax(axis=1)

        scores.append(np.mean([validation.only(draw).score(predict) for draw in range(STEP_DRAWS)]))
    assert len(set(scores)) > 2
    assert np.argmax(scores) > 0
    assert tuple(learner.chosen().values()) == pairs[int(np.argmax(scores))]
    gain = max(scores) - scores[0]
    for margin, place in ((gain + 0.001, 0), (gain - 0.001, int(np.argmax(scores)))):
        other = fitted(stream.base, margin=margin, **changes)
        assert tuple(other.chosen().values()) == pairs[place]


def test_without_pseudo_novel_classes_or_a_choice_the_first_candidate_is_taken() -> None:
    learner = fitted(stream_of(pseudo_novel=0, way=3).base, penalties=(7.0, 1.0), hop_weights=(3.0, 1.0))
    assert learner.chosen() == {"penalty": 7.0, "hop_weight": 3.0}
    assert fitted(stream_of().base, penalty=5.0, hop_weight=0.5).chosen() == {"penalty": 5.0, "hop_weight": 0.5}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rank": 0}, "rank"),
        ({"penalties": ()}, "penalties is empty"),
        ({"penalty": 0.0}, "above 0"),
        ({"hop_weights": (-1.0,)}, "at least 0"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_method("sgc-ridge").make(changes)


@pytest.mark.parametrize("kind", ["none", "dense"])
def test_graphs_without_or_with_dense_features_are_learned(kind: str) -> None:
    stream = stream_of()

    def other(visible: VisibleGraph) -> VisibleGraph:
        dense = visible.features.toarray()
        return visible.with_features(dense[:, :0] if kind == "none" else dense)

    base, session = stream.base, stream.session(1)
    learner = fitted(replace(base, visible_graph=other(base.visible_graph.loaded())))
    learner.learn(replace(session, visible_graph=other(session.visible_graph.loaded())))
    visible = other(stream.evaluation_graph(1).loaded())
    found = learner.scores(visible, visible.nodes)
    assert np.isfinite(found).all()
    if kind == "dense":
        same = fitted(base)
        same.learn(session)
        np.testing.assert_allclose(found, same.scores(stream.evaluation_graph(1), visible.nodes), atol=2e-3)


def test_nothing_is_written_into_arrays_that_cannot_be_written() -> None:
    stream = stream_of()
    base, session = stream.base, stream.session(1)
    for array in (base.train, base.train_labels, base.validation, session.supports, session.support_labels):
        array.flags.writeable = False
    learner = fitted(base)
    learner.learn(session)
    assert np.isfinite(learner.scores(stream.evaluation_graph(1), stream.queries(1).nodes)).all()


def test_no_node_is_kept_and_sums_do_not_grow_with_them() -> None:
    stream = stream_of()
    learner = fitted(stream.base)
    stored = learner.stored()
    assert (stored["nodes"], stored["features"]) == (0, 0)
    assert stored["embeddings"] == 8 * (48 * 49 // 2 + 6 * 48 + 6)
    assert stored["weights"] == 80 * 24 + 4 * 24 * 3
    tensors = learner.state().tensors
    assert sum(stored.values()) == sum(tensors[key].nbytes for key in tensors if key != "generator")


def test_a_model_in_production_learns_and_takes_back() -> None:
    graph = load_dataset(GRAPH)[0]
    model = GraphClassifier("sgc-ridge", QUICK).fit(graph, hide_classes=("class-08",))
    before = model.predict_proba()
    ids = graph.node_ids[graph.labels == graph.class_number("class-08")].tolist()
    model.learn({"eight": ids[:5]})
    assert model.history[-1]["accuracy"]["leave_one_out"] is not None
    model.unlearn(ids[:5])
    assert model.history[-1]["exact"]
    np.testing.assert_allclose(model.predict_proba(), before, atol=1e-5)


def test_more_points_of_known_classes_come_to_all_points_at_once() -> None:
    random = torch.Generator().manual_seed(3)
    points, labels = torch.randn(30, 6, generator=random), torch.arange(30) % 3
    first, later = torch.arange(30) < 12, torch.arange(30) >= 12
    whole = plus(RidgeSums.empty(6), points, labels, 3)
    sums = plus(RidgeSums.empty(6), points[first], labels[first], 3)
    counts = counts_with(sums.counts, labels[later], 3)
    for some in (slice(0, 5), slice(5, 12)):  # earlier points may come in parts
        sums = sums.reweighted([(points[first][some], labels[first][some])], counts)
    sums = plus(sums, points[later], labels[later], 3)
    gram = torch.zeros(6, 6, dtype=torch.float64)
    for point, label in zip(points.double(), labels.tolist(), strict=True):
        gram += torch.outer(point, point) / float((labels == label).sum())
    for found in (sums, whole):
        torch.testing.assert_close(found.gram, gram, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(found.counts, torch.full((3,), 10.0, dtype=torch.float64))
    torch.testing.assert_close(sums.sums, whole.sums, rtol=1e-12, atol=1e-12)


def test_an_explanation_adds_up_to_the_difference_of_scores() -> None:
    """Blocks are exact; features and nodes around are their block but for the centre, recomputed here in 64 bits."""
    stream = stream_of()
    learner = fitted(stream.base)
    learner.learn(stream.session(1))
    visible = stream.evaluation_graph(1)
    features = np.asarray(visible.loaded().features.todense(), dtype=np.float64)
    features /= np.maximum(np.linalg.norm(features, axis=1), 1e-8)[:, None]
    spread = visible.loaded().normalised.toarray().astype(np.float64)
    basis, centres = learner.blocks.basis.double().numpy(), [each.double().numpy() for each in learner.blocks.centres]
    weights = learner._head_now(learner.cache.inputs(visible))["weights"].double().numpy()
    for node in visible.nodes[::57].tolist():
        row = int(visible.rows(np.array([node]))[0])
        scores = learner.scores(visible, np.array([node]))[0]
        first, second = np.argsort(-scores)[:2]
        found = learner.explain(visible, node, top=10_000)
        assert found is not None
        assert [column for column, _ in found.classes] == np.argsort(-scores).tolist()
        assert sum(found.blocks.values()) == pytest.approx(scores[first] - scores[second], abs=1e-4)
        direction = np.split(weights[:, first] - weights[:, second], 2)
        hops = spread[row] @ spread
        for block, rows, listed in (
            ("own features", features[row] * np.eye(len(basis)), found.features),
            ("features around", hops[:, None] * features, found.around),
        ):
            place = list(found.blocks).index(block)
            raw = (rows @ basis).sum(axis=0)
            length = np.linalg.norm(raw - centres[place])
            assert found.blocks[block] == pytest.approx((raw - centres[place]) @ direction[place] / length, abs=2e-3)
            adds = rows @ basis @ direction[place] / length
            names = np.arange(len(basis)) if block == "own features" else visible.nodes
            expected = {int(names[k]): adds[k] for k in np.flatnonzero(adds)}
            assert dict(listed).keys() >= {name for name, value in expected.items() if abs(value) > 1e-9}
            for name, value in listed:
                assert value == pytest.approx(expected.get(name, 0.0), abs=1e-4)
        near = np.setdiff1d(np.flatnonzero(spread[row]), [row])
        assert {other: share for other, share, *_ in found.neighbours} == pytest.approx(
            {int(visible.nodes[k]): spread[row, k] for k in near}
        )
