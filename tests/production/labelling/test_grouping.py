"""Groups without a name, and what becomes of a group that gets one."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from graphfcl import Graph, GraphClassifier, Group, InputError, build_graph
from graphfcl.production.labelling import groups as groups_module
from graphfcl.production.labelling import groups as what_is_common
from graphfcl.production.labelling import node_vectors
from tests.production.models import HIDDEN, fitted, members, quick, small_graph


@pytest.fixture(scope="module")
def ridge() -> GraphClassifier:
    """No test changes it."""
    return fitted("sgc-ridge")


@pytest.fixture
def teachable(ridge: GraphClassifier) -> GraphClassifier:
    from copy import deepcopy

    return deepcopy(ridge)


def classes_of(nodes: tuple[Any, ...]) -> list[str]:
    graph = small_graph()
    return [graph.class_names[graph.labels[np.flatnonzero(graph.node_ids == node)[0]]] for node in nodes]


def test_the_hidden_classes_are_found(ridge: GraphClassifier) -> None:
    found = ridge.groups()
    assert [group.number for group in found] == list(range(1, len(found) + 1))
    assert {Counter(classes_of(group.nodes)).most_common(1)[0][0] for group in found[:2]} == set(HIDDEN)
    for group in found[:2]:
        counted = Counter(classes_of(group.nodes))
        assert counted.most_common(1)[0][1] / group.size > 0.9
        assert group.size == len(group.nodes) == len(set(group.nodes))
        assert 0 < group.estimated_purity < 1
    everybody = [node for group in found for node in group.nodes]
    assert len(everybody) == len(set(everybody))


def test_members_have_no_label_and_look_unknown(ridge: GraphClassifier) -> None:
    nodes = [node for group in ridge.groups() for node in group.nodes]
    assert not set(nodes) & set(ridge.label_columns()["node"].tolist())
    assert ridge.prediction_columns(nodes)["unknown"].all()


def test_typical_members_are_different_parts_of_the_group(ridge: GraphClassifier) -> None:
    for group in ridge.groups():
        assert len(group.typical) == len(set(group.typical)) == 5
        assert set(group.typical) <= set(group.nodes)
        nearest = ridge.spread(group.nodes[:5])
        assert ridge.spread(group.typical).value >= nearest.value


def test_a_group_says_what_it_links_to_and_why(ridge: GraphClassifier) -> None:
    graph, (group, *_) = small_graph(), ridge.groups()
    rows = [int(np.flatnonzero(graph.node_ids == node)[0]) for node in group.nodes]
    labelled = set(ridge.label_columns()["node"].tolist())
    counted: Counter[str] = Counter()
    inside = total = 0
    for row in rows:
        for end in graph.adjacency[[row]].indices.tolist():
            total += 1
            inside += end in rows
            if graph.node_ids[end] in labelled:
                counted[graph.class_names[graph.labels[end]]] += 1
    shares = {name: count / sum(counted.values()) for name, count in counted.items()}
    assert list(group.shares) == pytest.approx(sorted(shares.values(), reverse=True)[:3])
    for name, share in zip(group.neighbours, group.shares, strict=True):
        assert share == pytest.approx(shares[str(name)])
    assert f"its {group.size} nodes look like" in group.why
    assert group.why.endswith(
        f"nodes as alike whose class is known are {100 * group.estimated_purity:.0f} % of one class"
    )
    assert f"{100 * inside / total:.0f} % of their links" in group.why
    assert json.loads(json.dumps(group.as_json()))["nodes"] == list(group.nodes)


def named_graph() -> Graph:
    """The small graph with names of features; a hidden class has a word of its own, one that half of the
    others have, and one that all have."""
    graph = small_graph()
    features = graph.features.toarray() if hasattr(graph.features, "toarray") else graph.features
    eight = graph.labels == graph.class_number("class-08")
    often = eight | (np.arange(graph.node_count) % 2 == 0)
    features = np.column_stack([features, eight, often, np.ones(graph.node_count)]).astype(np.float32)
    from scipy import sparse

    names = [*(f"word{place}" for place in range(features.shape[1] - 3)), "gardening", "often", "the"]
    return build_graph(
        graph.adjacency,
        sparse.csr_array(features),
        graph.labels,
        class_names=graph.class_names,
        node_ids=graph.node_ids,
        feature_names=names,
    )


def test_common_words_are_frequent_inside_and_rare_outside() -> None:
    model = GraphClassifier("sgc-ridge", quick("sgc-ridge")).fit(named_graph(), hide_classes=HIDDEN)
    by_class = {Counter(classes_of(group.nodes)).most_common(1)[0][0]: group for group in model.groups()}
    assert "gardening" in by_class["class-08"].words
    assert "gardening" not in by_class["class-09"].words
    assert not any({"the", "often"} & set(group.words) for group in by_class.values())


def test_dense_features_are_high_or_low() -> None:
    graph, random = small_graph(), np.random.default_rng(0)
    values = random.normal(size=(graph.node_count, 12)).astype(np.float32)
    for number in range(10):
        values[graph.labels == number, number] += 6
    values[graph.labels == 9, 10] -= 6
    dense = build_graph(
        graph.adjacency,
        values,
        graph.labels,
        class_names=graph.class_names,
        node_ids=graph.node_ids,
        feature_names=[f"size{place}" for place in range(12)],
    )
    model = GraphClassifier("sgc-ridge", quick("sgc-ridge")).fit(dense, hide_classes=HIDDEN)
    by_class = {Counter(classes_of(group.nodes)).most_common(1)[0][0]: group for group in model.groups()}
    assert {"high size9", "low size10"} <= set(by_class["class-09"].words)
    assert by_class["class-08"].words[0] == "high size8"


def test_features_of_all_nodes_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, counted = (
        GraphClassifier("sgc-ridge", quick("sgc-ridge")).fit(named_graph(), hide_classes=HIDDEN),
        list[int](),
    )
    real = what_is_common._counts

    def noted(features: Any) -> np.ndarray:
        counted.append(features.shape[0])
        return real(features)

    monkeypatch.setattr(what_is_common, "_counts", noted)
    groups = model.groups()
    assert len(groups) > 1
    assert sorted(counted) == sorted([len(model.node_ids_), *(group.size for group in groups)])


def test_a_model_that_knows_all_classes_has_no_group() -> None:
    model = GraphClassifier("sgc-ridge", quick("sgc-ridge")).fit(small_graph())
    assert model.groups() == ()


def test_a_seed_repeats_and_a_count_cuts(ridge: GraphClassifier) -> None:
    assert ridge.groups(seed=3) == ridge.groups(seed=3)
    assert ridge.groups(1) == ridge.groups()[:1]
    with pytest.raises(InputError, match="the number of groups is 0"):
        ridge.groups(0)


def test_of_many_unknown_nodes_some_are_drawn(ridge: GraphClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups_module, "MOST", 40)
    groups = ridge.groups()
    nodes = [node for group in groups for node in group.nodes]
    assert 10 <= len(nodes) <= 40
    labelled = ridge.label_columns()["node"]
    unknown = [
        node
        for node, said in zip(*(ridge.prediction_columns()[name] for name in ("node", "unknown")), strict=True)
        if said
    ]
    count = len(set(unknown) - set(labelled.tolist()))
    assert f"its {groups[0].size} nodes, of the 40 drawn out of {count}, look like" in groups[0].why


def test_a_learner_without_vectors_is_helped_out(ridge: GraphClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(ridge.learner_), "vectors_to_draw", lambda *_: None)
    assert {Counter(classes_of(group.nodes)).most_common(1)[0][0] for group in ridge.groups()[:2]} == set(HIDDEN)


def test_all_nodes_are_compared_by_fewer_columns_if_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    basis, places = random.normal(size=(4, 100)), random.normal(size=(500, 4))
    table = (places @ basis).astype(np.float32)
    monkeypatch.setattr(node_vectors, "MANY", 200)
    monkeypatch.setattr(node_vectors, "SAMPLE", 100)
    found = node_vectors.vectors_of_all(lambda rows: table[rows], 500, 0)
    assert found.shape == (500, 64)
    first, second = np.triu_indices(500, 1)
    distances = [np.linalg.norm(each[first] - each[second], axis=1) for each in (found, table)]
    np.testing.assert_allclose(distances[0], distances[1], rtol=1e-3)


# Naming one


def test_naming_a_group_teaches_its_class(teachable: GraphClassifier) -> None:
    group = teachable.groups()[0]
    truth = Counter(classes_of(group.nodes)).most_common(1)[0][0]
    assert teachable.name_group(group, "gardening", by="ann") is teachable
    entry = teachable.history[-1]
    assert entry["new"] == ["gardening"]
    assert entry["supports"] == {"gardening": list(group.typical)}
    assert {each["by"] for each in entry["statements"]} == {"ann"}
    others = [node for node in members(truth) if node not in group.typical]
    assert (teachable.predict(others) == "gardening").mean() > 0.8


def test_as_many_members_are_taught_as_the_model_has_shots(teachable: GraphClassifier) -> None:
    group = teachable.groups()[0]
    for shot in (3, 8):
        teachable.shot = shot
        taught = groups_module.supports_of_group(teachable._current(), group, teachable.shot)
        assert len(set(taught)) == shot
        assert set(taught) <= set(group.nodes)
    teachable.shot = 3
    teachable.name_group(group, "x")
    assert teachable.history[-1]["supports"]["x"] == list(group.typical[:3])


def test_members_that_got_a_label_meanwhile_are_left_out(teachable: GraphClassifier) -> None:
    group = teachable.groups()[0]
    teachable.learn({"other": group.typical[:2]})
    teachable.name_group(group, "gardening")
    taught = teachable.history[-1]["supports"]["gardening"]
    assert len(taught) == 5
    assert not set(taught) & set(group.typical[:2])
    teachable.learn({"gardening": [node for node in group.nodes if node not in (*taught, *group.typical[:2])]})
    before = len(teachable.history)
    with pytest.raises(InputError, match="every node of group 1 has a label by now or was removed"):
        teachable.name_group(group, "too late")
    assert len(teachable.history) == before


def test_chosen_members_are_taught_all_of_them_and_no_other(teachable: GraphClassifier) -> None:
    group = teachable.groups()[0]
    chosen = list(group.nodes[::2])
    with pytest.raises(InputError, match="'nobody' is not a member of group 1"):
        teachable.name_group(group, "gardening", nodes=[*chosen, "nobody"])
    with pytest.raises(InputError, match="no member is given"):
        teachable.name_group(group, "gardening", nodes=[])
    assert len(teachable.history) == 1
    teachable.name_group(group, "gardening", nodes=chosen, by="ann", when="2026-11-19")
    assert sorted(teachable.history[-1]["supports"]["gardening"]) == sorted(chosen)
    columns = teachable.label_columns(chosen)
    assert set(columns["when"]) == {"2026-11-19"}
    assert set(columns["reason"]) == {group.reason}


def test_a_bad_name_changes_nothing(teachable: GraphClassifier) -> None:
    group = teachable.groups()[0]
    with pytest.raises(InputError, match="empty class"):
        teachable.name_group(group, " ")
    assert len(teachable.history) == 1


def test_a_group_of_another_graph_is_refused(teachable: GraphClassifier) -> None:
    group: Group = replace(teachable.groups()[0], nodes=("nobody",), typical=("nobody",))
    with pytest.raises(InputError, match="or was removed"):
        teachable.name_group(group, "x")
