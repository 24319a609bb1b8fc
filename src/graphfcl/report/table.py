"""Tables of texts, in three forms: Markdown, LaTeX, and plain values for the page.

Values are rounded once, when the table is made, so all forms print the same digits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graphfcl.metrics import SeedSummary

LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}"}
LATEX |= {
    "¶": r"\P{}",
    "‖": r"$\Vert$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "~": r"\textasciitilde{}",
}
LATEX |= {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "`": ""}


@dataclass(frozen=True)
class Table:
    """A table whose cells are texts.

    Attributes:
        title: Title of the table.
        columns: Titles of the columns.
        rows: Cells of each row.
        bold: Row and column of cells to print bold.
        notes: Notes below the table.
        names: Names of the rows without marks, if rows are methods.
        below: Number of rows with published results at the end, which sorting does not move.
        low: Titles of columns in which small values are better.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: frozenset[tuple[int, int]] = frozenset()
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    below: int = 0
    low: frozenset[str] = frozenset()

    def data(self) -> dict[str, Any]:
        """Data for the page."""
        return {
            "title": self.title,
            "columns": self.columns,
            "rows": self.rows,
            "bold": sorted(self.bold),
            "notes": self.notes,
            "names": self.names,
            "below": self.below,
            "low": sorted(self.low),
        }


def bold_rows(numbers: Iterable[int], columns: int) -> frozenset[tuple[int, int]]:
    """Positions of all cells in some rows."""
    return frozenset((number, column) for number in numbers for column in range(columns))


def figure(seeds: SeedSummary | None) -> str:
    """Format mean ± half the interval; empty if there is no value."""
    if seeds is None:
        return ""
    return two_digits(seeds.mean) if seeds.interval is None else f"{two_digits(seeds.mean)} ± {seeds.interval:.2f}"


def two_digits(value: float, *, sign: bool = False) -> str:
    """Format with two decimals, and without a minus sign for zero."""
    text = f"{value:+.2f}" if sign else f"{value:.2f}"
    return text.replace("-0.00", "+0.00" if sign else "0.00") if float(text) == 0 else text


def plain_summary(seeds: SeedSummary | None) -> dict[str, float | None] | None:
    """Mean and half the interval, for the figures of the page."""
    return None if seeds is None else {"mean": seeds.mean, "interval": seeds.interval}


def markdown(table: Table) -> str:
    def escape(text: str) -> str:
        return text.replace("|", r"\|").replace("*", r"\*")

    head = " | ".join(map(escape, table.columns))
    lines = [f"### {table.title}", "", f"| {head} |", f"|{'---|' * len(table.columns)}"]
    for number, row in enumerate(table.rows):
        cells = [escape(cell) for cell in row]
        cells = [f"**{c}**" if (number, place) in table.bold and c else c for place, c in enumerate(cells)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{note}  " for note in table.notes), ""])


def latex(table: Table) -> str:
    def escape(text: str) -> str:
        return "".join(LATEX.get(character, character) for character in text)

    lines = [r"\begin{table*}", r"\centering", rf"\caption{{{escape(table.title)}}}", r"\resizebox{\linewidth}{!}{%"]
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(table.columns) - 1)}}}", r"\hline"]
    lines += [" & ".join(escape(column) for column in table.columns) + r" \\ \hline"]
    for number, row in enumerate(table.rows):
        cells = [escape(cell) for cell in row]
        cells = [rf"\textbf{{{c}}}" if (number, place) in table.bold and c else c for place, c in enumerate(cells)]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\hline", r"\end{tabular}}"]
    lines += [rf"\par\small {escape(note)}." for note in table.notes]
    return "\n".join([*lines, r"\end{table*}", ""])
