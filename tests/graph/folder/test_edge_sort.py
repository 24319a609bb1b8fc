"""The external sort against plain loops, with so little memory that there are many runs and ranges."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphfcl import InputError
from graphfcl.graph.folder.edge_sort import ITEM_BYTES, EdgeSorter, SortedEdges

Edge = tuple[int, int, float]


@st.composite
def listed_edges(draw: st.DrawFn) -> tuple[int, list[Edge]]:
    count = draw(st.integers(3, 400))
    ends = st.integers(0, count - 1) | st.integers(0, 2)  # many at few nodes
    weights = st.sampled_from([1.0, 1.0, 0.5, 2.0, 7.25])
    edges = draw(st.lists(st.tuples(ends, ends, weights), max_size=300))
    repeated = draw(st.integers(1, 3))
    return count, [edge for edge in edges if edge[0] != edge[1]] * repeated


def sort(
    folder: Path, count: int, edges: list[Edge], memory: int, *, weighted: bool, mirrored: bool = False, step: int = 50
) -> tuple[EdgeSorter, list[SortedEdges]]:
    sorter = EdgeSorter(folder / "spool", count, memory, weighted=weighted, mirrored=mirrored)
    source, target, weights = (np.array([edge[part] for edge in edges]) for part in range(3))
    for start in range(0, len(edges), step):
        part = slice(start, start + step)
        sorter.add(source[part].astype(np.int64), target[part].astype(np.int64), weights[part] if weighted else None)
    return sorter, list(sorter.sorted_blocks())


def reference(edges: list[Edge], weighted: bool) -> dict[tuple[int, int], float]:
    found: dict[tuple[int, int], float] = {}
    for source, target, weight in edges:
        for pair in ((source, target), (target, source)):
            found[pair] = max(found.get(pair, 0), weight if weighted else 1)
    return found


@example(listed=(5, [(0, 1, 1.0)] * 400), items=16, weighted=True)
@given(listed=listed_edges(), items=st.sampled_from([1, 16, 40, 10_000]), weighted=st.booleans())
@settings(max_examples=150)
def test_edges_leave_sorted_merged_and_in_both_directions(
    tmp_path_factory: pytest.TempPathFactory, listed: tuple[int, list[Edge]], items: int, weighted: bool
) -> None:
    count, edges = listed
    folder = tmp_path_factory.mktemp("sort")
    sorter, stretches = sort(folder, count, edges, items * ITEM_BYTES, weighted=weighted)
    pairs = [pair for s in stretches for pair in zip(s.rows.tolist(), s.columns.tolist(), strict=True)]
    expected = reference(edges, weighted)
    assert pairs == sorted(expected)
    if weighted:
        weights = [weight for s in stretches for weight in s.weights.tolist()]  # type: ignore[union-attr]
        assert weights == [expected[pair] for pair in pairs]
    directed: dict[tuple[int, int], float] = {}
    for source, target, weight in edges:
        directed[source, target] = max(directed.get((source, target), 0), weight if weighted else 1)
    assert sorter.facts.pairs == len(expected)
    assert sorter.facts.merged == len(edges) - len(directed)
    assert sorter.facts.one_way == any(directed.get((b, a)) != weight for (a, b), weight in directed.items())
    assert sorter.facts.weighted == (weighted and any(weight != 1 for weight in expected.values()))
    assert not (folder / "spool").exists()  # every file has gone


@given(listed=listed_edges())
@settings(max_examples=40)
def test_mirrored_edges_mean_both_directions(
    tmp_path_factory: pytest.TempPathFactory, listed: tuple[int, list[Edge]]
) -> None:
    count, edges = listed
    sorter, stretches = sort(
        tmp_path_factory.mktemp("sort"), count, edges, 20 * ITEM_BYTES, weighted=False, mirrored=True
    )
    pairs = [pair for s in stretches for pair in zip(s.rows.tolist(), s.columns.tolist(), strict=True)]
    assert pairs == sorted(reference(edges, weighted=False))
    assert not sorter.facts.one_way


def test_a_hub_does_not_need_more_memory(tmp_path: Path) -> None:
    """One node with all the edges, and one edge that stands there ten thousand times."""
    edges = [(0, 1 + number % 900, 1.0) for number in range(3_000)] + [(901, 902, 1.0)] * 10_000
    sorter, stretches = sort(tmp_path, 1_000, edges, 200 * ITEM_BYTES, weighted=False, step=100)
    assert max(stretch.rows.size for stretch in stretches) <= 200
    assert sorter.facts.pairs == 1_802
    assert sorter.facts.merged == 2_100 + 9_999


def test_too_many_nodes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too many"):
        EdgeSorter(tmp_path / "spool", 3_100_000_000, 1 << 20)


def test_no_pair_is_parted_by_the_bound_of_a_range(tmp_path: Path) -> None:
    """All pairs in both directions: every bound falls between two of their keys."""
    edges = [(a, b, 1.0) for a in range(40) for b in range(40) if a != b]
    sorter, stretches = sort(tmp_path, 40, edges, 100 * ITEM_BYTES, weighted=False)
    pairs = [pair for s in stretches for pair in zip(s.rows.tolist(), s.columns.tolist(), strict=True)]
    assert pairs == [(a, b) for a in range(40) for b in range(40) if a != b]
    assert not sorter.facts.one_way
