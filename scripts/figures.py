"""Write the generated parts of README and the docs: ``python -m scripts.figures``.

A page encloses such a part in ``<!-- figures: NAME ARGUMENTS -->`` and ``<!-- end -->``. NAME is a key of ``PARTS``. All
numbers come from ``results/`` and all comparisons from :mod:`graphfcl.report`; ``tests/docs/test_figures.py`` fails if a
page differs from what this script writes.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.measures import PairedDifference, SeedSummary, paired_difference
from graphfcl.methods import METHODS
from graphfcl.report.blocks import FORM, SIGNIFICANT, Block, Findings, Row, collect, summary

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PART = re.compile(r"(<!-- figures: ([^\n]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
GRAPHS = ("debian", "wordnet", "amazon-clothing-20", "cora-topics", "coauthor-cs")
HEADLINE = {"anchor": "this project", "sgc-ridge": "closed form", "lpmc": "2026", "ranpac": "2023", "hag-meta": "2022"}
FULL = "Proto-GNN + NLA + TLA + GPIL"  # HAG-Meta in its Table 3
STAR = "\\*"
CURRENT = 3  # protocol version
PART_TITLES = {
    "means not estimated again": "means not re-estimated (no EM)",
    "neighbours' classes not heard": "neighbours not used",
    "lengths not corrected": "lengths of means not corrected",
}


@cache
def stored(folder: str) -> Findings:
    return collect(ROOT / "results" / folder)


@cache
def read_csv(name: str) -> list[dict[str, str]]:
    with open(ROOT / "results" / name, newline="") as file:
        return list(csv.DictReader(file))


def find_block(grid: str, graph: str, folder: str = "bench", **protocol: Any) -> Block:
    """The block of a grid on a graph whose protocol has these values."""
    wanted = {"name": "strict", **protocol}
    (found,) = (
        block
        for block in stored(folder).blocks
        if block.grid.name == grid and block.dataset == graph and wanted.items() <= block.protocol.items()
    )
    return found


def find_row(block: Block, name: str) -> Row:
    return next(row for row in block.rows if row.name == name)


# Text


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


# Where figures come from


def version(source: str) -> str:
    """Under which protocol version an entry of ``results/sources.json`` was computed, if it is not the current one."""
    number = json.loads((ROOT / "results" / "sources.json").read_text())[source]["protocol_version"]
    return f"*These figures were computed under protocol version {number} and are being recomputed under version {CURRENT}.*"


def measured(name: str) -> str:
    """A table of ``results/measured.csv``: what was measured once, with where."""
    lines = [line for line in read_csv("measured.csv") if line["part"] == name]
    columns, rows = (list(dict.fromkeys(line[key] for line in lines)) for key in ("column", "row"))
    cells = {(line["row"], line["column"]): line["value"] for line in lines}
    about = [f"`{line['command']}`, {line['machine']}" for line in lines]
    text = table(["", *columns], [[row, *(cells.get((row, column), "") for column in columns)] for row in rows])
    return f"{text}\n\nMeasured once: {'; '.join(dict.fromkeys(about))}."


# Table 2


def headline() -> str:
    """Balanced accuracy after the last session of a few methods."""
    rows = []
    for name, about in HEADLINE.items():
        rows.append(
            [f"`{name}` ({about})", *(value(summary(find_row(block, name).last())) for block in table2_blocks())]
        )
    return table(["after the last session, %", *code(GRAPHS)], rows)


@cache
def table2_blocks() -> tuple[Block, ...]:
    return tuple(find_block("table2", graph, track="transductive") for graph in GRAPHS)


@cache
def table2_ranks() -> dict[str, float]:
    """Row without a mark → average rank, the best first."""
    ranks = stored("bench").ranks(table2_blocks()[0])
    return dict(sorted(ranks.items(), key=lambda item: item[1]))


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
def all_leads(block: Block) -> dict[str, dict[str, tuple[PairedDifference, float | None]]]:
    return block.leads("average")


def leads(block: Block, method: str) -> dict[str, tuple[PairedDifference, float | None]]:
    """Other row → method − row on the average over sessions, and its corrected p-value."""
    return all_leads(block)[method]


def differences(method: str) -> str:
    """A method minus every other, on the average over sessions."""
    blocks = table2_blocks()
    names = [name for name in table2_ranks() if name != method]
    rows = [[f"`{name}`", *(difference(*leads(block, method)[name]) for block in blocks)] for name in names]
    return table([f"`{method}` minus", *code(GRAPHS)], rows)


def is_ahead_of_all(block: Block, method: str) -> bool:
    """An intersection-union test: ahead of every row that sees the same labels, each with an uncorrected p < 0.05."""
    return all(
        found.mean > 0 and found.p_value is not None and found.p_value < SIGNIFICANT
        for found, _ in leads(block, method).values()
    )


def claim(method: str, *options: str) -> str:
    """Where a method is ahead of every row that sees the same labels, what it is tied with elsewhere, and `joint`.

    ``detail`` adds the differences and their corrected p-values.
    """
    blocks = table2_blocks()
    ahead = [block.dataset for block in blocks if is_ahead_of_all(block, method)]
    lines = [f"On the average over sessions `{method}` is ahead of every method that sees the same labels on"]
    lines[0] += f" {listed(code(ahead))}."
    for block in blocks:
        found = leads(block, method)
        better = [name for name, (lead, p) in found.items() if p is not None and p < SIGNIFICANT and lead.mean < 0]
        assert not better, (block.dataset, better)
        tied = {name: one for name, one in found.items() if one[1] is None or one[1] >= SIGNIFICANT}
        if tied and block.dataset not in ahead:
            names = [
                f"`{name}`" + (f" ({difference(lead)}, p = {p:.2f})" if "detail" in options else "")
                for name, (lead, p) in tied.items()
            ]
            lines.append(f"On `{block.dataset}` it is statistically tied with {listed(names)}.")
    gaps = [
        summary(find_row(block, "joint").last()).mean - summary(find_row(block, method).last()).mean for block in blocks
    ]
    assert min(gaps) > 0
    lines.append("The upper reference `joint`, which also sees the labels of the pool, ends")
    lines[-1] += f" {min(gaps):.1f} to {max(gaps):.1f} points above it."
    return "\n".join(lines)


def standings(method: str) -> str:
    """For every other method, on which graphs it is ahead of a method and behind it after Holm's correction."""
    names = [name for name in table2_ranks() if name != method]
    return table(
        ["", f"ahead of `{method}`", "behind it"], [[f"`{name}`", *significant(name, method)] for name in names]
    )


