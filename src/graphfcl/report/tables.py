"""Tables as Markdown and LaTeX."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from graphfcl.measures import SeedSummary
from graphfcl.report.blocks import POOL, QUERIES, Block, Findings, Row, summary
from graphfcl.report.datasets import read_dataset_table

PRINTED_RULES = {"amazon-clothing": (3, 5), "dblp": (5, 5), "reddit": (2, 3)}  # N and K of Table 2
PRINTED_SESSIONS = 10  # 0 to 9
MARKS = {POOL: "†", QUERIES: "‡"}
NOTES = {
    "†": "uses pool labels: an upper reference that takes no part in comparisons",
    "‡": "trained on query labels (protocol `paper`): takes no part in comparisons with rows that are not",
}


@dataclass(frozen=True)
class Table:
    """Cells are texts; ``bold`` holds the positions of rows to print bold."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()


def figure(found: SeedSummary) -> str:
    return f"{found.mean:.2f}" if found.interval is None else f"{found.mean:.2f} ± {found.interval:.2f}"


def paper_tables() -> dict[str, Any]:
    """The figures that the paper prints."""
    return json.loads(files("graphfcl.report").joinpath("paper_tables.json").read_text())


def result_table(block: Block, ranks: dict[str, float]) -> Table:
    """Sessions, average, PD, RPD, improvement of the reference over each row, and how sure its lead is."""
    sessions = max(row.sessions().shape[1] for row in block.rows)
    last = sessions - 1
    columns = ("method", "seeds", *(str(number) for number in range(sessions)), "average", "PD", "RPD")
    columns += (
        f"improvement by {block.reference.name} (PD/RPD)",
        f"{block.reference.name} ahead on average",
        "p, Holm",
    )
    columns += ("average rank",) if ranks else ()
    lines, marks = [], set()
    for row in block.rows:
        marks |= set(row.marks)
        name = row.name + "".join(MARKS[mark] for mark in row.marks)
        means = row.sessions().mean(axis=0)
        cells = [f"{value:.2f}" for value in means]
        cells[last] = figure(summary(row.last()))
        line = [name, str(len(row.results)), *cells, figure(summary(row.values("average")))]
        line += [figure(summary(row.values(key))) if row.values(key) else "" for key in ("pd", "rpd")]
        compared = block.comparisons.get(row.name)
        if compared is None:  # the reference itself, or no seed in common
            line += ["", "", ""]
        else:
            difference, p_value = compared
            interval = "" if difference.interval is None else f" ± {difference.interval:.2f}"
            improvement = "/".join(_improvement(block.reference, row, key) for key in ("pd", "rpd"))
            line += [improvement, f"{difference.mean:+.2f}{interval}", "" if p_value is None else _p(p_value)]
        line += [f"{ranks[row.name]:.2f}" if row.name in ranks else ""] if ranks else []
        lines.append(tuple(line))
    lines += _printed_lines(block, len(columns), sessions)
    winner = [number for number, row in enumerate(block.rows) if row.name == block.winner]
    notes = [f"{MARKS[mark]} {NOTES[MARKS[mark]]}" for mark in sorted(marks)]
    fair = "row without a mark" if marks else "row"
    if winner:
        notes.append(f"bold: ahead of every other {fair} on average, each p < 0.05 after Holm's correction")
    else:
        notes.append(f"no {fair} is ahead of every other with p < 0.05 after Holm's correction, so none is bold")
    notes += [f"failed: {row}, seed {seed}: {error}" for row, seed, error in block.failures]
    if block.missing:
        notes.append(f"cells that have not run yet: {block.missing}")
    return Table(block.title, columns, tuple(lines), frozenset(winner), tuple(notes))


