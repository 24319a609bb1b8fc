from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl.errors import DivergenceError, GraphfclWarning, InputError
from graphfcl.graph import build_graph
from graphfcl.methods import METHODS
from graphfcl.production import GraphClassifier
from graphfcl.production.codec import decode, encode
from graphfcl.production.ledger import Part
from tests.production.models import HIDDEN, fitted, members, quick, same_answers, small_graph

NAMES = [method.name for method in METHODS]


def copy_of(model: GraphClassifier) -> GraphClassifier:
    copy = GraphClassifier.from_parts(decode(*encode(model.parts()), device="cpu"))
    copy.history = [dict(entry) for entry in model.history]
    return copy


@pytest.fixture(scope="module")
def start() -> GraphClassifier:
    return fitted()


@pytest.fixture
def model(start: GraphClassifier) -> GraphClassifier:
    return copy_of(start)


@pytest.mark.parametrize("name", NAMES)
def test_any_method_can_be_behind_it(name: str) -> None:
    model = fitted(name)
    assert model.classes_ == tuple(c for c in small_graph().class_names if c not in HIDDEN)
    first, second = members("class-08"), members("class-09")
    model.learn({"eight": first[:5], "nine": second[:5]})
    assert model.classes_[-2:] == ("eight", "nine")
    probabilities = model.predict_proba(first + second)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    found = model.predict(first[5:] + second[5:])
    right = found == np.array(["eight"] * (len(first) - 5) + ["nine"] * (len(second) - 5), dtype=object)
    assert right.mean() > 0.3
    columns = model.predictions(first)
    assert list(columns) == ["node", "class", "probability", "unknown_score", "unknown"]
    assert columns["node"].tolist() == first
    same_answers(copy_of(model), model, 1e-5)
    model.add_nodes([9000], np.zeros((1, 200)))
    model.add_edges([9000, 9000], [first[0], first[1]])
    fresh = copy_of(model)
    same_answers(fresh, model, 1e-4)
    model.remove_nodes([first[2]])
    model.merge("nine", "eight")
    model.retire("eight")
    assert "eight" not in model.classes_
    assert set(model.predict()) <= set(model.classes_)


def test_all_labelled_nodes_play_a_part_and_a_fifth_is_held_out(start: GraphClassifier) -> None:
    graph = small_graph()
    shown = np.flatnonzero(~np.isin(graph.labels, [graph.class_names.index(name) for name in HIDDEN]))
    assert sorted(start.ledger_.nodes.tolist()) == shown.tolist()
    nodes, columns = start.ledger_.of_part(Part.VALIDATION)
    sizes = np.bincount(columns)
    for column, name in enumerate(start.classes_):
        assert abs(sizes[column] - len(members(name)) / 5) <= 0.5
        assert {graph.class_names[graph.labels[node]] for node in nodes[columns == column]} == {name}
    base = start.learner_.sizes["base"]  # type: ignore[attr-defined]
    assert base == round(8 * 0.55)


def test_classes_with_few_labels_are_learned_too() -> None:
    graph = small_graph()
    labels = graph.labels.copy()
    for name, count in (("class-07", 1), ("class-08", 3), ("class-09", 6)):
        labels[np.flatnonzero(labels == graph.class_number(name))[count:]] = -1
    thin = build_graph(graph.adjacency, graph.features, labels, class_names=graph.class_names, node_ids=graph.node_ids)
    model = GraphClassifier("proto-gcn", quick("proto-gcn")).fit(thin)
    assert set(model.classes_) == set(graph.class_names)
    assert (model.predict(members("class-09")) == "class-09").mean() > 0.3


