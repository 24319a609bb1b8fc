"""The sessions of an evaluation as tables: for a person, and for programs."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.metrics import StreamMetrics, session_metrics, stream_metrics

Columns = dict[str, list[Any]]
WHOLE = ("session", "classes", "labels")  # columns of whole numbers


def session_columns(metrics: StreamMetrics, seconds: Sequence[float], answered: Sequence[np.ndarray]) -> Columns:
    """A row for each session: its number, classes seen, every metric of a session (None where it has none), seconds.

    answered: under the track ``active`` the nodes that were labelled in each session but the first; then the column
    ``labels`` counts those until then.
    """
    sessions = metrics.sessions
    columns: Columns = {
        "session": [each.session for each in sessions],
        "classes": [each.classes for each in sessions],
    }
    if answered:
        columns["labels"] = np.cumsum([0, *(nodes.size for nodes in answered)]).tolist()
    for metric in session_metrics():
        columns[metric.name] = [each.values[metric.name] for each in sessions]
    columns["seconds"] = list(seconds)
    return columns


def arrow_table(columns: Columns) -> Any:
    """These columns as a table of pyarrow."""
    import pyarrow as pa

    types = {name: pa.int64() if name in WHOLE else pa.float64() for name in columns}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def data_frame(columns: Columns) -> Any:
    """The same as a DataFrame of pandas."""
    try:
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: F401
    except ImportError as error:
        raise InputError("to_frame needs pandas: `pip install pandas`, or use to_arrow().") from error
    return arrow_table(columns).to_pandas()


def text_of(columns: Columns, metrics: StreamMetrics) -> str:
    """A table for a person, accuracies in %, and lines with what the whole stream comes to."""
    shown = {name: [str(each) for each in columns[name]] for name in WHOLE if name in columns}
    for metric in session_metrics():
        if "print" in metric.places:
            shown[metric.title] = [metric.text(value) for value in columns[metric.name]]
    shown["seconds"] = [f"{value:.2f}" for value in columns["seconds"]]
    lines = _aligned(list(shown), list(zip(*shown.values(), strict=True)))
    return "\n".join([*lines, "", *_stream_lines(metrics)])


def _stream_lines(metrics: StreamMetrics) -> list[str]:
    """The figures of the whole stream; those with the same note stand in one line."""
    lines = []
    for note, group in groupby(
        (each for each in stream_metrics() if "print" in each.places), key=lambda each: each.note
    ):
        figures = "  ".join(f"{each.title} {each.text(metrics.values[each.name])}".rstrip() for each in group)
        lines.append(f"{figures}  ({note})" if note else figures)
    return lines


def _aligned(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines in which every column is as wide as its widest cell, aligned to the right."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (titles, *rows)]
