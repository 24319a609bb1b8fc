"""The report of a folder of grids: one HTML page that needs no network, and the same tables as Markdown and LaTeX."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.files import write_bytes
from graphfcl.measures import FEWEST_SEEDS, TEST_TO_TRAIN
from graphfcl.report.asked import asked_data, asked_figure, is_asked
from graphfcl.report.blocks import Block, Findings, by_strength, collect, prominent, rules_of_result, summary
from graphfcl.report.comparison import FURTHER_OF_SESSIONS, RowFigures, block_figures, further_titles
from graphfcl.report.datasets import read_dataset_table
from graphfcl.report.figures import curves_figure
from graphfcl.report.tables import ABOUT_LEADS, Table, all_tables, latex, lead_tables, markdown
from graphfcl.report.texts import (
    MARKS,
    chosen_text,
    difference_text,
    improvement_text,
    notes,
    p_text,
    printed_line,
    result_columns,
)


def write_page(folder: str | Path) -> list[Path]:
    """report.html, tables.md, tables.tex and pictures of the curves, in the folder."""
    findings = collect(folder)
    template = files("graphfcl.report").joinpath("page.html").read_text(encoding="utf-8")
    # "<" could end the script element that holds the data, or begin a comment in it.
    data = page_data(findings)
    content = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = template.replace("/*FURTHER*/", _script("further", data)).replace("/*ASKED*/", _script("asked", data))
    page = page.replace("/*DATA*/", content)
    sections = all_tables(findings)
    texts = {
        "report.html": page,
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
    for name, blocks in _pictures(findings).items():
        paths.append(Path(folder) / f"{name}.png")
        (asked_figure if all(map(is_asked, blocks)) else curves_figure)(blocks, paths[-1])
    return paths


def _script(part: str, data: dict[str, Any]) -> str:
    """The script of a part of the page, if a block has that part."""
    has_it = any(part in block for block in data["blocks"])
    return files("graphfcl.report").joinpath(f"{part}.js").read_text(encoding="utf-8") if has_it else ""


def _pictures(findings: Findings) -> dict[str, list[Block]]:
    """Name → blocks of a picture: one for each grid, protocol and number of the rules.

    The highest number of a grid and protocol is not said in the name.
    """
    groups: dict[tuple[str, str], dict[int, list[Block]]] = {}
    for block in findings.blocks:
        if block.grid.kind not in ("sweep", "embed"):
            same = groups.setdefault((block.grid.name, block.protocol["name"]), {})
            same.setdefault(block.rules, []).append(block)
    found: dict[str, list[Block]] = {}
    grids = {grid for grid, _ in groups}
    for (grid, protocol), by_rules in groups.items():
        for rules, blocks in by_rules.items():
            name = grid if protocol == "strict" else f"{grid}-{protocol}"
            name += "" if rules == max(by_rules) else f"-rules-{rules}"
            while name in found or (name != grid and name in grids):  # one may be called like the picture of another
                name += "_"
            found[name] = blocks
    return found


def page_data(findings: Findings) -> dict[str, Any]:
    """Everything the page shows, as plain values."""
    tables = [block for block in findings.blocks if block.grid.kind not in ("sweep", "embed")]
    failures = [
        f"{grid.name}: {cell.dataset}, {cell.row}, seed {cell.seed}, rules {cell.rules_number}: {error}"
        for grid, cell, error in findings.failures
    ]
    return {
        "about": _about(findings),
        "marks": MARKS,
        "about_leads": ABOUT_LEADS,
        "names": by_strength(tables),
        "bright": {grid.name: prominent([b for b in tables if b.grid is grid]) for grid in findings.grids},
        "blocks": [_block(block, findings) for block in tables],
        "sweeps": _sweeps(findings),
        "embeddings": _embeddings(findings),
        "datasets": read_dataset_table(findings.folder),
        "grids": [_grid(findings, grid.name) for grid in findings.grids],
        "failures": failures,
        "versions": _versions(findings),
        "settings": _settings(findings),
    }


def _about(findings: Findings) -> str:
    seeds = {seed for block in findings.blocks for row in block.rows for seed in row.results}
    datasets = sorted({block.dataset for block in findings.blocks})
    rules = sorted({block.rules for block in findings.blocks})
    apart = ", never in one table" if len(rules) > 1 else ""
    return (
        f"{', '.join(datasets)}; {len(seeds)} seeds; rules {', '.join(map(str, rules))}{apart}. "
        "Balanced accuracy (mean recall over all classes seen) on all test nodes, mean over seeds ± Student's 95 % "
        f"interval; differences are paired by seed and, from {FEWEST_SEEDS} seeds on, tested with the corrected "
        f"resampled t-test (n_test/n_train = {TEST_TO_TRAIN}); p-values are Holm's."
    )


def _grid(findings: Findings, name: str) -> dict[str, Any]:
    grid = next(grid for grid in findings.grids if grid.name == name)
    blocks = [block for block in findings.blocks if block.grid is grid]
    done = sum(len(row.results) for block in blocks for row in block.rows)
    failed = sum(one is grid for one, _, _ in findings.failures)
    return {"name": name, "command": grid.command, "total": len(grid.cells), "done": done, "failed": failed}


def _block(block: Block, findings: Findings) -> dict[str, Any]:
    figures = block_figures(block, findings.ranks(block))
    width = len(result_columns(figures))
    further = further_titles() if figures.has_further else {}
    found: dict[str, Any] = {
        "grid": block.grid.name,
        "title": block.title,
        "reference": block.reference.name,
        "winner": block.winner,
        "rows": [_row(row, with_further=bool(further)) for row in figures.rows],
        "printed": [list(printed_line(printed, width)) for printed in figures.printed],
        "notes": list(notes(figures)),
        "leads": [_lead(block, lead) for lead in lead_tables(block)],
    }
    if further:
        found["further"] = further
        found["curves"] = {m.name: f"{m.title}: {m.what}" for m in FURTHER_OF_SESSIONS if m.share}
    if is_asked(block):
        found["asked"] = asked_data(block)
    return found


def _lead(block: Block, lead: Table) -> dict[str, Any]:
    return {"title": lead.title.removeprefix(f"{block.title}: "), "columns": lead.columns, "rows": lead.rows}


def _row(figures: RowFigures, *, with_further: bool) -> dict[str, Any]:
    row = figures.row
    found: dict[str, Any] = {
        "name": row.name,
        "marks": list(row.marks),
        "seeds": sorted(row.results),
        "sessions": list(range(figures.by_session.size)),
        **{key: _curve(row.sessions(key)) for key in ("balanced_accuracy", "base", "novel")},
        "average": _plain(figures.average),
        **{key: _plain(figures.drop(key) or summary([0.0])) for key in ("pd", "rpd")},
        "last": _plain(figures.last),
        "matrix": _numbers(row.matrix()),
        "seconds": figures.seconds,
        "memory": figures.memory,
        "gpu_memory": row.gpu_memory(),
        "stored": figures.stored,
        "improvement": improvement_text(figures),
        "difference": difference_text(figures),
        "p": p_text(figures),
        "rank": figures.rank,
        "chosen": chosen_text(figures),
    }
    if with_further:
        found["further"] = {name: one and _plain(one) for name, one in figures.further.items()}
        found["curves"] = {m.name: _curve(row.sessions(m.name)) for m in FURTHER_OF_SESSIONS if m.share}
    return found


def _curve(values: np.ndarray) -> dict[str, list[float | None]]:
    """values: (seeds, sessions). Mean, and the ends of the 95 % interval where there are several seeds."""
    found = [None if np.isnan(column).any() else summary(column) for column in values.T]
    mean = [None if one is None else round(one.mean, 3) for one in found]
    ends: list[list[float | None]] = [[], []]
    for one in found:
        missing = one is None or one.interval is None
        for place, sign in enumerate((-1, 1)):
            ends[place].append(None if missing else round(one.mean + sign * one.interval, 3))  # type: ignore[union-attr,operator]
    return {"mean": mean, "low": ends[0], "high": ends[1]}


def _plain(found: Any) -> dict[str, float | None]:
    return {"mean": round(found.mean, 3), "interval": None if found.interval is None else round(found.interval, 3)}


def _numbers(matrix: np.ndarray) -> list[list[float | None]]:
    return [[None if np.isnan(value) else round(float(value), 2) for value in row] for row in matrix]


def _sweeps(findings: Findings) -> list[dict[str, Any]]:
    blocks = [block for block in findings.blocks if block.grid.kind == "sweep"]
    found = []
    swept = dict.fromkeys((block.dataset, row.name, block.rules) for block in blocks for row in block.rows)
    for dataset, name, rules in swept:
        values = {
            (block.protocol["way"], block.protocol["shot"]): summary(row.values("average")).mean
            for block in blocks
            if block.dataset == dataset and block.rules == rules
            for row in block.rows
            if row.name == name
        }
        ways, shots = sorted({way for way, _ in values}), sorted({shot for _, shot in values})
        grid = [[values.get((way, shot)) for shot in shots] for way in ways]
        found.append({"dataset": dataset, "method": name, "rules": rules, "ways": ways, "shots": shots, "values": grid})
    return found


def _embeddings(findings: Findings) -> list[dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for cell, result in findings.embeddings:
        protocol, rules = result["protocol"], rules_of_result(result)
        session = len(result["sessions"]) - 1
        kind = f"{protocol['way']}-way {protocol['shot']}-shot"
        title = f"{result['dataset']}, {kind}, after session {session}, seed {cell.seed}, rules {rules}"
        novel = [bool(arrival) for arrival in result["session_of_class"]]
        group = groups.setdefault(title, {"title": title, "classes": result["classes"], "novel": novel, "methods": []})
        group["methods"].append({"name": cell.row, **{key: result["embedding"][key] for key in ("x", "y", "labels")}})
    return list(groups.values())


def _versions(findings: Findings) -> list[str]:
    """With what the cells of each grid and number of the rules were computed; several lines where they differ."""
    found: dict[str, None] = {}
    for block in findings.blocks:
        for row in block.rows:
            for result in row.results.values():
                parts = ", ".join(f"{key} {value}" for key, value in result["versions"].items())
                found[f"{block.grid.name}, rules {block.rules}: {parts}"] = None
    return list(found)


def _settings(findings: Findings) -> list[dict[str, Any]]:
    found = {}
    for block in findings.blocks:
        for row in block.rows:
            result = next(iter(row.results.values()))
            found[f"{block.grid.name}: {row.name}, rules {block.rules}"] = result["settings"]
    return [{"name": name, "settings": settings} for name, settings in found.items()]
