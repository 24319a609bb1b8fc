"""Table 2 and what follows from it: who is ahead of whom."""

import textwrap
from collections.abc import Sequence
from functools import cache

import numpy as np

from graphfcl.report import FORM, Block, Claims, Comparison, Row, claims, summary
from scripts.figures.reading import GRAPHS, find_block, find_blocks, find_row, read_csv, stored
from scripts.figures.texts import code, difference, listed, signed, table, value

HEADLINE = {"anchor": "this project", "sgc-ridge": "closed form", "lpmc": "2026", "ranpac": "2023", "hag-meta": "2022"}
NOT_DIFFERENT = "not significantly different after Holm's correction from"


@cache
def table2_blocks() -> tuple[Block, ...]:
    return find_blocks("table2", track="transductive")


@cache
def table2_ranks() -> dict[str, float]:
    """Row without a mark → average rank, the best first."""
    ranks = stored("bench").ranks(table2_blocks()[0])
    return dict(sorted(ranks.items(), key=lambda item: item[1]))


def headline(*track: str) -> str:
    """Balanced accuracy after the last session of a few methods; track: another one than ``transductive``."""
    blocks = find_blocks("tracks", track=track[0]) if track else table2_blocks()
    rows = []
    for name, about in HEADLINE.items():
        rows.append([f"`{name}` ({about})", *(value(summary(find_row(block, name).last())) for block in blocks)])
    return table(["after the last session, %", *code(GRAPHS)], rows)


def table2(measure: str) -> str:
    """All rows of Table 2 on all graphs: ``last`` session or ``average``."""
    blocks = table2_blocks()
    ranks = table2_ranks()
    marked = [row.name for row in blocks[0].rows if row.marks]
    pool = [name for name in marked if find_row(blocks[0], name).results[0]["uses_pool_labels"]]
    names = [*pool, *ranks, *(name for name in marked if name not in pool)]
    rows = []
    for name in names:
        found = [find_row(block, name) for block in blocks]
        cells = [value(summary(row.last() if measure == "last" else row.values("average"))) for row in found]
        title = f"`{name}` (uses pool labels)" if name in pool else f"`{name}`"
        rows.append([title, *cells, f"{ranks[name]:.1f}" if name in ranks else ""])
    sessions = [f"`{block.dataset}`, {find_row(block, 'anchor').sessions().shape[1] - 1}" for block in blocks]
    return table(["last session" if measure == "last" else "average over sessions", *sessions, "rank"], rows)


@cache
def claims_of(block: Block, method: str) -> Claims:
    """The headline family of a method on a graph, on the average over sessions."""
    return claims(block, method)


def differences(method: str) -> str:
    """A method minus every other, on the average over sessions."""
    blocks = table2_blocks()
    names = [name for name in table2_ranks() if name != method]
    rows = [
        [f"`{name}`", *(difference(claims_of(block, method).comparisons[name], star=True) for block in blocks)]
        for name in names
    ]
    return table([f"`{method}` minus", *code(GRAPHS)], rows)


def track_claim(name: str) -> str:
    """Where ANCHOR is ahead of every method that ran on a track, and which it does not differ from elsewhere."""
    families = [claims_of(block, "anchor") for block in find_blocks("tracks", track=name)]
    start = f"Under `{name}`, on the average over sessions, `anchor` is ahead of every other method of the table on"
    return textwrap.fill(" ".join(standing(start, families, detail=True)), 120, break_on_hyphens=False)


def claim(method: str, *options: str) -> str:
    """Where a method is ahead of all that see the same labels, which it does not differ from elsewhere, and `joint`.

    ``detail`` adds the differences and their corrected p-values.
    """
    families = [claims_of(block, method) for block in table2_blocks()]
    start = f"On the average over sessions `{method}` is ahead of every method that sees the same labels on"
    lines = standing(start, families, detail="detail" in options)
    gaps = [
        summary(find_row(block, "joint").last()).mean - summary(find_row(block, method).last()).mean
        for block in table2_blocks()
    ]
    assert min(gaps) > 0
    lines.append("The upper reference `joint`, which also sees the labels of the pool, ends")
    lines[-1] += f" {min(gaps):.1f} to {max(gaps):.1f} points above it."
    return textwrap.fill(" ".join(lines), 120, break_on_hyphens=False)


def standing(start: str, families: Sequence[Claims], *, detail: bool) -> list[str]:
    """Sentences on where a method is ahead of every other, and on the methods that it does not differ from elsewhere.

    start: how the first sentence begins, before the names of graphs. detail: with differences and corrected p-values.
    """
    ahead = [family.dataset for family in families if family.ahead_of_every]
    lines = [f"{start} {listed(code(ahead)) if ahead else 'no graph'}."]
    for family in families:
        for verb, names in ((NOT_DIFFERENT, family.tied()), ("behind", family.behind())):
            if names and not family.ahead_of_every:
                found = [family.comparisons[name] for name in names]
                details = [f" ({difference(one)}{p_text(one.adjusted)})" if detail else "" for one in found]
                parts = [f"`{name}`{text}" for name, text in zip(names, details, strict=True)]
                lines.append(f"On `{family.dataset}` it is {verb} {listed(parts)}.")
    return lines


