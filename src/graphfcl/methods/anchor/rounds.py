"""The rounds over the visible graph: posteriors of all nodes move the means, and neighbours change the posteriors.

**Smoothing** assumes that neighbours have similar classes: P ← s ÂP + (1 − s) P₀.

**Links** only assume that each class links to other classes in characteristic proportions, as in a stochastic block
model. The proportions are smoothed with κ pseudo-links, of which a fraction h stays within the class. With the
posteriors P and the adjacency A, the link counts F and the proportions Θ of class c are::

    F = Pᵀ A P,   π_c' = Σ_c F_cc' / ΣF,   Θ_cc' = (F_cc' + κ((1 − h) π_c' + h [c = c'])) / (Σ F_c + κ)

The neighbours of v add  β max(d_v, 1)^(−1/2) Σ_u A_vu Σ_c' P_uc' log(Θ_cc' / π_c')  to the logit of c. Neighbours are
not independent of each other, so their evidence grows with the square root of their number.

Several draws of validation sessions can lie side by side in one table: column d C + c is class c in draw d. One pass
over the edges then serves all draws.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.head import mix_with_head
from graphfcl.methods.anchor.metric import directions_of, logits_of, probabilities, products_with
from graphfcl.methods.anchor.ridge import RidgeSums, shares_of, with_ridge
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.blocks import NodeTables, RowBlock, Table
from graphfcl.methods.state import Tensors

PRIOR_LINKS = 50.0  # κ: number of pseudo-links
EXPECTED_HOMOPHILY = 0.3  # h: fraction of pseudo-links that stay within the class
LINK_ITERATIONS = 2  # iterations of counting links and updating posteriors


@dataclass(frozen=True, eq=False)
class Rounds:
    """The result of the rounds for one graph and one state of the sums.

    Args:
        x: (n, D) table of x.
        directions: (C, D) Aμ_c/(ℓ_c √q).
        counts: (C,) number of labels.
        temperature: T.
        posterior: (n, C) table of posteriors, whose rows need not sum to 1; None if neighbours are not used.
        ratios: (C, C) log(Θ_cc' / π_c') from these posteriors; None unless explanations need it.
    """

    x: Table
    directions: torch.Tensor
    counts: torch.Tensor
    temperature: float
    posterior: Table | None
    ratios: torch.Tensor | None = None

    def posteriors_at(self, rows: np.ndarray) -> torch.Tensor:
        """Read the (m, C) posteriors of some rows."""
        if self.posterior is None:
            return self.own_at(rows)
        return adding_to_one(self.posterior.rows_at(rows))

    def own_at(self, rows: np.ndarray) -> torch.Tensor:
        """Compute the (m, C) posteriors of some rows from their own vectors, before smoothing."""
        return probabilities(logits_of(self.x.rows_at(rows), self.directions, self.counts, self.temperature))

    def with_ratios(self, tables: NodeTables) -> "Rounds":
        """Return a copy with ``ratios``, which take a pass over the graph."""
        assert self.posterior is not None
        near = tables.linked(self.posterior)
        ratios = link_ratios(links_between(tables, self.posterior, near))
        near.remove()
        return replace(self, ratios=ratios)

    def remove(self) -> None:
        """Delete the table of posteriors."""
        if self.posterior is not None:
            self.posterior.remove()


def run_rounds(tables: NodeTables, x: Table, anchors: Anchors, how: Neighbourhood, settings: AnchorSettings) -> Rounds:
    """Alternate between posteriors of all visible nodes and class means that include these nodes.

    There are ``settings.rounds`` rounds. A class without a label has the posterior 0.
    """
    counts, temperature = anchors.counts, settings.temperature

    def posteriors(directions: torch.Tensor, before: Table | None) -> Table | None:
        if not how.uses_posteriors:
            return None
        tensors, read = {"directions": directions, "counts": counts}, {"x": x}
        logits = tables.table(
            "logits", _logits_of_block, len(counts), tables=read, tensors=tensors, temperature=temperature
        )
        return with_neighbours(tables, logits, how, before=before, last_use=True)

    directions = anchors.directions(settings)
    posterior = posteriors(directions, None)
    for _ in range(settings.rounds):
        read = {"x": x} if posterior is None else {"x": x, "posterior": posterior}
        tensors = {"directions": directions, "counts": counts}
        sums = tables.sums("rounds", _round_sums, tables=read, tensors=tensors, temperature=temperature)
        directions = directions_of(*anchors.moved(sums["sums"], sums["total"], settings), anchors.metric, settings)
        before, posterior = posterior, posteriors(directions, posterior)
        if before is not None:
            before.remove(unless=posterior)
    return Rounds(x, directions, counts, temperature, posterior)


def with_neighbours(
    tables: NodeTables,
    logits: Table,
    how: Neighbourhood,
    *,
    draws: int = 1,
    before: Table | None = None,
    last_use: bool = False,
) -> Table:
    """Compute (n, draws · C) posteriors from the logits of the nodes' own vectors and from neighbours.

    Rows need not sum to 1.

    Args:
        tables: The tables of the graph.
        logits: (n, draws · C) logits.
        how: How neighbours are used.
        draws: Number of draws side by side.
        before: Posteriors from which links are counted in the first iteration; by default the softmax of the logits.
        last_use: Whether the logits are not needed afterwards.
    """
    width, read = logits.columns, {"logits": logits}
    if not how.links > 0:
        done = ("logits",) * last_use
        first = tables.table("posterior", _softmax, width, tables=read, last_use=done, draws=draws)
        return tables.smoothed(first, how.smoothing, how.smoothing_steps, last_use=True)
    posterior = tables.table("posterior", _softmax, width, tables=read, draws=draws) if before is None else before
    for iteration in range(LINK_ITERATIONS):
        near = tables.linked(posterior)
        ratios = [link_ratios(part) for part in _diagonal(links_between(tables, posterior, near), draws)]
        if posterior is not before:
            posterior.remove()
        done = ("near", "logits") if last_use and iteration + 1 == LINK_ITERATIONS else ("near",)
        read, tensors = {"logits": logits, "near": near}, {"ratios": torch.block_diag(*ratios)}
        values: dict[str, Any] = {"last_use": done, "draws": draws, "weight": how.links}
        posterior = tables.table("linked", _with_links, width, tables=read, tensors=tensors, **values)
        if how.smoothing > 0:
            smooth = tables.smoothed(posterior, how.smoothing, how.smoothing_steps, last_use=True)
            read, done = {"posterior": smooth}, ("posterior",)
            posterior = tables.table("normalised", _normalised, width, tables=read, last_use=done, draws=draws)
    return posterior


def score_table(
    tables: NodeTables, rounds: Rounds, anchors: Anchors, answering: Tensors, settings: AnchorSettings
) -> Table:
    """Compute (n, C) log-probabilities, plus the log-sum-exp of the logits.

    For the log-sum-exp, logits come from the class sums alone. It is the same for all classes of a node, so it changes
    no probability. It detects nodes of unknown classes, which the rounds would hide. ``answering`` are the tensors for
    :func:`answers`.
    """
    tensors = {"directions": rounds.directions, "by sums": anchors.directions(settings), **answering}
    read = {"x": rounds.x} if rounds.posterior is None else {"x": rounds.x, "posterior": rounds.posterior}
    values: dict[str, Any] = {"temperature": settings.temperature, "share": settings.head_share}
    return tables.table("scores", _scores, len(anchors.counts), tables=read, tensors=tensors, **values)


def answer_tensors(anchors: Anchors, ridge: RidgeSums, head: torch.Tensor, settings: AnchorSettings) -> Tensors:
    """Return the tensors for :func:`answers`."""
    shares = shares_of(anchors.counts, settings)
    tensors = {"counts": anchors.counts, "ridge": ridge.weights(anchors, settings), "shares": shares}
    return {**tensors, "head": head} if len(head) else tensors


def answers(posterior: torch.Tensor, points: torch.Tensor, tensors: Tensors, share: float) -> torch.Tensor:
    """Combine the (n, C) posterior of the rounds with the head and the ridge regression.

    ``points`` are (n, D) x, and ``share`` is the weight γ of the head.
    """
    if "head" in tensors:
        posterior = mix_with_head(posterior, points, tensors["head"], share)
    ridge = products_with(points, tensors["ridge"], 1.0)
    return with_ridge(posterior, ridge, tensors["shares"], tensors["counts"])


def adding_to_one(posterior: torch.Tensor) -> torch.Tensor:
    """Scale rows to sum to 1."""
    return posterior / posterior.sum(dim=1, keepdim=True).clamp(min=1e-12)


def links_between(tables: NodeTables, posterior: Table, near: Table) -> torch.Tensor:
    """Compute (C, C) F = Pᵀ A P in 32 bits. ``near`` is d^(−1/2) A P."""
    read = {"posterior": posterior, "near": near, "roots": tables.link_roots()}
    return tables.sums("links", _links, tables=read)["links"].float()


def link_ratios(links: torch.Tensor) -> torch.Tensor:
    """Compute (C, C) log(Θ_cc' / π_c') from (C, C) F; 0 for a class c' without links."""
    usual = links.sum(dim=0) / links.sum().clamp(min=1e-12)
    expected = (1 - EXPECTED_HOMOPHILY) * usual + EXPECTED_HOMOPHILY * torch.eye(len(usual), device=usual.device)
    profile = (links + PRIOR_LINKS * expected) / (links.sum(dim=1, keepdim=True) + PRIOR_LINKS)
    ratio = torch.log(profile.clamp(min=1e-12) / usual.clamp(min=1e-9))
    return torch.where(usual > 0, ratio, torch.zeros_like(ratio))


