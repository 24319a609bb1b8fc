"""HAG-Meta's parts, as in the paper's Table 3: what each of them adds, and what the paper prints."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np

from graphfcl.report import Block, Comparison, compare_with, paper_tables, summary
from scripts.figures.reading import find_blocks, find_row
from scripts.figures.texts import code, difference, listed, signed, table, value

PARTS = ("GPIL", "NLA", "TLA")
FULL = "Proto-GNN + NLA + TLA + GPIL"  # HAG-Meta
NLA_ALONE, TLA_ALONE = "Proto-GNN + NLA", "Proto-GNN + TLA"
HALVES = ("first half of the sessions", "second half", "PD")
WIDE, PRINTED_WIDTHS = "hag-meta", "hag-meta, as printed"


def blocks(protocol: str) -> tuple[Block, ...]:
    return find_blocks("table3", protocol)


def against_zero(effects: Mapping[str, Mapping[int, float]], ratios: Mapping[int, float]) -> dict[str, Comparison]:
    """Effects (name → seed → points) against zero, in one family of Holm's correction."""
    seeds = set().union(*effects.values())
    negative = {name: {seed: -points for seed, points in each.items()} for name, each in effects.items()}
    return compare_with("zero", {"zero": dict.fromkeys(seeds, 0.0), **negative}, ratios)


def part_effects(block: Block) -> dict[str, Comparison]:
    """Part → mean of the four rows with it minus mean of the four rows without it, on the average over sessions.

    The other two parts are the same on both sides. Holm's family: the three parts on one graph.
    """
    averages = {row.name: row.values("average") for row in block.rows}
    return against_zero({part: _effect(averages, part) for part in PARTS}, block.ratios)


def _effect(averages: Mapping[str, Mapping[int, float]], part: str) -> dict[int, float]:
    seeds = set.intersection(*(set(values) for values in averages.values()))

    def mean(seed: int, *, present: bool) -> float:
        return float(np.mean([values[seed] for name, values in averages.items() if (part in name) is present]))

    return {seed: mean(seed, present=True) - mean(seed, present=False) for seed in sorted(seeds)}


def printed_effects() -> dict[str, float]:
    """Part → its effect in the paper's Table 3 (Amazon-Clothing, one number for each row)."""
    printed = {name: {0: float(np.mean(row["accuracy"]))} for name, row in paper_tables()["table3"].items()}
    return {part: _effect(printed, part)[0] for part in PARTS}


def full_leads(block: Block) -> dict[str, Comparison]:
    """Other row → HAG-Meta minus it, on the average over sessions; Holm's family: these seven on one graph."""
    return compare_with(FULL, {row.name: row.values("average") for row in block.rows}, block.ratios)


def printed_leads() -> list[float]:
    """HAG-Meta minus each other row of the paper's Table 3."""
    means = {name: float(np.mean(row["accuracy"])) for name, row in paper_tables()["table3"].items()}
    return [means[FULL] - mean for name, mean in means.items() if name != FULL]


def nla_minus_tla(block: Block) -> dict[str, Comparison]:
    """NLA alone minus TLA alone in both halves of the sessions, and in PD; Holm's family: these three."""
    rows = [find_row(block, name) for name in (NLA_ALONE, TLA_ALONE)]
    seeds = sorted(set(rows[0].results) & set(rows[1].results))
    sessions = [dict(zip(row.results, row.sessions(), strict=True)) for row in rows]
    found = {seed: halves(sessions[0][seed], sessions[1][seed]) for seed in seeds}
    return against_zero({name: {seed: found[seed][name] for seed in seeds} for name in HALVES}, block.ratios)


def halves(first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray) -> dict[str, float]:
    """One curve minus another: mean of the first half of sessions, of the second half, and PD."""
    gap = np.asarray(first) - np.asarray(second)
    middle = (len(gap) + 1) // 2
    return dict(zip(HALVES, map(float, (gap[:middle].mean(), gap[middle:].mean(), gap[0] - gap[-1])), strict=True))


def printed_halves() -> dict[str, float]:
    rows = paper_tables()["table3"]
    return halves(rows[NLA_ALONE]["accuracy"], rows[TLA_ALONE]["accuracy"])


