"""The figures of a block's rows side by side, as numbers and as the texts that tables and page share."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

import numpy as np

from graphfcl.metrics import (
    FEWEST_SEEDS,
    PairedDifference,
    SeedSummary,
    SessionMetric,
    StreamMetric,
    session_metrics,
    stream_metrics,
)
from graphfcl.report.blocks import CONTROL, FORM, ORACLE, POOL, QUERIES, Block, Row, summary
from graphfcl.report.statistics import Comparison

PRINTED_RULES = {"amazon-clothing": (3, 5), "dblp": (5, 5), "reddit": (2, 3)}  # N and K of Table 2
PRINTED_SESSIONS = 10  # 0 to 9


def further_of_sessions() -> list[SessionMetric]:
    """Metrics of sessions that the report shows besides its main table."""
    return [metric for metric in session_metrics() if "report" in metric.places]


def further_of_streams() -> list[StreamMetric]:
    """The same of whole streams."""
    return [metric for metric in stream_metrics() if "report" in metric.places]


def further_titles() -> dict[str, str]:
    """Name → title of the metrics besides the result table's own, where a session's says of which one it is."""
    titles = {metric.name: f"{metric.title}, last session" for metric in further_of_sessions()}
    return titles | {metric.name: metric.title for metric in further_of_streams()}


@dataclass(frozen=True, eq=False)
class RowFigures:
    """One row. Accuracies are in %.

    improvement: by how much PD and RPD are smaller for the reference, over the seeds both have; None without any.
    comparable: whether it may be tested against the reference, given enough seeds.
    comparison: reference − row on the average, in the headline family; None for the reference itself and without a
        common seed.
    rank: average rank; None where the row takes no part.
    further: metrics besides the table's own, by name; a session's metric is that of the last session.
    """

    row: Row
    improvement: tuple[float | None, float | None]
    comparable: bool
    comparison: Comparison | None
    rank: float | None

    @property
    def difference(self) -> PairedDifference | None:
        return None if self.comparison is None else self.comparison.difference

    @property
    def p_value(self) -> float | None:
        """After Holm's correction; None where it was not tested."""
        return None if self.comparison is None else self.comparison.adjusted

    @cached_property
    def by_session(self) -> np.ndarray:
        """(sessions,) mean balanced accuracy over seeds."""
        return self.row.sessions().mean(axis=0)

    @cached_property
    def last(self) -> SeedSummary:
        return summary(self.row.last())

    @cached_property
    def average(self) -> SeedSummary:
        return summary(self.row.values("average"))

    def drop(self, key: str) -> SeedSummary | None:
        """PD or RPD; None where no seed has it."""
        values = self.row.values(key)
        return summary(values) if values else None

    @cached_property
    def stored(self) -> dict[str, int]:
        """Bytes kept between sessions by kind, the most over seeds."""
        results = list(self.row.results.values())
        return {kind: max(result["stored"][kind] for result in results) for kind in results[0]["stored"]}

    @cached_property
    def memory(self) -> float:
        """Mean peak in MB."""
        return float(np.mean([result["peak_memory_mb"] for result in self.row.results.values()]))

    @cached_property
    def seconds(self) -> float:
        return float(np.mean(self.row.seconds()))

    @cached_property
    def chosen(self) -> dict[str, list[Any]]:
        """What validation chose, by setting, for each seed; "–" where one choice leaves no room for another."""
        chosen = [result["chosen"] for result in self.row.results.values()]
        keys = dict.fromkeys(key for each in chosen for key in each)
        return {key: [each.get(key, "–") for each in chosen] for key in keys}

    @cached_property
    def further(self) -> dict[str, SeedSummary | None]:
        figures = {metric.name: self.row.last(metric.name) for metric in further_of_sessions()}
        figures |= {metric.name: self.row.values(metric.name) for metric in further_of_streams()}
        return {name: summary(values) if values else None for name, values in figures.items()}


