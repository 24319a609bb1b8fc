"""Suggestions, groups, spread and explanations of a model on a graph folder, compared with the same one in memory."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from graphfcl import (
    ActiveLearningState,
    Graph,
    GraphClassifier,
    GraphFolder,
    Group,
    Query,
    Resources,
    Strategy,
    suggest_for_graph,
)
from graphfcl.active.contract import likeliest_classes
from graphfcl.active.untrained import untrained_vectors
from graphfcl.graph.folder import write_folder
from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.graph.ids import text_array
from graphfcl.production.labelling import node_vectors
from graphfcl.production.labelling.node_vectors import vectors_of, vectors_of_all
from tests.methods.blocks.samples import random_graph, separate_rings
from tests.production.graph.folder_models import HIDDEN, fit, supports

Pair = tuple[GraphClassifier, GraphClassifier, GraphFolder]


def on_disk(graph: Graph, path: Path) -> GraphFolder:
    write_folder(graph, path / "graph")
    return GraphFolder.open(path / "graph", Resources(path / "work", 4 << 30))


def named_graph(*, words: bool) -> Graph:
    """Features have names; the last word is one of class 8 alone."""
    graph = random_graph(400, words=words)
    names = [f"word {number}" for number in range(40)]
    if not words:
        return replace(graph, feature_names=text_array(names))
    of_class = sparse.csr_array((graph.labels == 8).astype(np.float32)[:, None])
    features = sparse.csr_array(sparse.hstack([graph.features, of_class], format="csr"))
    return replace(graph, features=features, feature_names=text_array([*names, "gear"]))


@pytest.fixture(scope="module", params=[False, True], ids=["numbers", "words"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The same model in memory and on disk, taught a class and grown by two nodes; no test changes it."""
    graph = on_disk(named_graph(words=request.param), tmp_path_factory.mktemp("labelling"))
    memory, disk = fit(graph.loaded()), fit(graph)
    ends = graph.node_ids[:4].tolist()
    for each in (memory, disk):
        each.learn({HIDDEN[0]: supports(graph)[HIDDEN[0]]})
        new = ([5000, 5001], graph.features(0, 2), None)
        each.grow(nodes=new, edges=([5000, 5001, *ends], [*ends, 5000, 5001], None))
    return memory, disk, graph


@pytest.mark.parametrize("strategy", ["auto", "uncertain", "unknown", "random"])
def test_suggestions(pair: Pair, strategy: str) -> None:
    expected, found = (model.suggest(12, strategy=strategy) for model in pair[:2])
    assert len(found) == 12
    assert [(each.node, each.reason, each.why, each.unknown) for each in found] == [
        (each.node, each.reason, each.why, each.unknown) for each in expected
    ]
    for one, other in zip(expected, found, strict=True):
        shares = [dict(zip(each.classes, each.probabilities, strict=True)) for each in (one, other)]
        assert shares[0] == pytest.approx(shares[1], abs=5e-3)
        assert one.unknown_score == pytest.approx(other.unknown_score, abs=2e-2)


def test_typical_nodes(pair: Pair) -> None:
    """They cover the graph as well as those in memory.

    The nodes may differ: with as many k-means clusters as labels, a vector rounded differently moves some of them.
    """
    expected, found, random = (
        [each.node for each in model.suggest(12, strategy=strategy)]
        for model, strategy in ((pair[0], "typical"), (pair[1], "typical"), (pair[0], "random"))
    )
    assert len(found) == 12
    assert distance_to(pair[0], found) < (distance_to(pair[0], expected) + distance_to(pair[0], random)) / 2


def distance_to(model: GraphClassifier, nodes: list[Any]) -> float:
    """Mean distance of all nodes to the nearest one that is labelled or among ``nodes``, in the learner's vectors."""
    visible = model.graph_.visible
    vectors = np.asarray(model.learner_.embeddings(visible), dtype=np.float64)
    near = vectors[visible.rows(np.concatenate([model.label_store_.nodes, model.numbers_of(nodes)]))]
    return float(np.linalg.norm(vectors[:, None] - near[None], axis=2).min(axis=1).mean())


def test_suggestions_for_a_graph_folder_without_a_model(tmp_path: Path) -> None:
    graph = random_graph(300)
    folder = on_disk(replace(graph, labels=np.where(graph.labels > 5, -1, graph.labels)), tmp_path)
    for strategy in ("auto", "random"):
        expected, found = (suggest_for_graph(each, 8, strategy=strategy) for each in (folder.loaded(), folder))
        assert [each.node for each in found] == [each.node for each in expected]


