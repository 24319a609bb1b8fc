"""Choose the neighbourhood settings of ANCHOR by validation sessions.

Candidates are evaluated on the two blocks that depend on no label. The encoder block is left out because the encoder
was trained on the pseudo-novel classes, which play the role of novel classes here. The leading half of the basis
columns ranks the candidates in the same order as all columns. Fewer columns would favour candidates with many hops.

On graphs with more than ``whole_up_to`` nodes, candidates are evaluated on a sample, to save passes over the graph:

- At most ``MOST_NODES`` labelled nodes per class are used.
- The rounds that move the means use ``SAMPLE`` random nodes, each with weight n / ``SAMPLE``, and no neighbours.
- Neighbours' posteriors are used once, after the rounds. This needs the logits of all nodes. Candidates with the same
  propagated features share this table, and all draws of validation sessions lie side by side in it.
- Neighbours' posteriors are not tried for propagated features whose score without them is ``MOST_BEHIND`` or more below
  the best one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from graphfcl.methods.anchor.class_sums import Anchors, Shrinkage
from graphfcl.methods.anchor.frame import Blocks, joined, whitened, whitened_of_block, whitening
from graphfcl.methods.anchor.hop_encoder import HOPS
from graphfcl.methods.anchor.metric import directions_of, logits_of, probabilities
from graphfcl.methods.anchor.rounds import run_rounds, with_neighbours
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.blocks import MemoryNeed, NodeTables, RowBlock, Table
from graphfcl.methods.blocks.interface import TYPES, count_of_each_class, some_of_each_class
from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions
from graphfcl.methods.state import Tensors
from graphfcl.nn import tensor_of
from graphfcl.stream import BaseSession

Scores = Iterator[tuple[list[int], list[float]]]  # positions of some candidates, and their scores
PlanBlocks = Callable[[int], Blocks]  # from a number of hops to the leading columns of XB and Â…ÂXB
Group = tuple[int, float]  # hops and weight of the propagated features
MOST_NODES = 500  # labelled nodes per class
MOST_BEHIND = 0.02  # gap to the best score beyond which neighbours' posteriors are not tried
SAMPLE = 20_000  # nodes that represent all nodes
FEW_COLUMNS = 128  # a basis of at most this width is not halved, because too little information would remain
BYTES_OF_NUMBER = 20  # memory in bytes for each number of a row while rows are joined and whitened


def choose_neighbourhood(
    base: BaseSession,
    tables: NodeTables,
    basis: torch.Tensor,
    settings: AnchorSettings,
    seed: int,
    progress: Progress,
    kind: str,
) -> Neighbourhood:
    """Choose the candidate with the best mean score over some draws of supports.

    The first candidate is kept unless another one is better by more than ``margin``. ``kind`` is the number type of f
    and x.
    """
    candidates = settings.neighbourhoods()
    validation = ValidationSessions.draw(base, base.pseudo_novel_columns, seed)
    if len(candidates) == 1 or not validation.has_new_classes:
        return candidates[0]
    sampled = settings.samples(tables.node_count)
    own = tables.own(basis).leading(trial_columns(basis.shape[1], settings, sampled=sampled)).kept()

    def plan(hops: int) -> Blocks:
        (around,) = tables.hops(own, (hops,))
        return Blocks.of(tables, [own, around], (settings.raw_weight, 0.0), kind)

    trials = (_SampledTrials if sampled else _Trials)(tables, validation, settings, seed)
    scores, tried = np.zeros(len(candidates)), 0
    for places, means in trials.scores(candidates, plan):
        scores[places], tried = means, tried + len(places)
        progress.step("choosing hops", tried, len(candidates), score=float(scores.max()))
    best = int(np.argmax(scores))
    chosen = candidates[best if scores[best] > scores[0] + settings.margin else 0]
    for hops in {each.hops for each in candidates} - {chosen.hops, *HOPS}:
        tables.hops(own, (hops,))[0].remove()
    return chosen


def _grouped(candidates: list[Neighbourhood]) -> dict[Group, list[int]]:
    """Group the positions of candidates by the hops and weight of their propagated features."""
    groups = sorted({(each.hops, each.hop_weight) for each in candidates})
    return {
        group: [place for place, each in enumerate(candidates) if (each.hops, each.hop_weight) == group]
        for group in groups
    }


@dataclass(frozen=True, eq=False)
class _Trials:
    """Evaluation of the candidates on all visible nodes."""

    tables: NodeTables
    validation: ValidationSessions
    settings: AnchorSettings
    seed: int

    def scores(self, candidates: list[Neighbourhood], plan: PlanBlocks) -> Scores:
        train, count, settings = self.validation.train, self.validation.known_count, self.settings
        hops_before = -1
        for (hops, weight), places in _grouped(candidates).items():
            if hops != hops_before:
                blocks, hops_before = plan(hops), hops
                centres = blocks.centres()
            blocks = replace(blocks, weights=(settings.raw_weight, weight))
            frame = blocks.frame(centres, train, count, settings.shrinkage)
            x = blocks.vectors(frame)
            anchors = Anchors.of(self.tables, x, train, count, Shrinkage.of(count, frame, settings))
            for place in places:
                yield [place], [self._score(x, anchors, candidates[place])]
            x.remove()

    def _score(self, x: Table, base: Anchors, how: Neighbourhood) -> float:
        """Average the score over some draws of validation sessions."""
        visible, scores = self.tables.visible, []
        queries = visible.rows(self.validation.queries[0])
        for draw in range(_draw_count(self.validation)):
            alone = self.validation.only(draw)
            *_, last = alone.sessions()
            supports = x.rows_at(visible.rows(last.supports[0]))
            anchors = base.plus(supports, tensor_of(last.supports[1], supports.device), last.class_count)
            rounds = run_rounds(self.tables, x, anchors, how, self.settings)
            scores.append(alone.score_of(rounds.posteriors_at(queries).argmax(dim=1).cpu().numpy()))
            rounds.remove()
        return float(np.mean(scores))


class _SampledTrials(_Trials):
    """Evaluation of the candidates on a sample of the nodes, as the module docstring describes."""

    def scores(self, candidates: list[Neighbourhood], plan: PlanBlocks) -> Scores:
        """Yield the scores of each group.

        If the score of a group without neighbours is far behind the best one, all its candidates get this score.
        """
        parts = (self.validation.train, self.validation.queries)
        train, queries = (some_of_each_class(part, MOST_NODES, self.seed) for part in parts)
        validation = replace(self.validation, train=train, queries=queries)
        alone: dict[Group, float] = {}  # scores without neighbours
        grouped = _grouped(candidates)
        for hops in sorted({group[0] for group in grouped}):
            trial = _SampledTrial(self.tables, validation, self.settings, self.seed, plan(hops))
            groups = {group: [candidates[place] for place in grouped[group]] for group in grouped if group[0] == hops}
            alone |= {group: trial.scores_of([some[0].without_posteriors])[0] for group, some in groups.items()}
            for group, some in groups.items():
                behind = max(alone.values()) - alone[group] > MOST_BEHIND
                yield grouped[group], [alone[group]] * len(some) if behind else trial.scores_of(some)


@dataclass(frozen=True, eq=False)
class Draws:
    """Class directions of several draws of validation sessions.

    Args:
        directions: (draws, C, D) Aμ_c/(ℓ_c √q).
        counts: (draws, C) number of labels of each class.
        temperature: T.
    """

    directions: torch.Tensor
    counts: torch.Tensor
    temperature: float

    def logits(self, vectors: torch.Tensor) -> torch.Tensor:
        """Compute (n, draws · C) logits from (n, D) x."""
        draws = zip(self.directions, self.counts, strict=True)
        return torch.cat([logits_of(vectors, *each, self.temperature) for each in draws], dim=1)


@dataclass(frozen=True, eq=False)
class _SampledRows:
    """(m, ΣD) rows of the blocks: train nodes of known classes, queries, supports of all draws, and the sample."""

    train: torch.Tensor
    queries: torch.Tensor
    supports: torch.Tensor
    sample: torch.Tensor


@dataclass(frozen=True, eq=False)
class _SampledTrial(_Trials):
    """Evaluation of the candidates with one number of hops."""

    blocks: Blocks

    def scores_of(self, candidates: list[Neighbourhood]) -> list[float]:
        """Score candidates that have the same weight of propagated features. A resumed run reads the stored scores."""
        settings, (nodes, labels), (queries, classes) = self.settings, self.validation.train, self.validation.queries
        drawn = {f"supports {number}": each for number, each in enumerate(self.validation.supports)}
        stored = self.tables.remember(
            "choice",
            lambda: {"scores": self._scores(candidates)},
            tables={"blocks": self.blocks.table},
            arrays={"train": nodes, "labels": labels, "queries": queries, "classes": classes, **drawn},
            candidates=[list(each) for each in candidates],
            settings=[settings.raw_weight, settings.shrinkage, settings.temperature, settings.length_prior],
            covariance=[settings.covariance_prior, settings.covariance_columns],
            sample=[settings.rounds, settings.unlabelled_weight, self.seed, SAMPLE],
        )
        return stored["scores"].tolist()

    def _scores(self, candidates: list[Neighbourhood]) -> np.ndarray:
        blocks = replace(self.blocks, weights=(self.settings.raw_weight, candidates[0].hop_weight))
        frame = self._frame(blocks)
        draws = self._draws(blocks, frame)
        count, scores, logits = len(draws.counts), [], None
        for how in candidates:
            if how.uses_posteriors:
                logits = _logits_table(blocks, frame, draws) if logits is None else logits
                table = with_neighbours(self.tables, logits, how, draws=count)
                posterior = table.rows_at(self.tables.visible.rows(self.validation.queries[0]))
                table.remove()
            else:
                posterior = draws.logits(self._points(self._rows.queries, blocks, frame))
            answers = posterior.unflatten(1, (count, -1)).argmax(dim=2).cpu().numpy()
            scores.append(np.mean([self.validation.score_of(answers[:, draw]) for draw in range(count)]))
        if logits is not None:
            logits.remove()
        return np.array(scores)

    def _points(self, rows: torch.Tensor, blocks: Blocks, frame: Tensors) -> torch.Tensor:
        return whitened(joined(blocks.split(rows), frame, blocks.weights), frame, blocks.kind)

    def _frame(self, blocks: Blocks) -> Tensors:
        """Compute the centres from the sample, and the middle, R and ρ̄ from the nodes of known classes."""
        labels = tensor_of(self.validation.train[1], self.tables.device)
        parts = blocks.split(self._rows.sample)
        frame = {f"centre.{place}": part.double().mean(dim=0).float() for place, part in enumerate(parts)}
        vectors = joined(blocks.split(self._rows.train), frame, blocks.weights).to(TYPES[blocks.kind])
        return {**frame, **whitening(vectors, labels, self.validation.known_count, self.settings.shrinkage)}

    def _draws(self, blocks: Blocks, frame: Tensors) -> Draws:
        """Compute the class directions after the rounds over the sample, for each draw."""
        device = self.tables.device
        of_train, of_supports, of_sample = (
            self._points(rows, blocks, frame) for rows in (self._rows.train, self._rows.supports, self._rows.sample)
        )
        labels, known_count = tensor_of(self.validation.train[1], device), self.validation.known_count
        shrinkage = Shrinkage.of(known_count, frame, self.settings)
        base = Anchors.empty(shrinkage).plus(of_train, labels, known_count)
        each = self.tables.node_count / len(of_sample)
        directions, counts = [], []
        for number in range(_draw_count(self.validation)):
            *_, last = self.validation.only(number).sessions()
            here = tensor_of(np.searchsorted(self._supports, last.supports[0]), device)
            anchors = base.plus(of_supports[here], tensor_of(last.supports[1], device), last.class_count)
            directions.append(directions_by_sample(anchors, of_sample, each, self.settings))
            counts.append(anchors.counts)
        return Draws(torch.stack(directions), torch.stack(counts), self.settings.temperature)

    @cached_property
    def _supports(self) -> np.ndarray:
        return _supports_of(self.validation)

    @cached_property
    def _rows(self) -> _SampledRows:
        """Read all rows in one pass over the tables."""
        nodes = sampled_nodes(self.tables.visible.nodes, self.seed)
        lists = (self.validation.train[0], self.validation.queries[0], self._supports, nodes)
        rows = self.tables.visible.rows(np.concatenate(lists))
        self.tables.require(_held(rows.size, self.blocks.table.columns))
        return _SampledRows(*self.blocks.table.rows_at(rows).split([each.size for each in lists]))


def directions_by_sample(anchors: Anchors, sample: torch.Tensor, each: float, settings: AnchorSettings) -> torch.Tensor:
    """Compute (C, D) directions after rounds over (m, D) sampled nodes, each with weight ``each``."""
    directions, wide = anchors.directions(settings), sample.float()
    for _ in range(settings.rounds):
        posterior = probabilities(logits_of(wide, directions, anchors.counts, settings.temperature))
        sums, total = each * (posterior.T @ wide).double(), each * posterior.sum(dim=0).double()
        directions = directions_of(*anchors.moved(sums, total, settings), anchors.metric, settings)
    return directions


def _logits_table(blocks: Blocks, frame: Tensors, draws: Draws) -> Table:
    """Compute (n, draws · C) logits from the nodes' own vectors, without storing x."""
    more = {"directions": draws.directions, "counts": draws.counts}
    columns = draws.counts.numel()
    return blocks.mapped("logits", _logits_of_draws, columns, frame, more, temperature=draws.temperature)


