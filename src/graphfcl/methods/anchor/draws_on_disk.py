"""Posteriors of all nodes for several draws of validation sessions, side by side in one table.

Column d C + c of it is class c in draw d, so that one pass over the edges serves all draws.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from graphfcl.methods.anchor.class_sums import logits_of
from graphfcl.methods.anchor.frame_on_disk import Blocks, frame_arrays, points_of_block
from graphfcl.methods.anchor.neighbours import LINK_ITERATIONS, adding_to_one, link_ratios
from graphfcl.methods.anchor.rounds_on_disk import links_between, near_posteriors
from graphfcl.methods.anchor.settings import Neighbourhood
from graphfcl.methods.blocks.folder_inputs import FolderInputs
from graphfcl.methods.blocks.row_phases import RowBlock
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.learner import Tensors

LEAST = 1e-30  # probability of which a logarithm is taken


@dataclass(frozen=True, eq=False)
class Draws:
    """directions: (draws, C, D) μ_c/ℓ_c. counts: (draws, C) labels of each class."""

    directions: torch.Tensor
    counts: torch.Tensor
    temperature: float

    @property
    def each(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Directions and counts of one draw after the other."""
        return zip(self.directions, self.counts, strict=True)


def posterior_table(inputs: FolderInputs, blocks: Blocks, frame: Tensors, draws: Draws) -> StoredTable:
    """(n, draws · C) P₀ by the nodes' own vectors; x is made on the way and not stored."""
    given = {"directions": draws.directions.numpy(), "counts": draws.counts.numpy()}
    return inputs.rows.table(
        "posterior",
        _posteriors,
        draws.counts.numel(),
        tables=blocks.named,
        given={**frame_arrays(frame), **given},
        before=blocks.make,
        temperature=draws.temperature,
        **blocks.values,
    )


def heard(inputs: FolderInputs, first: StoredTable, draws: Draws, how: Neighbourhood) -> StoredTable:
    """(n, draws · C) what neighbours make of P₀ in each draw; rows need not add up to 1. ``first`` stays."""
    if not how.links > 0:
        return inputs.smoothed(first, how.smoothing, how.smoothing_steps)
    found, count = first, len(draws.counts)
    for _ in range(LINK_ITERATIONS):
        near = near_posteriors(inputs, found)
        parts = [link_ratios(part) for part in _diagonal(links_between(inputs, found, near), count)]
        before, tables = found, {"first": first, "near": near}
        given = {"ratios": torch.block_diag(*parts).numpy()}
        found = _table(inputs, "heard", _heard, tables, draws, given=given, weight=how.links)
        _remove(near, before, keep=first)
        if how.smoothing > 0:
            before, smoothed = found, inputs.smoothed(found, how.smoothing, how.smoothing_steps)
            found = _table(inputs, "normalised", _normalised, {"posterior": smoothed}, draws)
            _remove(before, smoothed, keep=first)
    return found


def _remove(*tables: StoredTable, keep: StoredTable) -> None:
    for table in tables:
        table.remove(unless=keep)


def _table(
    inputs: FolderInputs, phase: str, function: Any, tables: dict[str, StoredTable], draws: Draws, **values: Any
) -> StoredTable:
    return inputs.rows.table(phase, function, draws.counts.numel(), tables=tables, draws=len(draws.counts), **values)


def _diagonal(links: torch.Tensor, count: int) -> list[torch.Tensor]:
    """The (C, C) parts of (draws · C, draws · C) within the draws."""
    size = len(links) // count
    return [links[at : at + size, at : at + size] for at in range(0, len(links), size)]


def _posteriors(block: RowBlock) -> torch.Tensor:
    points, temperature = points_of_block(block), block.values["temperature"]
    draws = zip(block.given["directions"], block.given["counts"], strict=True)
    return torch.cat([torch.softmax(logits_of(points, *each, temperature), dim=1) for each in draws], dim=1)


def _heard(block: RowBlock) -> torch.Tensor:
    """softmax(log P₀ + β · evidence): log P₀ are the logits but for a number that all classes of a node share."""
    evidence = block.values["weight"] * (block.rows("near") @ block.given["ratios"].T)
    logits = torch.log(block.rows("first").clamp(min=LEAST)) + evidence
    return torch.softmax(logits.unflatten(1, (block.values["draws"], -1)), dim=2).flatten(1)


def _normalised(block: RowBlock) -> torch.Tensor:
    of_draws = block.rows("posterior").unflatten(1, (block.values["draws"], -1))
    return adding_to_one(of_draws.flatten(0, 1)).reshape(len(of_draws), -1)
