"""Session 0 of a learner in production: all labelled nodes of a graph, every other node visible without its label."""

from dataclasses import dataclass, replace

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph import VisibleGraph
from graphfcl.methods.learner import Labelled
from graphfcl.runtime.arrays import rank_in_run
from graphfcl.stream import BaseSession
from graphfcl.stream.split import draw_tasks, draw_validation_columns

BASE_SHARE = 0.55
VALIDATION_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class Start:
    """What a production learner starts with.

    base: session 0, its largest classes first (``base``), then the others (``pseudo-novel``).
    few: (nodes, columns) of the classes with too few labels for session 0. They are learned right after it, and their
        columns follow those of session 0.
    few_classes: their names.
    """

    base: BaseSession
    few: Labelled
    few_classes: tuple[str, ...]


def make_start(
    visible: VisibleGraph,
    nodes: np.ndarray,
    labels: np.ndarray,
    names: tuple[str, ...],
    *,
    way: int,
    shot: int,
    seed: int,
    held_out: np.ndarray | None = None,
) -> Start:
    """Split classes and nodes into the parts of session 0.

    nodes, labels: all labelled nodes and their classes, as positions in ``names``. held_out: nodes that are for
    validation before others of their class are.

    The largest 55 % of the classes are base. A fifth of the nodes per class is held out for validation. A class of
    session 0 needs K + 2 labelled nodes, so that pseudo-incremental training can draw K supports and ask about another.
    """
    sizes = np.bincount(labels, minlength=len(names))
    usable = [c for c in np.argsort(-sizes, kind="stable").tolist() if sizes[c] >= shot + 2]
    few = [c for c in range(len(names)) if 0 < sizes[c] < shot + 2]
    if len(usable) < 2:
        raise InputError(
            f"{len(usable)} classes have {shot + 2} labelled nodes or more; training with {shot} shots needs two: "
            "label more nodes, or take fewer shots."
        )
    base_count = max(1, round(len(usable) * BASE_SHARE))
    order = [*sorted(usable[:base_count]), *sorted(usable[base_count:]), *few]
    column_of = np.full(len(names), -1, dtype=np.int64)
    column_of[order] = np.arange(len(order))
    columns = column_of[labels]
    count = len(usable)
    first = np.zeros(nodes.size, dtype=bool) if held_out is None else np.isin(nodes, held_out)
    validates = _held_out(columns, count, seed, first)
    in_session_zero = columns < count
    trained = in_session_zero & ~validates
    pseudo_novel = np.arange(base_count, count)
    base = BaseSession(
        base_classes=tuple(names[c] for c in order[:base_count]),
        pseudo_novel_classes=tuple(names[c] for c in order[base_count:count]),
        train=nodes[trained],
        train_labels=columns[trained],
        validation=nodes[validates],
        validation_labels=columns[validates],
        validation_columns=draw_validation_columns(pseudo_novel, way, seed),
        pseudo_novel_tasks=draw_tasks(pseudo_novel, way, seed),
        visible_graph=visible,
        way=way,
        shot=shot,
        track="open",
    )
    later = ~in_session_zero
    return Start(base, (nodes[later], columns[later]), tuple(names[c] for c in few))


def _held_out(columns: np.ndarray, count: int, seed: int, first: np.ndarray) -> np.ndarray:
    """(nodes,) whether a node is for validation: a fifth per class, at least one, of the first ``count`` columns.

    first: (nodes,) whether a node is taken before the others of its class.
    """
    random = np.random.default_rng([seed, 7])
    order = np.lexsort((random.random(columns.size), ~first, columns))
    ordered = columns[order]
    sizes = np.bincount(columns, minlength=int(columns.max()) + 1)
    wanted = np.maximum(1, np.round(sizes * VALIDATION_SHARE)).astype(np.int64)
    wanted[count:] = 0
    held_out = np.zeros(columns.size, dtype=bool)
    held_out[order] = rank_in_run(ordered) < wanted[ordered]
    return held_out


def with_validation_classes(reduced: BaseSession, seed: int) -> BaseSession:
    """A session 0 without held-out classes, with some of its pseudo-novel classes held out in their place."""
    first = len(reduced.base_classes)
    columns = draw_validation_columns(np.arange(first, len(reduced.classes)), reduced.way, seed + 1)
    return replace(reduced, validation_columns=columns)
