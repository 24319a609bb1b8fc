"""Read a grid from a TOML file."""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from graphfcl.active import find_strategy
from graphfcl.defaults import STRATEGY
from graphfcl.errors import InputError, did_you_mean
from graphfcl.evaluation import needs_oracle
from graphfcl.experiments.cells import Cell
from graphfcl.experiments.grid import Grid
from graphfcl.experiments.paper_grids import ALL, KINDS, shot_rules
from graphfcl.methods import find_method, flat_settings
from graphfcl.runtime.files import read_bytes

RULE_KEYS = ("sessions", "base", "pseudo_novel", "novel", "standardise")
LISTED_RULES = {"protocols": "name", "tracks": "track", "ways": "way"}  # key of the file → rule
LIST_KEYS = ("graphs", "methods", "strategies", *LISTED_RULES, "shots", "variants")
GRID_KEYS = ("name", "graphs", "methods", "strategies", "seeds", *LISTED_RULES, "shots", "split_shot", "variants")
GRID_KEYS += RULE_KEYS
VARIANT_KEYS = ("name", "method", "settings", "grid")
SEEDS = 10
Row = tuple[str, str, dict[str, Any]]  # name, method and settings


def grid_from_toml(path: Path) -> Grid:
    """Build a grid of all combinations of the values that a file lists.

    - ``graphs`` is required, and either ``methods`` or ``[[variants]]``. A variant has name, method, settings, and
      ``grid``, which lists values of settings.
    - ``seeds`` is a number of seeds or a list.
    - ``protocols``, ``tracks``, ``ways`` and ``shots`` are lists. ``sessions``, ``base``, ``pseudo_novel``, ``novel``
      and ``standardise`` have one value. All of them change the rules of the graph.
    - With ``split_shot``, all shots use the classes and test nodes of that K, and one shot may be ``"all"``.
    - ``strategies`` lists strategies for the track ``active`` (default ``auto``).

    Raises:
        InputError: If the file cannot be read, or a key or value is wrong. The message names the line.
    """
    file = _GridFile.read(path)
    seeds, name = file.seeds(), file.name()
    rows = file.rows()
    cells = [
        Cell(graph, method, seed, _row(row, method, strategy), rules, settings, strategy=strategy)
        for rules in file.rules()
        for seed in seeds
        for row, method, settings in rows
        for strategy in file.strategies(rules)
        for graph in file.graphs()
    ]
    return Grid(name, "grid", tuple(cells))


def _row(row: str, method: str, strategy: str) -> str:
    """Name of a row; empty if method and strategy name it already."""
    return "" if row == method else f"{row}, {strategy}" if strategy else row


