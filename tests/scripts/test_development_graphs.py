"""The builders of the development graphs: a tree of a few classes, and packages from recorded pages."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from graphfcl import Graph, InputError
from graphfcl.stream import make_stream
from scripts.sources.python_packages import Package, build_packages, classes_of, read_package, walk
from scripts.sources.taxonomy import Taxonomy, build_taxonomy, grow

SMALL = Taxonomy(classes=6, smallest=20, skew=10, vocabulary=200, links=0)


def page(name: str, summary: str | None, topics: list[str], requires: list[str] | None) -> str:
    classifiers = ["Programming Language :: Python :: 3", *(f"Topic :: {topic}" for topic in topics)]
    info = {"name": name, "summary": summary, "classifiers": classifiers, "requires_dist": requires}
    return json.dumps({"info": info, "releases": {}})


PAGES = {
    "web-tool": page(
        "Web.Tool",
        "A web toolkit",
        ["Internet :: WWW/HTTP :: Session", "Software Development"],
        ["http_lib>=2; python_version<'3.9'", "Tester[all] ; extra == 'test'", "gone", "web-tool[extra]"],
    ),
    "http-lib": page("http-lib", "web requests", ["Internet :: WWW/HTTP"], None),
    "tester": page("tester", "runs tests", ["Software Development :: Testing", "Utilities"], ["hub (>1)"]),
    "checker": page("checker", "checks", ["Software Development :: Testing"], []),
    "hub": page("hub", None, [], ["far"]),
    "far": page("far", "", ["Software Development"], []),
    "lonely": page("lonely", "web page without links", [], ["lonely[all]"]),
}


def neighbours(graph: Graph) -> dict[str, set[str]]:
    ids = graph.node_ids.tolist()
    return {ids[row]: {ids[c] for c in graph.adjacency[[row]].indices} for row in range(graph.node_count)}


def classes(graph: Graph) -> dict[str, str | None]:
    names = [*graph.class_names, None]
    return {node: names[label] for node, label in zip(graph.node_ids.tolist(), graph.labels, strict=True)}


def test_a_tree_is_the_same_for_the_same_seed() -> None:
    one, same, other = (build_taxonomy(seed, settings=SMALL) for seed in (1, 1, 2))
    assert (one.adjacency != same.adjacency).nnz == 0
    assert (one.features != same.features).nnz == 0
    assert np.array_equal(one.labels, same.labels)
    assert not np.array_equal(one.labels, other.labels)


def test_a_tree_without_further_links_is_one() -> None:
    graph = build_taxonomy(settings=SMALL)
    assert graph.adjacency.nnz == 2 * (graph.node_count - 1)
    assert connected_components(graph.adjacency, directed=False)[0] == 1


def test_classes_of_a_tree_differ_as_asked() -> None:
    assert np.bincount(build_taxonomy(settings=SMALL).labels).tolist() == SMALL.sizes().tolist()
    full = Taxonomy().sizes()
    assert 15_000 <= full.sum() <= 20_000
    assert full.min() == 65
    assert full.max() / full.min() == pytest.approx(100, rel=0.01)


def test_only_founders_leave_their_class() -> None:
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(6), SMALL.sizes()))
    parents, above = grow(labels.tolist(), replace(SMALL, founders=0.0), np.random.default_rng(1))
    founders = [node for node, topic in enumerate(above) if topic < 0]
    assert [int(labels[node]) for node in founders] == [-1 - above[node] for node in founders]
    assert len(founders) == SMALL.classes
    assert all(labels[node] == labels[parents[node]] for node in range(labels.size) if node not in founders)
    assert all(parents[node] < node for node in range(labels.size))


def test_more_founders_and_links_mean_fewer_edges_within_a_class() -> None:
    settings = (replace(SMALL, founders=0.02), replace(SMALL, founders=0.3), replace(SMALL, founders=0.02, links=0.5))
    graphs = [build_taxonomy(settings=each) for each in settings]
    few, more, linked = (graph.same_class_share or 0.0 for graph in graphs)
    assert few > 0.9
    assert 0 < more < few - 0.1
    assert 0 < linked < few - 0.1


def test_words_of_a_tree_come_from_the_class() -> None:
    """Without common words, own words and parents' words, a class has the words of one topic."""
    graph = build_taxonomy(settings=replace(SMALL, common=0.0, climb=0.999, topic=4), min_nodes=1)
    for number in range(SMALL.classes):
        counts = np.sort(np.asarray(graph.features[graph.labels == number].sum(axis=0)).ravel())[::-1]
        assert counts[:4].sum() > 0.8 * counts.sum()


def test_a_tree_makes_a_stream() -> None:
    stream = make_stream(build_taxonomy(settings=replace(SMALL, classes=12, smallest=40)), seed=0)
    assert len(stream) >= 5


def test_a_page_is_read() -> None:
    assert asdict(read_package(PAGES["web-tool"])) == {
        "name": "web-tool",
        "summary": "A web toolkit",
        "topics": ("Internet :: WWW/HTTP", "Software Development"),
        "requires": ("gone", "http-lib", "tester", "web-tool"),
    }
    assert read_package(PAGES["hub"]) == Package("hub", "", (), ("far",))


def test_requirements_are_walked_in_rounds_up_to_the_limit() -> None:
    asked: list[str] = []

    def read(name: str) -> str | None:
        asked.append(name)
        return PAGES.get(name)

    names = [package.name for package in walk(read, ["Web_Tool", "checker"], 100, threads=1)]
    assert names == ["checker", "web-tool", "http-lib", "tester", "hub", "far"]
    assert sorted(asked) == sorted([*names, "gone"])
    assert [package.name for package in walk(PAGES.get, ["web-tool"], 4)] == ["web-tool", "http-lib", "tester", "hub"]
    assert len(list(walk(PAGES.get, list(PAGES), 4))) == 4


def test_the_graph_of_packages() -> None:
    graph = build_packages(map(read_package, PAGES.values()), min_packages=2, min_nodes=2)
    assert graph.node_ids.tolist() == ["checker", "far", "http-lib", "hub", "tester", "web-tool"]
    edges = neighbours(graph)
    assert edges["web-tool"] == {"http-lib", "tester"}
    assert edges["hub"] == {"tester", "far"}
    assert edges["checker"] == set()
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["web"]
    assert graph.column_min_nodes == 2


def test_the_class_is_the_deepest_topic_that_is_common() -> None:
    graph = build_packages(map(read_package, PAGES.values()), min_packages=2, min_nodes=2)
    assert classes(graph) == {
        "checker": "Software Development :: Testing",
        "far": None,
        "http-lib": "Internet :: WWW/HTTP",
        "hub": None,
        "tester": "Software Development :: Testing",
        "web-tool": "Internet :: WWW/HTTP",
    }


def test_of_topics_of_one_depth_the_rarest_is_the_class() -> None:
    packages = [Package(str(n), "", ("A", "B") if n < 2 else ("A",), ()) for n in range(5)]
    assert classes_of(packages, 2) == ["B", "B", "A", "A", "A"]


def test_a_class_that_loses_its_packages_to_rarer_ones_is_given_up() -> None:
    packages = [Package(str(n), "", topics, ()) for n, topics in enumerate([("A", "B"), ("A", "B"), ("A",)])]
    assert classes_of(packages, 2) == ["B", "B", ""]


def test_packages_without_topics_are_refused() -> None:
    with pytest.raises(InputError, match="no Topic classifier has 60 packages: raise --limit"):
        build_packages(map(read_package, PAGES.values()))
