"""The standard grids: Table 2, Table 3, the parameter study and the embedding plot of the paper, ``shots``, ``active``.

Within a protocol, cells are ordered by seed, so that a grid that is stopped early has complete seeds.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any

from graphfcl.active import STRATEGIES
from graphfcl.defaults import ACTIVE_METHODS
from graphfcl.errors import InputError
from graphfcl.evaluation import OF_EACH_CLASS
from graphfcl.experiments.benchmark import GRAPHS
from graphfcl.experiments.cells import Cell
from graphfcl.experiments.grid import Grid
from graphfcl.methods import GROUPS, find_method

ABLATED = "hag-meta"
# Modules of the paper: graph pseudo incremental learning (GPIL), node-level and task-level attention (NLA, TLA).
ABLATION: dict[str, dict[str, Any]] = {
    "Proto-GNN": {"gpil": False, "nla": False, "tla": None},
    "Proto-GNN + GPIL": {"nla": False, "tla": None},
    "Proto-GNN + NLA": {"gpil": False, "tla": None},
    "Proto-GNN + TLA": {"gpil": False, "nla": False},
    "Proto-GNN + NLA + GPIL": {"tla": None},
    "Proto-GNN + TLA + GPIL": {"nla": False},
    "Proto-GNN + NLA + TLA": {"gpil": False},
    "Proto-GNN + NLA + TLA + GPIL": {},
}
# All rows fine-tune in the same way, so that they differ only in the modules.
ABLATION_STEPS = {"fine_tuning_steps": 20, "fine_tuning_rate": 0.005}
# Further rows of Table 2: other forms of some methods.
OTHER_FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "er-gnn, as printed": ("er-gnn", {"replay": "printed", "selection": "influence", "adjustments": [0.0]}),
    "hag-meta, as printed": ("hag-meta", {"hidden": 32, "size": 16}),
    "ranpac, as released": ("ranpac", {"form": "released"}),
    "teen, on the encoder": ("teen", {"features": "encoder"}),
    "tap, no steps": ("tap", {"fine_tuning_steps": 0}),
    "mecoin, its student": ("mecoin", {"answer": "student"}),
}
SWEPT_WAYS, SWEPT_SHOTS = (1, 2, 3, 5), (1, 3, 5, 10)
COMPARED = ("hag-meta", "cec")
ACTIVE_SEEDS = 5
ALL = "all"  # instead of a number K: all labels of supports and pool
SHOTS = (1, 5, 20, 50, ALL)
SHOTS_METHODS = (
    "anchor",
    "sgc-ridge",
    "ranpac",
    "hag-meta",
    "lpmc",
    "joint",
)  # without anchor-pool, which equals anchor at ALL
SHOTS_SEEDS = 5
KINDS = ("table1", "table2", "table3", "sweep", "shots", "embed", "active")


def table2(
    datasets: Sequence[str],
    methods: Sequence[str],
    seeds: int,
    protocols: Sequence[str],
    rules: dict[str, Any],
    variants: Mapping[str, tuple[str, dict[str, Any]]] = MappingProxyType({}),
) -> Grid:
    """Table 2: all methods on all datasets, for each protocol.

    ``variants`` maps the names of further rows to a method and its settings.
    """
    rows: dict[str, tuple[str, dict[str, Any]]] = {method: (method, {}) for method in methods} | dict(variants)
    cells = [
        Cell(dataset, method, seed, row if settings else "", {**rules, "name": protocol}, settings)
        for protocol, seed, (row, (method, settings)), dataset in product(
            protocols, range(seeds), rows.items(), datasets
        )
    ]
    return Grid("table2", "table2", tuple(cells))


def table3(datasets: Sequence[str], seeds: int, protocols: Sequence[str], rules: dict[str, Any]) -> Grid:
    """Table 3: the eight rows of the ablation of HAG-Meta."""
    cells = [
        Cell(dataset, ABLATED, seed, row, {**rules, "name": protocol}, {**changes, **ABLATION_STEPS})
        for protocol, seed, (row, changes), dataset in product(protocols, range(seeds), ABLATION.items(), datasets)
    ]
    return Grid("table3", "table3", tuple(cells))


def sweep(
    datasets: Sequence[str],
    methods: Sequence[str],
    seeds: int,
    rules: dict[str, Any],
    ways: Iterable[int] = SWEPT_WAYS,
    shots: Iterable[int] = SWEPT_SHOTS,
) -> Grid:
    """Parameter study: all combinations of N-way and K-shot."""
    cells = [
        Cell(dataset, method, seed, rules={**rules, "way": way, "shot": shot})
        for seed, method, way, shot, dataset in product(range(seeds), methods, ways, shots, datasets)
    ]
    return Grid("sweep", "sweep", tuple(cells))


def shots(
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: int | None = None,
    rules: dict[str, Any] | None = None,
    labels: Sequence[int | str] = (),
) -> Grid:
    """Several numbers of labels per new class, on the classes and test nodes of the largest K.

    ``labels`` lists numbers K, or ``all``. A method that uses pool labels has the same labels at every K, so it runs
    only at the last.
    """
    rules_by_shot = shot_rules(labels or SHOTS)
    cells = [
        Cell(dataset, method, seed, rules={**(rules or {}), **shot})
        for seed, method, dataset in product(
            range(SHOTS_SEEDS if seeds is None else seeds), methods or SHOTS_METHODS, datasets or GRAPHS
        )
        for shot in (rules_by_shot[-1:] if find_method(method).learner.uses_pool_labels else rules_by_shot)
    ]
    return Grid("shots", "shots", tuple(cells))


def shot_rules(labels: Sequence[int | str], split_shot: int | None = None) -> list[dict[str, Any]]:
    """The rules for each number of labels, in ascending order. ``split_shot`` is the largest K by default."""
    numbers = sorted({label for label in labels if isinstance(label, int)})
    most = max(numbers, default=None) if split_shot is None else split_shot
    if most is None:
        raise InputError("'all' alone does not say which classes are large enough: add the largest K, as in 50,all.")
    rules: list[dict[str, Any]] = [{"shot": number, "split_shot": most} for number in numbers]
    return rules + [{"shot": most, "split_shot": most, "pool_as_supports": True}] * (ALL in labels)


def embed(datasets: Sequence[str], methods: Sequence[str], rules: dict[str, Any]) -> Grid:
    """Embedding plots with seed 0, by default after 2 sessions of 2-way 5-shot."""
    chosen = {"way": 2, "shot": 5, "sessions": 2, **rules}
    cells = [Cell(dataset, method, 0, rules=chosen, embed=True) for method in methods for dataset in datasets]
    return Grid("embed", "embed", tuple(cells))


def active(
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    strategies: Sequence[str] = (),
    seeds: int | None = None,
    rules: dict[str, Any] | None = None,
) -> Grid:
    """Active learning: every method with every strategy, by default on five graphs with five seeds."""
    cells = [
        Cell(dataset, method, seed, rules={**(rules or {}), "track": "active"}, strategy=strategy)
        for seed, method, strategy, dataset in product(
            range(ACTIVE_SEEDS if seeds is None else seeds),
            methods or ACTIVE_METHODS,
            strategies or (*STRATEGIES, OF_EACH_CLASS),
            datasets or GRAPHS,
        )
    ]
    return Grid("active", "active", tuple(cells))


def all_methods() -> list[str]:
    """All methods except the controls."""
    return [name for group, names in GROUPS.items() if group != "controls" for name in names]
