"""From stored cells to what a table or a picture shows: blocks of rows that may be compared with each other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.defaults import REFERENCE_METHOD, STRATEGY
from graphfcl.experiments import Cell, CellStore, Grid, load_grids
from graphfcl.metrics import (
    SeedSummary,
    active_metrics,
    average_ranks,
    session_metrics,
    stream_metrics,
    summarise_seeds,
)
from graphfcl.report.statistics import Claims, Comparison, compare_pairs, compare_with
from graphfcl.report.version_2 import load_version_2
from graphfcl.stream import PROTOCOL_VERSION

MOST_COLOURS = 12  # rows of a picture that all have colours
SHOWN_OF_MANY = 9
FIRST = {"table2": 0, "table3": 1}  # kinds of grids that a report begins with
POOL, QUERIES, FORM = "uses pool labels", "trained on query labels", "another form of a method"
ORACLE, CONTROL = "needs an oracle", "a control"
NOT_RECORDED = "not recorded"  # the code of results that were stored before they named it


def _scale(key: str) -> float:
    """What a figure is shown times; 1 for what is no metric."""
    return next((m.scale for m in (*session_metrics(), *stream_metrics(), *active_metrics()) if m.name == key), 1.0)


def version_text(result: dict[str, Any]) -> str:
    """The protocol version of a result, as titles name it."""
    version = result["protocol_version"]
    return f"protocol version {version}" + ("" if version == PROTOCOL_VERSION else ", being recomputed")


def labels_text(protocol: dict[str, Any]) -> str:
    """Labels per new class: K, or ``all`` of supports and pool."""
    return "all" if protocol.get("pool_as_supports") else str(protocol["shot"])


def machines_of(rows: "Iterable[Row]") -> list[str]:
    """The kinds of machines that computed the results of rows: GPU or processor, and threads."""
    versions = (result["versions"] for row in rows for result in row.results.values())
    kinds = (
        f"{each.get('gpu') or each.get('machine', 'unknown')}, {each.get('threads', '?')} threads" for each in versions
    )
    return list(dict.fromkeys(kinds))


def codes_of(rows: "Iterable[Row]") -> dict[str, list[str]]:
    """The code that computed the results of rows, by its first commit and its hash → names of these rows."""
    titles: dict[str | None, str] = {}
    names: dict[str | None, dict[str, None]] = {}
    for row in rows:
        for result in row.results.values():
            code, commit = (result["versions"].get(key) for key in ("code", "commit"))
            titles.setdefault(code, NOT_RECORDED if code is None else " ".join(filter(None, [commit, f"hash {code}"])))
            names.setdefault(code, {})[row.name] = None
    return {titles[code]: list(found) for code, found in names.items()}


def kind_text(protocol: dict[str, Any]) -> str:
    """N and K, as titles name them."""
    return f"{protocol['way']}-way {labels_text(protocol)}-shot"


@dataclass(frozen=True, eq=False)
class Row:
    """All seeds of one line of a table: the results as :func:`graphfcl.experiments.run` gives them, by seed.

    form: it is another form of a method that has a row of its own in Table 2.
    """

    name: str
    results: dict[int, dict[str, Any]]
    form: bool = False

    @property
    def marks(self) -> tuple[str, ...]:
        result = next(iter(self.results.values()))
        marks = (
            (POOL, result["uses_pool_labels"]),
            (QUERIES, result["trained_on_query_labels"]),
            (FORM, self.form),
            (ORACLE, result.get("needs_oracle", False)),
            (CONTROL, result.get("flags", {}).get("control", False)),
        )
        return tuple(mark for mark, holds in marks if holds)

    @property
    def strategy(self) -> str:
        """What named the nodes to label; empty but under the track ``active``."""
        return str(next(iter(self.results.values())).get("strategy", ""))

    def values(self, key: str) -> dict[int, float]:
        """A figure of the whole run for each seed that has it, in % where it is a share."""
        values = {seed: result.get(key) for seed, result in self.results.items()}
        return {seed: _scale(key) * value for seed, value in values.items() if value is not None}

    def last(self, key: str = "balanced_accuracy") -> dict[int, float]:
        """A figure of the last session for each seed that has it, in % where it is a share."""
        values = {seed: result["sessions"][-1].get(key) for seed, result in self.results.items()}
        return {seed: _scale(key) * value for seed, value in values.items() if value is not None}

    def figures(self, key: str) -> dict[int, float]:
        """A metric for each seed that has it; that of a session is the last session's."""
        return self.last(key) if key in {metric.name for metric in session_metrics()} else self.values(key)

    def summary(self, key: str) -> SeedSummary | None:
        """A metric over the seeds that have it; None if no seed has it."""
        values = self.figures(key)
        return summary(values) if values else None

    def sessions(self, key: str = "balanced_accuracy") -> np.ndarray:
        """(seeds, sessions), in % where it is a share; NaN where a figure does not exist."""
        rows = [[session.get(key) for session in result["sessions"]] for result in self.results.values()]
        return _scale(key) * np.array([[np.nan if value is None else value for value in row] for row in rows])

    def matrix(self) -> np.ndarray:
        """(sessions, sessions) mean of a_{t,j} over seeds, in %."""
        matrices = [[[np.nan if v is None else v for v in row] for row in r["matrix"]] for r in self.results.values()]
        return 100 * np.array(matrices, dtype=float).mean(axis=0)

    def seconds(self) -> list[float]:
        """Of each run, the pre-training of an encoder that was there already included."""
        return [result["total_seconds"] + _earlier_seconds(result) for result in self.results.values()]

    def training_seconds(self) -> dict[int, float]:
        """Seed → time to learn all sessions, pre-training and validation included and predictions not.

        At least a millisecond, so that it has a place on a logarithmic axis.
        """
        return {
            seed: max(sum(session["seconds"] for session in result["sessions"]) + _earlier_seconds(result), 1e-3)
            for seed, result in self.results.items()
        }

    def curve(self, key: str) -> dict[str, list[float | None]]:
        """Mean by session, and the ends of the 95 % interval where there are several seeds."""
        summaries = [None if np.isnan(column).any() else summary(column) for column in self.sessions(key).T]

        def end(one: SeedSummary | None, sign: int) -> float | None:
            return None if one is None or one.interval is None else one.mean + sign * one.interval

        return {
            "mean": [None if one is None else one.mean for one in summaries],
            "low": [end(one, -1) for one in summaries],
            "high": [end(one, 1) for one in summaries],
        }

    def mean(self, key: str) -> float | None:
        """Mean of a figure that is no metric over the runs that counted it, such as the peak memory in MB."""
        values = list(self.values(key).values())
        return float(np.mean(values)) if values else None

    def stored(self) -> dict[str, int]:
        """Bytes kept between sessions by kind, the most over seeds."""
        results = list(self.results.values())
        return {kind: max(result["stored"][kind] for result in results) for kind in results[0]["stored"]}

    def chosen(self) -> str:
        """Setting by setting, what validation chose for each seed; "–" where one choice leaves no room for another."""
        choices = [result["chosen"] for result in self.results.values()]
        keys = dict.fromkeys(key for each in choices for key in each)
        return "; ".join(
            f"{key.replace('_', ' ')} {', '.join(str(each.get(key, '–')) for each in choices)}" for key in keys
        )