def test_learning_needs_no_forward_pass_and_asking_none(
    model: GraphClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = type(model.learner_.network.encoder)  # type: ignore[attr-defined]
    passes = []
    forward = encoder.forward

    def counted(*arguments: Any, **options: Any) -> Any:
        passes.append(1)
        return forward(*arguments, **options)

    monkeypatch.setattr(encoder, "forward", counted)
    model.predict()
    asked = len(passes)
    assert asked <= 1
    model.learn({"eight": members("class-08")[:5]})
    model.predict()
    model.predictions(members("class-08"))
    assert len(passes) == asked


BAD = [
    ({"eight": []}, "has no node"),
    ({}, "nothing to learn"),
    ({"eight": ["no such node"]}, "is not in the graph"),
    ({"eight": [123456]}, "is not in the graph"),
    ({" ": "members"}, "empty class"),
    ({"eight": "twice"}, "again"),
    ({"eight": "members", "nine": "members"}, "has the class 'eight'"),
    ({"eight": "labelled"}, "is labelled 'class-00' already"),
    ({"class-00": "labelled"}, "is labelled 'class-00' already"),
]


@pytest.mark.parametrize(("supports", "message"), BAD)
def test_bad_supports_are_refused_whole(model: GraphClassifier, supports: dict[str, Any], message: str) -> None:
    good = members("class-08")[:3]
    lists = {"members": good, "twice": [good[0], good[0]], "labelled": members("class-00")[:1]}
    before = model.predict_proba()
    with pytest.raises(InputError, match=message):
        model.learn({name: lists[nodes] if isinstance(nodes, str) else nodes for name, nodes in supports.items()})
    np.testing.assert_array_equal(model.predict_proba(), before)
    assert "eight" not in model.classes_
    assert len(model.history) == 1


def test_a_failure_in_the_middle_changes_nothing(model: GraphClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    before, classes = model.predict_proba(), model.classes_

    def fail(*_: object) -> None:
        raise RuntimeError("no more memory")

    with monkeypatch.context() as patch:
        patch.setattr(GraphClassifier, "_settle", fail)
        for change in (
            lambda: model.learn({"eight": members("class-08")[:5]}),
            lambda: model.add_edges([members("class-08")[0]], [members("class-00")[0]]),
            lambda: model.retire("class-00"),
            lambda: model.remove_nodes(members("class-00")[:3]),
        ):
            with pytest.raises(RuntimeError):
                change()
    assert model.classes_ == classes
    np.testing.assert_allclose(model.predict_proba(), before, rtol=1e-6)
    model._scores = None
    np.testing.assert_allclose(model.predict_proba(), before, rtol=1e-5, atol=1e-6)


KEEPS_NODES = ["anchor", "proto-gcn", "gpn", "hag-meta"]


@pytest.mark.parametrize("name", KEEPS_NODES)
def test_what_is_taken_back_was_never_seen(name: str) -> None:
    model = fitted(name, **({"fine_tuning_steps": 0} if name == "hag-meta" else {}))
    eight, nine = members("class-08"), members("class-09")
    never = copy_of(model).learn({"eight": eight[:5]})
    once = copy_of(model).learn({"eight": eight[:6], "nine": nine[:5]})
    once.unlearn([eight[5]])
    once.retire("nine")
    assert all(entry["exact"] for entry in once.history[-2:])
    same_answers(once, never, 1e-6)
    together = copy_of(model).learn({"eight": [*eight[:5], *nine[:5]]})
    merged = copy_of(model).learn({"eight": eight[:5], "nine": nine[:5]}).merge("nine", "eight")
    same_answers(merged, together, 1e-6)
    emptied = copy_of(model).learn({"nine": nine[:1]}).unlearn(nine[:1])
    assert emptied.history[-1]["retired"] == ["nine"]
    same_answers(emptied, model, 1e-6)


def test_removed_nodes_and_edges_were_never_there(model: GraphClassifier) -> None:
    eight = members("class-08")
    model.learn({"eight": eight[:5]})
    grown = copy_of(model)
    grown.grow(nodes=([9000, 9001], np.ones((2, 200)), None), edges=([9000, 9001], [eight[0], 9000], None))
    grown.learn({"eight": [9000]})
    grown.remove_edges([9000], [eight[0]])
    grown.remove_nodes([9000, 9001])
    same_answers(grown, model, 1e-5)


def test_after_growth_too_what_is_taken_back_was_never_seen() -> None:
    eight, nine = members("class-08"), members("class-09")
    model = fitted("anchor").learn({"eight": eight[:5]})
    never = copy_of(model)
    model.learn({"nine": nine[:5]})
    for each in (never, model):
        each.add_edges(eight[:3], nine[:3])
    model.unlearn(nine[:5])
    assert model.history[-1]["exact"]
    same_answers(model, never, 1e-5)


def test_a_class_is_renamed_and_nothing_else(model: GraphClassifier) -> None:
    before = model.predict_proba()
    model.rename("class-00", "zero")
    np.testing.assert_array_equal(model.predict_proba(), before)
    assert model.classes_[0] == "zero"
    with pytest.raises(InputError, match="already"):
        model.rename("zero", "class-01")
    with pytest.raises(InputError, match="did you mean 'class-01'"):
        model.retire("class01")


def test_a_retired_name_can_be_learned_again(model: GraphClassifier) -> None:
    eight = members("class-08")
    model.learn({"eight": eight[:5]}).retire("eight")
    model.learn({"eight": eight[:5]})
    assert model.classes_[-1] == "eight"
    assert (model.predict(eight[5:]) == "eight").mean() > 0.3


@pytest.fixture(scope="module")
def far_start() -> GraphClassifier:
    return fitted("anchor", hops=4)


@pytest.mark.parametrize("far", [False, True])
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_growth_recomputes_exactly_what_it_reaches(
    start: GraphClassifier, far_start: GraphClassifier, far: bool, data: st.DataObject
) -> None:
    graph = small_graph()
    model = copy_of(far_start if far else start)
    ids = st.sampled_from(graph.node_ids.tolist())
    for _ in range(2):
        if data.draw(st.booleans()):
            count = data.draw(st.integers(1, 3))
            fresh = [10000 + model.graph_.next_number + number for number in range(count)]
            targets = data.draw(st.lists(ids, min_size=count, max_size=count))
            features = np.random.default_rng(0).random((count, 200)).astype(np.float32)
            model.grow(nodes=(fresh, features, None), edges=(fresh, targets, None))
        else:
            adjacency = model.graph_.adjacency.tocoo()
            place = data.draw(st.integers(0, adjacency.nnz - 1))
            ends = model.node_ids_[[adjacency.row[place], adjacency.col[place]]]
            model.remove_edges([ends[0]], [ends[1]])
    found = model.learner_.embedding_table(model.graph_.visible)
    again = copy_of(model)
    expected = again.learner_.embedding_table(again.graph_.visible)
    digits = 1e-4 if found.dtype == np.float32 else 2e-3  # kept in 16 bits
    np.testing.assert_allclose(found, expected, rtol=digits, atol=digits / 10)
    same_answers(again, model, digits)


def test_text_nodes_grow_in_by_their_words() -> None:
    import scipy.sparse as sp

    from graphfcl.graph import TextSettings

    random = np.random.default_rng(0)
    words = np.array(["apple", "banana", "cherry", "dragon", "engine", "forest"])
    labels = np.repeat(np.arange(3), 60)
    counts = sp.csr_array((random.random((180, 6)) < 0.15).astype(np.float32))
    counts = sp.csr_array(counts + sp.csr_array(np.eye(6, dtype=np.float32)[labels * 2]))
    adjacency = sp.random_array((180, 180), density=0.005, rng=random)
    graph = build_graph(adjacency, counts, labels, feature_names=words, text=TextSettings(1))
    model = GraphClassifier("proto-gcn", quick("proto-gcn"), shot=3).fit(graph)
    model.add_nodes(
        ["a", "b"] if model.node_ids_.dtype.kind != "i" else [1000, 1001], texts=["Cherry cherry!", "engine"]
    )
    assert model.predict([1000]).tolist() == ["1"]
    with pytest.raises(InputError, match="no features"):
        model.add_nodes([1002])


def test_nodes_grow_in_by_named_features(model: GraphClassifier) -> None:
    names = [f"feature_{column}" for column in range(200)]
    row = model.graph_.features[[3]].toarray()[0]
    model.add_nodes([9000, 9001], [{n: v for n, v in zip(names, row, strict=True) if v}, {}])
    model.add_nodes([9002], row[None])
    np.testing.assert_array_equal(model.graph_.features[[500]].toarray(), model.graph_.features[[502]].toarray())
    with pytest.raises(InputError, match="no feature 'colour'"):
        model.add_nodes([9003], [{"colour": 1}])


def test_the_history_warns_when_older_classes_lose(model: GraphClassifier) -> None:
    model.max_loss = 0.0
    zero = members("class-00")
    held_out = set(model.ledger_.of_part(Part.VALIDATION)[0].tolist())
    taken = [node for node in zero if node not in held_out][:8]
    model.unlearn(taken)
    model.learn({"lookalike": taken})
    assert "lost" in model.history[-1]["warning"]
    assert model.history[-1]["accuracy"]["leave_one_out"] is not None


def test_leave_one_out_is_what_a_model_without_the_support_says(model: GraphClassifier) -> None:
    eight, nine = members("class-08")[:3], members("class-09")[:3]
    right = []
    for place in range(3):  # one support of each class at a time
        partial = copy_of(model)
        partial.learn(
            {
                "eight": [n for i, n in enumerate(eight) if i != place],
                "nine": [n for i, n in enumerate(nine) if i != place],
            }
        )
        right += (partial.predict([eight[place], nine[place]]) == np.array(["eight", "nine"], dtype=object)).tolist()
    model.learn({"eight": eight, "nine": nine})
    assert model.history[-1]["accuracy"]["leave_one_out"] == pytest.approx(np.mean(right), abs=1e-3)


def test_a_rehearsal_that_fails_is_said_and_the_fit_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphfcl.methods.proto import ProtoGcn

    plain = ProtoGcn.fit

    def fails_on_fewer_classes(self: ProtoGcn, base: Any, *rest: Any) -> None:
        if len(base.classes) < 8:
            raise DivergenceError("no better than chance.")
        plain(self, base, *rest)

    monkeypatch.setattr(ProtoGcn, "fit", fails_on_fewer_classes)
    with pytest.warns(GraphfclWarning, match="rehearsal"):
        model = fitted()
    assert model.calibration_.few_losses is None
    np.testing.assert_allclose(
        model.learn({"eight": members("class-08")[:5]}).predict_proba().sum(axis=1), 1, rtol=1e-5
    )


def test_an_interrupted_change_changes_nothing(model: GraphClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = model.predict_proba()
    with monkeypatch.context() as patch:
        patch.setattr(GraphClassifier, "_settle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.learn({"eight": members("class-08")[:5]})
    assert "eight" not in model.classes_
    np.testing.assert_allclose(model.predict_proba(), before, rtol=1e-6)


def test_it_is_not_fitted_twice_nor_asked_before() -> None:
    empty = GraphClassifier()
    with pytest.raises(InputError, match="not fitted"):
        empty.predict()
    with pytest.raises(InputError, match="has no class 'nothing'"):
        empty.fit(small_graph(), hide_classes=["nothing"])
    with pytest.raises(InputError, match="no method"):
        GraphClassifier("hag").fit(small_graph())
    model = fitted()
    with pytest.raises(InputError, match="is fitted"):
        model.fit(small_graph())
    with pytest.raises(InputError, match="is not in the graph"):
        model.predict(["nobody"])
