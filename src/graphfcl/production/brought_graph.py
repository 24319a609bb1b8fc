"""A graph that a user brings anew for a model that lives on it: the same nodes, other features, edges or labels."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph import Graph
from graphfcl.graph.id_index import IdIndex
from graphfcl.printing import quoted
from graphfcl.production.growing_graph import GrowingGraph
from graphfcl.production.history import Entry
from graphfcl.production.ledger import Ledger


@dataclass(frozen=True)
class Decisions:
    """What a model was told of classes and labels that a file of the start does not know.

    called: what a class of the file is called by now. gone: classes that were retired. unlearned: ids of nodes whose
    label was taken back.
    """

    called: dict[str, str] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    unlearned: tuple[Any, ...] = ()

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> "Decisions":
        """entries: the changes that led to the model, oldest first."""
        called: dict[str, str] = {}
        gone: set[str] = set()
        unlearned: list[Any] = []
        for entry in entries:
            what = entry["what"]
            if what in ("rename", "merge"):
                old, new = str(entry["from"]), str(entry["to"] if what == "rename" else entry["into"])
                called = {name: new if now == old else now for name, now in called.items()} | {old: new}
            gone |= set(map(str, entry.get("retired") or ())) | ({str(entry["class"])} if what == "retire" else set())
            if what == "unlearn":
                unlearned += entry["nodes"]
        return cls(called, frozenset(gone), tuple(unlearned))


def bring(before: GrowingGraph, graph: Graph) -> tuple[GrowingGraph, np.ndarray]:
    """The graph anew, its nodes with the numbers and ids that they have; (n,) their rows in ``graph``."""
    rows = IdIndex(graph.node_ids).rows(before.ids)
    missing = np.flatnonzero(rows < 0)
    if missing.size:
        more = f" (and {missing.size - 1} more)" if missing.size > 1 else ""
        raise InputError(
            f"{graph.name} lacks node {quoted(before.ids[[missing[0]]].tolist()[0])}{more} of the model: add it, or "
            "take it out of the model with `graphfcl shrink --nodes` first; nothing was changed."
        )
    if graph.node_count > before.node_count:
        strange = np.setdiff1d(np.arange(graph.node_count), rows)
        more = f" (and {strange.size - 1} more)" if strange.size > 1 else ""
        raise InputError(
            f"node {quoted(graph.node_ids[[strange[0]]].tolist()[0])}{more} of {graph.name} is not in the model: "
            "`graphfcl grow` it first, or leave it out; nothing was changed."
        )
    fresh = GrowingGraph.of(graph)
    adjacency = fresh.adjacency[rows][:, rows]
    adjacency.sort_indices()
    anew = replace(
        before,
        adjacency=adjacency,
        features=fresh.features[rows],
        feature_names=fresh.feature_names,
        text_weights=fresh.text_weights,
        standardisation=None,
    )
    return anew, rows


def more_labels(
    graph: Graph, rows: np.ndarray, before: GrowingGraph, ledger: Ledger, decisions: Decisions
) -> tuple[np.ndarray, list[str]]:
    """Labels of a graph that was brought which the ledger does not have: (k,) node numbers, and their classes.

    rows: of the model's nodes in ``graph``. What the ledger says wins, and what was taken back or retired stays so.
    """
    names = [_name(name, ledger, decisions) for name in graph.class_names]
    labels = graph.labels[rows]
    used = np.array([name is not None for name in names] + [False])  # the last one: a node without a label
    there = before.rows_of_ids(list(decisions.unlearned)) if decisions.unlearned else np.zeros(0, dtype=np.int64)
    free = used[labels] & ~np.isin(before.numbers, ledger.nodes)
    free[there[there >= 0]] = False
    found = np.flatnonzero(free)
    return before.numbers[found], [str(names[label]) for label in labels[found].tolist()]


def _name(name: str, ledger: Ledger, decisions: Decisions) -> str | None:
    """What the model calls a class of the graph; None if it was retired."""
    name = decisions.called.get(name, name)
    known = ledger.found(name)
    return known if known is not None else None if name in decisions.gone else name
