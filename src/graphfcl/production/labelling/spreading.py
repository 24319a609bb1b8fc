"""Measure how diverse some nodes are, compared with random members of known classes.

Two nodes are far apart if many nodes of the graph are nearer to one of them than the other is. Let r(u, v) be the share
of sampled nodes that are more similar to u than v is. The spread of a set of nodes is the mean of log r(u, v) over its
pairs. Shares are used instead of cosines because classes differ in density.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.active.clusters import principal_components, unit_rows
from graphfcl.errors import InputError
from graphfcl.graph.ids import list_of_nodes
from graphfcl.production.answers.row_values import node_rows
from graphfcl.production.labelling.node_vectors import vectors_of
from graphfcl.production.model.state import ModelState

DRAWN = 2_000  # sampled nodes that define r(u, v)
KNOWN = 4_000  # most labelled nodes from which random sets are drawn
BASKETS = 300  # number of random sets, each of members of one known class
LARGEST = 50  # most nodes of a set that are compared
SAME = 1e-5  # cosines that differ less are equal: two matrix products round the same cosine differently
ALIKE = 0.02  # nodes are too similar if at most this share of the random sets is less diverse


@dataclass(frozen=True)
class Spread:
    """Diversity of some nodes.

    Args:
        value: Share, 0 to 1, of random sets of nodes of one known class that are less diverse.
        alike: Whether the share is so low that more diverse nodes would teach a class better.
        say: One sentence.

    Examples:
        >>> from graphfcl import GraphClassifier, load_dataset
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> model = GraphClassifier("sgc-ridge").fit(graph)
        >>> model.spread([0, 1, 2, 3]).alike
        False
    """

    value: float
    alike: bool
    say: str


def spread_of(state: ModelState, nodes: Sequence[Any]) -> Spread:
    """Measure how diverse some nodes are, compared with as many members of a known class."""
    parts = state.parts
    visible, label_store = parts.graph.visible, parts.label_store
    rows = np.unique(visible.rows(parts.graph.numbers_of(list_of_nodes(nodes))))
    if not rows.size:
        raise InputError("there is no node to measure the spread of: give at least one node.")
    if rows.size == 1:
        return Spread(0.0, False, "One node says nothing about spread: add more, from other corners of the class.")
    random = np.random.default_rng(rows.size)
    rows = rows if rows.size <= LARGEST else random.choice(rows, LARGEST, replace=False)
    drawn = node_rows(visible)[random.permutation(visible.node_count)[:DRAWN]]
    taught = random.permutation(label_store.nodes.size)[:KNOWN]
    every = np.concatenate([rows, drawn, visible.rows(label_store.nodes[taught])])
    values = unit_rows(principal_components(vectors_of(state)(every)))
    basket, around, members = np.split(values, [rows.size, rows.size + drawn.size])
    own = spread_of_rows(basket, around)
    classes = label_store.class_of_column()[label_store.columns[taught]]
    others = _random_spreads(members, classes, rows.size, around, random)
    value = float((others < own).mean()) if others.size else 0.5
    if value <= ALIKE:
        return Spread(value, True, "These are too alike: nodes from other corners of the class would teach more.")
    more = f"{100 * value:.0f} % of random samples of a known class are more alike"
    return Spread(value, False, f"These are spread enough: {more}.")


def spread_of_rows(basket: np.ndarray, around: np.ndarray) -> float:
    """Return the mean over pairs (u, v) of log((1 + nodes around that are more similar to u than v is) / (1 + nodes
    around)).

    ``basket``: (n, d) the nodes, n at least 2. ``around``: (m, d) sampled nodes. Rows have unit length.
    """
    count = len(basket)
    likeness = np.sort(basket @ around.T, axis=1)
    pairs = basket @ basket.T + SAME
    nearer = np.stack([likeness.shape[1] - np.searchsorted(likeness[u], pairs[u], side="right") for u in range(count)])
    shares = np.log((1 + nearer) / (1 + likeness.shape[1]))
    return float(shares[~np.eye(count, dtype=bool)].mean())


def _random_spreads(
    values: np.ndarray, classes: np.ndarray, size: int, around: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Return (sets,) spreads of ``size`` random members of one class; every class that is large enough counts the same.

    If no class is large enough, sets are as large as the largest class.
    """
    members = [np.flatnonzero(classes == each) for each in np.unique(classes)]
    size = min(size, max((each.size for each in members), default=0))
    if size < 2:
        return np.zeros(0)
    usable = [each for each in members if each.size >= size]
    order = random.permutation(len(usable))
    drawn = [random.choice(usable[order[turn % len(usable)]], size, replace=False) for turn in range(BASKETS)]
    return np.array([spread_of_rows(values[each], around) for each in drawn])
