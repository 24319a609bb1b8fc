"""A table of texts, and its forms: Markdown, LaTeX, and the plain values that the page shows.

Every figure is rounded once, when the table is made, so all forms print the same digits.
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
    """Cells are texts.

    bold: (row, column) of cells to print bold.
    names: name of each row without its marks, where rows are methods.
    below: number of rows at the end with published results; sorting leaves them there.
    low: columns in which small figures are good.
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
        """What the page shows."""
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
    """All cells of some rows."""
    return frozenset((number, column) for number in numbers for column in range(columns))


def figure(seeds: SeedSummary | None) -> str:
    """Mean ± half the interval; empty where there is no figure."""
    if seeds is None:
        return ""
    return two_digits(seeds.mean) if seeds.interval is None else f"{two_digits(seeds.mean)} ± {seeds.interval:.2f}"


def two_digits(value: float, *, sign: bool = False) -> str:
    """Two digits after the point; zero never has a minus."""
    text = f"{value:+.2f}" if sign else f"{value:.2f}"
    return text.replace("-0.00", "+0.00" if sign else "0.00") if float(text) == 0 else text


def plain_summary(seeds: SeedSummary | None) -> dict[str, float | None] | None:
    """Mean and half the interval, as the pictures of the page read them."""
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