def test_a_strategy_of_your_own_reads_rows(pair: Pair) -> None:
    seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def look(state: ActiveLearningState) -> None:
        assert state.scores is not None
        rows = state.candidates[:5]
        visible = state.visible
        features = sparse.csr_array(visible.features_at(rows)).toarray()
        seen.append((state.scores[rows], visible.neighbours_at(rows).toarray(), features))

    class Looking(Strategy):
        """Looks at a few rows"""

        def choose(self, state: ActiveLearningState) -> list[Query]:
            look(state)
            return [Query(int(row), "random") for row in state.candidates[: state.budget]]

    for model in pair[:2]:
        model.suggest(3, strategy=Looking)
    for one, other in zip(*seen, strict=True):
        np.testing.assert_allclose(one, other, atol=5e-3)


def assert_same_groups(expected: tuple[Group, ...], found: tuple[Group, ...]) -> None:
    assert found
    assert [replace(each, estimated_purity=0.0) for each in found] == [
        replace(each, estimated_purity=0.0) for each in expected
    ]
    assert [each.estimated_purity for each in found] == pytest.approx(
        [each.estimated_purity for each in expected], abs=1e-3
    )


def test_groups(pair: Pair) -> None:
    expected, found = (model.groups(3) for model in pair[:2])
    assert_same_groups(expected, found)
    assert any(group.words for group in found)
    assert any(group.neighbours for group in found)


def test_a_group_is_named_and_taught(tmp_path: Path) -> None:
    graph = on_disk(named_graph(words=False), tmp_path)
    memory, disk = fit(graph.loaded()), fit(graph)
    for model in (memory, disk):
        model.name_group(model.groups()[0], "wheels", by="ann")
    expected, found = (labels_of(model) for model in (memory, disk))
    assert found == expected
    assert sum(name == "wheels" for _, name, _ in found) == disk.shot


def labels_of(model: GraphClassifier) -> list[tuple[int, str, str]]:
    columns = model.label_columns()
    return sorted(zip(*(columns[name].tolist() for name in ("node", "class", "by")), strict=True))


def test_spread(pair: Pair) -> None:
    memory, disk, graph = pair
    for nodes in (graph.node_ids[:6].tolist(), supports(graph)[HIDDEN[1]], [5000, 5001]):
        expected, found = memory.spread(nodes), disk.spread(nodes)
        assert (found.alike, found.say) == (expected.alike, expected.say)
        assert found.value == pytest.approx(expected.value, abs=1e-9)


def test_all_scores_follow_the_ids(pair: Pair) -> None:
    memory, disk, _ = pair
    rows = {node: row for row, node in enumerate(memory.node_ids_.tolist())}
    order = [rows[node] for node in disk.node_ids_.tolist()]
    np.testing.assert_allclose(disk.all_scores(), memory.all_scores()[order], atol=1e-3)


def test_removed_nodes_are_not_compared(tmp_path: Path) -> None:
    """Their rows stay on disk and go in memory; nothing names them, and neighbours are those of the nodes that stay."""
    graph = on_disk(named_graph(words=False), tmp_path)
    memory, disk = fit(graph.loaded()), fit(graph)
    gone = set(graph.node_ids[::7].tolist())
    for each in (memory, disk):
        each.remove_nodes(sorted(gone))
    named = {}
    for strategy in ("auto", "unknown", "uncertain", "typical", "random"):
        expected, found = ({each.node for each in model.suggest(10, strategy=strategy)} for model in (memory, disk))
        named[strategy] = len(found & expected)
        assert len(found) == 10
        assert not found & gone
    assert named["auto"] >= 8
    assert named["unknown"] == named["uncertain"] == 10
    assert not gone & {node for group in disk.groups() for node in group.nodes}
    assert disk.groups()[0].nodes == memory.groups()[0].nodes
    left = [node for node in graph.node_ids.tolist() if node not in gone]
    assert disk.spread(left[:5]).say


