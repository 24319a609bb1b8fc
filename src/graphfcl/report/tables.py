"""Tables as Markdown and LaTeX; Table 1 lists the datasets at hand, with their counts and splits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.datasets import all_datasets, data_folder, load_dataset
from graphfcl.metrics import SeedSummary
from graphfcl.report.active import active_table
from graphfcl.report.blocks import Block, Findings, summary
from graphfcl.report.comparison import (
    Table,
    compared_texts,
    figure,
    further_metrics,
    further_titles,
    marked_name,
    notes,
    p_figure,
    printed_rows,
)
from graphfcl.report.shots import MEASURES, shot_curves
from graphfcl.report.statistics import Comparison
from graphfcl.runtime.files import write_bytes
from graphfcl.stream import make_stream


def result_table(block: Block, ranks: Mapping[str, float]) -> Table:
    """Sessions, average, PD, RPD, improvement of the reference over each row, and the test of its lead.

    ranks: average rank of rows, by name; empty for a table without them.
    """
    reference = block.reference.name
    columns = ("method", "seeds", *(str(number) for number in range(block.sessions)), "average", "PD", "RPD")
    columns += (f"improvement by {reference} (PD/RPD)", f"{reference} ahead on average", "p, Holm")
    columns += ("average rank",) * bool(ranks)
    lines = []
    for row in block.rows:
        cells = [f"{value:.2f}" for value in row.sessions().mean(axis=0)]
        cells[block.sessions - 1] = figure(row.summary("balanced_accuracy"))
        line = [marked_name(row), str(len(row.results)), *cells]
        line += [*(figure(row.summary(key)) for key in ("average", "pd", "rpd")), *compared_texts(block, row)]
        if ranks:
            line.append(f"{ranks[row.name]:.2f}" if row.name in ranks else "")
        lines.append(tuple(line))
    for one in printed_rows(block):
        cells = [f"{value:.2f}" for value in (*one["accuracy"], one["average"], one["pd"], one["rpd"])]
        line = [f"{one['name']}, printed", "", *cells]
        lines.append((*line, *[""] * (len(columns) - len(line))))
    bold = frozenset(number for number, row in enumerate(block.rows) if row.name == block.winner)
    return Table(block.title, columns, tuple(lines), bold, notes(block))


ABOUT_LEADS = (
    "row minus column, with the 95 % interval of the corrected test; p, Holm: family of all pairs of this table, one "
    "p-value for each pair"
)
LEADS = {"average": "all pairs, average", "last": "all pairs, last session"}


def lead_tables(block: Block) -> list[Table]:
    """Every row against every other, on the average over sessions and at the last one; none for fewer than three."""
    tables = []
    for metric, title in LEADS.items():
        leads = block.leads(metric)
        if len(leads) > 2:
            rows = tuple((name, *(_lead(others.get(other)) for other in leads)) for name, others in leads.items())
            tables.append(Table(f"{block.title}: {title}", ("method", *leads), rows, notes=(ABOUT_LEADS,)))
    return tables


def _lead(comparison: Comparison | None) -> str:
    """The difference of two rows, with interval and p-value."""
    if comparison is None:
        return ""
    difference = comparison.difference
    if difference.interval is None or comparison.adjusted is None:
        return f"{difference.mean:+.2f} (too few seeds)"
    return f"{difference.mean:+.2f} ± {difference.interval:.2f} ({p_figure(comparison.adjusted)})"


def further_table(block: Block, titles: Mapping[str, str]) -> Table:
    """Metrics besides the result table's own."""
    rows = tuple((row.name, *(figure(row.summary(name)) for name in titles)) for row in block.rows)
    about = tuple(f"{metric.title}: {metric.what}" for metric in further_metrics())
    return Table(f"{block.title}: further metrics", ("method", *titles.values()), rows, notes=about)


def cost_table(block: Block) -> Table:
    """Time, memory, and what is kept between sessions; memory on a GPU where a row has it."""
    peaks = {"peak_memory_mb": "peak memory, MB", "peak_gpu_memory_mb": "peak GPU memory, MB"}
    if all(row.mean("peak_gpu_memory_mb") is None for row in block.rows):
        del peaks["peak_gpu_memory_mb"]
    columns = (
        "method",
        "seconds",
        *peaks.values(),
        "kept: nodes",
        "features",
        "embeddings",
        "weights, bytes",
        "chosen",
    )
    rows = []
    for row in block.rows:
        memory = ["" if (peak := row.mean(key)) is None else f"{peak:.0f}" for key in peaks]
        kept = [f"{row.stored().get(kind, 0):,}" for kind in ("nodes", "features", "embeddings", "weights")]
        rows.append((row.name, f"{np.mean(row.seconds()):.1f}", *memory, *kept, row.chosen()))
    return Table(f"{block.title}: costs and choices", columns, tuple(rows))


@dataclass(frozen=True)
class Sweep:
    """One method on one dataset over N and K. averages: (N, K) → average over sessions."""

    dataset: str
    row: str
    version_text: str
    averages: dict[tuple[int, int], SeedSummary]

    @property
    def ways(self) -> list[int]:
        return sorted({way for way, _ in self.averages})

    @property
    def shots(self) -> list[int]:
        return sorted({shot for _, shot in self.averages})

    @property
    def lines(self) -> list[list[SeedSummary | None]]:
        """For each N the averages of all K; None where there is none."""
        return [[self.averages.get((way, shot)) for shot in self.shots] for way in self.ways]