def p_text(p_value: float | None) -> str:
    """Three digits below 0.1, so that no value above 0.05 is shown as 0.05; empty without a test."""
    return "" if p_value is None else f", p = {p_value:.3f}" if p_value < 0.1 else f", p = {p_value:.2f}"


@cache
def all_pairs(block: Block) -> dict[str, dict[str, Comparison]]:
    return block.leads("average")


def standings(method: str, family: str) -> str:
    """For every other method, on which graphs it is ahead of a method and behind it after Holm's correction.

    family: ``headline``, the method against the rest, or ``pairs``, all pairs of methods. ANCHOR takes part in both
    families, but its page compares it with every method under a family of its own.
    """
    names = [name for name in table2_ranks() if name not in (method, "anchor")]
    rows = [[f"`{name}`", *significant(name, method, family)] for name in names]
    return table(["method", f"significantly ahead of `{method}`", "significantly behind it"], rows)


def significant(name: str, method: str, family: str = "headline") -> list[str]:
    """The graphs on which a row is significantly ahead of a method and behind it, with the differences."""
    ahead, behind = [], []
    for block in table2_blocks():
        found = (all_pairs(block)[method] if family == "pairs" else claims_of(block, method).comparisons)[name]
        lead = f"`{block.dataset}` {signed(-found.difference.mean)}"
        if found.swapped.ahead_after_holm:
            ahead.append(lead)
        elif found.ahead_after_holm:
            behind.append(lead)
    return [", ".join(ahead), ", ".join(behind)]


def peers() -> str:
    """Later methods minus HAG-Meta: the range at the last session, where the difference is significant, and claims."""
    blocks = table2_blocks()
    names = dict.fromkeys(name for line in read_csv("published.csv") for name in line["method"].split(", "))
    rows = []
    for name in names:
        last = [
            summary(find_row(block, name).last()).mean - summary(find_row(block, "hag-meta").last()).mean
            for block in blocks
        ]
        rows.append([f"`{name}`", f"{signed(min(last))} to {signed(max(last))}", *significant(name, "hag-meta")])
    titles = ["method", "last session, range over graphs", "significantly ahead", "significantly behind"]
    return f"{table(titles, rows)}\n\n{confirmed()}"


def confirmed() -> str:
    """Which of the later methods that published a lead over HAG-Meta are significantly ahead of it here."""
    claimed: dict[str, list[str]] = {}
    for line in read_csv("published.csv"):
        for name in line["method"].split(", "):
            claimed.setdefault(name, []).append(line["over HAG-Meta as claimed"])
    graphs = {name: significant(name, "hag-meta")[0] for name in claimed}
    reported = [name for name, texts in claimed.items() if any(text.startswith("+") for text in texts)]
    right = [name for name in reported if graphs[name]]
    wrong = [name for name in reported if not graphs[name]]
    lines = [f"`{name}`, which reports a lead over HAG-Meta, has one on {graphs[name]}." for name in right]
    if wrong:
        start = "No published lead over HAG-Meta is confirmed" if not right else "No other published lead is confirmed"
        verbs = "reports one, is" if len(wrong) == 1 else "report one, are"
        lines.append(f"{start}: {listed(code(wrong))}, which {verbs} significantly ahead of it on no graph.")
    if silent := [name for name in claimed if graphs[name] and not any(claimed[name])]:
        lines.append('Of the methods in the column "significantly ahead", these published no comparison with it:')
        lines.append(f"{listed(code(silent))}.")
    return textwrap.fill(" ".join(lines), 120, break_on_hyphens=False)


def published() -> str:
    """What later methods claim."""
    titles = {
        "venue": "venue",
        "where": "data",
        "published": "printed accuracy, session 0 → last",
        "over HAG-Meta as claimed": "printed lead over HAG-Meta, points",
        "source": "source of these figures",
    }
    rows = [
        [f"{', '.join(code(line['method'].split(', ')))}", *(line[key] for key in titles)]
        for line in read_csv("published.csv")
    ]
    return table(["method", *titles.values()], rows)


def costs(graph: str) -> str:
    """Mean over seeds of the seconds of a run, and what it keeps."""
    block = find_block("table2", graph, track="transductive")
    reference = float(np.mean(find_row(block, "hag-meta").seconds()))
    found = [(float(np.mean(row.seconds())), row) for row in block.rows if FORM not in row.marks]
    rows = [
        [f"`{row.name}`", f"{seconds:.0f}", f"{seconds / reference:.2f}", f"{stored_megabytes(row):.1f}"]
        for seconds, row in sorted(found, key=lambda pair: pair[0])
    ]
    return table(["method", "seconds", "multiple of `hag-meta`", "stored between sessions, MB"], rows)


def stored_megabytes(row: Row) -> float:
    return float(np.mean([result["stored_bytes"] for result in row.results.values()])) / 1e6


def track(name: str) -> str:
    """The last session of the methods that ran on another track than ``transductive``, the best first."""
    blocks = find_blocks("tracks", track=name)
    ranks = stored("bench").ranks(blocks[0])
    rows = [
        [f"`{method}`", *(value(summary(find_row(block, method).last())) for block in blocks), f"{ranks[method]:.1f}"]
        for method in sorted(ranks, key=lambda method: ranks[method])
    ]
    return table([f"last session, `{name}`, %", *code(block.dataset for block in blocks), "rank"], rows)