def _diagonal(links: torch.Tensor, draws: int) -> list[torch.Tensor]:
    """Extract the (C, C) diagonal blocks of a (draws · C, draws · C) matrix."""
    size = len(links) // draws
    return [links[at : at + size, at : at + size] for at in range(0, len(links), size)]


# Functions of a chunk of rows


def _logits(block: RowBlock, points: torch.Tensor) -> torch.Tensor:
    return logits_of(points, block.tensors["directions"], block.tensors["counts"], block.values["temperature"])


def _logits_of_block(block: RowBlock) -> torch.Tensor:
    return _logits(block, block.rows("x"))


def _posterior(block: RowBlock, points: torch.Tensor) -> torch.Tensor:
    if "posterior" in block.tables:
        return adding_to_one(block.rows("posterior"))
    return probabilities(_logits(block, points))


def _softmax(block: RowBlock) -> torch.Tensor:
    return _by_draw(block, block.rows("logits"))


def _with_links(block: RowBlock) -> torch.Tensor:
    evidence = block.rows("near") @ block.tensors["ratios"].T
    return _by_draw(block, block.rows("logits") + block.values["weight"] * evidence)


def _by_draw(block: RowBlock, logits: torch.Tensor) -> torch.Tensor:
    return probabilities(logits.unflatten(1, (block.values["draws"], -1))).flatten(1)


def _normalised(block: RowBlock) -> torch.Tensor:
    of_draws = block.rows("posterior").unflatten(1, (block.values["draws"], -1))
    return adding_to_one(of_draws.flatten(0, 1)).reshape(len(of_draws), -1)


def _links(block: RowBlock) -> Tensors:
    return {"links": (block.rows("posterior") * block.rows("roots")).T @ block.rows("near")}


def _round_sums(block: RowBlock) -> Tensors:
    points = block.rows("x").float()
    posterior = block.only_visible(_posterior(block, points))
    return {"sums": posterior.T @ block.only_visible(points), "total": posterior.sum(dim=0)}


def _scores(block: RowBlock) -> torch.Tensor:
    points, tensors, values = block.rows("x").float(), block.tensors, block.values
    probabilities = answers(_posterior(block, points), points, tensors, values["share"])
    logits = logits_of(points, tensors["by sums"], tensors["counts"], values["temperature"])
    return torch.log(probabilities.clamp(min=1e-12)) + torch.logsumexp(logits, dim=1, keepdim=True)
