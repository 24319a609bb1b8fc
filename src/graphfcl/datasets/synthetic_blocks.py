"""Synthetic graphs that do not fit into memory, drawn in blocks.

Model and options are the same as in :mod:`graphfcl.datasets.synthetic`, but the random draw differs, so the same seed
gives a different graph than the generator in memory. Blocks have a fixed size, so that the graph does not depend on the
memory limit.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from graphfcl.datasets.synthetic import (
    ROUNDS,
    Pairs,
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

EDGES, ROWS = 1 << 18, 1 << 14  # edges and rows of features in a block
NODE_BYTES = 32  # bytes per node


def synthetic_source(settings: SyntheticSettings, name: str, made_of: str) -> GraphSource:
    """Make a source of a graph folder that draws a graph with these settings."""
    shuffle = Shuffle(settings.nodes, settings.seed)
    ends = class_ends(settings)
    table = shuffle.table(row_type(settings.nodes))
    labels = np.empty(settings.nodes, dtype=np.int32)
    labels[table] = np.repeat(np.arange(settings.classes, dtype=np.int32), np.diff(ends, prepend=0))
    return GraphSource(
        name=name,
        made_of=made_of,
        nodes_where=name,
        edges_where=name,
        node_count=settings.nodes,
        labels=CleanLabels(labels, class_names(settings)),
        features=lambda: _features(settings, labels),
        edges=lambda spool: _edges(_pairs(settings, table), spool),
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


def _pairs(settings: SyntheticSettings, table: np.ndarray) -> Pairs:
    heights = np.zeros(settings.nodes + 1)
    heights[1:] = np.random.default_rng([settings.seed, 3]).pareto(2.5, settings.nodes)
    heights[1:] += 0.3
    return Pairs(settings, np.cumsum(heights, out=heights), table)


def _edges(pairs: Pairs, spool: Spool) -> Iterator[EdgeBlock]:
    """Draw exactly ``settings.edges`` different pairs."""
    settings = pairs.settings
    random = np.random.default_rng([settings.seed, 4])
    path, drawn = spool.folder / "pairs", 0
    for number in range(ROUNDS):
        drawn = _draw_more(pairs, path, drawn, spool.folder / f"round{number}", spool.memory, random)
        if drawn >= settings.edges:
            break
    else:
        raise too_few_edges(settings, drawn)
    done, kept = 0, 0
    for keys in _read(path):
        # Keep the same share of pairs in each block.
        share = (done + keys.size) * settings.edges // drawn - kept
        chosen = np.sort(random.permutation(keys.size)[:share])
        yield EdgeBlock(kept, *np.divmod(keys[chosen], settings.nodes))
        done, kept = done + keys.size, kept + share
    path.unlink(missing_ok=True)


def _draw_more(pairs: Pairs, path: Path, drawn: int, folder: Path, memory: int, random: np.random.Generator) -> int:
    """Draw about as many pairs as are missing, merge them into the file, and return the number of different pairs."""
    count = pairs.settings.nodes
    sorter = EdgeSorter(folder, count, memory, directed=True)
    for keys in _read(path) if path.exists() else ():
        sorter.add(*np.divmod(keys, count))
    missing = int((pairs.settings.edges - drawn) * 1.1) + 16
    for start in range(0, missing, EDGES):
        sorter.add(*pairs.block(random, min(EDGES, missing - start)))
    merged = path.with_suffix(".merged")
    with open(merged, "wb") as file:
        for block in sorter.sorted_blocks():
            file.write((block.rows * count + block.columns).data)
    merged.rename(path)
    return sorter.facts.pairs


def _read(path: Path) -> Iterator[np.ndarray]:
    for start in range(0, path.stat().st_size, 8 * EDGES):
        yield np.fromfile(path, np.int64, EDGES, offset=start)
