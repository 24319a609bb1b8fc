"""The report of a folder of grids: one HTML page that needs no network, and the same tables as Markdown and LaTeX."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from graphfcl.report.active import active_figure, is_active
from graphfcl.report.blocks import Block, Findings, collect
from graphfcl.report.figures import curves_figure
from graphfcl.report.page_data import page_data, styles_of
from graphfcl.report.styles import colour_rules
from graphfcl.report.tables import all_tables, latex, markdown
from graphfcl.runtime.files import write_bytes

# In the order in which they stand on the page; what is in brackets only where a block has that part.
SCRIPTS = ("elements", "choice", "marks", "charts", "heat", "tables", "sections", "[active]", "[further]", "start")


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
    for name, blocks in _pictures(findings).items():
        paths.append(Path(folder) / f"{name}.png")
        (active_figure if all(map(is_active, blocks)) else curves_figure)(blocks, paths[-1], styles)
    return paths


def page(data: dict[str, Any]) -> str:
    """The page as one file: template, styles, script and data."""
    parts = [name for name in SCRIPTS if not name.startswith("[") or _has(data, name.strip("[]"))]
    script = "\n".join(_static(f"{name.strip('[]')}.js") for name in parts)
    # "<" could end the script element that holds the data, or begin a comment in it.
    content = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    found = _static("page.html").replace("/*STYLE*/", _static("page.css") + colour_rules())
    return found.replace("/*SCRIPT*/", script).replace("/*DATA*/", content)


def _has(data: dict[str, Any], part: str) -> bool:
    return any(part in block for block in data["blocks"])


def _static(name: str) -> str:
    return files("graphfcl.report").joinpath("static", name).read_text(encoding="utf-8")


def _pictures(findings: Findings) -> dict[str, list[Block]]:
    """Name → blocks of a picture: one for each grid and protocol."""
    groups: dict[tuple[str, str], list[Block]] = {}
    for block in findings.blocks:
        if block.grid.kind not in ("sweep", "embed"):
            groups.setdefault((block.grid.name, block.protocol["name"]), []).append(block)
    found: dict[str, list[Block]] = {}
    grids = {grid for grid, _ in groups}
    for (grid, protocol), blocks in groups.items():
        name = grid if protocol == "strict" else f"{grid}-{protocol}"
        while name in found or (name != grid and name in grids):  # one may be called like the picture of another
            name += "_"
        found[name] = blocks
    return found