def significant(name: str, method: str) -> list[str]:
    """The graphs on which a row is significantly ahead of a method and behind it, with the differences."""
    ahead, behind = [], []
    for block in table2_blocks():
        found, p = leads(block, method)[name]
        if p is not None and p < SIGNIFICANT:
            (ahead if found.mean < 0 else behind).append(f"`{block.dataset}` {signed(-found.mean)}")
    return [", ".join(ahead), ", ".join(behind)]


def costs(graph: str) -> str:
    """Mean over seeds of the seconds of a run, and what it keeps."""
    block = find_block("table2", graph, track="transductive")
    reference = float(np.mean(find_row(block, "hag-meta").seconds()))
    found = [(float(np.mean(row.seconds())), row) for row in block.rows if FORM not in row.marks]
    rows = [
        [f"`{row.name}`", f"{seconds:.0f}", f"{seconds / reference:.2f}", f"{stored_megabytes(row):.1f}"]
        for seconds, row in sorted(found, key=lambda pair: pair[0])
    ]
    return table(["", "seconds", "× `hag-meta`", "kept between sessions, MB"], rows)


def stored_megabytes(row: Row) -> float:
    return float(np.mean([result["stored_bytes"] for result in row.results.values()])) / 1e6


def open_track() -> str:
    """The last session under the track ``open``."""
    blocks = [find_block("peers-tracks", graph, track="open") for graph in GRAPHS]
    names = sorted(
        (row.name for row in blocks[0].rows), key=lambda name: -summary(find_row(blocks[0], name).last()).mean
    )
    rows = [[f"`{name}`", *(f"{summary(find_row(b, name).last()).mean:.1f}" for b in blocks)] for name in names]
    return table(["last session, %", *code(GRAPHS)], rows)


