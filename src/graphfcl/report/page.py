"""The report of a folder of grids: one HTML page that needs no network, and its tables as Markdown and LaTeX."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.experiments import Grid
from graphfcl.metrics import FEWEST_SEEDS, SessionMetric, active_metrics
from graphfcl.report.active import active_data, active_figure
from graphfcl.report.blocks import Block, Findings, Row, by_strength, collect, kind_text, prominent, version_text
from graphfcl.report.comparison import (
    MARKS,
    compared_texts,
    further_metrics,
    further_titles,
    notes,
    plain_summary,
    printed_rows,
)
from graphfcl.report.figures import Style, colour_rules, curves_figure, row_styles
from graphfcl.report.shots import MEASURES, PICTURES, shot_curves, shots_figure
from graphfcl.report.tables import ABOUT_LEADS, all_tables, latex, lead_tables, markdown, read_dataset_table, sweeps
from graphfcl.runtime.files import write_bytes

# In the order in which they stand on the page; what is in brackets only where a block has that part.
SCRIPTS = (
    "elements",
    "choice",
    "marks",
    "charts",
    "heat",
    "tables",
    "sections",
    "[active]",
    "[shots]",
    "[further]",
    "start",
)


def write_page(folder: str | Path) -> list[Path]:
    """report.html, tables.md, tables.tex and pictures of the curves, in the folder."""
    findings = collect(folder)
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
        path = Path(folder) / name
        write_bytes(path, text.encode())
        paths.append(path)
    styles = styles_of(findings)
    for name, draw in _pictures(findings).items():
        paths.append(Path(folder) / f"{name}.png")
        draw(paths[-1], styles)
    return paths


def page(data: dict[str, Any]) -> str:
    """The page as one file: template, styles, script and data."""
    parts = [name for name in SCRIPTS if not name.startswith("[") or _has(data, name.strip("[]"))]
    script = "\n".join(_static(f"{name.strip('[]')}.js") for name in parts)
    # "<" could end the script element that holds the data, or begin a comment in it.
    content = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    text = _static("page.html").replace("/*STYLE*/", _static("page.css") + colour_rules())
    return text.replace("/*SCRIPT*/", script).replace("/*DATA*/", content)


def _has(data: dict[str, Any], part: str) -> bool:
    return any(part in block for block in data["blocks"])


def _static(name: str) -> str:
    return files("graphfcl.report").joinpath("static", name).read_text(encoding="utf-8")


def _pictures(findings: Findings) -> dict[str, Callable[[Path, Mapping[str, Style]], None]]:
    """Name → function that draws it: one for each grid and protocol; two where K varies on the same classes."""
    groups: dict[tuple[str, str], list[Block]] = {}
    for block in findings.blocks:
        if block.grid.kind not in ("sweep", "embed"):
            groups.setdefault((block.grid.name, block.protocol["name"]), []).append(block)
    pictures: dict[str, Callable[[Path, Mapping[str, Style]], None]] = {}
    grids = {grid for grid, _ in groups}
    for (grid, protocol), blocks in groups.items():
        draws: dict[str, Any] = {"": active_figure if all(block.is_active for block in blocks) else curves_figure}
        if all(block.protocol.get("split_shot") for block in blocks):
            draws = {end: partial(shots_figure, metric=metric) for end, metric in PICTURES.items()}
        for end, draw in draws.items():
            name = (grid if protocol == "strict" else f"{grid}-{protocol}") + end
            while name in pictures or (name != grid and name in grids):  # one may be called like that of another
                name += "_"
            pictures[name] = partial(draw, blocks)
    return pictures


TABS = {"table2": "Table 2", "table3": "Table 3"}  # kinds of grids whose tab has a title of its own
METRICS = {  # of the result table: name → title
    "average": "average over sessions",
    "last": "last session",
    "pd": "PD",
    "rpd": "RPD",
}


def page_data(findings: Findings) -> dict[str, Any]:
    """Everything the page shows, as plain values. Figures are not rounded: the page rounds them once."""
    tables = [block for block in findings.blocks if block.grid.kind not in ("sweep", "embed")]
    curves = shot_curves(tables)
    place_of_block = {block: {"shots": place} for place, one in enumerate(curves) for block in one.blocks}
    failures = [
        f"{grid.name}: {cell.dataset}, {cell.row}, seed {cell.seed}: {error}" for grid, cell, error in findings.failures
    ]
    return {
        "about": _about(findings),
        "marks": MARKS,
        "about_leads": ABOUT_LEADS,
        "styles": {name: {"slot": style.slot, "mark": style.mark} for name, style in styles_of(findings).items()},
        "names": by_strength(tables),
        "bright": {grid.name: prominent([b for b in tables if b.grid is grid]) for grid in findings.grids},
        "blocks": [_block(block, findings) | place_of_block.get(block, {}) for block in tables],
        "shots": [one.data() for one in curves],
        "shot_titles": MEASURES,
        "sweeps": _sweeps(findings),
        "embeddings": _embeddings(findings),
        "datasets": read_dataset_table(findings.folder),
        "grids": [_grid(findings, grid) for grid in findings.grids],
        "failures": failures,
        "versions": _versions(findings),
        "settings": _settings(findings),
    }


def styles_of(findings: Findings) -> dict[str, Style]:
    """How each row looks; the rows of a grid are shown together."""
    return row_styles(
        list(dict.fromkeys(row.name for block in findings.blocks if block.grid is grid for row in block.rows))
        for grid in findings.grids
    )


def _about(findings: Findings) -> str:
    seeds = {seed for block in findings.blocks for row in block.rows for seed in row.results}
    datasets = sorted({block.dataset for block in findings.blocks})
    version = ", ".join(dict.fromkeys(block.version_text for block in findings.blocks))
    return (
        f"{', '.join(datasets)}; {len(seeds)} seeds; {version}. "
        "Balanced accuracy (mean recall over all classes seen) on all test nodes, mean over seeds ± Student's 95 % "
        f"interval; differences are paired by seed and, from {FEWEST_SEEDS} seeds on, tested with the corrected "
        "resampled t-test with n_test/n_train of the streams; p-values are Holm's in the family that a table names."
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
    protocol, further, ranks = block.protocol, further_titles(block), findings.ranks(block)
    titles = {metric.name: metric.title for metric in active_metrics()} if block.is_active else {}
    titles |= METRICS | further
    leads = [(lead.title.removeprefix(f"{block.title}: "), lead) for lead in lead_tables(block)]
    shown: dict[str, Any] = {
        "grid": block.grid.name,
        "title": block.title,
        "dataset": block.dataset,
        "kind": kind_text(protocol),
        "protocol": protocol["name"],
        "track": protocol["track"],
        "standardised": protocol.get("standardise") is not False,
        "version": block.version_text,
        "metrics": [{"name": name, "title": title} for name, title in titles.items()],  # the first is shown at first
        "reference": block.reference.name,
        "winner": block.winner,
        "rows": [_row(block, row, further, ranks.get(row.name)) for row in block.rows],
        "printed": printed_rows(block),
        "notes": list(notes(block)),
        "leads": [{"title": title, "columns": lead.columns, "rows": lead.rows} for title, lead in leads],
    }
    if further:
        shown["further"] = further
        shown["curves"] = {metric.name: f"{metric.title}: {metric.what}" for metric in _further_curves()}
    if block.is_active:
        shown["active"] = active_data(block)
    return shown


def _further_curves() -> list[SessionMetric]:
    return [metric for metric in further_metrics() if isinstance(metric, SessionMetric) and metric.share]


def _row(block: Block, row: Row, further: dict[str, str], rank: float | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": row.name,
        "marks": list(row.marks),
        "seeds": sorted(row.results),
        "sessions": list(range(row.sessions().shape[1])),
        **{key: row.curve(key) for key in ("balanced_accuracy", "base", "novel")},
        **{key: plain_summary(row.summary(key)) for key in ("average", "pd", "rpd")},
        "last": plain_summary(row.summary("balanced_accuracy")),
        "matrix": _numbers(row.matrix()),
        "seconds": float(np.mean(row.seconds())),
        "memory": row.mean("peak_memory_mb"),
        "gpu_memory": row.mean("peak_gpu_memory_mb"),
        "stored": row.stored(),
        **dict(zip(("improvement", "difference", "p"), compared_texts(block, row), strict=True)),
        "rank": rank,
        "chosen": row.chosen(),
    }
    if block.is_active:
        shown["active"] = {metric.name: plain_summary(row.summary(metric.name)) for metric in active_metrics()}
    if further:
        shown["further"] = {name: plain_summary(row.summary(name)) for name in further}
        shown["curves"] = {metric.name: row.curve(metric.name) for metric in _further_curves()}
    return shown


def _numbers(matrix: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in matrix]


def _sweeps(findings: Findings) -> list[dict[str, Any]]:
    return [
        {
            "dataset": sweep.dataset,
            "method": sweep.row,
            "version": sweep.version_text,
            "ways": sweep.ways,
            "shots": sweep.shots,
            "values": [[None if average is None else average.mean for average in line] for line in sweep.lines],
        }
        for sweep in sweeps([block for block in findings.blocks if block.grid.kind == "sweep"])
    ]


def _embeddings(findings: Findings) -> list[dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for cell, result in findings.embeddings:
        protocol = result["protocol"]
        session = len(result["sessions"]) - 1
        place = f"{kind_text(protocol)}, after session {session}"
        title = f"{result['dataset']}, {place}, seed {cell.seed}, {version_text(result)}"
        novel = [bool(arrival) for arrival in result["session_of_class"]]
        group = groups.setdefault(title, {"title": title, "classes": result["classes"], "novel": novel, "methods": []})
        group["methods"].append({"name": cell.row, **{key: result["embedding"][key] for key in ("x", "y", "labels")}})
    return list(groups.values())


def _versions(findings: Findings) -> list[str]:
    """With what the cells of each grid were computed; several lines where they differ."""
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