def _logits_of_draws(block: RowBlock) -> torch.Tensor:
    draws = Draws(block.tensors["directions"], block.tensors["counts"], block.values["temperature"])
    return draws.logits(whitened_of_block(block))


def memory_of_choice(
    base: BaseSession, tables: NodeTables, rank: int, settings: AnchorSettings, seed: int
) -> MemoryNeed:
    """Compute the memory that choosing on a sample takes, for a basis of ``rank`` columns."""
    validation = ValidationSessions.draw(base, base.pseudo_novel_columns, seed)
    if len(settings.neighbourhoods()) == 1 or not validation.has_new_classes:
        return _held(0, 0)
    labelled = (count_of_each_class(part[1], MOST_NODES) for part in (validation.train, validation.queries))
    rows = sum(labelled) + _supports_of(validation).size + min(SAMPLE, tables.node_count)
    return _held(rows, 2 * trial_columns(rank, settings, sampled=True))


def _held(rows: int, columns: int) -> MemoryNeed:
    return MemoryNeed.of_rows("choosing the neighbourhood", rows, columns, BYTES_OF_NUMBER)


def _draw_count(validation: ValidationSessions) -> int:
    return min(STEP_DRAWS, len(validation.supports))


def _supports_of(validation: ValidationSessions) -> np.ndarray:
    """Return the support nodes of all draws in ascending order, without the −1 of classes with too few nodes."""
    nodes = np.unique(np.concatenate(validation.supports[: _draw_count(validation)], axis=None))
    return nodes[nodes >= 0]


def sampled_nodes(nodes: np.ndarray, seed: int) -> np.ndarray:
    """Draw at most ``SAMPLE`` of the nodes and keep their order."""
    if nodes.size <= SAMPLE:
        return nodes
    return nodes[np.sort(np.random.default_rng([seed, 10]).choice(nodes.size, SAMPLE, replace=False))]


def trial_columns(rank: int, settings: AnchorSettings, *, sampled: bool) -> int:
    """Return the number of basis columns for trials: at most ``trial_rank``; half of a large basis for a sample."""
    most = min(settings.trial_rank, rank)
    return min(most, max(FEW_COLUMNS, -(-rank // 2))) if sampled else most