@pytest.fixture(scope="module")
def anchors(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The same of ANCHOR, grown after it was taught a class."""
    graph = on_disk(named_graph(words=False), tmp_path_factory.mktemp("anchors"))
    memory, disk = fit(graph.loaded(), "anchor"), fit(graph, "anchor")
    ends = graph.node_ids[:4].tolist()
    for each in (memory, disk):
        each.learn({HIDDEN[0]: supports(graph)[HIDDEN[0]]})
        new = ([5000, 5001], graph.features(0, 2), None)
        each.grow(nodes=new, edges=([5000, 5001, *ends], [*ends, 5000, 5001], None))
    return memory, disk, graph


@pytest.mark.long
def test_explanations(anchors: Pair) -> None:
    memory, disk, graph = anchors
    for node in (5000, supports(graph)[HIDDEN[1]][0], *graph.node_ids[:3].tolist()):
        expected, found = memory.explain(node), disk.explain(node)
        assert [each["class"] for each in found["classes"]] == [each["class"] for each in expected["classes"]]
        for name in ("probability", "by_itself"):
            values = [[each[name] for each in one["classes"]] for one in (expected, found)]
            assert values[1] == pytest.approx(values[0], abs=1e-4)
        for name in ("blocks", "features", "around"):
            assert found[name] == pytest.approx(expected[name], abs=1e-2), name
        neighbours = [{each["node"]: each["share"] for each in one["neighbours"]} for one in (expected, found)]
        assert neighbours[1] == pytest.approx(neighbours[0], abs=1e-4)


@pytest.mark.long
def test_suggestions_and_groups_of_anchor(anchors: Pair) -> None:
    # Vectors that differ in the last of 16 bits may change which of two nodes is the better one.
    expected, found = ({each.node for each in model.suggest(8)} for model in anchors[:2])
    assert len(expected & found) >= 6
    assert [each.nodes for each in anchors[1].groups()] == [each.nodes for each in anchors[0].groups()]


@pytest.mark.parametrize("make", [lambda: separate_rings(features=False), lambda: random_graph(300, words=True)])
def test_vectors_that_no_learner_touched(
    make: Callable[[], Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = on_disk(make(), tmp_path)
    visible = folder.visible(np.arange(folder.node_count))
    monkeypatch.setattr(VisibleFolder, "row_blocks", lambda self: [(0, 100), (100, self.row_count)])
    np.testing.assert_allclose(untrained_vectors(visible), untrained_vectors(visible.loaded()), atol=1e-5)


def test_label_issues(pair: Pair) -> None:
    """They are those in memory, and leave no file behind."""
    memory, disk, folder = pair
    assert folder.work is not None
    disk.calibrate()
    before = sorted(folder.work.rglob("*"))
    expected, found = ({row["node"]: row for row in m.label_issues(threshold=0).to_pylist()} for m in (memory, disk))
    assert found.keys() == expected.keys()
    for node, row in found.items():
        assert row["given"] == expected[node]["given"]
        assert row["confidence"] == pytest.approx(expected[node]["confidence"], abs=2e-2)
    assert sorted(folder.work.rglob("*")) == before


def test_directions_of_many_features_come_from_a_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = on_disk(random_graph(300, words=True), tmp_path)
    visible = folder.visible(np.arange(folder.node_count))
    exact = untrained_vectors(visible, width=39)
    monkeypatch.setattr("graphfcl.active.untrained.SAMPLED", 100)
    monkeypatch.setattr("graphfcl.active.untrained.SAMPLE", 290)
    found = untrained_vectors(visible, width=39)
    assert found.shape == exact.shape
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=0.2)  # the last direction of 40 is left out


def test_vectors_of_many_nodes_are_made_in_blocks(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_vectors, "MANY", 200)
    monkeypatch.setattr(node_vectors, "SAMPLE", 150)
    monkeypatch.setattr(node_vectors, "BLOCK", 64)
    found = []
    for model in pair[:2]:
        vectors, sizes = vectors_of(model._current()), list[int]()

        def counted(rows: np.ndarray, vectors: node_vectors.Vectors = vectors, sizes: list[int] = sizes) -> np.ndarray:
            sizes.append(rows.size)
            return vectors(rows)

        found.append(vectors_of_all(counted, 402, 0))
        assert max(sizes) == 150
    np.testing.assert_allclose(found[0] @ found[0].T, found[1] @ found[1].T, atol=2e-2)


def test_the_likeliest_classes_of_rows_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphfcl.active.contract.ROWS_AT_A_TIME", 7)
    scores = np.random.default_rng(0).dirichlet(np.ones(5), 30)
    rows = np.random.default_rng(1).permutation(30)[:20]
    best, highest, margin = likeliest_classes(scores, rows)
    for place, row in enumerate(rows.tolist()):
        first, second = sorted(scores[row], reverse=True)[:2]
        assert scores[row, best[place]] == highest[place] == first
        assert margin[place] == first - second
    assert [each.size for each in likeliest_classes(scores, rows[:0])] == [0, 0, 0]
    alone = likeliest_classes(scores[:, :1], rows)
    np.testing.assert_array_equal(alone[2], scores[rows, 0])