@dataclass(frozen=True)
class PrintedFigures:
    """What the paper prints for a row, in %."""

    name: str
    accuracy: tuple[float, ...]
    pd: float
    rpd: float

    @property
    def average(self) -> float:
        return float(np.mean(self.accuracy))


@dataclass(frozen=True, eq=False)
class BlockFigures:
    """All rows of a block, in its order, and below them what the paper prints."""

    block: Block
    rows: tuple[RowFigures, ...]
    printed: tuple[PrintedFigures, ...]
    ranked: bool

    @property
    def sessions(self) -> int:
        return max(row.by_session.size for row in self.rows)

    @property
    def has_further(self) -> bool:
        """Whether a row has a metric besides the table's own."""
        return any(value is not None for row in self.rows for value in row.further.values())


def block_figures(block: Block, ranks: dict[str, float]) -> BlockFigures:
    rows = []
    for row in block.rows:
        comparison = block.comparisons.get(row.name)
        improvement = (_improvement(block.reference, row, "pd"), _improvement(block.reference, row, "rpd"))
        rows.append(RowFigures(row, improvement, block.comparable(row), comparison, ranks.get(row.name)))
    sessions = max(row.by_session.size for row in rows)
    return BlockFigures(block, tuple(rows), _printed(block, sessions), bool(ranks))


def paper_tables() -> dict[str, Any]:
    """The figures that the paper prints."""
    return json.loads(files("graphfcl.report").joinpath("paper_tables.json").read_text())


def _improvement(reference: Row, row: Row, key: str) -> float | None:
    ours, theirs = reference.values(key), row.values(key)
    shared = sorted(set(ours) & set(theirs))
    return float(np.mean([theirs[seed] - ours[seed] for seed in shared])) if shared else None


def _printed(block: Block, sessions: int) -> tuple[PrintedFigures, ...]:
    """The paper's own figures, where dataset, rules and sessions are the paper's."""
    rules = (block.protocol["name"], block.protocol["track"], block.protocol["way"], block.protocol["shot"])
    paper_rules = ("paper", "transductive", *PRINTED_RULES.get(block.dataset_path, (0, 0)))
    if rules != paper_rules or sessions != PRINTED_SESSIONS:
        return ()
    tables = paper_tables()
    source = tables["table2"].get(block.dataset_path, {}) if block.grid.kind == "table2" else {}
    if block.grid.kind == "table3" and block.dataset_path == "amazon-clothing":
        source = tables["table3"]
    printed = [(row.name, source[row.name]) for row in block.rows if row.name in source]
    return tuple(PrintedFigures(name, tuple(one["accuracy"]), one["pd"], one["rpd"]) for name, one in printed)


MARKS = {POOL: "†", QUERIES: "‡", FORM: "§", ORACLE: "¶", CONTROL: "‖"}
NOTES = {
    "†": "uses pool labels: an upper reference that takes no part in comparisons",
    "‡": "trained on query labels (protocol `paper`): takes no part in comparisons with rows that are not",
    "¶": "needs an oracle, which knows the class of nodes that nobody has labelled: takes no part in comparisons",
    "‖": "a control, which measures what the protocol gives away: takes no part in comparisons",
    "§": "another form of a method that has a row of its own: takes no part in comparisons",
}

TOO_FEW = "too few seeds"


def about_test(block: Block) -> str:
    """How differences between rows are tested."""
    ratio = float(np.mean(list(block.ratios.values())))
    return (
        "differences: corrected resampled t-test of Nadeau and Bengio over the shared seeds, two-sided, with "
        f"n_test/n_train of the streams ({ratio:.2f} in the mean); ± is its 95 % interval"
    )


def family_text(block: Block) -> str:
    """Which comparisons the p-values of the result table are corrected for."""
    return f"p, Holm: family of the headline, {block.reference.name} against each other row of this dataset"


