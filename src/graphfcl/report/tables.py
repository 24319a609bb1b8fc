"""The tables of a report, which are the same on the page, in Markdown and in LaTeX."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from graphfcl.metrics import active_metrics
from graphfcl.report.active import active_table
from graphfcl.report.blocks import Block, kind_text
from graphfcl.report.comparison import (
    code_notes,
    compared_texts,
    further_metrics,
    further_titles,
    machine_notes,
    mark_notes,
    marked_name,
    notes,
    p_figure,
    printed_rows,
)
from graphfcl.report.findings import Findings
from graphfcl.report.shots import MEASURES, shot_curves
from graphfcl.report.statistics import Comparison
from graphfcl.report.sweeps import sweep_table, sweeps
from graphfcl.report.table import Table, bold_rows, figure, two_digits
from graphfcl.report.table1 import read_dataset_table

METRICS = {"average": "average over sessions", "last": "last session", "pd": "PD", "rpd": "RPD"}  # name → title
LAST = "balanced_accuracy"  # the metric behind "last"
NO_RANKS: Mapping[str, float] = MappingProxyType({})


def less_is_better(metric: str) -> bool:
    """Whether smaller values of a metric are better: PD, RPD, forgetting."""
    return re.search(r"(^|_)r?pd$|forgetting", metric) is not None


def metric_titles(block: Block) -> dict[str, str]:
    """Titles of the metrics by which a block can be ranked. The first one is shown initially."""
    active = {metric.name: metric.title for metric in active_metrics()} if block.is_active else {}
    return active | METRICS | further_titles(block)


def result_table(block: Block, ranks: Mapping[str, float]) -> Table:
    """Table with average, sessions, PD, RPD, improvement by the reference, and the test of its lead.

    ``ranks`` holds average ranks of rows by name. If it is empty, the table has no ranks.
    """
    reference, alone = block.reference.name, len(block.rows) == 1
    columns = ("method", "seeds", "average", *(str(number) for number in range(block.sessions)), "PD", "RPD")
    columns += () if alone else (f"improvement by {reference} (PD/RPD)", f"{reference} ahead on average", "p, Holm")
    columns += ("average rank",) * bool(ranks)
    lines = []
    for row in block.rows:
        cells = [f"{value:.2f}" for value in row.sessions().mean(axis=0)]
        cells[block.sessions - 1] = figure(row.summary(LAST))
        line = [marked_name(row), str(len(row.results)), figure(row.summary("average")), *cells]
        line += [figure(row.summary(key)) for key in ("pd", "rpd")]
        line += [] if alone else compared_texts(block, row)
        if ranks:
            line.append(f"{ranks[row.name]:.2f}" if row.name in ranks else "")
        lines.append(tuple(line))
    printed = printed_rows(block)
    for one in printed:
        cells = [f"{value:.2f}" for value in (one["average"], *one["accuracy"], one["pd"], one["rpd"])]
        line = [f"{one['name']}, printed", "", *cells]
        lines.append((*line, *[""] * (len(columns) - len(line))))
    return Table(
        f"{block.title}: balanced accuracy (%) by session",
        columns,
        tuple(lines),
        bold_rows([place for place, row in enumerate(block.rows) if row.name == block.winner], len(columns)),
        notes(block),
        names=(*(row.name for row in block.rows), *(str(one["name"]) for one in printed)),
        below=len(printed),
        low=frozenset({"PD", "RPD", "p, Holm", "average rank"}),
    )


def side_by_side(findings: Findings) -> list[list[Block]]:
    """Group the blocks of an overview: the same grid, protocol and track, and the same K in ``shots``."""
    groups: dict[str, list[Block]] = {}
    for block in findings.blocks:
        if block.grid.kind not in ("sweep", "embed"):
            rules = [block.protocol.get(rule) for rule in ("name", "track", "split_shot")]
            rules += [kind_text(block.protocol)] if block.protocol.get("split_shot") else []
            groups.setdefault(f"{block.grid.name} {rules}", []).append(block)
    return list(groups.values())


def overview_table(blocks: Sequence[Block], metric: str, ranks: Mapping[str, float] = NO_RANKS) -> Table:
    """Table with one metric of every row on every dataset. Rows that miss a dataset have no mean over datasets.

    ``ranks`` holds average ranks of rows by name. If it is empty, the table has no ranks.
    """
    first, lines, bold = blocks[0], [], set()
    titles = [_column(block, blocks) for block in blocks]
    rows = {row.name: row for block in blocks for row in block.rows}
    for place, (name, row) in enumerate(rows.items()):
        found = [next((one for one in block.rows if one.name == name), None) for block in blocks]
        summaries = [None if one is None else one.summary(LAST if metric == "last" else metric) for one in found]
        means = [one.mean for one in summaries if one is not None]
        mean = f"{np.mean(means):.2f}" if len(means) == len(blocks) else ""
        rank = [f"{ranks[name]:.2f}" if name in ranks else ""] if ranks else []
        lines.append((marked_name(row), mean, *map(figure, summaries), *rank))
        if metric == "average":
            bold |= {(place, 2 + number) for number, block in enumerate(blocks) if block.winner == name}
    kind = f", {kind_text(first.protocol)}" if first.protocol.get("split_shot") else ""
    title = f"{metric_titles(first).get(metric, metric)}, each method on each dataset{kind}"
    place_text = f"protocol {first.protocol['name']}, {first.protocol['track']}, {first.version_text}"
    low = frozenset({"average rank", *(("mean over datasets", *titles) if less_is_better(metric) else ())})
    return Table(
        f"{title[0].upper()}{title[1:]}; {place_text}",
        ("method", "mean over datasets", *titles, *(["average rank"] if ranks else [])),
        tuple(lines),
        frozenset(bold),
        (*mark_notes(rows.values()), *code_notes(row for block in blocks for row in block.rows)),
        names=tuple(rows),
        low=low,
    )


def _column(block: Block, blocks: Sequence[Block]) -> str:
    """Title of a column: the dataset, with N and K or as the full title if that is not unique."""
    for text in (lambda b: b.dataset, lambda b: f"{b.dataset}, {kind_text(b.protocol)}"):
        if sum(text(other) == text(block) for other in blocks) == 1:
            return text(block)
    return block.title


ABOUT_LEADS = (
    "row minus column, with the 95 % interval of the corrected test; p, Holm: family of all pairs of this table, one "
    "p-value for each pair"
)
LEADS = {"average": "all pairs, average", "last": "all pairs, last session"}


def lead_tables(block: Block) -> list[Table]:
    """Tables of all pairs of rows, on average over sessions and after the last one; none for fewer than three rows."""
    tables = []
    for metric, title in LEADS.items():
        leads = block.leads(metric)
        if len(leads) > 2:
            rows = tuple((name, *(_lead(others.get(other)) for other in leads)) for name, others in leads.items())
            about = (ABOUT_LEADS, *code_notes(row for row in block.rows if row.name in leads))
            tables.append(Table(f"{block.title}: {title}", ("method", *leads), rows, notes=about, names=tuple(leads)))
    return tables


def _lead(comparison: Comparison | None) -> str:
    """Format the difference of two rows with interval and p-value."""
    if comparison is None:
        return ""
    difference = comparison.difference
    if difference.interval is None or comparison.adjusted is None:
        return f"{two_digits(difference.mean, sign=True)} (too few seeds)"
    lead = f"{two_digits(difference.mean, sign=True)} ± {difference.interval:.2f}"
    return f"{lead} ({p_figure(comparison.adjusted)})"


def further_table(block: Block, titles: Mapping[str, str]) -> Table:
    """Table with the metrics that are not in the result table."""
    rows = tuple((row.name, *(figure(row.summary(name)) for name in titles)) for row in block.rows)
    about = (*(f"{metric.title}: {metric.what}" for metric in further_metrics()), *code_notes(block.rows))
    low = frozenset(title for name, title in titles.items() if less_is_better(name))
    columns = ("method", *titles.values())
    return Table(f"{block.title}: further metrics", columns, rows, notes=about, names=_names(block), low=low)


def cost_table(block: Block) -> Table:
    """Table with time, memory, and bytes stored between sessions; GPU memory only if a row used a GPU."""
    peaks = {"peak_memory_mb": "peak memory, MB", "peak_gpu_memory_mb": "peak GPU memory, MB"}
    if all(row.mean("peak_gpu_memory_mb") is None for row in block.rows):
        del peaks["peak_gpu_memory_mb"]
    kinds = ("nodes", "features", "embeddings", "weights")
    columns = ("method", "seconds", "training seconds", *peaks.values(), *(f"{kind}, bytes" for kind in kinds))
    rows = []
    for row in block.rows:
        memory = ["" if (peak := row.mean(key)) is None else f"{peak:.0f}" for key in peaks]
        kept = [f"{row.stored().get(kind, 0):,}" for kind in kinds]
        seconds = (row.seconds(), list(row.training_seconds().values()))
        rows.append((row.name, *(f"{np.mean(each):.1f}" for each in seconds), *memory, *kept))
    title = f"{block.title}: costs"
    about = ("means over seeds; bytes: stored between sessions, maximum over seeds", *code_notes(block.rows))
    about += tuple(machine_notes(block.rows))
    return Table(title, columns, tuple(rows), notes=about, names=_names(block), low=frozenset(columns[1:]))


def choice_table(block: Block) -> Table:
    """Table with the settings that validation sessions chose."""
    title = f"{block.title}: what validation sessions chose, one value per seed"
    rows = tuple((row.name, row.chosen()) for row in block.rows)
    return Table(title, ("method", "chosen"), rows, names=_names(block))


def _names(block: Block) -> tuple[str, ...]:
    return tuple(row.name for row in block.rows)


def all_tables(findings: Findings) -> list[tuple[str, list[Table]]]:
    """All tables of a report with their headings: of the datasets, then of every grid."""
    sections: list[tuple[str, list[Table]]] = []
    datasets = read_dataset_table(findings.folder)
    if datasets:
        sections.append(("table1", [datasets]))
    overviews = [blocks for blocks in side_by_side(findings) if len(blocks) > 1]
    for grid in findings.grids:
        blocks = [block for block in findings.blocks if block.grid is grid]
        if grid.kind == "embed" or not blocks:
            continue
        if grid.kind == "sweep":
            sections.append((grid.name, [sweep_table(sweep) for sweep in sweeps(blocks)]))
            continue
        tables = [curves.table(metric) for curves in shot_curves(blocks) for metric in MEASURES]
        for group in overviews:
            if group[0].grid is grid:
                tables.append(overview_table(group, "average", findings.ranks(group[0])))
                tables.append(overview_table(group, "last"))
        for block in blocks:
            tables += [active_table(block)] if block.is_active else []
            tables.append(result_table(block, findings.ranks(block)))
            further = further_titles(block)
            tables += [further_table(block, further)] if further else []
            tables += [*lead_tables(block), cost_table(block), choice_table(block)]
        sections.append((grid.name, tables))
    return sections
