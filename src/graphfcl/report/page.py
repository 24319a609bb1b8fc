"""Write the report of a folder of results: a self-contained HTML page, tables in Markdown and LaTeX, and figures."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.experiments import Grid
from graphfcl.metrics import FEWEST_SEEDS, SessionMetric
from graphfcl.report.active import active_data, active_figure
from graphfcl.report.blocks import Block, prominent
from graphfcl.report.comparison import further_metrics, further_titles
from graphfcl.report.embedding import embedding_figure, embeddings
from graphfcl.report.figures import Style, colour_rules, curves_figure, row_styles
from graphfcl.report.findings import Findings, collect
from graphfcl.report.rows import Row
from graphfcl.report.shots import MEASURES, PICTURES, shot_curves, shots_figure
from graphfcl.report.sweeps import sweep_figure, sweep_table, sweeps
from graphfcl.report.table import LATEX, latex, markdown, plain_summary
from graphfcl.report.table1 import read_dataset_table
from graphfcl.report.tables import (
    LAST,
    all_tables,
    choice_table,
    cost_table,
    further_table,
    lead_tables,
    less_is_better,
    metric_titles,
    overview_table,
    result_table,
    side_by_side,
)
from graphfcl.report.times import time_figure
from graphfcl.runtime.files import write_bytes

# Scripts in their order on the page. Those in brackets are included only if a block has that part.
SCRIPTS = (
    "elements",
    "choice",
    "marks",
    "charts",
    "scatter",
    "heat",
    "downloads",
    "tables",
    "sections",
    "[active]",
    "[shots]",
    "[further]",
    "start",
)


def write_page(folder: str | Path, out: str | Path | None = None) -> list[Path]:
    """Write report.html, tables.md, tables.tex and figures of a folder of results to ``out`` (default: the folder)."""
    findings = collect(folder)
    target = Path(folder if out is None else out)
    target.mkdir(parents=True, exist_ok=True)
    sections = all_tables(findings)
    texts = {
        "report.html": page(page_data(findings)),
        "tables.md": "\n".join(
            [f"## {heading}\n\n" + "\n".join(markdown(table) for table in tables) for heading, tables in sections]
        ),
        "tables.tex": "\n".join(latex(table) for _, tables in sections for table in tables),
    }
    paths = []
    for name, text in texts.items():
        paths.append(target / name)
        write_bytes(paths[-1], text.encode())
    styles = styles_of(findings)
    for name, draw in _pictures(findings).items():
        paths.append(target / f"{name}.png")
        draw(paths[-1], styles)
    return paths


def page(data: dict[str, Any]) -> str:
    """Build the page as one file from template, styles, scripts and data."""
    parts = [name for name in SCRIPTS if not name.startswith("[") or _has(data, name.strip("[]"))]
    script = "\n".join(_static(f"{name.strip('[]')}.js") for name in parts)
    # Escape "<", which could end the script element of the data or begin a comment in it.
    content = json.dumps(_rounded(data), separators=(",", ":")).replace("<", "\\u003c")
    text = _static("page.html").replace("/*STYLE*/", _static("page.css") + colour_rules())
    return text.replace("/*SCRIPT*/", script).replace("/*DATA*/", content)


def _rounded(value: Any) -> Any:
    """Round floats to ``DIGITS`` significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _has(data: dict[str, Any], part: str) -> bool:
    """Return whether any block contains ``part``."""
    return any(part in block for block in data["blocks"])


def _static(name: str) -> str:
    return files("graphfcl.report").joinpath("static", name).read_text(encoding="utf-8")