def figure(seeds: SeedSummary | None) -> str:
    """Mean ± half the interval; empty where there is no figure."""
    if seeds is None:
        return ""
    return f"{seeds.mean:.2f}" if seeds.interval is None else f"{seeds.mean:.2f} ± {seeds.interval:.2f}"


def improvement_text(row: RowFigures) -> str:
    """PD/RPD, with signs; empty for the reference."""
    if row.difference is None:
        return ""
    return "/".join("" if value is None else f"{value:+.2f}" for value in row.improvement)


def difference_text(row: RowFigures) -> str:
    if row.difference is None:
        return ""
    interval = "" if row.difference.interval is None else f" ± {row.difference.interval:.2f}"
    return f"{row.difference.mean:+.2f}{interval}"


def p_text(row: RowFigures) -> str:
    """The p-value, or why there is none; empty for the reference and for rows that may not be compared with it."""
    if row.p_value is None:
        return TOO_FEW if row.comparable else ""
    return p_figure(row.p_value)


def p_figure(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def lead_lines(leads: Mapping[str, Mapping[str, Comparison]]) -> list[tuple[str, ...]]:
    """A line for each row: its difference from every other, with interval and p-value."""

    def lead(comparison: Comparison | None) -> str:
        if comparison is None:
            return ""
        difference = comparison.difference
        if difference.interval is None or comparison.adjusted is None:
            return f"{difference.mean:+.2f} (too few seeds)"
        return f"{difference.mean:+.2f} ± {difference.interval:.2f} ({p_figure(comparison.adjusted)})"

    return [(name, *(lead(others.get(other)) for other in leads)) for name, others in leads.items()]


def chosen_text(row: RowFigures) -> str:
    """Setting by setting, what each seed chose."""
    return "; ".join(f"{key.replace('_', ' ')} {', '.join(map(str, values))}" for key, values in row.chosen.items())


def printed_line(printed: PrintedFigures, width: int) -> tuple[str, ...]:
    """A line of the result table that holds the paper's figures."""
    cells = [f"{value:.2f}" for value in (*printed.accuracy, printed.average, printed.pd, printed.rpd)]
    line = [f"{printed.name}, printed", "", *cells]
    return (*line, *[""] * (width - len(line)))


def result_columns(figures: BlockFigures) -> tuple[str, ...]:
    """The columns of the result table."""
    reference = figures.block.reference.name
    columns = ("method", "seeds", *(str(number) for number in range(figures.sessions)), "average", "PD", "RPD")
    columns += (f"improvement by {reference} (PD/RPD)", f"{reference} ahead on average", "p, Holm")
    return (*columns, "average rank") if figures.ranked else columns


def notes(figures: BlockFigures) -> tuple[str, ...]:
    """What stands below the result table."""
    block = figures.block
    marks = {mark for row in block.rows for mark in row.marks}
    lines = [f"{MARKS[mark]} {NOTES[MARKS[mark]]}" for mark in sorted(marks)]
    if any(row.difference is not None and row.difference.interval is not None for row in figures.rows):
        lines += [about_test(block), family_text(block)]
    if any(p_text(row) == TOO_FEW for row in figures.rows):
        shared = f"fewer than {FEWEST_SEEDS} seeds shared with {block.reference.name}"
        lines.append(f"{TOO_FEW}: {shared}, so the difference has no test and no interval")
    fair = "row without a mark" if marks else "row"
    if block.winner is not None:
        lines.append(f"bold: ahead of every other {fair} on average, each raw p < 0.05 (an intersection–union test)")
    elif block.too_few_seeds:
        lines.append(f"{TOO_FEW} for a test of the best {fair} against every other, so none is bold")
    else:
        lines.append(f"no {fair} is ahead of every other with each raw p < 0.05, so none is bold")
    lines += [f"failed: {row}, seed {seed}: {error}" for row, seed, error in block.failures]
    if block.missing:
        lines.append(f"cells that have not run yet: {block.missing}")
    return tuple(lines)
