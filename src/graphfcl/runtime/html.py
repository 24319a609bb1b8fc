"""Small HTML tables for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape

from graphfcl.errors import printable


def html_table(title: str, rows: Iterable[Sequence[object]], columns: Sequence[str] = (), notes: str = "") -> str:
    """Return an HTML table with a caption and lines of notes below it. All texts are escaped."""

    def row(cells: Sequence[object], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"

    head = f"<thead>{row(columns, 'th')}</thead>" if columns else ""
    body = "".join(row(cells, "td") for cells in rows)
    below = "".join(f"<p>{_text(line)}</p>" for line in notes.splitlines())
    return f"<table><caption>{_text(title)}</caption>{head}<tbody>{body}</tbody></table>{below}"


def _text(value: object) -> str:
    return escape(printable(str(value)))