def _earlier_seconds(result: dict[str, Any]) -> float:
    """The pre-training of an encoder that was there already."""
    return float(result["pretraining"]["seconds"]) if result["pretraining"]["reused"] else 0.0


@dataclass(frozen=True, eq=False)
class Block:
    """Rows on the same dataset under the same protocol.

    rows: in the order of the grid's cells.
    reference: the row others are compared with: that of ``REFERENCE_METHOD`` or, under the track ``active``, the first
        of ``STRATEGY``, where it is there; else the best one on average that is no reference itself.
    failures: (row, seed, error) of cells that failed. missing: cells that have not run.
    dataset: its name; with its path where several graphs of the folder have this name.
    dataset_path: the dataset as its cells name it, which for a user's own graph is a path.
    further_rules: rules that tell it from another block of the grid whose title would be the same.
    """

    grid: Grid
    dataset: str
    protocol: dict[str, Any]
    rows: tuple[Row, ...]
    failures: tuple[tuple[str, int, str], ...]
    missing: int
    dataset_path: str = ""
    further_rules: str = ""

    @property
    def is_active(self) -> bool:
        return self.protocol["track"] == "active"

    @property
    def sessions(self) -> int:
        return max(len(result["sessions"]) for row in self.rows for result in row.results.values())

    @property
    def version_text(self) -> str:
        """The protocol version, which all its results share."""
        return version_text(next(iter(self.rows[0].results.values())))

    @property
    def title(self) -> str:
        return self.title_with(kind_text(self.protocol))

    def title_with(self, kind: str) -> str:
        """What its results are of. kind: N and K."""
        protocol = self.protocol
        split = f", split for {protocol['split_shot']}-shot" if protocol.get("split_shot") else ""
        raw = ", not standardised" if protocol.get("standardise") is False else ""
        rules = f"{protocol['name']}, {protocol['track']}{split}{raw}{self.further_rules}"
        return f"{self.dataset}, {kind}, {rules}, {self.version_text}"

    @cached_property
    def reference(self) -> Row:
        fair = [row for row in self.rows if not {POOL, FORM, ORACLE, CONTROL} & set(row.marks)] or list(self.rows)
        named = [row for row in fair if row.name == REFERENCE_METHOD or row.strategy == STRATEGY]
        return named[0] if named else max(fair, key=lambda row: float(np.mean([*row.values("average").values()])))

    def comparable(self, row: Row) -> bool:
        """Whether a row may be tested against the reference: it has the same marks."""
        return row is not self.reference and row.marks == self.reference.marks

    @cached_property
    def ratios(self) -> dict[int, float]:
        """Seed → n_test/n_train of its stream."""
        return {seed: result["n_test"] / result["n_train"] for row in self.rows for seed, result in row.results.items()}

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Row name → reference − row on the average over sessions: the headline family.

        Rows with other marks than the reference have a difference but no place in the family, and rows that share
        fewer than ``FEWEST_SEEDS`` seeds with it have no test.
        """
        figures = {row.name: row.values("average") for row in self.rows}
        alike = {row.name: figures[row.name] for row in self.rows if row is self.reference or self.comparable(row)}
        tested = compare_with(self.reference.name, alike, self.ratios)
        others = compare_with(self.reference.name, figures, self.ratios)
        return {name: tested.get(name, replace(other, adjusted=None)) for name, other in others.items()}

    def improvement(self, row: Row, key: str) -> float | None:
        """By how much PD or RPD is smaller for the reference, over the seeds both have; None without any."""
        ours, theirs = self.reference.values(key), row.values(key)
        shared = sorted(set(ours) & set(theirs))
        return float(np.mean([theirs[seed] - ours[seed] for seed in shared])) if shared else None

    def fair_figures(self, metric: str) -> dict[str, dict[int, float]]:
        """Row → seed → figure, of the rows without a mark.

        metric: ``average``, over sessions, or ``last``, the balanced accuracy of the last session.
        """
        fair = [row for row in self.rows if not row.marks]
        return {row.name: row.last() if metric == "last" else row.values("average") for row in fair}

    def leads(self, metric: str) -> dict[str, dict[str, Comparison]]:
        """Row → other row → row − other: the family of all pairs of rows without a mark."""
        figures = self.fair_figures(metric)
        leads: dict[str, dict[str, Comparison]] = {name: {} for name in figures}
        for (first, second), comparison in compare_pairs(figures, self.ratios).items():
            leads[first][second] = comparison
            leads[second][first] = comparison.swapped
        return {name: {other: leads[name][other] for other in figures if other in leads[name]} for name in figures}

    @cached_property
    def _contest(self) -> Claims | None:
        """The row with the highest average against each other one; None if all rows have a mark."""
        fair = self.fair_figures("average")
        best = max(fair, key=lambda name: float(np.mean(list(fair[name].values()))), default=None)
        return None if best is None else claims(self, best)

    @property
    def too_few_seeds(self) -> bool:
        """Whether the row with the highest average shares too few seeds with another to be tested against it."""
        contest = self._contest
        untested = contest is not None and any(each.difference.p_value is None for each in contest.comparisons.values())
        return untested or (contest is not None and bool(contest.untested))

    @property
    def winner(self) -> str | None:
        """The row that is ahead of every other on average, each with a raw p < 0.05; None if there is none."""
        contest = self._contest
        return contest.reference if contest is not None and contest.ahead_of_every else None


def by_strength(blocks: Sequence[Block]) -> list[str]:
    """Names of all rows: first those without a mark or with pool labels, each part by its mean average."""
    values: dict[str, list[float]] = {}
    later = {row.name for block in blocks for row in block.rows if set(row.marks) - {POOL}}
    for block in blocks:
        for row in block.rows:
            values.setdefault(row.name, []).append(float(np.mean(list(row.values("average").values()))))
    return sorted(values, key=lambda name: (name in later, -float(np.mean(values[name]))))


def prominent(blocks: Sequence[Block]) -> list[str]:
    """Rows that a picture shows in colours: all, or of many the strongest and the reference."""
    names = by_strength(blocks)
    if len(names) <= MOST_COLOURS:
        return names
    references = {block.reference.name for block in blocks}
    return [name for place, name in enumerate(names) if place < SHOWN_OF_MANY or name in references]


def summary(values: dict[int, float] | Sequence[float]) -> SeedSummary:
    return summarise_seeds(list(values.values()) if isinstance(values, dict) else values)


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything a folder holds."""

    folder: Path
    grids: tuple[Grid, ...]
    blocks: tuple[Block, ...]
    failures: tuple[tuple[Grid, Cell, str], ...]

    def ranks(self, like: Block) -> dict[str, float]:
        """Average rank of each row over the (dataset, seed) pairs that have it, in all blocks under the same protocol.

        Rows with a mark take no part.
        """
        keys: tuple[str, ...] = ("name", "track", "standardise", "class_order")
        keys += () if like.grid.kind in ("table2", "table3") else ("way", "shot", "split_shot", "pool_as_supports")
        alike = [block for block in self.blocks if block.grid is like.grid]
        blocks = [b for b in alike if all(b.protocol.get(key) == like.protocol.get(key) for key in keys)]
        names = [row.name for row in like.rows if not row.marks]
        names = [name for name in names if all(any(row.name == name for row in block.rows) for block in blocks)]
        if len(names) < 2:
            return {}
        scores = []
        for block in blocks:
            rows = {row.name: row.values("average") for row in block.rows if row.name in names}
            shared = sorted(set.intersection(*(set(values) for values in rows.values())))
            scores += [[rows[name][seed] for name in names] for seed in shared]
        if not scores:
            return {}
        return dict(zip(names, average_ranks(np.array(scores)).tolist(), strict=True))


