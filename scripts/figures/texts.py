"""Numbers and tables as Markdown."""

from collections.abc import Iterable, Sequence

from graphfcl.measures import PairedDifference, SeedSummary
from graphfcl.report.blocks import SIGNIFICANT

STAR = "\\*"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)).replace(" --- ", "---")


def value(found: SeedSummary) -> str:
    return f"{found.mean:.1f}" if found.interval is None else f"{found.mean:.1f} ± {found.interval:.1f}"


def signed(number: float, digits: int = 1) -> str:
    text = f"{number:+.{digits}f}".replace("-", "−")
    return text[1:] if float(text[1:]) == 0 else text


def difference(found: PairedDifference, p: float | None = None) -> str:
    """Mean ± half of the interval, with a star if p is below 0.05."""
    interval = "" if found.interval is None else f" ± {found.interval:.1f}"
    return f"{signed(found.mean)}{interval}{STAR if p is not None and p < SIGNIFICANT else ''}"


def code(names: Iterable[str]) -> list[str]:
    return [f"`{name}`" for name in names]


def listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
