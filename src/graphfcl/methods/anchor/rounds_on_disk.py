"""The rounds of ANCHOR over a graph folder, and its scores: posteriors are tables where neighbours are heard."""

from dataclasses import dataclass

import numpy as np
import torch

from graphfcl.methods.anchor.class_sums import Anchors, directions_of, logits_of
from graphfcl.methods.anchor.head import shared_out
from graphfcl.methods.anchor.in_memory import scores_from
from graphfcl.methods.anchor.neighbours import LINK_ITERATIONS, adding_to_one, link_ratios
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.storage import AnchorKnowledge
from graphfcl.methods.blocks.column_phases import Operator
from graphfcl.methods.blocks.folder_inputs import FolderInputs
from graphfcl.methods.blocks.row_phases import RowBlock
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.methods.blocks.work_folder import Arrays, key_of
from graphfcl.methods.learner import Tensors


@dataclass(frozen=True, eq=False)
class RoundsOnDisk:
    """directions: (C, D) μ_c/ℓ_c. posterior: (n, C), whose rows need not add up to 1; None where neighbours are not
    heard, and a node's own vector says it all."""

    directions: torch.Tensor
    posterior: StoredTable | None


def transduced(
    inputs: FolderInputs, vectors: StoredTable, anchors: Anchors, how: Neighbourhood, settings: AnchorSettings
) -> RoundsOnDisk:
    """As in memory: posteriors of all visible nodes move the means, some rounds long."""
    listening = _Listening(inputs, vectors, anchors, how, settings)
    directions = anchors.directions(settings)
    posterior = listening.posterior(directions, None)
    for _ in range(settings.rounds):
        found = listening.sums(directions, posterior)
        weights = anchors.counts + found["total"] * (anchors.counts > 0)
        means = (anchors.sums + found["sums"]) / weights.clamp(min=1e-6)[:, None]
        directions = directions_of(means, weights, settings)
        before, posterior = posterior, listening.posterior(directions, posterior)
        if before is not None:  # it is the same table if the round changed nothing
            before.remove(unless=posterior)
    return RoundsOnDisk(directions, posterior)


def score_table(
    inputs: FolderInputs, vectors: StoredTable, known: AnchorKnowledge, rounds: RoundsOnDisk, settings: AnchorSettings
) -> StoredTable:
    """(n, C) scores of all nodes."""
    given = {
        "directions": rounds.directions.numpy(),
        "counts": known.anchors.counts.numpy(),
        "by sums": known.anchors.directions(settings).numpy(),
    }
    if len(known.head):
        given["head"] = known.head.numpy()
    heard = {} if rounds.posterior is None else {"posterior": rounds.posterior}
    return inputs.rows.table(
        "scores",
        _scores,
        len(known.anchors.counts),
        tables={"x": vectors, **heard},
        given=given,
        temperature=settings.temperature,
        share=settings.head_share,
    )


def posterior_rows(
    vectors: StoredTable, rounds: RoundsOnDisk, anchors: Anchors, rows: np.ndarray, temperature: float
) -> torch.Tensor:
    """(m, C) posteriors of some nodes."""
    if rounds.posterior is not None:
        return adding_to_one(torch.from_numpy(rounds.posterior.rows_at(rows)))
    return anchors.probabilities(torch.from_numpy(vectors.rows_at(rows)), rounds.directions, temperature)


def near_posteriors(inputs: FolderInputs, posterior: StoredTable) -> StoredTable:
    """(n, C) d^(−1/2) A P with edge weights of mean 1."""
    key = key_of(near=posterior.key, graph=inputs.source.graph_key)
    found = inputs.work.table("near", key, posterior.rows, posterior.columns, by="slices")
    inputs.columns("links", Operator(inputs.link_scales(), loop=False), posterior, ((1, found),))
    return found


def links_between(inputs: FolderInputs, posterior: StoredTable, near: StoredTable) -> torch.Tensor:
    """(C, C) F = Pᵀ A P in 32 bits. near: of these posteriors."""
    tables = {"posterior": posterior, "near": near, "roots": inputs.link_scales()}
    return torch.from_numpy(inputs.rows.sums("links", _links, tables=tables)["links"]).float()