def published() -> str:
    """What later methods claim."""
    keys = ("venue", "where", "published", "over HAG-Meta as claimed", "source")
    rows = [
        [f"{', '.join(code(line['method'].split(', ')))}", *map(line.get, keys)] for line in read_csv("published.csv")
    ]
    return table(["method", *keys], rows)


def peers() -> str:
    """Later methods minus HAG-Meta: the range at the last session, and where the difference is significant."""
    blocks = table2_blocks()
    names = dict.fromkeys(name for line in read_csv("published.csv") for name in line["method"].split(", "))
    rows = []
    for name in names:
        last = [
            summary(find_row(block, name).last()).mean - summary(find_row(block, "hag-meta").last()).mean
            for block in blocks
        ]
        rows.append([f"`{name}`", f"{signed(min(last))} to {signed(max(last))}", *significant(name, "hag-meta")])
    return table(["", "last session", "ahead", "behind"], rows)


# ANCHOR


def anchor_results() -> str:
    blocks = table2_blocks()
    ours = [find_row(block, "anchor") for block in blocks]
    upper = [find_row(block, "joint") for block in blocks]
    start = [[f"{np.mean(row.sessions()[:, 0]):.1f}" for row in rows] for rows in (ours, upper)]
    rows = [
        ["session 0", *start[0]],
        ["session 0 of `joint`", *start[1]],
        ["last session", *(value(summary(row.last())) for row in ours)],
        ["last session: session-0 classes", *(f"{summary(row.last('base')).mean:.1f}" for row in ours)],
        ["last session: new classes", *(f"{summary(row.last('novel')).mean:.1f}" for row in ours)],
        ["session-0 classes of `joint`", *(f"{summary(row.last('base')).mean:.1f}" for row in upper)],
        ["new classes of `joint`", *(f"{summary(row.last('novel')).mean:.1f}" for row in upper)],
        ["MB kept", *(f"{stored_megabytes(row):.1f}" for row in ours)],
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
    for chosen in sorted(set().union(*found), key=lambda one: -sum(counter[one] for counter in found)):
        named = dict(chosen)
        smooth = f"smoothing {named['smoothing']} × {named['smoothing_steps']}" if named["smoothing"] else ""
        links = f"links {named['links']}" if named["links"] else ""
        title = ", ".join(filter(None, [f"weight {named['hop_weight']:g}, {named['hops']} hops", smooth, links]))
        rows.append([title, *(str(counter[chosen] or "") for counter in found)])
    return table(["chosen, number of seeds", *code(GRAPHS)], rows)


def grid_values(grid: str, graph: str, row: str, **rules: Any) -> dict[str, float]:
    """Seed → balanced accuracy of the last session, from ``anchor_grids.csv``."""
    return {
        line["seed"]: float(line["last_session"])
        for line in read_csv("anchor_grids.csv")
        if (line["grid"], line["dataset"], line["row"]) == (grid, graph, row)
        and rules.items() <= json.loads(line["rules"] or "{}").items()
    }


def anchor_parts() -> str:
    """What each part of ANCHOR is worth at the last session."""
    names = list(dict.fromkeys(line["row"] for line in read_csv("anchor_grids.csv") if line["grid"] == "anchor-parts"))
    rows = [["`anchor`", *(f"{np.mean([*grid_values('anchor-parts', g, 'anchor').values()]):.1f}" for g in GRAPHS)]]
    for name in names:
        if name != "anchor":
            cells = []
            for graph in GRAPHS:
                whole, part = (grid_values("anchor-parts", graph, one) for one in ("anchor", name))
                cells.append(difference(paired_difference([part[s] for s in whole], list(whole.values()))))
            rows.append([PART_TITLES.get(name, name), *cells])
    return table(["last session, %", *code(GRAPHS)], rows)


def anchor_settings() -> str:
    """Other numbers of shots and sessions: ANCHOR and HAG-Meta at the last session."""
    kinds: list[tuple[str, str, str, dict[str, Any]]] = [
        ("1-way 1-shot", graph, "anchor-shots", {"way": 1, "shot": 1}) for graph in ("debian", "cora-topics")
    ]
    kinds += [("1-way 20-shot", graph, "anchor-shots", {"way": 1, "shot": 20}) for graph in ("debian", "cora-topics")]
    kinds += [("forty 1-way 5-shot sessions", "cora-topics", "anchor-forty", {})]
    rows = []
    for title, graph, grid, rules in kinds:
        found = [list(grid_values(grid, graph, name, **rules).values()) for name in ("anchor", "hag-meta")]
        rows.append([title, f"`{graph}`", str(len(found[0])), *(f"{np.mean(one):.1f}" for one in found)])
    return table(["stream", "graph", "seeds", "`anchor`, %", "`hag-meta`, %"], rows)


# HAG-Meta


def ablation() -> str:
    """Rows of Table 3 minus all three parts, on the average over sessions."""
    graphs = ("debian", "cora-topics", "amazon-clothing-20")
    blocks = [find_block("table3", graph, "rules-1") for graph in graphs]
    rows = [[f"{FULL} (HAG-Meta)", *(value(summary(find_row(block, FULL).values("average"))) for block in blocks)]]
    ranges: dict[bool, list[float]] = {True: [], False: []}
    for name in (row.name for row in blocks[0].rows if row.name != FULL):
        found = [all_leads(block)[name][FULL] for block in blocks]
        rows.append([name, *(difference(*one) for one in found)])
        ranges["GPIL" in name] += [one.mean for one, _ in found]
    without, other = ("{} to {}".format(*(signed(f(ranges[key])) for f in (min, max))) for key in (False, True))
    text = f"Rows without GPIL differ by {without} points, rows with GPIL but without NLA or TLA by {other}."
    return f"{table(['average over sessions, %', *code(graphs)], rows)}\n\n{text}"


# The classifier


def answers() -> str:
    """How far probabilities, sets and unknown scores can be trusted: session-0 classes, then classes learned later."""

    def mean(graph: str | None, column: str, sessions: Iterable[int] = range(4)) -> float:
        lines = [line for line in read_csv("answers.csv") if graph in (None, line["dataset"])]
        # Four lines a run: session 0, the middle one, the last but one, the last.
        found = [line[column] for number, line in enumerate(lines) if number % 4 in sessions]
        return float(np.mean([float(text) for text in found if text]))

    def pair(graph: str | None, column: str, scale: float = 100, digits: int = 0) -> str:
        return ", ".join(f"{scale * mean(graph, f'{kind} {column}'):.{digits}f}" for kind in ("base", "novel"))

    rows = []
    for graph in (*GRAPHS, None):
        auroc = " / ".join(f"{mean(graph, 'AUROC', [number]):.2f}" for number in range(3))
        cells = [auroc, f"{100 * mean(graph, 'flagged'):.0f}", pair(graph, "called known")]
        cells += [pair(graph, "calibration error", digits=1), pair(graph, "answers calibration error", digits=1)]
        cells += [pair(graph, "coverage"), pair(graph, "set size", 1, 1)]
        rows.append([f"`{graph}`" if graph else "mean", *cells])
    head = ["", "AUROC", "flagged, %", "called known, %", "calibration error by true class", "by predicted class"]
    return table([*head, "coverage, %", "classes in a set"], rows)


def groups() -> str:
    """Purity of the five tightest groups of unknown nodes, and what a class named by one of them finds."""
    rows: dict[str, list[str]] = {
        name: [name]
        for name in (
            "mean purity, %",
            "purity of the least pure group, %",
            "estimated purity, %",
            "different classes among the five",
            "recall of a class named by its group, %",
        )
    }
    for graph in GRAPHS:
        lines = [line for line in read_csv("groups.csv") if line["dataset"] == graph]
        purity = [100 * float(line["purity"]) for line in lines]
        runs = {line["seed"] for line in lines}
        classes = [len({line["class"] for line in lines if line["seed"] == seed}) for seed in runs]
        recall = [100 * float(line["recall when named"]) for line in lines if line["recall when named"]]
        estimated = [100 * float(line["sure"]) for line in lines]
        found = (np.mean(purity), min(purity), np.mean(estimated), np.mean(classes), np.mean(recall))
        for row, number, digits in zip(rows.values(), found, (1, 0, 1, 1, 0), strict=True):
            row.append(f"{number:.{digits}f}")
    return table(["", *code(GRAPHS)], rows.values())


def strategies(method: str) -> str:
    """Balanced accuracy with 60 % of the labels and with all, and novel classes found, for each strategy."""
    blocks = [find_block("asked", graph, "asked") for graph in GRAPHS]
    names = [row.name for row in blocks[0].rows if row.name.startswith(f"{method}, ")]
    names.sort(key=lambda name: -summary(find_row(blocks[0], name).values("balanced_at_all")).mean)
    rows = []
    for name in names:
        oracle = " (needs an oracle)" if "needs an oracle" in find_row(blocks[0], name).marks else ""
        cells = []
        for block in blocks:
            found = [
                summary(find_row(block, name).values(key)).mean
                for key in ("balanced_at_60", "balanced_at_all", "classes_found")
            ]
            cells.append(f"{found[0]:.1f} / {found[1]:.1f}, {found[2]:.0f}")
        rows.append([f"`{name.removeprefix(f'{method}, ')}`{oracle}", *cells])
    return table([f"`{method}`", *code(GRAPHS)], rows)


def candidates() -> str:
    """The steps and rates that validation sessions choose from, as the settings of each method say."""
    found: dict[str, list[str]] = {}
    for method in METHODS:
        settings = method.settings_with({})
        if hasattr(settings, "fine_tuning"):
            text = ", ".join(f"{steps} × {rate:g}" for steps, rate in settings.fine_tuning)
            found.setdefault(text, []).append(method.name)
    return table(
        ["besides no steps, steps × rate", "methods"], [[text, ", ".join(code(found[text]))] for text in found]
    )


PARTS: dict[str, Callable[..., str]] = {
    "version": version,
    "measured": measured,
    "headline": headline,
    "table2": table2,
    "differences": differences,
    "claim": claim,
    "standings": standings,
    "costs": costs,
    "open-track": open_track,
    "published": published,
    "peers": peers,
    "anchor-results": anchor_results,
    "anchor-choices": anchor_choices,
    "anchor-parts": anchor_parts,
    "anchor-settings": anchor_settings,
    "ablation": ablation,
    "answers": answers,
    "groups": groups,
    "strategies": strategies,
    "candidates": candidates,
}


def with_figures(text: str) -> str:
    """A page with its generated parts as they should be."""
    return PART.sub(lambda found: f"{found[1]}\n{generated(found[2])}\n\n{found[3]}", text)


@cache
def generated(words: str) -> str:
    name, *arguments = words.split()
    return PARTS[name](*arguments)


def main() -> None:
    for path in PAGES:
        text = path.read_text()
        if with_figures(text) != text:
            path.write_text(with_figures(text))
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
