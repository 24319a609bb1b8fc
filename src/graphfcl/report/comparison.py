"""Texts that tables and page share, and the values printed in the paper."""

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

import numpy as np

from graphfcl.metrics import FEWEST_SEEDS, SessionMetric, StreamMetric, session_metrics, stream_metrics
from graphfcl.report.blocks import Block
from graphfcl.report.rows import CONTROL, FORM, ORACLE, POOL, QUERIES, Row, codes_of, machines_of
from graphfcl.report.table import two_digits

PRINTED_RULES = {"amazon-clothing": (3, 5), "dblp": (5, 5), "reddit": (2, 3)}  # N and K of Table 2
PRINTED_SESSIONS = 10  # sessions 0 to 9


def further_metrics() -> list[SessionMetric | StreamMetric]:
    """Metrics that a report shows besides its main table, session metrics first."""
    metrics: list[SessionMetric | StreamMetric] = [*session_metrics(), *stream_metrics()]
    return [metric for metric in metrics if "report" in metric.places]


def further_titles(block: Block) -> dict[str, str]:
    """Titles of these further metrics by name; empty if no row has any of them."""
    titles = {
        metric.name: f"{metric.title}, last session" if isinstance(metric, SessionMetric) else metric.title
        for metric in further_metrics()
    }
    return titles if any(row.summary(name) is not None for row in block.rows for name in titles) else {}


def paper_tables() -> dict[str, Any]:
    """The values printed in the paper."""
    return json.loads(files("graphfcl.report").joinpath("paper_tables.json").read_text())


def printed_rows(block: Block) -> list[dict[str, Any]]:
    """The paper's values for rows of a block, in percent; empty unless dataset, rules and sessions are the paper's."""
    rules = (block.protocol["name"], block.protocol["track"], block.protocol["way"], block.protocol["shot"])
    paper_rules = ("paper", "transductive", *PRINTED_RULES.get(block.dataset_path, (0, 0)))
    if rules != paper_rules or block.sessions != PRINTED_SESSIONS:
        return []
    tables = paper_tables()
    source = tables["table2"].get(block.dataset_path, {}) if block.grid.kind == "table2" else {}
    if block.grid.kind == "table3" and block.dataset_path == "amazon-clothing":
        source = tables["table3"]
    printed = [(row.name, source[row.name]) for row in block.rows if row.name in source]
    return [{"name": name, **one, "average": float(np.mean(one["accuracy"]))} for name, one in printed]


MARKS = {POOL: "†", QUERIES: "‡", FORM: "§", ORACLE: "¶", CONTROL: "‖"}
NOTES = {
    POOL: "uses pool labels: an upper reference that takes no part in comparisons",
    QUERIES: "trained on query labels (protocol `paper`): compared only with rows that are, too",
    ORACLE: "needs an oracle, which knows the class of unlabelled nodes: takes no part in comparisons",
    CONTROL: "a control, which measures how much the protocol alone reveals: takes no part in comparisons",
    FORM: "a variant of a method that also has its own row: takes no part in comparisons",
}

TOO_FEW = "too few seeds"


def about_test(block: Block) -> str:
    """Note on the test of differences between rows."""
    ratio = float(np.mean(list(block.ratios.values())))
    return (
        "differences: corrected resampled t-test of Nadeau and Bengio over the shared seeds, two-sided, with "
        f"n_test/n_train of the streams (mean {ratio:.2f}); ± is its 95 % interval"
    )


def family_text(block: Block) -> str:
    """Note on the family of comparisons for which p-values of the result table are corrected."""
    return f"p, Holm: corrected over the comparisons of {block.reference.name} with every other row of this dataset"


def marked_name(row: Row) -> str:
    return row.name + "".join(MARKS[mark] for mark in row.marks)


def mark_notes(rows: Iterable[Row]) -> list[str]:
    """Notes on the marks of some rows."""
    return [f"{MARKS[mark]} {NOTES[mark]}" for mark in sorted({mark for row in rows for mark in row.marks})]


def compared_texts(block: Block, row: Row) -> tuple[str, str, str]:
    """Texts of a row: improvement by the reference (PD/RPD), its lead on average, and the p-value or why it is missing.

    All are empty for the reference. The p-value is also empty for rows that must not be compared with it.
    """
    comparison = block.comparisons.get(row.name)
    p_value = TOO_FEW if block.comparable(row) else ""
    if comparison is None:
        return "", "", p_value
    improvements = [block.improvement(row, key) for key in ("pd", "rpd")]
    difference = comparison.difference
    interval = "" if difference.interval is None else f" ± {difference.interval:.2f}"
    return (
        "/".join("" if value is None else two_digits(value, sign=True) for value in improvements),
        f"{two_digits(difference.mean, sign=True)}{interval}",
        p_value if comparison.adjusted is None else p_figure(comparison.adjusted),
    )


def p_figure(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def code_notes(rows: Iterable[Row]) -> list[str]:
    """Note on the code that computed the rows, if there were several versions."""
    codes = codes_of(rows)
    parts = [f"{code} ({', '.join(names)})" for code, names in codes.items()]
    return [f"computed by different code: {'; '.join(parts)}"] if len(codes) > 1 else []


def machine_notes(rows: Iterable[Row]) -> list[str]:
    """Note on the machines that computed the rows, if there were several: times are then not comparable."""
    machines = machines_of(rows)
    return [f"computed on different machines: {'; '.join(machines)}"] if len(machines) > 1 else []


def notes(block: Block) -> tuple[str, ...]:
    """Notes below the result table."""
    lines = mark_notes(block.rows)
    lines += _comparison_notes(block) if len(block.rows) > 1 else []
    lines += code_notes(block.rows)
    lines += [f"failed: {row}, seed {seed}: {' '.join(error.split())}" for row, seed, error in block.failures]
    if block.missing:
        lines.append(f"cells that have not run yet: {block.missing}")
    return tuple(lines)


def _comparison_notes(block: Block) -> list[str]:
    """Notes on how rows were compared, and why one or none is bold."""
    lines = []
    fair = "row without a mark" if any(row.marks for row in block.rows) else "row"
    if any(each.difference.interval is not None for each in block.comparisons.values()):
        lines += [about_test(block), family_text(block)]
    if any(compared_texts(block, row)[2] == TOO_FEW for row in block.rows):
        shared = f"fewer than {FEWEST_SEEDS} seeds shared with {block.reference.name}"
        lines.append(f"{TOO_FEW}: {shared}, so the difference has no test and no interval")
    if block.winner is not None:
        lines.append(f"bold: ahead of every other {fair} on average, each raw p < 0.05 (an intersection–union test)")
    elif block.too_few_seeds:
        lines.append(f"{TOO_FEW} for a test of the best {fair} against every other, so none is bold")
    else:
        lines.append(f"no {fair} is ahead of every other with each raw p < 0.05, so none is bold")
    return lines