@dataclass(frozen=True, eq=False)
class _Listening:
    """One graph, its x, and how neighbours are heard."""

    inputs: FolderInputs
    vectors: StoredTable
    anchors: Anchors
    how: Neighbourhood
    settings: AnchorSettings

    def posterior(self, directions: torch.Tensor, before: StoredTable | None) -> StoredTable | None:
        """(n, C) by these directions and the posteriors before, if any; None if nobody is listened to."""
        if not self.how.links > 0:
            return self._smoothed(self._own(directions)) if self.how.smoothing > 0 else None
        found = self._own(directions) if before is None else before
        for _ in range(LINK_ITERATIONS):
            near = near_posteriors(self.inputs, found)
            ratios = link_ratios(links_between(self.inputs, found, near))
            given = {**self._given(directions), "ratios": ratios.numpy()}
            heard = self._table("heard", _heard, {"x": self.vectors, "near": near}, given)
            near.remove()
            if found is not before:
                found.remove(unless=heard)
            found = self._normalised(self._smoothed(heard)) if self.how.smoothing > 0 else heard
        return found

    def sums(self, directions: torch.Tensor, posterior: StoredTable | None) -> dict[str, torch.Tensor]:
        """(C, D) Σ P_vc x_v and (C,) Σ P_vc."""
        heard = {} if posterior is None else {"posterior": posterior}
        found = self.inputs.rows.sums(
            "rounds",
            _round_sums,
            tables={"x": self.vectors, **heard},
            given=self._given(directions),
            temperature=self.settings.temperature,
        )
        return {name: torch.from_numpy(array) for name, array in found.items()}

    def _own(self, directions: torch.Tensor) -> StoredTable:
        """P₀ by the nodes' own vectors."""
        return self._table("posterior", _own_posterior, {"x": self.vectors}, self._given(directions))

    def _smoothed(self, first: StoredTable) -> StoredTable:
        found = self.inputs.smoothed(first, self.how.smoothing, self.how.smoothing_steps)
        first.remove(unless=found)
        return found

    def _normalised(self, given: StoredTable) -> StoredTable:
        """With rows that add up to 1: the next hop reads them as they are."""
        found = self._table("normalised", _normalised, {"posterior": given}, {})
        given.remove(unless=found)
        return found

    def _table(self, phase: str, function: object, tables: dict[str, StoredTable], given: Arrays) -> StoredTable:
        return self.inputs.rows.table(
            phase,
            function,  # type: ignore[arg-type]
            len(self.anchors.counts),
            tables=tables,
            given=given,
            temperature=self.settings.temperature,
            weight=self.how.links,
        )

    def _given(self, directions: torch.Tensor) -> Arrays:
        return {"directions": directions.numpy(), "counts": self.anchors.counts.numpy()}


def _points(block: RowBlock) -> torch.Tensor:
    """x in 32 bits: every product would turn it anew."""
    return block.rows("x").float()


def _logits(block: RowBlock, points: torch.Tensor) -> torch.Tensor:
    return logits_of(points, block.given["directions"], block.given["counts"], block.values["temperature"])


def _posterior(block: RowBlock, points: torch.Tensor) -> torch.Tensor:
    if "posterior" in block.tables:
        return adding_to_one(block.rows("posterior"))
    return torch.softmax(_logits(block, points), dim=1)


def _normalised(block: RowBlock) -> torch.Tensor:
    return adding_to_one(block.rows("posterior"))


def _own_posterior(block: RowBlock) -> torch.Tensor:
    return torch.softmax(_logits(block, _points(block)), dim=1)


def _heard(block: RowBlock) -> torch.Tensor:
    evidence = block.rows("near") @ block.given["ratios"].T
    return torch.softmax(_logits(block, _points(block)) + block.values["weight"] * evidence, dim=1)


def _links(block: RowBlock) -> Tensors:
    roots = block.rows("roots")[:, 0]
    inverse = torch.where(roots > 0, 1 / roots.clamp(min=1e-30), torch.zeros_like(roots))  # of d^(−1/2)
    return {"links": (block.rows("posterior") * inverse[:, None]).T @ block.rows("near")}


def _round_sums(block: RowBlock) -> Tensors:
    points = _points(block)
    posterior = block.only_visible(_posterior(block, points))
    return {"sums": posterior.T @ block.only_visible(points), "total": posterior.sum(dim=0)}


def _scores(block: RowBlock) -> torch.Tensor:
    points, given, values = _points(block), block.given, block.values
    head = given.get("head", torch.zeros(0, 0))
    posterior = shared_out(_posterior(block, points), points, head, values["share"])
    return scores_from(posterior, logits_of(points, given["by sums"], given["counts"], values["temperature"]))