def _printed_lines(block: Block, width: int, sessions: int) -> list[tuple[str, ...]]:
    """The paper's own figures, below ours, where dataset, rules and sessions are the paper's."""
    rules = (block.protocol["name"], block.protocol["track"], block.protocol["way"], block.protocol["shot"])
    paper_rules = ("paper", "transductive", *PRINTED_RULES.get(block.source, (0, 0)))
    if rules != paper_rules or sessions != PRINTED_SESSIONS:
        return []
    printed = paper_tables()
    source = printed["table2"].get(block.source, {}) if block.grid.kind == "table2" else {}
    if block.grid.kind == "table3" and block.source == "amazon-clothing":
        source = printed["table3"]
    lines = []
    for row in block.rows:
        if row.name in source:
            figures = source[row.name]
            cells = [f"{value:.2f}" for value in figures["accuracy"]]
            average = f"{np.mean(figures['accuracy']):.2f}"
            line = [f"{row.name}, printed", "", *cells, average, f"{figures['pd']:.2f}", f"{figures['rpd']:.2f}"]
            lines.append((*line, *[""] * (width - len(line))))
    return lines


def cost_table(block: Block) -> Table:
    """Time, memory, and what is kept between sessions; memory on a GPU where a row has it."""
    on_gpu = any(row.gpu_memory() is not None for row in block.rows)
    columns: tuple[str, ...] = ("method", "seconds", "peak memory, MB")
    columns += ("peak GPU memory, MB",) if on_gpu else ()
    columns += ("kept: nodes", "features", "embeddings", "weights, bytes", "chosen")
    rows = []
    for row in block.rows:
        results = list(row.results.values())
        stored = {kind: max(r["stored"][kind] for r in results) for kind in results[0]["stored"]}
        kept = [f"{stored.get(kind, 0):,}" for kind in ("nodes", "features", "embeddings", "weights")]
        seconds = f"{np.mean(row.seconds()):.1f}"
        memory = [f"{np.mean([r['peak_memory_mb'] for r in results]):.0f}"]
        if on_gpu:
            memory.append("" if row.gpu_memory() is None else f"{row.gpu_memory():.0f}")
        rows.append((row.name, seconds, *memory, *kept, _chosen(results)))
    return Table(f"{block.title}: costs and choices", columns, tuple(rows))


def sweep_table(blocks: Sequence[Block], dataset: str, name: str) -> Table:
    """Average accuracy over N (down) and K (across) of one method."""
    found = {
        (block.protocol["way"], block.protocol["shot"]): row
        for block in blocks
        if block.dataset == dataset
        for row in block.rows
        if row.name == name
    }
    ways, shots = sorted({way for way, _ in found}), sorted({shot for _, shot in found})
    rows = tuple(
        (
            f"{way}-way",
            *(figure(summary(found[way, shot].values("average"))) if (way, shot) in found else "" for shot in shots),
        )
        for way in ways
    )
    columns = ("", *(f"{shot}-shot" for shot in shots))
    return Table(f"{dataset}: {name}, average balanced accuracy", columns, rows)


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
            names = {(block.dataset, row.name): None for block in blocks for row in block.rows}
            sections.append((grid.name, [sweep_table(blocks, dataset, name) for dataset, name in names]))
            continue
        tables = []
        for block in blocks:
            tables += [result_table(block, findings.ranks(block)), cost_table(block)]
        sections.append((grid.name, tables))
    return sections


def _improvement(reference: Row, row: Row, key: str) -> str:
    """How much smaller the figure is for the reference, over the seeds that both have."""
    ours, theirs = reference.values(key), row.values(key)
    shared = sorted(set(ours) & set(theirs))
    return f"{np.mean([theirs[seed] - ours[seed] for seed in shared]):+.2f}" if shared else ""


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _chosen(results: list[dict[str, Any]]) -> str:
    keys = list(results[0]["chosen"])
    return "; ".join(f"{key.replace('_', ' ')} {', '.join(str(r['chosen'][key]) for r in results)}" for key in keys)


def markdown(table: Table) -> str:
    lines = [f"### {table.title}", "", f"| {' | '.join(table.columns)} |", f"|{'---|' * len(table.columns)}"]
    for number, row in enumerate(table.rows):
        cells = [f"**{cell}**" if number in table.bold and cell else cell for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{note}  " for note in table.notes), ""])


LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}"}
LATEX |= {"±": r"$\pm$", "†": r"$\dagger$", "‡": r"$\ddagger$", "<": "$<$", "~": r"\textasciitilde{}"}
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
