"""Labels of a graph that a user brings for a refit: the same nodes, other features, edges or labels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphfcl.graph.any_graph import AnyGraph
from graphfcl.production.history import Entry
from graphfcl.production.ledger import Ledger
from graphfcl.production.model_graph import ModelGraph


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


def more_labels(
    graph: AnyGraph, numbers: np.ndarray, growing: ModelGraph, ledger: Ledger, decisions: Decisions
) -> tuple[np.ndarray, list[str]]:
    """Labels of a graph that was brought which the ledger does not have: (k,) node numbers, and their classes.

    numbers: (n,) of the rows of ``graph`` in ``growing``, which the ledger is of. What the ledger says wins, and what
    was taken back or retired stays so.
    """
    names = [_name(name, ledger, decisions) for name in graph.class_names]
    used = np.array([name is not None for name in names] + [False])  # the last one: a node without a label
    free = used[graph.labels] & ~np.isin(numbers, ledger.nodes)
    there = growing.rows_of_ids(list(decisions.unlearned)) if decisions.unlearned else np.zeros(0, dtype=np.int64)
    free &= ~np.isin(numbers, growing.numbers_at(there[there >= 0]))
    found = np.flatnonzero(free)
    found = found[np.argsort(numbers[found])]
    return numbers[found], [str(names[label]) for label in graph.labels[found].tolist()]


def _name(name: str, ledger: Ledger, decisions: Decisions) -> str | None:
    """What the model calls a class of the graph; None if it was retired."""
    name = decisions.called.get(name, name)
    known = ledger.found(name)
    return known if known is not None else None if name in decisions.gone else name
