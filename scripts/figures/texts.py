"""Numbers and tables as Markdown."""

from collections.abc import Iterable, Sequence

from graphfcl.metrics import SeedSummary
from graphfcl.report import Comparison

STAR = "\\*"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)).replace(" --- ", "---")


def value(found: SeedSummary) -> str:
    return f"{found.mean:.1f}" if found.interval is None else f"{found.mean:.1f} ± {found.interval:.1f}"


def signed(number: float, digits: int = 1) -> str:
    text = f"{number:+.{digits}f}".replace("-", "−")
    return text[1:] if float(text[1:]) == 0 else text


def difference(found: Comparison, *, star: bool = False) -> str:
    """Mean ± half of the interval, with a star if it is significant after Holm's correction."""
    interval = "" if found.difference.interval is None else f" ± {found.difference.interval:.1f}"
    marked = star and (found.ahead_after_holm or found.swapped.ahead_after_holm)
    return f"{signed(found.difference.mean)}{interval}{STAR if marked else ''}"


def code(names: Iterable[str]) -> list[str]:
    return [f"`{name}`" for name in names]


def listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
