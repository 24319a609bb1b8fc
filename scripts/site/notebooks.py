"""Notebooks without Jupyter: run their cells, keep what comes out, and show them as Markdown.

``python -m scripts.site.notebooks docs/NAME.ipynb`` runs a notebook in a process of its own and stores its outputs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

RUN_CELLS = """
import ast, base64, contextlib, io, json, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as pyplot

def outputs(source, names):
    tree, out, shown = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    found = [{"output_type": "stream", "name": "stdout", "text": out.getvalue()}] if out.getvalue() else []
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    for figure in figures:
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=80, metadata={"Software": None})
        image = base64.b64encode(picture.getvalue()).decode()
        found.append({"output_type": "display_data", "metadata": {}, "data": {"image/png": image}})
    if shown is not None and not figures:
        data = {"text/plain": repr(shown)}
        found.append({"output_type": "execute_result", "metadata": {}, "execution_count": None, "data": data})
    pyplot.close("all")
    return found

names = {"__name__": "__main__"}
cells = json.load(open(sys.argv[1]))
json.dump([outputs(source, names) for source in cells], open(sys.argv[2], "w"))
"""


def run_cells(sources: list[str]) -> list[list[dict[str, Any]]]:
    """The outputs of cells that are run one after another in a fresh process, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        cells, out = Path(folder) / "cells.json", Path(folder) / "outputs.json"
        cells.write_text(json.dumps(sources))
        command = [sys.executable, "-c", RUN_CELLS, str(cells), str(out)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return json.loads(out.read_text())


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def record(path: Path) -> None:
    """Run a notebook and store its outputs in it."""
    notebook = json.loads(path.read_text())
    cells = code_cells(notebook)
    for number, (cell, outputs) in enumerate(
        zip(cells, run_cells(["".join(c["source"]) for c in cells]), strict=True), 1
    ):
        cell["execution_count"] = number
        cell["outputs"] = [
            {**each, "execution_count": number} if "execution_count" in each else each for each in outputs
        ]
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def markdown_of(path: Path) -> str:
    """A notebook as a page: texts, code, and what came out."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [_shown(output) for output in cell.get("outputs", [])]
    return "\n\n".join(parts) + "\n"


def _shown(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = output["data"]
    if "image/png" in data:
        return f"![What the cell draws](data:image/png;base64,{data['image/png']})"
    return f"```text\n{''.join(data['text/plain'])}\n```"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(Path(name))
