"""Synthetic graphs of any size, drawn in blocks.

The same model and options as :mod:`graphfcl.datasets.synthetic`, but other draws: the graph of a seed is another one
than that of the generator in memory. Blocks have a fixed size, so that the graph does not depend on the memory used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphfcl.datasets.synthetic import (
    SyntheticSettings,
    class_ends,
    class_names,
    class_vectors,
    draw_features,
    too_few_edges,
)
from graphfcl.graph import Features
from graphfcl.graph.folder.edge_sort import EdgeSorter
from graphfcl.graph.folder.manifest import row_type
from graphfcl.graph.folder.permutation import Shuffle
from graphfcl.graph.folder.source import EdgeBlock, GraphSource, Spool
from graphfcl.graph.labels import CleanLabels
from graphfcl.runtime.arrays import search_many

EDGES, ROWS = 1 << 18, 1 << 14  # drawn at a time
ROUNDS = 20  # of drawing, until there are enough different pairs
NODE_BYTES = 32  # memory for each node


def synthetic_source(settings: SyntheticSettings, name: str, made_of: str) -> GraphSource:
    """The graph of the settings, as a source of a graph folder."""
    shuffle = Shuffle(settings.nodes, settings.seed)
    ends = class_ends(settings)
    table = shuffle.table(row_type(settings.nodes))
    labels = np.empty(settings.nodes, dtype=np.int32)
    for number, (start, stop) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
        labels[table[start:stop]] = number
    return GraphSource(
        name=name,
        made_of=made_of,
        nodes_where=name,
        edges_where=name,
        node_count=settings.nodes,
        labels=CleanLabels(labels, class_names(settings)),
        features=lambda: _features(settings, labels),
        edges=lambda spool: _edges(_Pairs.draw(settings, ends, table), spool),
        fingerprint=lambda: f"{name} {settings}",
        feature_count=settings.features,
        sparse_features=settings.kind == "words",
        mirrored=True,
        node_bytes=NODE_BYTES,
    )


def _features(settings: SyntheticSettings, labels: np.ndarray) -> Iterator[Features]:
    vectors = class_vectors(settings, np.random.default_rng([settings.seed, 1]))
    for number, start in enumerate(range(0, settings.nodes, ROWS)):
        random = np.random.default_rng([settings.seed, 2, number])
        yield draw_features(settings, labels[start : start + ROWS], vectors, random)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Draws pairs of nodes. A node has a place among the nodes of its class, and the classes stand one after the other.

    ends: (classes,) where each class ends. heights: (n + 1,) sums of the propensities of the places before.
    table: (n,) the node at each place.
    """

    settings: SyntheticSettings
    ends: np.ndarray
    heights: np.ndarray
    table: np.ndarray

    @classmethod
    def draw(cls, settings: SyntheticSettings, ends: np.ndarray, table: np.ndarray) -> "_Pairs":
        heights = np.zeros(settings.nodes + 1)
        heights[1:] = np.random.default_rng([settings.seed, 3]).pareto(2.5, settings.nodes)
        heights[1:] += 0.3
        return cls(settings, ends, np.cumsum(heights, out=heights), table)

    def block(self, random: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Up to ``size`` pairs of different nodes, the smaller first; a pair may come again."""
        top = self.heights[-1]
        first = self._pick(random.random(size) * top)
        inside = random.random(size) < self.settings.homophily
        home = np.searchsorted(self.ends, first, side="right")
        starts = np.concatenate([[0], self.ends[:-1]])
        low = np.where(inside, self.heights[starts[home]], 0.0)
        high = np.where(inside, self.heights[self.ends[home]], top)
        second = self._pick(low + random.random(size) * (high - low))
        different = first != second
        one, other = self.table[first[different]], self.table[second[different]]
        return np.minimum(one, other), np.maximum(one, other)

    def _pick(self, heights: np.ndarray) -> np.ndarray:
        return (search_many(self.heights, heights, side="right") - 1).clip(0, self.settings.nodes - 1)


def _edges(pairs: _Pairs, spool: Spool) -> Iterator[EdgeBlock]:
    """Exactly as many different pairs as were asked for."""
    settings = pairs.settings
    random = np.random.default_rng([settings.seed, 4])
    path, found = spool.folder / "pairs", 0
    for number in range(ROUNDS):
        found = _draw_more(pairs, path, found, spool.folder / f"round{number}", spool.memory, random)
        if found >= settings.edges:
            break
    else:
        raise too_few_edges(settings, found)
    done, kept = 0, 0
    for keys in _read(path):
        # Each block keeps its share of the pairs.
        share = (done + keys.size) * settings.edges // found - kept
        chosen = np.sort(random.permutation(keys.size)[:share])
        yield EdgeBlock(kept, *np.divmod(keys[chosen], settings.nodes))
        done, kept = done + keys.size, kept + share
    path.unlink(missing_ok=True)


def _draw_more(pairs: _Pairs, path: Path, found: int, folder: Path, memory: int, random: np.random.Generator) -> int:
    """Draw about as many pairs as are missing, merge them with those in the file; how many differ in all."""
    count = pairs.settings.nodes
    sorter = EdgeSorter(folder, count, memory, directed=True)
    for keys in _read(path) if path.exists() else ():
        sorter.add(*np.divmod(keys, count))
    missing = int((pairs.settings.edges - found) * 1.1) + 16
    for start in range(0, missing, EDGES):
        sorter.add(*pairs.block(random, min(EDGES, missing - start)))
    merged = path.with_suffix(".merged")
    with open(merged, "wb") as file:
        for stretch in sorter.stretches():
            file.write((stretch.rows * count + stretch.columns).data)
    merged.rename(path)
    return sorter.facts.pairs


def _read(path: Path) -> Iterator[np.ndarray]:
    for start in range(0, path.stat().st_size, 8 * EDGES):
        yield np.fromfile(path, np.int64, EDGES, offset=start)