def _other_forms(grid: Grid) -> set[str]:
    """Rows of Table 2 that show a method once more; a grid of one's own compares whatever it lists."""
    if grid.kind != "table2":
        return set()
    plain = {cell.method for cell in grid.cells if cell.row == cell.method}
    return {cell.row for cell in grid.cells if cell.row != cell.method and cell.method in plain}


def collect(folder: str | Path) -> Findings:
    """Read all grids of a folder, the paper's tables first."""
    store = CellStore(folder)
    listed, read = load_version_2(store) or (load_grids(folder), store.read)
    grids = sorted(listed, key=lambda grid: FIRST.get(grid.kind, len(FIRST)))
    blocks: list[Block] = []
    failures = []
    for grid in grids:
        order, forms = list(dict.fromkeys(cell.row for cell in grid.cells)), _other_forms(grid)
        places: dict[str, list[Cell]] = {}
        for cell in grid.cells:
            places.setdefault(f"{cell.dataset} {sorted(cell.rules.items())}", []).append(cell)
        for cells in places.values():
            results = [(cell, read(cell)) for cell in cells]
            finished = [(cell, result) for cell, result in results if result is not None]
            errors = [(cell, store.error(cell)) for cell, result in results if result is None]
            failed = [(cell, error) for cell, error in errors if error is not None]
            failures += [(grid, cell, error) for cell, error in failed]
            by_row: dict[str, dict[int, dict[str, Any]]] = {}
            for cell, result in sorted(finished, key=lambda pair: pair[0].seed):
                by_row.setdefault(cell.row, {})[cell.seed] = result
            if finished:
                first, result = finished[0]
                rows = tuple(Row(name, by_row[name], name in forms) for name in order if name in by_row)
                faults = tuple((cell.row, cell.seed, error) for cell, error in failed)
                shown = (grid, result["dataset"], result["protocol"], rows, faults)
                blocks.append(Block(*shown, missing=len(errors) - len(failed), dataset_path=first.dataset))
    titled = tuple(_with_unique_titles(blocks))
    return Findings(Path(folder), tuple(grids), titled, tuple(failures))


