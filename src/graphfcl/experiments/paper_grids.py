"""The paper's evaluation as grids: which cells Table 2, Table 3, the parameter study and the embedding picture need.

Seeds come first in the order of cells: a grid that is stopped early has whole seeds.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from graphfcl.errors import InputError, did_you_mean
from graphfcl.experiments.cells import Cell
from graphfcl.experiments.grid import Grid
from graphfcl.files import read_bytes
from graphfcl.methods import METHODS, find_method

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
# Every row fine-tunes alike, or the rows without GPIL would differ in more than that.
ABLATION_STEPS = {"fine_tuning_steps": 20, "fine_tuning_rate": 0.005}
SWEPT_WAYS, SWEPT_SHOTS = (1, 2, 3, 5), (1, 3, 5, 10)
COMPARED = ("hag-meta", "cec")
KINDS = ("table1", "table2", "table3", "sweep", "embed")


def table2(
    datasets: Sequence[str], methods: Sequence[str], seeds: int, protocols: Sequence[str], rules: dict[str, Any]
) -> Grid:
    """All methods on all datasets: strict, and `paper` in a second block."""
    cells = [
        Cell(dataset, method, seed, rules={**rules, "name": protocol})
        for protocol in protocols
        for seed in range(seeds)
        for method in methods
        for dataset in datasets
    ]
    return Grid("table2", "table2", tuple(cells))


def table3(datasets: Sequence[str], seeds: int, protocols: Sequence[str], rules: dict[str, Any]) -> Grid:
    """The eight ablation rows of HAG-Meta."""
    cells = [
        Cell(dataset, "hag-meta", seed, row, {**rules, "name": protocol}, {**changes, **ABLATION_STEPS})
        for protocol in protocols
        for seed in range(seeds)
        for row, changes in ABLATION.items()
        for dataset in datasets
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
    """N-way × K-shot."""
    cells = [
        Cell(dataset, method, seed, rules={**rules, "way": way, "shot": shot})
        for seed in range(seeds)
        for method in methods
        for way in ways
        for shot in shots
        for dataset in datasets
    ]
    return Grid("sweep", "sweep", tuple(cells))


def embed(datasets: Sequence[str], methods: Sequence[str], rules: dict[str, Any]) -> Grid:
    """The embedding after some sessions (2 of 2-way 5-shot unless the rules say otherwise), seed 0."""
    chosen = {"way": 2, "shot": 5, "sessions": 2, **rules}
    cells = [Cell(dataset, method, 0, rules=chosen, embed=True) for method in methods for dataset in datasets]
    return Grid("embed", "embed", tuple(cells))


# A grid of one's own

RULE_KEYS = ("sessions", "base", "pseudo_novel", "novel")
GRID_KEYS = ("name", "datasets", "methods", "seeds", "protocols", "tracks", "ways", "shots", "variants", *RULE_KEYS)
VARIANT_KEYS = ("name", "method", "settings")


def grid_from_toml(path: Path) -> Grid:
    """Every combination of what a file lists.

    ``datasets``; ``methods``, or ``[[variants]]`` with name, method and settings; ``seeds`` (how many, or a list); and
    where the dataset's rules are to be changed ``protocols``, ``tracks``, ``ways``, ``shots`` (lists), ``sessions``
    and the numbers of classes ``base``, ``pseudo_novel``, ``novel``.
    """
    text = read_bytes(path, "the grid").decode("utf-8", errors="replace")
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}.") from error
    _refuse_unknown(values, GRID_KEYS, text, path)
    for key in ("datasets", "methods", "protocols", "tracks", "ways", "shots", "variants"):
        if not isinstance(values.get(key, []), list):
            raise InputError(f"{path}, line {_line_of(key, text)}: {key} must be a list.")
    seeds = values.get("seeds", 10)
    counted = isinstance(seeds, int) and not isinstance(seeds, bool) and seeds > 0
    if not counted and not (isinstance(seeds, list) and seeds and all(isinstance(seed, int) for seed in seeds)):
        raise InputError(f"{path}, line {_line_of('seeds', text)}: seeds must be a count or a list of whole numbers.")
    for key in ("datasets", "methods"):
        if not all(isinstance(name, str) for name in values.get(key, [])):
            raise InputError(f"{path}, line {_line_of(key, text)}: {key} must be a list of names.")
    name = str(values.get("name", path.stem))
    if not re.fullmatch(r"[\w. -]+", name) or name.startswith(".") or name in KINDS:
        raise InputError(f"{path}: the name {name!r} is no plain file name, or that of a table: choose another.")
    for number, variant in enumerate(values.get("variants", [])):
        if not isinstance(variant, dict):
            raise InputError(f"{path}: write variants as [[variants]] with name, method and settings.")
        _refuse_unknown(variant, VARIANT_KEYS, text, path)
        if not {"name", "method"} <= set(variant):
            raise InputError(f"{path}: variant {number + 1} needs a name and a method.")
    named = [find_method(method).name for method in values.get("methods", [])]
    rows: list[tuple[str, str, dict[str, Any]]] = [(method, method, {}) for method in named]
    rows += [(v["name"], find_method(v["method"]).name, v.get("settings", {})) for v in values.get("variants", [])]
    if not values.get("datasets") or not rows:
        raise InputError(f"{path} needs `datasets` and either `methods` or `[[variants]]`.")
    for _, method, settings in rows:
        find_method(method).settings_with(settings)
    lists = [("name", "protocols"), ("track", "tracks"), ("way", "ways"), ("shot", "shots")]
    combinations: list[dict[str, Any]] = [{rule: values[rule] for rule in RULE_KEYS if rule in values}]
    for rule, key in lists:
        if key in values:
            combinations = [{**rules, rule: value} for rules in combinations for value in values[key]]
    cells = [
        Cell(dataset, method, seed, "" if row == method else row, rules, dict(settings))
        for rules in combinations
        for seed in (range(seeds) if isinstance(seeds, int) else seeds)
        for row, method, settings in rows
        for dataset in values["datasets"]
    ]
    return Grid(name, "grid", tuple(cells))


def _refuse_unknown(values: dict[str, Any], known: Sequence[str], text: str, path: Path) -> None:
    for key in values:
        if key not in known:
            hint = did_you_mean(key, known)
            raise InputError(f"{path}, line {_line_of(key, text)}: there is no key {key!r}: {hint}")


def _line_of(key: str, text: str) -> int:
    pattern = re.compile(rf"^\s*\[*\s*[\"']?{re.escape(key)}[\"']?\s*[\].=]")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)


def all_methods() -> list[str]:
    return [method.name for method in METHODS]
