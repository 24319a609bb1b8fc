"""Tables as Markdown and LaTeX; Table 1 lists the datasets at hand, with their counts and splits."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphfcl.datasets import all_datasets, data_folder, load_dataset
from graphfcl.report.active import active_lines, active_notes, is_active, requested_columns
from graphfcl.report.blocks import Block, Findings, Sweep, sweeps
from graphfcl.report.comparison import (
    MARKS,
    BlockFigures,
    block_figures,
    chosen_text,
    difference_text,
    figure,
    further_of_sessions,
    further_of_streams,
    further_titles,
    improvement_text,
    lead_lines,
    notes,
    p_text,
    printed_line,
    result_columns,
)
from graphfcl.runtime.files import write_bytes
from graphfcl.stream import make_stream


@dataclass(frozen=True)
class Table:
    """Cells are texts; ``bold`` holds the positions of rows to print bold."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


def result_table(figures: BlockFigures) -> Table:
    """Sessions, average, PD, RPD, improvement of the reference over each row, and how sure its lead is."""
    columns = result_columns(figures)
    lines = []
    for shown in figures.rows:
        name = shown.row.name + "".join(MARKS[mark] for mark in shown.row.marks)
        cells = [f"{value:.2f}" for value in shown.by_session]
        cells[figures.sessions - 1] = figure(shown.last)
        line = [name, str(len(shown.row.results)), *cells, figure(shown.average)]
        line += [figure(shown.drop("pd")), figure(shown.drop("rpd"))]
        line += [improvement_text(shown), difference_text(shown), p_text(shown)]
        if figures.ranked:
            line.append("" if shown.rank is None else f"{shown.rank:.2f}")
        lines.append(tuple(line))
    lines += [printed_line(printed, len(columns)) for printed in figures.printed]
    bold = frozenset(n for n, shown in enumerate(figures.rows) if shown.row.name == figures.block.winner)
    return Table(figures.block.title, columns, tuple(lines), bold, notes(figures))


ABOUT_LEADS = (
    "row minus column, with the 95 % interval of the corrected test; p, Holm: family of all pairs of this table, one "
    "p-value for each pair"
)
LEADS = {"average": "all pairs, average", "last": "all pairs, last session"}


def lead_tables(block: Block) -> list[Table]:
    """Every row against every other, on the average over sessions and at the last one; none for fewer than three."""
    families = [(LEADS[metric], block.leads(metric)) for metric in LEADS]
    return [
        Table(f"{block.title}: {title}", ("method", *leads), tuple(lead_lines(leads)), notes=(ABOUT_LEADS,))
        for title, leads in families
        if len(leads) > 2
    ]


def further_table(figures: BlockFigures) -> Table:
    """Metrics besides the result table's own."""
    titles = further_titles()
    rows = tuple((shown.row.name, *(figure(shown.further[name]) for name in titles)) for shown in figures.rows)
    about = tuple(f"{metric.title}: {metric.what}" for metric in (*further_of_sessions(), *further_of_streams()))
    return Table(f"{figures.block.title}: further metrics", ("method", *titles.values()), rows, notes=about)


def active_table(block: Block) -> Table:
    """What labels bring, under the track ``active``."""
    return Table(f"{block.title}: labels", requested_columns(), tuple(active_lines(block)), notes=active_notes(block))


def cost_table(figures: BlockFigures) -> Table:
    """Time, memory, and what is kept between sessions; memory on a GPU where a row has it."""
    on_gpu = any(shown.row.gpu_memory() is not None for shown in figures.rows)
    columns: tuple[str, ...] = ("method", "seconds", "peak memory, MB")
    columns += ("peak GPU memory, MB",) if on_gpu else ()
    columns += ("kept: nodes", "features", "embeddings", "weights, bytes", "chosen")
    rows = []
    for shown in figures.rows:
        kept = [f"{shown.stored.get(kind, 0):,}" for kind in ("nodes", "features", "embeddings", "weights")]
        memory = [f"{shown.memory:.0f}"]
        if on_gpu:
            memory.append("" if shown.row.gpu_memory() is None else f"{shown.row.gpu_memory():.0f}")
        rows.append((shown.row.name, f"{shown.seconds:.1f}", *memory, *kept, chosen_text(shown)))
    return Table(f"{figures.block.title}: costs and choices", columns, tuple(rows))


def sweep_table(sweep: Sweep) -> Table:
    """Average accuracy over N (down) and K (across) of one method."""
    rows = tuple(
        (f"{way}-way", *(figure(sweep.averages.get((way, shot))) for shot in sweep.shots)) for way in sweep.ways
    )
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
        tables = []
        for block in blocks:
            figures = block_figures(block, findings.ranks(block))
            tables += [active_table(block)] if is_active(block) else []
            tables += [result_table(figures), *([further_table(figures)] if figures.has_further else [])]
            tables += [*lead_tables(block), cost_table(figures)]
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