def _pictures(findings: Findings) -> dict[str, Callable[[Path, Mapping[str, Style]], None]]:
    """Return functions that draw the figures of each grid and protocol, by name of the figure."""
    groups: dict[tuple[str, str], list[Block]] = {}
    for block in findings.blocks:
        groups.setdefault((block.grid.name, block.protocol["name"]), []).append(block)
    pictures: dict[str, Callable[[Path, Mapping[str, Style]], None]] = {}
    grids = {grid for grid, _ in groups}
    for (grid, protocol), blocks in groups.items():
        draws: dict[str, Any] = {"": active_figure if all(block.is_active for block in blocks) else curves_figure}
        if all(block.protocol.get("split_shot") for block in blocks):
            draws = {end: partial(shots_figure, metric=metric) for end, metric in PICTURES.items()}
        elif blocks[0].grid.kind == "embed":
            draws = {"": embedding_figure}
        elif blocks[0].grid.kind == "sweep":
            draws = {"": sweep_figure}
        else:
            draws["-time"] = time_figure
        for end, draw in draws.items():
            name = (grid if protocol == "strict" else f"{grid}-{protocol}") + end
            while name in pictures or (name != grid and name in grids):  # the name may already be in use
                name += "_"
            pictures[name] = partial(draw, blocks)
    return pictures


DIGITS = 8  # significant digits kept, so that machines with different rounding write the same page
TABS = {"table2": "Table 2", "table3": "Table 3"}  # titles of tabs, by kind of grid


def page_data(findings: Findings) -> dict[str, Any]:
    """Collect all data of the page as plain values. Cells of tables are texts."""
    tables = [block for block in findings.blocks if block.grid.kind not in ("sweep", "embed")]
    curves = shot_curves(tables)
    groups = side_by_side(findings)
    places = {block: {"overview": place} for place, group in enumerate(groups) if len(group) > 1 for block in group}
    for place, one in enumerate(curves):
        for block in one.blocks:
            places[block] = {**places.get(block, {}), "shots": place}
    failures = [
        f"{grid.name}: {cell.dataset}, {cell.row}, seed {cell.seed}: {error}" for grid, cell, error in findings.failures
    ]
    datasets = read_dataset_table(findings.folder)
    return {
        "about": _about(findings),
        "latex": LATEX,
        "styles": {name: {"slot": style.slot, "mark": style.mark} for name, style in styles_of(findings).items()},
        "bright": {grid.name: prominent([b for b in tables if b.grid is grid]) for grid in findings.grids},
        "blocks": [_block(block, findings) | places.get(block, {}) for block in tables],
        "overviews": [_overview(group, findings) if len(group) > 1 else None for group in groups],
        "shots": [one.data() for one in curves],
        "shot_titles": MEASURES,
        "sweeps": _sweeps(findings),
        "embeddings": embeddings(findings.blocks),
        "datasets": datasets.data() if datasets else None,
        "grids": [_grid(findings, grid) for grid in findings.grids],
        "failures": failures,
        "versions": _versions(findings),
        "settings": _settings(findings),
    }


def _overview(blocks: list[Block], findings: Findings) -> dict[str, Any]:
    """Return overview tables by metric, and the titles of the blocks in the order of the columns."""
    tables = {metric: overview_table(blocks, metric) for metric in metric_titles(blocks[0])}
    tables["average"] = overview_table(blocks, "average", findings.ranks(blocks[0]))
    shown = {metric: table.data() for metric, table in tables.items()}
    return {"tables": shown, "titles": [block.title for block in blocks]}


def styles_of(findings: Findings) -> dict[str, Style]:
    """Return the style of each row. The rows of a grid are shown together."""
    return row_styles(
        list(dict.fromkeys(row.name for block in findings.blocks if block.grid is grid for row in block.rows))
        for grid in findings.grids
    )


def _about(findings: Findings) -> str:
    counts = sorted({len({seed for row in block.rows for seed in row.results}) for block in findings.blocks})
    seeds = " to ".join(map(str, dict.fromkeys([counts[0], counts[-1]]))) if counts else "0"
    datasets = sorted({block.dataset for block in findings.blocks})
    version = ", ".join(dict.fromkeys(block.version_text for block in findings.blocks))
    return (
        f"{', '.join(datasets)}; {seeds} seed{'s' * (seeds != '1')}; {version}. "
        "Balanced accuracy (mean recall over all classes seen) on all test nodes. Values are means over seeds ± "
        "Student's 95 % interval. Differences are paired by seed. With at least "
        f"{FEWEST_SEEDS} seeds they are tested with the corrected resampled t-test, with n_test/n_train of the "
        "streams. P-values are Holm-corrected within the family that a table names."
    )


