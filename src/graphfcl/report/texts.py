"""Figures as texts, the same in tables and on the page."""

from collections.abc import Mapping

import numpy as np

from graphfcl.metrics import FEWEST_SEEDS, SeedSummary
from graphfcl.report.blocks import CONTROL, FORM, ORACLE, POOL, QUERIES, Block
from graphfcl.report.comparison import BlockFigures, PrintedFigures, RowFigures
from graphfcl.report.statistics import Comparison

MARKS = {POOL: "†", QUERIES: "‡", FORM: "§", ORACLE: "¶", CONTROL: "‖"}
NOTES = {
    "†": "uses pool labels: an upper reference that takes no part in comparisons",
    "‡": "trained on query labels (protocol `paper`): takes no part in comparisons with rows that are not",
    "¶": "needs an oracle, which knows the class of nodes that nobody has labelled: takes no part in comparisons",
    "‖": "a control, which measures what the protocol gives away: takes no part in comparisons",
    "§": "another form of a method that has a row of its own: takes no part in comparisons",
}

TOO_FEW = "too few seeds"


def about_test(block: Block) -> str:
    """How differences between rows are tested."""
    ratio = float(np.mean(list(block.ratios.values())))
    return (
        "differences: corrected resampled t-test of Nadeau and Bengio over the shared seeds, two-sided, with "
        f"n_test/n_train of the streams ({ratio:.2f} in the mean); ± is its 95 % interval"
    )


def family_text(block: Block) -> str:
    """Which comparisons the p-values of the result table are corrected for."""
    return f"p, Holm: family of the headline, {block.reference.name} against each other row of this dataset"


def figure(found: SeedSummary | None) -> str:
    """Mean ± half the interval; empty where there is no figure."""
    if found is None:
        return ""
    return f"{found.mean:.2f}" if found.interval is None else f"{found.mean:.2f} ± {found.interval:.2f}"


def improvement_text(row: RowFigures) -> str:
    """PD/RPD, with signs; empty for the reference."""
    if row.difference is None:
        return ""
    return "/".join("" if value is None else f"{value:+.2f}" for value in row.improvement)


def difference_text(row: RowFigures) -> str:
    if row.difference is None:
        return ""
    interval = "" if row.difference.interval is None else f" ± {row.difference.interval:.2f}"
    return f"{row.difference.mean:+.2f}{interval}"


def p_text(row: RowFigures) -> str:
    """The p-value, or why there is none; empty for the reference and for rows that may not be compared with it."""
    if row.p_value is None:
        return TOO_FEW if row.comparable else ""
    return p_figure(row.p_value)


def p_figure(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def lead_lines(leads: Mapping[str, Mapping[str, Comparison]]) -> list[tuple[str, ...]]:
    """A line for each row: its difference from every other, with interval and p-value."""

    def lead(found: Comparison | None) -> str:
        if found is None:
            return ""
        difference = found.difference
        if difference.interval is None or found.adjusted is None:
            return f"{difference.mean:+.2f} (too few seeds)"
        return f"{difference.mean:+.2f} ± {difference.interval:.2f} ({p_figure(found.adjusted)})"

    return [(name, *(lead(others.get(other)) for other in leads)) for name, others in leads.items()]


def chosen_text(row: RowFigures) -> str:
    """Setting by setting, what each seed chose."""
    return "; ".join(f"{key.replace('_', ' ')} {', '.join(map(str, values))}" for key, values in row.chosen.items())


def printed_line(printed: PrintedFigures, width: int) -> tuple[str, ...]:
    """A line of the result table that holds the paper's figures."""
    cells = [f"{value:.2f}" for value in (*printed.accuracy, printed.average, printed.pd, printed.rpd)]
    line = [f"{printed.name}, printed", "", *cells]
    return (*line, *[""] * (width - len(line)))


def result_columns(figures: BlockFigures) -> tuple[str, ...]:
    """The columns of the result table."""
    reference = figures.block.reference.name
    columns = ("method", "seeds", *(str(number) for number in range(figures.sessions)), "average", "PD", "RPD")
    columns += (f"improvement by {reference} (PD/RPD)", f"{reference} ahead on average", "p, Holm")
    return (*columns, "average rank") if figures.ranked else columns


def notes(figures: BlockFigures) -> tuple[str, ...]:
    """What stands below the result table."""
    block = figures.block
    marks = {mark for row in block.rows for mark in row.marks}
    found = [f"{MARKS[mark]} {NOTES[MARKS[mark]]}" for mark in sorted(marks)]
    if any(row.difference is not None and row.difference.interval is not None for row in figures.rows):
        found += [about_test(block), family_text(block)]
    if any(p_text(row) == TOO_FEW for row in figures.rows):
        shared = f"fewer than {FEWEST_SEEDS} seeds shared with {block.reference.name}"
        found.append(f"{TOO_FEW}: {shared}, so the difference has no test and no interval")
    fair = "row without a mark" if marks else "row"
    if block.winner is not None:
        found.append(f"bold: ahead of every other {fair} on average, each raw p < 0.05 (an intersection–union test)")
    elif block.too_few_seeds:
        found.append(f"{TOO_FEW} for a test of the best {fair} against every other, so none is bold")
    else:
        found.append(f"no {fair} is ahead of every other with each raw p < 0.05, so none is bold")
    found += [f"failed: {row}, seed {seed}: {error}" for row, seed, error in block.failures]
    if block.missing:
        found.append(f"cells that have not run yet: {block.missing}")
    return tuple(found)
