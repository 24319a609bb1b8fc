"""Results of the track ``active``: a table, figures, and the data for the page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.metrics import active_metrics
from graphfcl.report.blocks import Block
from graphfcl.report.comparison import code_notes, mark_notes, marked_name
from graphfcl.report.figures import Style, draw_line, label_ends
from graphfcl.report.rows import ORACLE, Row, summary
from graphfcl.report.table import Table, figure
from graphfcl.runtime.figures import new_figure, percent_axis, save_figure

CURVES = {"balanced_accuracy": "balanced accuracy, all classes (%)", "found": "novel classes found (%)"}


def active_table(block: Block) -> Table:
    """Table with the mean and interval over seeds of every metric of the track ``active``."""
    metrics = active_metrics()
    lines = []
    for row in block.rows:
        labels = summary([float(result["sessions"][-1]["labels"]) for result in row.results.values()]).mean
        cells = [figure(row.summary(metric.name)) for metric in metrics]
        lines.append((marked_name(row), str(len(row.results)), f"{labels:.0f}", *cells))
    notes = [*(f"{metric.title}: {metric.what}" for metric in metrics), *mark_notes(block.rows)]
    notes.append(
        "a class without a labelled node counts 0; between sessions, values are interpolated linearly in the labels"
    )
    notes += code_notes(block.rows)
    columns = ("method, strategy", "seeds", "labels", *(metric.title for metric in metrics))
    names = tuple(row.name for row in block.rows)
    return Table(f"{block.title}: what labels bring", columns, tuple(lines), notes=tuple(notes), names=names)


def curve(row: Row, key: str) -> np.ndarray:
    """A metric by session, or the share of novel classes found, in percent, shape (seeds, sessions)."""
    if key != "found":
        return row.sessions(key)
    novel = [sum(arrival > 0 for arrival in result["session_of_class"]) for result in row.results.values()]
    return 100 * row.sessions("novel_classes_found") / np.array(novel)[:, None]


def labels_of(row: Row) -> np.ndarray:
    """Number of labels used until each session, mean over seeds, shape (sessions,)."""
    return row.sessions("labels").mean(axis=0)


def active_data(block: Block) -> dict[str, Any]:
    """Data of a block for the page: the table, and curves against labels."""
    curves = [
        {
            "name": row.name,
            "labels": labels_of(row).tolist(),
            "dashed": ORACLE in row.marks,
            **{key: curve(row, key).mean(axis=0).tolist() for key in CURVES},
        }
        for row in block.rows
    ]
    return {"table": active_table(block).data(), "titles": CURVES, "curves": curves}


def active_figure(blocks: Sequence[Block], path: str | Path, styles: Mapping[str, Style]) -> None:
    """Plot accuracy and classes found against labels: a line of panels per block; rows with an oracle are dashed."""
    figure_, grid = new_figure(12.5, 3.3 * len(blocks), (len(blocks), 3))
    panels = np.array(grid, dtype=object).reshape(len(blocks), 3)
    for line, block in zip(panels, blocks, strict=True):
        for panel, (key, title) in zip(line, CURVES.items(), strict=False):
            ends = []
            for row in block.rows:
                values, labels = curve(row, key).mean(axis=0), labels_of(row)
                draw_line(panel, labels, values, row, styles[row.name], dashed=ORACLE in row.marks)
                ends.append((row.name, float(labels[-1]), float(values[-1])))
            label_ends(panel, ends, styles)
            panel.set_title(f"{block.dataset}: {title}", fontsize=9)
            panel.set_xlabel("labels")
            percent_axis(panel)
        line[-1].set_axis_off()
        handles = line[0].get_lines()
        line[-1].legend(handles, [one.get_label() for one in handles], frameon=False, fontsize=8, loc="center")
    save_figure(figure_, path)