def _grid(findings: Findings, grid: Grid) -> dict[str, Any]:
    blocks = [block for block in findings.blocks if block.grid is grid]
    done = sum(len(row.results) for block in blocks for row in block.rows)
    failed = sum(one is grid for one, _, _ in findings.failures)
    return {
        "name": grid.name,
        "title": TABS.get(grid.kind, grid.name) if grid.name == grid.kind else grid.name,
        "command": grid.command,
        "total": len(grid.cells),
        "done": done,
        "failed": failed,
    }


def _block(block: Block, findings: Findings) -> dict[str, Any]:
    protocol, further = block.protocol, further_titles(block)
    tables = {
        "results": result_table(block, findings.ranks(block)),
        "costs": cost_table(block),
        "chosen": choice_table(block),
    }
    if further:
        tables["further"] = further_table(block, further)
    metrics = metric_titles(block).items()
    shown: dict[str, Any] = {
        "grid": block.grid.name,
        "title": block.title,
        "dataset": block.dataset,
        "protocol": protocol["name"],
        "version": block.version_text,
        "metrics": [{"name": name, "title": title, "low": less_is_better(name)} for name, title in metrics],
        "rows": [_row(block, row) for row in block.rows],
        "tables": {name: table.data() for name, table in tables.items()},
        "leads": [table.data() for table in lead_tables(block)],
    }
    if further:
        shown["further"] = {metric.name: f"{metric.title}: {metric.what}" for metric in _further_curves()}
    if block.is_active:
        shown["active"] = active_data(block)
    return shown


def _further_curves() -> list[SessionMetric]:
    return [metric for metric in further_metrics() if isinstance(metric, SessionMetric) and metric.share]


def _row(block: Block, row: Row) -> dict[str, Any]:
    """Data of a row for figures. Each metric has a mean, half its interval, and the value of each seed."""
    curves = ["balanced_accuracy", "base", "novel", *(metric.name for metric in _further_curves())]
    metrics = {name: LAST if name == "last" else name for name in metric_titles(block)}
    return {
        "name": row.name,
        "marks": list(row.marks),
        "sessions": row.sessions().shape[1],
        "curves": {key: row.curve(key) for key in curves},
        "metrics": {name: _summary(row, metric) for name, metric in metrics.items()},
        "seconds": row.training_seconds(),
        "matrix": _numbers(row.matrix()),
    }


def _summary(row: Row, metric: str) -> dict[str, Any] | None:
    shown = plain_summary(row.summary(metric))
    return None if shown is None else {**shown, "seeds": row.figures(metric)}


def _numbers(matrix: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in matrix]


def _sweeps(findings: Findings) -> list[dict[str, Any]]:
    return [
        {
            "method": sweep.name,
            "ways": sweep.ways,
            "shots": sweep.shots,
            "values": [[None if average is None else average.mean for average in line] for line in sweep.lines],
            "table": sweep_table(sweep).data(),
        }
        for sweep in sweeps([block for block in findings.blocks if block.grid.kind == "sweep"])
    ]


def _versions(findings: Findings) -> list[str]:
    """Software and machine that computed the cells of each grid; several lines if they differ."""
    results = [(block, each) for block in findings.blocks for row in block.rows for each in row.results.values()]
    lines = (
        f"{block.grid.name}, {block.version_text}: {', '.join(f'{key} {v}' for key, v in result['versions'].items())}"
        for block, result in results
    )
    return list(dict.fromkeys(lines))


def _settings(findings: Findings) -> list[dict[str, Any]]:
    settings = {
        f"{block.grid.name}: {row.name}": next(iter(row.results.values()))["settings"]
        for block in findings.blocks
        for row in block.rows
    }
    return [{"name": name, "settings": values} for name, values in settings.items()]