def _with_unique_titles(blocks: Sequence[Block]) -> list[Block]:
    """The blocks, no two of a grid with the same title: graphs with the same name get their path, others the rules
    that differ."""
    paths: dict[str, set[str]] = {}
    for block in blocks:
        paths.setdefault(block.dataset, set()).add(block.dataset_path)
    named = [
        replace(block, dataset=f"{block.dataset} ({block.dataset_path})") if len(paths[block.dataset]) > 1 else block
        for block in blocks
    ]
    return [_with_further_rules(block, [b for b in named if b.grid is block.grid]) for block in named]


def _with_further_rules(block: Block, beside: Sequence[Block]) -> Block:
    same = [other.protocol for other in beside if other.title == block.title]
    differ = [rule for rule in block.protocol if any(other.get(rule) != block.protocol[rule] for other in same)]
    texts = [f", {rule.replace('_', ' ')} {block.protocol[rule]}" for rule in differ]
    return replace(block, further_rules="".join(texts))


def claims(block: Block, reference: str, metric: str = "average") -> Claims:
    """What the tests of a block support of one of its methods."""
    figures = block.fair_figures(metric)
    comparisons = compare_with(reference, figures, block.ratios)
    untested = frozenset(figures) - {reference, *comparisons}
    return Claims(reference, block.dataset, metric, comparisons, untested)


def claims_by_dataset(
    findings: Findings, reference: str, metric: str = "average", grid: str = "table2"
) -> dict[str, Claims]:
    """Dataset → claims, over the blocks of a grid that have the method."""
    blocks = [block for block in findings.blocks if block.grid.name == grid]
    return {
        block.dataset: claims(block, reference, metric) for block in blocks if reference in block.fair_figures(metric)
    }
