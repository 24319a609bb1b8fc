"""The grid of the track ``active``: which strategy finds what with how many labels."""

from collections.abc import Sequence
from typing import Any

from graphfcl.active import STRATEGIES
from graphfcl.defaults import ACTIVE_METHODS
from graphfcl.evaluation import OF_EACH_CLASS
from graphfcl.experiments.benchmark import GRAPHS
from graphfcl.experiments.cells import Cell
from graphfcl.experiments.grid import Grid

SEEDS = 5


def active(
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    strategies: Sequence[str] = (),
    seeds: int | None = None,
    rules: dict[str, Any] | None = None,
) -> Grid:
    """Every method with every strategy; what is not given is the default: five graphs, all strategies, five seeds.

    Seeds come first in the order of cells: a grid that is stopped early has whole seeds.
    """
    cells = [
        Cell(dataset, method, seed, rules={**(rules or {}), "track": "active"}, strategy=strategy)
        for seed in range(SEEDS if seeds is None else seeds)
        for method in methods or ACTIVE_METHODS
        for strategy in strategies or (*STRATEGIES, OF_EACH_CLASS)
        for dataset in datasets or GRAPHS
    ]
    return Grid("active", "active", tuple(cells))
