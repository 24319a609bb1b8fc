"""Tables of the page about ANCHOR."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from graphfcl.report import compare_with, summary
from scripts.figures.comparisons import stored_megabytes, table2_blocks
from scripts.figures.reading import GRAPHS, find_row, read_csv
from scripts.figures.texts import code, difference, signed, table, value

UPPER = "joint"  # it reads labels that no other method has
DRAWN = ("sgc-ridge", "ranpac", "tem", "teen")  # in the picture of accuracy against labels, besides these two
PART_TITLES = {
    "means not estimated again": "means not re-estimated (no EM)",
    "neighbours' classes not heard": "neighbours not used",
    "lengths not corrected": "lengths of means not corrected",
}


def anchor_results() -> str:
    blocks = table2_blocks()
    ours = [find_row(block, "anchor") for block in blocks]
    upper = [find_row(block, UPPER) for block in blocks]
    start = [[f"{np.mean(row.sessions()[:, 0]):.1f}" for row in rows] for rows in (ours, upper)]
    rows = [
        ["session 0", *start[0]],
        ["session 0 of `joint`", *start[1]],
        ["last session", *(value(summary(row.last())) for row in ours)],
        ["last session: session-0 classes", *(f"{summary(row.last('base')).mean:.1f}" for row in ours)],
        ["last session: new classes", *(f"{summary(row.last('novel')).mean:.1f}" for row in ours)],
        ["session-0 classes of `joint`", *(f"{summary(row.last('base')).mean:.1f}" for row in upper)],
        ["new classes of `joint`", *(f"{summary(row.last('novel')).mean:.1f}" for row in upper)],
        ["MB stored between sessions", *(f"{stored_megabytes(row):.1f}" for row in ours)],
    ]
    return table(["balanced accuracy, %", *code(GRAPHS)], rows)


def anchor_choices() -> str:
    """What validation sessions chose, and for how many seeds."""
    blocks = table2_blocks()
    found = [
        Counter(tuple(result["chosen"].items()) for result in find_row(block, "anchor").results.values())
        for block in blocks
    ]
    rows = []
    for chosen in sorted(set().union(*found), key=lambda one: (-sum(counter[one] for counter in found), str(one))):
        named = dict(chosen)
        smooth = f"smoothing {named['smoothing']} × {named['smoothing_steps']}" if named["smoothing"] else ""
        links = f"links {named['links']}" if named["links"] else ""
        title = ", ".join(filter(None, [f"weight {named['hop_weight']:g}, {named['hops']} hops", smooth, links]))
        rows.append([title, *(str(counter[chosen] or "") for counter in found)])
    return table(["chosen, number of seeds", *code(GRAPHS)], rows)


def anchor_parts() -> str:
    """What each part of ANCHOR is worth at the last session."""
    lines = read_csv("anchor_parts.csv")
    others = [name for name in dict.fromkeys(line["row"] for line in lines) if name != "anchor"]
    rows = [["`anchor`"], *([PART_TITLES.get(name, name)] for name in others)]
    for graph in GRAPHS:
        here = [line for line in lines if line["dataset"] == graph]
        values = seed_values(here)
        ratios = {int(line["seed"]): int(line["n_test"]) / int(line["n_train"]) for line in here}
        rows[0].append(value(summary(values["anchor"])))
        compared = compare_with("anchor", values, ratios)
        for row, name in zip(rows[1:], others, strict=True):
            row.append(difference(compared[name].swapped, star=True))
    return table(["last session, %", *code(GRAPHS)], rows)


def seed_values(lines: Iterable[dict[str, str]]) -> dict[str, dict[int, float]]:
    """Row → seed → balanced accuracy of the last session."""
    values: dict[str, dict[int, float]] = {}
    for line in lines:
        values.setdefault(line["row"], {})[int(line["seed"])] = float(line["last_session"])
    return values


def anchor_curve() -> str:
    """ANCHOR by labels per new class, its difference to the best other method drawn, and every method ahead of it."""
    lines = read_csv("anchor_shots.csv")
    shots = sorted({int(line["shot"]) for line in lines})
    rows: list[list[str]] = []
    behind: dict[tuple[int, str], list[str]] = {}
    for graph in GRAPHS:
        rows.append([f"`{graph}`"])
        for shot in shots:
            values = seed_values(line for line in lines if (line["dataset"], int(line["shot"])) == (graph, shot))
            ours = values.pop("anchor")
            values.pop(UPPER, None)
            leads = {
                name: float(np.mean([ours[seed] - other[seed] for seed in other])) for name, other in values.items()
            }
            rows[-1].append(f"{summary(ours).mean:.1f} ({signed(min(leads[name] for name in DRAWN))})")
            for name in (name for name in leads if leads[name] < 0):
                where = f"`{graph}`, {_labels(shot)} ({signed(leads[name])})"
                behind.setdefault((-len(values[name]), name), []).append(where)
    listed = [
        f"- behind `{name}` ({-seeds} seed{'s' * (seeds < -1)}): {'; '.join(behind[seeds, name])}"
        for seeds, name in sorted(behind)
    ]
    return "\n".join([table(["last session, %", *map(_labels, shots)], rows), "", *listed])


def _labels(shot: int) -> str:
    return f"{shot} label{'s' * (shot > 1)}"