def sweeps(blocks: Sequence[Block]) -> list[Sweep]:
    """What the blocks of the parameter study show, for each dataset and row."""
    averages: dict[tuple[str, str], dict[tuple[int, int], SeedSummary]] = {}
    for block in blocks:
        for row in block.rows:
            place = (block.protocol["way"], block.protocol["shot"])
            averages.setdefault((block.dataset, row.name), {})[place] = summary(row.values("average"))
    return [Sweep(*place, blocks[0].version_text, cells) for place, cells in averages.items()]


def sweep_table(sweep: Sweep) -> Table:
    """Average accuracy over N (down) and K (across) of one method."""
    rows = tuple((f"{way}-way", *map(figure, line)) for way, line in zip(sweep.ways, sweep.lines, strict=True))
    columns = ("", *(f"{shot}-shot" for shot in sweep.shots))
    title = f"{sweep.dataset}: {sweep.row}, average balanced accuracy, {sweep.version_text}"
    return Table(title, columns, rows)


def all_tables(findings: Findings) -> list[tuple[str, list[Table]]]:
    """(heading, tables) of the datasets and of every grid."""
    sections: list[tuple[str, list[Table]]] = []
    datasets = read_dataset_table(findings.folder)
    if datasets:
        rows = tuple(tuple(f"{v:,}" if isinstance(v, int) else v for v in row) for row in datasets["rows"])
        sections.append(("table1", [Table("datasets", tuple(datasets["columns"]), rows)]))
    for grid in findings.grids:
        blocks = [block for block in findings.blocks if block.grid is grid]
        if grid.kind == "embed" or not blocks:
            continue
        if grid.kind == "sweep":
            sections.append((grid.name, [sweep_table(sweep) for sweep in sweeps(blocks)]))
            continue
        tables = [curves.table(metric) for curves in shot_curves(blocks) for metric in MEASURES]
        for block in blocks:
            tables += [active_table(block)] if block.is_active else []
            tables.append(result_table(block, findings.ranks(block)))
            further = further_titles(block)
            tables += [further_table(block, further)] if further else []
            tables += [*lead_tables(block), cost_table(block)]
        sections.append((grid.name, tables))
    return sections


def markdown(table: Table) -> str:
    lines = [f"### {table.title}", "", f"| {' | '.join(table.columns)} |", f"|{'---|' * len(table.columns)}"]
    for number, row in enumerate(table.rows):
        cells = [f"**{cell}**" if number in table.bold and cell else cell for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{note}  " for note in table.notes), ""])


LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}"}
LATEX |= {
    "¶": r"\P{}",
    "‖": r"$\Vert$",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "<": "$<$",
    "~": r"\textasciitilde{}",
}
LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "`": ""}


def latex(table: Table) -> str:
    def escape(text: str) -> str:
        return "".join(LATEX.get(character, character) for character in text)

    lines = [r"\begin{table*}", r"\centering", rf"\caption{{{escape(table.title)}}}", r"\resizebox{\linewidth}{!}{%"]
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}", r"\hline"]
    lines += [" & ".join(escape(column) for column in table.columns) + r" \\ \hline"]
    for number, row in enumerate(table.rows):
        cells = [escape(cell) for cell in row]
        cells = [rf"\textbf{{{cell}}}" if number in table.bold and cell else cell for cell in cells]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\hline", r"\end{tabular}}"]
    lines += [rf"\par\small {escape(note)}." for note in table.notes]
    return "\n".join([*lines, r"\end{table*}", ""])


DATASET_COLUMNS = (
    "dataset",
    "nodes",
    "edges",
    "features",
    "classes",
    "base",
    "pseudo-novel",
    "novel",
    "way",
    "shot",
    "sessions",
)
FILE = "table1.json"


def dataset_rows(names: list[str], data_dir: Path | None) -> list[tuple[Any, ...]]:
    """One row per dataset; without names, all whose files are there and that are no made-up graphs."""
    folder = data_folder(data_dir)
    chosen = names or [
        d.name for d in all_datasets() if not d.missing_files(folder) and not d.name.startswith("synthetic")
    ]
    return [_row(name, data_dir) for name in chosen]


def _row(name: str, data_dir: Path | None) -> tuple[Any, ...]:
    graph, protocol = load_dataset(name, data_dir=data_dir)
    stream = make_stream(graph, protocol, seed=0)
    split = stream.split
    novel = len(split.classes) - split.base_count - split.pseudo_novel_count
    counts = (graph.node_count, graph.edge_count, graph.features.shape[1], len(graph.class_names))
    rules = (stream.protocol.way, stream.protocol.shot, len(stream))
    return (name, *(int(count) for count in counts), split.base_count, split.pseudo_novel_count, novel, *rules)


def write_dataset_table(rows: list[tuple[Any, ...]], folder: str | Path) -> Path:
    """For the report of that folder."""
    path = Path(folder) / FILE
    text = json.dumps({"columns": DATASET_COLUMNS, "rows": rows}, indent=1)
    write_bytes(path, text.encode())
    return path


def read_dataset_table(folder: str | Path) -> dict[str, Any] | None:
    """What :func:`write_dataset_table` has left, if it has."""
    path = Path(folder) / FILE
    return json.loads(path.read_text()) if path.exists() else None