def wider() -> dict[str, Comparison]:
    """Graph → HAG-Meta with the widths 256 and 128 minus HAG-Meta with the printed ones, on the average."""
    found = {}
    for block in find_blocks("table2", track="transductive"):
        figures = {name: find_row(block, name).values("average") for name in (WIDE, PRINTED_WIDTHS)}
        found[block.dataset] = compare_with(WIDE, figures, block.ratios)[PRINTED_WIDTHS]
    return found


def paper_minus_strict(method: str) -> dict[str, Comparison]:
    """Graph → average over sessions of a method under ``paper`` minus that under ``strict``, on the seeds of both."""
    found = {}
    for pair in zip(*(find_blocks("table2", name, track="transductive") for name in ("paper", "strict")), strict=True):
        paper, strict = (find_row(block, method).values("average") for block in pair)
        compared = compare_with("paper", {"paper": paper, "strict": strict}, pair[0].ratios)
        found[pair[0].dataset] = compared["strict"]
    return found


def ablation(protocol: str) -> str:
    """Rows of Table 3 minus all three parts, on the average over sessions."""
    found = blocks(protocol)
    rows = [[f"{FULL} (HAG-Meta)", *(value(summary(find_row(block, FULL).values("average"))) for block in found)]]
    leads = [full_leads(block) for block in found]
    rows += [[name, *(difference(each[name].swapped, star=True) for each in leads)] for name in leads[0]]
    return table([f"average over sessions, `{protocol}`, %", *code(block.dataset for block in found)], rows)


def parts(protocol: str) -> str:
    """What each part adds, beside the same figure of the paper's Table 3."""
    found = [part_effects(block) for block in blocks(protocol)]
    printed = printed_effects()
    rows = [[part, *(difference(each[part], star=True) for each in found), signed(printed[part])] for part in PARTS]
    names = code(block.dataset for block in blocks(protocol))
    return table([f"rows with it minus rows without it, `{protocol}`", *names, "as printed"], rows)


def nla_against_tla(protocol: str) -> str:
    """NLA alone minus TLA alone early and late, beside the same figures of the paper."""
    found = [nla_minus_tla(block) for block in blocks(protocol)]
    printed = printed_halves()
    rows = [[name, *(difference(each[name], star=True) for each in found), signed(printed[name])] for name in HALVES]
    names = code(block.dataset for block in blocks(protocol))
    return table([f"NLA alone minus TLA alone, `{protocol}`", *names, "as printed"], rows)


def what_helped() -> str:
    """One paragraph: GPIL, NLA, TLA, wider layers, query labels, with the graphs on which each changes the accuracy."""
    effects = {block.dataset: part_effects(block) for block in blocks("strict")}
    sentences = [effect_sentence(part, {graph: each[part] for graph, each in effects.items()}) for part in PARTS]
    sentences.append(effect_sentence("An encoder of widths 256 and 128 instead of 32 and 16", wider()))
    labels = "The protocol `paper`, with a gradient step on query labels and evaluation on sampled queries,"
    sentences.append(effect_sentence(labels, paper_minus_strict(WIDE)))
    return textwrap.fill(" ".join(sentences), 120, break_on_hyphens=False)


def effect_sentence(subject: str, effects: Mapping[str, Comparison]) -> str:
    """State on which graphs something changes the average over sessions significantly, and the range of the effects."""
    parts, left = [], set(effects)
    for verb, holds in (
        ("raises", lambda one: one.ahead_after_holm),
        ("lowers", lambda one: one.swapped.ahead_after_holm),
    ):
        graphs = [graph for graph, one in effects.items() if holds(one)]
        if graphs:
            left -= set(graphs)
            points = effect_range([effects[graph] for graph in graphs])
            parts.append(f"{verb} the average over sessions {where(graphs, effects)} ({points})")
    if left:
        graphs = [graph for graph in effects if graph in left]
        points = effect_range([effects[graph] for graph in graphs])
        nowhere = "on any graph" if len(graphs) == len(effects) else where(graphs, effects)
        parts.append(f"has no significant effect {nowhere} ({points})")
    return f"{subject} {listed(parts)}."


def where(graphs: Sequence[str], effects: Mapping[str, Comparison]) -> str:
    if len(graphs) == len(effects) > 1:
        return f"significantly on all {len(graphs)} graphs"
    return f"on {listed([f'`{graph}`' for graph in graphs])}"


def effect_range(found: Sequence[Comparison]) -> str:
    """The smallest and the largest mean effect, in points."""
    ends = [signed(each([one.difference.mean for one in found])) for each in (min, max)]
    return f"{' to '.join(dict.fromkeys(ends))} points"
