"""Labels and history as CSV files."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import APIRouter, Response

from graphfcl.service.changes import Change
from graphfcl.service.service import Service
from graphfcl.service.snapshots import Snapshot

LABEL_COLUMNS = ("node", "class", "part", "by", "when", "reason", "note")
UNESCAPED = ("node", "class")  # written without escapes, so that `learn` can read them
HISTORY_COLUMNS = ("version", "when", "kind", "by", "what", "classes", "warning")


class CsvResponse(Response):
    """A CSV file; the class declares its media type in the OpenAPI description."""

    media_type = "text/csv"


def export_routes(service: Service) -> APIRouter:
    """Make the routes that export tables."""
    routes = APIRouter(prefix="/v1/export", tags=["read"])

    @routes.get("/labels.csv", response_class=CsvResponse)
    def export_labels() -> Response:
        """Export all labels as CSV: class, part, who gave each label, when and why, and the note."""
        snapshot = service.writer.current
        return _sent(snapshot, "labels", *label_rows(snapshot))

    @routes.get("/history.csv", response_class=CsvResponse)
    def export_history() -> Response:
        """Export all versions as CSV, oldest first: when, what changed, and by whom."""
        snapshot = service.writer.current
        integers = snapshot.model.label_store_.integers

        def row_of(change: Change) -> list[Any]:
            row = change.as_json(integers)
            row |= {"by": " and ".join(row.get("by", ())), "classes": "; ".join(map(str, row["classes"]))}
            return [row.get(name, "") for name in HISTORY_COLUMNS]

        listed = map(row_of, snapshot.changes)
        return _sent(snapshot, "history", HISTORY_COLUMNS, listed)

    return routes


def label_rows(snapshot: Snapshot) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
    """Return column names and rows. A label has one row per person who gave it, or one row if no person is named."""
    columns = snapshot.model.label_columns()
    names = [*LABEL_COLUMNS, *(name for name in columns if name not in LABEL_COLUMNS)]
    empty = [""] * len(columns["node"])
    return names, zip(*(columns[name].tolist() if name in columns else empty for name in names), strict=True)


def _escape_formula(value: Any) -> Any:
    """Escape a text that a spreadsheet would read as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value


def _sent(snapshot: Snapshot, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Response:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    plain = [name in UNESCAPED for name in columns]
    writer.writerows(
        [value if as_is else _escape_formula(value) for value, as_is in zip(row, plain, strict=True)] for row in rows
    )
    headers = {
        "ETag": f'"{snapshot.version}"',
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{name}-{snapshot.version}.csv"',
    }
    return CsvResponse(text.getvalue(), headers=headers)
