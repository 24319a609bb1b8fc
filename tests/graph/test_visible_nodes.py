"""Visible graphs in memory and on the disk answer alike, and like a plain loop."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl import Graph, InputError, Resources, VisibleGraph, VisibleNodes
from graphfcl.graph import FeatureView, KnownColumns, Standardisation
from graphfcl.graph.folder import write_folder
from graphfcl.graph.folder.visible import VisibleFolder
from tests.graph.samples import plain, small_graphs


def view_of(graph: Graph, nodes: np.ndarray) -> FeatureView | None:
    """A view that changes the width or the values, if there are features to fit it on."""
    if not nodes.size:
        return None
    known = graph.features[nodes]
    return KnownColumns.fit_blocks(lambda: iter([known])) if graph.sparse_features else Standardisation.fit(known)


def both(graph: Graph, path: Path, shown: np.ndarray, numbers: np.ndarray) -> tuple[VisibleGraph, VisibleFolder]:
    """The same visible nodes twice. shown: (n,) bool by row of the folder. numbers: (n,) the row of each number."""
    on_disk = write_folder(graph, path / "graph").with_resources(Resources(path / "work", 4 << 30))
    loaded, visible = on_disk.loaded(), np.flatnonzero(shown[numbers])
    view = view_of(loaded, np.flatnonzero(shown))
    in_memory = loaded.visible(visible, view, numbers)
    return in_memory, on_disk.visible(visible, view, numbers)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Graph, np.ndarray, np.ndarray, list[int], int]:
    graph = draw(small_graphs())
    count = graph.node_count
    shown = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=bool)
    numbers = np.array(draw(st.permutations(range(count))), dtype=np.int64)
    places = st.lists(st.integers(0, max(0, int(shown.sum()) - 1)), max_size=6 * bool(shown.any()))
    return graph, shown, numbers, draw(places), draw(st.integers(0, 3))


def within(adjacency: np.ndarray, rows: list[int], hops: int) -> set[int]:
    """The rows that at most so many edges lead to, by a plain loop."""
    reached = set(rows)
    for _ in range(hops):
        reached |= {other for row in reached for other in range(len(adjacency)) if adjacency[row, other]}
    return reached


@settings(max_examples=60, deadline=None)
@given(cases())
def test_memory_and_disk_answer_like_a_loop(case: tuple[Graph, np.ndarray, np.ndarray, list[int], int]) -> None:
    graph, shown, numbers, places, hops = case
    with TemporaryDirectory() as path:
        first, second = both(graph, Path(path), shown, numbers)
        adjacency, features = first.adjacency.toarray(), plain(first.features)
        nodes = first.nodes[places]
        everywhere = np.arange(-1, graph.node_count + 2)
        for visible in each(first, second):
            np.testing.assert_array_equal(visible.nodes, first.nodes)
            assert visible.node_count == first.nodes.size <= visible.row_count
            assert visible.edge_count == np.count_nonzero(adjacency) // 2
            assert visible.feature_count == features.shape[1]
            assert visible.sparse_features == (not isinstance(first.features, np.ndarray))
            assert visible.relations == ("edges",)
            np.testing.assert_array_equal(visible.contains(everywhere), [n in first.nodes for n in everywhere])
            every, rows = visible.rows(visible.nodes), visible.rows(nodes)
            np.testing.assert_allclose(plain(visible.features_at(rows)), features[places], rtol=1e-6, atol=1e-6)
            near = visible.neighbours_at(rows)
            assert near.shape == (len(places), visible.row_count)
            np.testing.assert_array_equal(near.toarray()[:, every], adjacency[places])
            assert near.nnz == np.count_nonzero(adjacency[places])  # nothing but visible nodes
            np.testing.assert_allclose(visible.degrees[every], adjacency.sum(axis=1), rtol=1e-6)
            assert visible.degrees.shape == (visible.row_count,)
            assert visible.degrees.dtype == np.float32
            assert [row for start, stop in visible.row_blocks() for row in range(start, stop)] == [
                *range(visible.row_count)
            ]
            for shape in ((visible.row_count,), (visible.row_count, 2)):
                values = np.random.default_rng(0).standard_normal(shape)
                product = visible.product(values)
                assert product.shape == shape
                np.testing.assert_allclose(product[every], adjacency @ values[every], rtol=1e-5, atol=1e-5)
            around = visible.around(rows, hops)
            reached = sorted(within(adjacency, places, hops))
            assert set(around.nodes.tolist()) == set(every[reached].tolist())
            np.testing.assert_array_equal(around.degrees, visible.degrees[around.nodes])
            np.testing.assert_array_equal(plain(around.features), plain(visible.features_at(around.nodes)))
            inner = every[sorted(within(adjacency, places, hops - 1))] if hops else every[:0]
            wanted = visible.neighbours_at(inner)[:, around.nodes].toarray()
            np.testing.assert_array_equal(around.neighbours_at(around.rows(inner)).toarray(), wanted)
            assert around.adjacency.nnz == np.count_nonzero(wanted)
            whole = visible.loaded()
            np.testing.assert_array_equal(whole.nodes, first.nodes)
            np.testing.assert_array_equal(whole.adjacency.toarray(), adjacency)
            np.testing.assert_allclose(plain(whole.features), features, rtol=1e-6, atol=1e-6)
            hidden = next(number for number in everywhere if number not in first.nodes)
            with pytest.raises(InputError, match=f"node {hidden} is not in the visible graph"):
                visible.rows(np.array([hidden]))
            with pytest.raises(InputError, match=r"no edges of the kind 'cites': use one of edges\.$"):
                visible.neighbours_at(rows, "cites")


def each(*visible: VisibleNodes) -> Iterator[VisibleNodes]:
    """Both kinds have the type that computations are written against; mypy checks it here."""
    yield from visible
