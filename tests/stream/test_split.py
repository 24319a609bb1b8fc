"""The tasks that the seed draws of the pseudo-novel classes."""

import numpy as np
import pytest

from graphfcl import BaseSession, Graph, Protocol, make_stream
from tests.graphs import random_graph

PSEUDO_NOVEL = range(3, 15)  # their columns
SEEDS = range(40)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return random_graph(0, [30] * 3 + [12] * 14, density=0.005)


@pytest.fixture(scope="module")
def sessions(graph: Graph) -> list[BaseSession]:
    """Session 0 by seed."""
    return [base_of(graph, seed) for seed in SEEDS]


def base_of(graph: Graph, seed: int) -> BaseSession:
    return make_stream(graph, Protocol(base=3, pseudo_novel=len(PSEUDO_NOVEL), way=2), seed=seed).base


def test_a_seed_gives_one_draw_and_others_give_others(graph: Graph, sessions: list[BaseSession]) -> None:
    for seed in (0, 7):
        assert base_of(graph, seed).pseudo_novel_tasks == sessions[seed].pseudo_novel_tasks
    assert len({base.pseudo_novel_tasks for base in sessions}) > len(SEEDS) / 2


def test_every_two_pseudo_novel_classes_are_rarely_one_task(sessions: list[BaseSession]) -> None:
    together: dict[frozenset[int], int] = {}
    for base in sessions:
        assert sorted(column for task in base.pseudo_novel_tasks for column in task) == list(PSEUDO_NOVEL)
        for task in base.pseudo_novel_tasks:
            together[frozenset(task)] = together.get(frozenset(task), 0) + 1
    assert len(together) > 60, "of the 66 pairs nearly all occur"
    assert max(together.values()) < len(SEEDS) / 2


def test_paper_queries_are_drawn_again_in_every_session() -> None:
    graph = random_graph(0, [60] * 4 + [30] * 6, density=0.01)
    stream = make_stream(graph, Protocol(base=2, pseudo_novel=2, way=2, shot=4, name="paper", queries=5))
    drawn = []
    for number in range(len(stream) + 1):
        queries = stream.queries(number)
        seen = np.flatnonzero(stream.session_of_class <= number)
        assert np.bincount(queries.labels, minlength=len(stream.classes))[seen].tolist() == [5] * seen.size
        drawn.append({column: frozenset(queries.nodes[queries.labels == column].tolist()) for column in seen.tolist()})
    assert len(drawn) == 4
    for column in range(2):  # classes of 60 nodes have 12 test nodes: two equal draws of 5 are rare
        assert len({session[column] for session in drawn}) == len(drawn)
