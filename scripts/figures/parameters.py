"""The parameter study of the paper: HAG-Meta and CEC for several N and K, and what more labels change."""

from collections.abc import Mapping
from functools import cache
from itertools import pairwise

import numpy as np

from graphfcl.report import Block, Comparison
from scripts.figures.ablation import against_zero
from scripts.figures.reading import find_blocks, find_row
from scripts.figures.texts import difference, table

METHODS = ("hag-meta", "cec")


@cache
def settings(protocol: str = "strict") -> dict[str, dict[tuple[int, int], Block]]:
    """Graph → (N, K) → block of the sweep."""
    found: dict[str, dict[tuple[int, int], Block]] = {}
    for block in find_blocks("sweep", protocol):
        found.setdefault(block.dataset, {})[block.protocol["way"], block.protocol["shot"]] = block
    return found


def ratios(blocks: Mapping[tuple[int, int], Block]) -> dict[int, float]:
    """The largest n_test/n_train of the settings for each seed, which gives the widest interval."""
    seeds = set.intersection(*(set(block.ratios) for block in blocks.values()))
    return {seed: max(block.ratios[seed] for block in blocks.values()) for seed in seeds}


def averages(block: Block, name: str) -> dict[int, float]:
    return find_row(block, name).values("average")


def leads(blocks: Mapping[tuple[int, int], Block]) -> dict[tuple[int, int], Comparison]:
    """(N, K) → HAG-Meta minus CEC, on the average over sessions; Holm's family: all settings on one graph."""
    effects = {}
    for place, block in blocks.items():
        ours, theirs = (averages(block, name) for name in METHODS)
        effects[str(place)] = {seed: ours[seed] - theirs[seed] for seed in sorted(set(ours) & set(theirs))}
    found = against_zero(effects, ratios(blocks))
    return {place: found[str(place)] for place in blocks}


def gains(blocks: Mapping[tuple[int, int], Block], name: str) -> dict[tuple[int, int], Comparison]:
    """(K, next K) → what the larger K adds to the average over sessions, as a mean over N.

    The last entry is from the smallest to the largest K. Holm's family: these entries, for one method and graph.
    """
    ways, shots = (sorted(set(numbers)) for numbers in zip(*blocks, strict=True))
    by_shot = {
        shot: {
            seed: float(np.mean([averages(blocks[way, shot], name)[seed] for way in ways])) for seed in ratios(blocks)
        }
        for shot in shots
    }
    steps = [*pairwise(shots), (shots[0], shots[-1])]
    effects = {
        str(step): {seed: by_shot[step[1]][seed] - by_shot[step[0]][seed] for seed in ratios(blocks)} for step in steps
    }
    found = against_zero(effects, ratios(blocks))
    return {step: found[str(step)] for step in steps}


def lead_table() -> str:
    """HAG-Meta minus CEC for each N (rows) and K (columns) on each graph."""
    rows, shots = [], []
    for graph, blocks in settings().items():
        found = leads(blocks)
        ways, shots = (sorted(set(numbers)) for numbers in zip(*blocks, strict=True))
        for way in ways:
            rows.append([f"`{graph}`", str(way), *(difference(found[way, shot], star=True) for shot in shots)])
    return table(["`hag-meta` minus `cec`, average over sessions", "N", *(f"K = {shot}" for shot in shots)], rows)


def gain_table() -> str:
    """What more labels per new class add to each method."""
    found = {(name, graph): gains(blocks, name) for name in METHODS for graph, blocks in settings().items()}
    steps = list(next(iter(found.values())))
    rows = [
        [f"K = {more} minus K = {less}", *(difference(each[less, more], star=True) for each in found.values())]
        for less, more in steps
    ]
    return table(["average over sessions, mean over N", *(f"`{name}`, `{graph}`" for name, graph in found)], rows)
