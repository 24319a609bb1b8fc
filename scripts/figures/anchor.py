"""Tables of the page about ANCHOR."""

from collections import Counter
from functools import cache

import numpy as np

from graphfcl.report import POOL, Block, Comparison, Row, compare_with, shot_curves, summary
from scripts.figures.comparisons import stored_megabytes, table2_blocks
from scripts.figures.reading import GRAPHS, find_blocks, find_row
from scripts.figures.texts import code, difference, signed, table, value

UPPER = "joint"  # it reads labels that no other method has


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
    """ANCHOR at the last session, and what changes without a part; Holm's family: all rows on one graph."""
    blocks = find_blocks("anchor-parts")
    families = [compare_with("anchor", last_values(block), block.ratios) for block in blocks]
    rows = [["`anchor`", *(value(summary(find_row(block, "anchor").last())) for block in blocks)]]
    rows += [[name, *(difference(each[name].swapped, star=True) for each in families)] for name in families[0]]
    return table(["last session, %", *code(block.dataset for block in blocks)], rows)


def last_values(block: Block) -> dict[str, dict[int, float]]:
    """Row → seed → balanced accuracy of the last session, for the rows that do not use pool labels."""
    return {row.name: row.last() for row in block.rows if POOL not in row.marks}


@cache
def shot_families() -> dict[str, dict[str, dict[str, Comparison]]]:
    """Graph → labels per new class → method → ANCHOR minus it at the last session.

    Holm's family: the methods on one graph with one number of labels.
    """
    found: dict[str, dict[str, dict[str, Comparison]]] = {}
    for curves in shot_curves(find_blocks("shots")):
        by_labels = zip(curves.labels, curves.blocks, strict=True)
        found[curves.dataset] = {
            labels: compare_with("anchor", last_values(block), block.ratios) for labels, block in by_labels
        }
    return found


def anchor_curve() -> str:
    """ANCHOR by labels per new class, its difference from the best other method, and the methods with a higher mean."""
    ours, rows = rows_by_labels("shots"), []
    for graph, families in shot_families().items():
        rows.append([f"`{graph}`"])
        for labels, family in families.items():
            best = min(family.values(), key=lambda one: one.difference.mean)
            accuracy = summary(ours[graph, labels, "anchor"].last()).mean
            rows[-1].append(f"{accuracy:.1f} ({difference(best, star=True)})")
    head = ["last session, %", *map(labels_title, next(iter(shot_families().values())))]
    lines = [f"- {title}: {'; '.join(found) or 'none'}" for title, found in shot_verdicts().items()]
    return "\n".join([table(head, rows), "", *lines])


def shot_verdicts() -> dict[str, list[str]]:
    """Where ANCHOR is significantly ahead of all methods of the picture, and which methods have a higher mean."""
    ahead: list[str] = []
    behind: dict[str, list[str]] = {}
    above: dict[str, list[str]] = {}
    for graph, families in shot_families().items():
        won = [labels for labels, family in families.items() if all(one.ahead_after_holm for one in family.values())]
        ahead += [place(graph, *won)] if won else []
        for labels, family in families.items():
            for name, one in family.items():
                if round(one.difference.mean, 1) < 0:
                    group = behind if one.swapped.ahead_after_holm else above
                    group.setdefault(name, []).append(f"{place(graph, labels)} ({difference(one)})")
    return {
        f"`anchor` is significantly ahead of every method of the picture but `{UPPER}`": ahead,
        **{f"significantly behind `{name}`": found for name, found in sorted(behind.items())},
        **{f"a lower mean than `{name}`, not significant (Holm)": found for name, found in sorted(above.items())},
        "methods that are not in the picture with a higher accuracy (20 and 50 labels, seed 0)": others_above(),
        f"methods with a higher mean than `{UPPER}`, with all labels": above_joint(),
    }


def above_joint() -> list[str]:
    """Methods with a higher mean than ``joint`` where both see the same labels."""
    found = []
    for curves in shot_curves(find_blocks("shots")):
        upper = find_row(curves.blocks[-1], UPPER).last()
        for name, values in last_values(curves.blocks[-1]).items():
            gap = float(np.mean([values[seed] - accuracy for seed, accuracy in upper.items()]))
            if round(gap, 1) > 0:
                found.append(f"`{name}` on `{curves.dataset}` ({signed(gap)})")
    return found


def place(graph: str, *labels: str) -> str:
    return f"`{graph}`, {' and '.join(map(labels_title, labels))}"


def others_above() -> list[str]:
    """Methods that are not in the picture and have a higher accuracy than ANCHOR on the same stream."""
    ours = rows_by_labels("shots")
    found = []
    for (graph, labels, name), row in rows_by_labels("shots-others").items():
        anchor = ours[graph, labels, "anchor"].last()
        gap = float(np.mean([anchor[seed] - accuracy for seed, accuracy in row.last().items()]))
        if round(gap, 1) < 0:
            found.append(f"`{name}` on {place(graph, labels)} ({signed(gap)})")
    return found


def rows_by_labels(grid: str) -> dict[tuple[str, str, str], Row]:
    """(Graph, labels per new class, name) → row of a grid."""
    return {
        (curves.dataset, labels, row.name): row
        for curves in shot_curves(find_blocks(grid))
        for labels, block in zip(curves.labels, curves.blocks, strict=True)
        for row in block.rows
    }


def labels_title(labels: str) -> str:
    return f"{labels} label{'s' * (labels != '1')}"


def anchor_forty() -> str:
    """Forty sessions of one class: the methods, and ANCHOR minus each; Holm's family: these rows in one column."""
    (block,) = find_blocks("anchor-forty")
    accuracies = {row.name: dict(zip(row.results, row.sessions(), strict=True)) for row in block.rows}
    columns = {
        f"session {number}": {
            name: {seed: float(each[number]) for seed, each in found.items()} for name, found in accuracies.items()
        }
        for number in range(0, 41, 10)
    }
    columns["average"] = {row.name: row.values("average") for row in block.rows}
    families = [compare_with("anchor", values, block.ratios) for values in columns.values()]
    rows = [[f"`{name}`", *(value(summary(found[name])) for found in columns.values())] for name in accuracies]
    rows += [
        [f"`anchor` minus `{name}`", *(difference(each[name], star=True) for each in families)] for name in families[0]
    ]
    return table([f"`{block.dataset}`, %", *columns], rows)