@dataclass(frozen=True)
class _GridFile:
    """The values of a file, and its text for the line numbers of errors."""

    path: Path
    text: str
    values: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> "_GridFile":
        text = read_bytes(path, "the grid").decode("utf-8", errors="replace")
        try:
            file = cls(path, text, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path} is not TOML: {error}.") from error
        file.refuse_unknown(file.values, GRID_KEYS)
        for key in LIST_KEYS:
            if not isinstance(file.values.get(key, []), list):
                raise file.fault(key, f"{key} must be a list.")
            if key in (*LISTED_RULES, "shots", "strategies") and file.values.get(key) == []:
                raise file.fault(key, f"{key} is empty: list at least one value, or leave it out.")
        return file

    def seeds(self) -> Sequence[int]:
        seeds = self.values.get("seeds", SEEDS)
        if isinstance(seeds, int) and not isinstance(seeds, bool) and seeds > 0:
            return range(seeds)
        if isinstance(seeds, list) and seeds and all(type(seed) is int and seed >= 0 for seed in seeds):
            return list(dict.fromkeys(seeds))
        raise self.fault("seeds", "seeds must be a number of seeds, or a list of integers that are 0 or greater.")

    def name(self) -> str:
        for key in ("graphs", "methods", "strategies"):
            if not all(isinstance(name, str) for name in self.values.get(key, [])):
                raise self.fault(key, f"{key} must be a list of names.")
        name = str(self.values.get("name", self.path.stem))
        if not re.fullmatch(r"[\w. -]+", name) or name.startswith(".") or name in KINDS:
            raise InputError(
                f"{self.path}: the name {name!r} is not a plain file name, or is reserved for a table: choose another."
            )
        return name

    def graphs(self) -> list[str]:
        return self.values.get("graphs", [])

    def rows(self) -> list[Row]:
        """The rows of the grid: methods, and all combinations of values of each variant."""
        rows: list[Row] = [(name, name, {}) for name in (find_method(m).name for m in self.values.get("methods", []))]
        for number, variant in enumerate(self.values.get("variants", []), 1):
            if not isinstance(variant, dict):
                raise InputError(f"{self.path}: write variants as [[variants]] with name, method and settings.")
            self.refuse_unknown(variant, VARIANT_KEYS)
            try:
                rows += self._rows_of(variant)
            except InputError as error:
                raise InputError(f"{self.path}, variant {number}: {error}") from error
        if not self.graphs() or not rows:
            raise InputError(f"{self.path} needs `graphs` and either `methods` or `[[variants]]`.")
        names = [name for name, *_ in rows]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise InputError(f"{self.path}: two rows have the name {repeated!r}: give each its own name.")
        return rows

    @staticmethod
    def _rows_of(variant: dict[str, Any]) -> Iterator[Row]:
        """The rows of a variant: one, or with ``grid`` one for each combination of its values."""
        for key, kind in {"name": str, "method": str, "settings": dict, "grid": dict}.items():
            if not isinstance(variant.get(key, kind()), kind):
                raise InputError(f"{key} must be {'a string' if kind is str else 'a table, such as { size = 32 }'}.")
        swept = flat_settings(variant.get("grid", {}))
        if "method" not in variant or not ("name" in variant or swept):
            raise InputError("it needs a name and a method.")
        for key, values in swept.items():
            if not isinstance(values, tuple) or not values:
                raise InputError(f"grid lists values of each setting: write {key} = [1, 2], or move it to settings.")
        method, fixed = find_method(variant["method"]), flat_settings(variant.get("settings", {}))
        both = next((key for key in swept if key in fixed), None)
        if both is not None:
            raise InputError(f"{both} is in settings and in grid: keep one of them.")
        for values in product(*swept.values()):
            chosen = dict(zip(swept, values, strict=True))
            texts = (f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in chosen.items())
            settings = fixed | chosen
            method.settings_with(settings)
            yield ", ".join((variant.get("name", method.name), *texts)), method.name, settings

    def strategies(self, rules: dict[str, Any]) -> list[str]:
        """The strategies under the track ``active``; one empty name under other tracks."""
        if rules.get("track") != "active":
            return [""]
        listed = self.values.get("strategies", [STRATEGY])
        return [name if needs_oracle(name) else find_strategy(name).name for name in listed]

    def rules(self) -> list[dict[str, Any]]:
        """Every combination of the rules that the file changes."""
        if "strategies" in self.values and "active" not in self.values.get("tracks", []):
            raise self.fault("strategies", 'strategies need tracks = ["active"]: add it.')
        combinations: list[dict[str, Any]] = [{rule: self.values[rule] for rule in RULE_KEYS if rule in self.values}]
        for key, rule in LISTED_RULES.items():
            if key in self.values:
                combinations = [{**rules, rule: value} for rules in combinations for value in self.values[key]]
        return [{**rules, **shot} for rules in combinations for shot in self.shots()]

    def shots(self) -> list[dict[str, Any]]:
        """The rules for each entry of ``shots``; one empty set of rules if the file has none."""
        shots, split_shot = self.values.get("shots", []), self.values.get("split_shot")
        if split_shot is None:
            if ALL in shots:
                raise self.fault("shots", 'shots with "all" needs split_shot, the K for which classes are chosen.')
            return [{"shot": shot} for shot in shots] or [{}]
        if not shots or not all(shot == ALL or type(shot) is int for shot in shots) or type(split_shot) is not int:
            raise self.fault(
                "split_shot", 'split_shot must be one number K, and shots must list numbers up to K, or "all".'
            )
        return shot_rules(shots, split_shot)

    def refuse_unknown(self, values: dict[str, Any], allowed: Sequence[str]) -> None:
        for key in values:
            if key not in allowed:
                raise self.fault(key, f"there is no key {key!r}: {did_you_mean(key, allowed)}")

    def fault(self, key: str, sentence: str) -> InputError:
        """Make an error that names the file and the line of a key."""
        pattern = re.compile(rf"^\s*\[*\s*[\"']?{re.escape(key)}[\"']?\s*[\].=]")
        number = next((number for number, line in enumerate(self.text.splitlines(), 1) if pattern.match(line)), 1)
        return InputError(f"{self.path}, line {number}: {sentence}")
