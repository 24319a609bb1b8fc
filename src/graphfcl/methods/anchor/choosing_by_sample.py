"""Which neighbourhood a run on a large graph folder takes: chosen on rows in memory and few passes over all nodes.

All candidates are tried, as in memory, with these differences, each of which saves passes:

- the leading half of the columns, and at most ``MOST_NODES`` labelled nodes of a class;
- the rounds, in which means move, go over ``SAMPLE`` nodes drawn from all, each of which counts for n / ``SAMPLE``, and
  nobody is listened to in them: x of these nodes is all they need, and it is in memory;
- neighbours are heard once, in the end. That takes the posteriors of all nodes, a table that candidates with the same
  features around share; the draws of validation sessions stand side by side in it;
- nor are they heard where the features around, without them, are ``MOST_BEHIND`` the best ones or more.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from graphfcl.graph.visible_folder import Need
from graphfcl.methods.anchor.class_sums import Anchors, logits_of, whitening
from graphfcl.methods.anchor.draws_on_disk import Draws, heard, posterior_table
from graphfcl.methods.anchor.frame_on_disk import Blocks
from graphfcl.methods.anchor.neighbours import Nobody
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.anchor.vectors import joined, points
from graphfcl.methods.blocks.folder_inputs import FolderInputs
from graphfcl.methods.blocks.labelled_rows import count_of_each_class, some_of_each_class
from graphfcl.methods.blocks.work_folder import Arrays, arrays_key, key_of
from graphfcl.methods.learner import Progress, Tensors
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions, all_held_out
from graphfcl.stream import BaseSession

PlanBlocks = Callable[[int], Blocks]  # the leading columns of XB and Â…ÂXB of so many hops, planned
MOST_NODES = 500  # labelled ones of a class
MOST_BEHIND = 0.02  # that a score without neighbours may be, if they are to be heard
SAMPLE = 20_000  # nodes that stand for all
FEW_COLUMNS = 128  # of a basis that are not halved: a node's own features would say too little
BYTES_OF_NUMBER = 20  # of rows that are held while they are joined and whitened


def choose_by_sample(
    base: BaseSession, inputs: FolderInputs, plan: PlanBlocks, settings: AnchorSettings, seed: int, progress: Progress
) -> Neighbourhood:
    """The candidate with the best score, or the first if that is hardly better."""
    candidates = settings.neighbourhoods()
    validation = ValidationSessions.draw(all_held_out(base), seed)
    if len(candidates) == 1 or not validation.has_new_classes:
        return candidates[0]
    scores = scores_by_sample(validation, inputs, plan, settings, seed, progress)
    best = int(np.argmax(scores))
    return candidates[best if scores[best] > scores[0] + settings.margin else 0]


def scores_by_sample(
    validation: ValidationSessions,
    inputs: FolderInputs,
    plan: PlanBlocks,
    settings: AnchorSettings,
    seed: int,
    progress: Progress,
) -> np.ndarray:
    """(candidates,) mean scores over some draws. Features around that are far behind count as if nobody was heard."""
    candidates = settings.neighbourhoods()
    train, asked = (some_of_each_class(part, MOST_NODES, seed) for part in (validation.train, validation.asked))
    validation = replace(validation, train=train, asked=asked)
    scores, tried = np.zeros(len(candidates)), 0
    quiet: dict[tuple[int, float], float] = {}  # scores without neighbours, of features around
    for hops in sorted({each.hops for each in candidates}):
        trial = _Trial(inputs, plan(hops), validation, settings, seed)
        groups = {each.hop_weight: each for each in candidates if each.hops == hops}
        quiet |= {(hops, weight): float(trial.scores([each.without_posteriors])[0]) for weight, each in groups.items()}
        for weight in groups:
            here = [place for place, each in enumerate(candidates) if (each.hops, each.hop_weight) == (hops, weight)]
            behind = max(quiet.values()) - quiet[hops, weight] > MOST_BEHIND
            scores[here] = quiet[hops, weight] if behind else trial.scores([candidates[place] for place in here])
            tried += len(here)
            progress.step("choosing hops", tried, len(candidates), score=float(scores.max()))
    return scores


@dataclass(frozen=True, eq=False)
class _Rows:
    """(m, 2k) rows of both blocks: of known classes, asked about, supports of all draws, and of the sample."""

    train: list[torch.Tensor]
    asked: list[torch.Tensor]
    supports: list[torch.Tensor]
    sample: list[torch.Tensor]


@dataclass(frozen=True, eq=False)
class _Trial:
    """The candidates with one number of hops."""

    inputs: FolderInputs
    blocks: Blocks
    validation: ValidationSessions
    settings: AnchorSettings
    seed: int

    def scores(self, candidates: list[Neighbourhood]) -> np.ndarray:
        """Of some with the same weight of the features around. They are stored: a run that goes on reads them."""
        settings, (nodes, labels), (asked, classes) = self.settings, self.validation.train, self.validation.asked
        drawn = {f"supports {number}": each for number, each in enumerate(self.validation.supports)}
        numbers = self.inputs.visible.row_of_number
        key = key_of(
            choice=self.blocks.values,
            blocks=[table.key for table in self.blocks.tables],
            graph=self.inputs.source.graph_key,
            sessions=arrays_key({"train": nodes, "labels": labels, "asked": asked, "classes": classes, **drawn}),
            numbers="" if numbers is None else arrays_key({"row of number": numbers}),
            candidates=[list(each) for each in candidates],
            settings=[settings.raw_weight, settings.shrinkage, settings.temperature, settings.length_prior],
            sample=[settings.rounds, self.seed, SAMPLE],
        )
        return self.inputs.work.arrays("choice", key, lambda: self._scores(candidates))["scores"]

    def _scores(self, candidates: list[Neighbourhood]) -> Arrays:
        weights = (self.settings.raw_weight, candidates[0].hop_weight)
        frame = self._frame(weights)
        draws = self._draws(frame, weights)
        found, first = [], None
        for how in candidates:
            if how.smoothing > 0 or how.links > 0:
                blocks = replace(self.blocks, weights=weights)
                first = posterior_table(self.inputs, blocks, frame, draws) if first is None else first
                table = heard(self.inputs, first, draws, how)
                posterior = torch.from_numpy(table.rows_at(self.inputs.visible.rows(self.validation.asked[0])))
                table.remove()
            else:
                asked = points(joined(self._rows.asked, frame, weights), frame)
                posterior = torch.cat([logits_of(asked, *each, draws.temperature) for each in draws.each], dim=1)
            answers = posterior.unflatten(1, (len(draws.counts), -1)).argmax(dim=2).numpy()
            found.append(np.mean([self.validation.score_of(answers[:, draw]) for draw in range(len(draws.counts))]))
        if first is not None:
            first.remove()
        return {"scores": np.array(found)}

    def _frame(self, weights: tuple[float, float]) -> Tensors:
        """Centres by the sample; middle and R by the nodes of known classes."""
        rows, labels = self._rows, torch.from_numpy(self.validation.train[1])
        frame = {f"centre.{place}": block.double().mean(dim=0).float() for place, block in enumerate(rows.sample)}
        vectors = joined(rows.train, frame, weights).half()
        middle, root = whitening(vectors, labels, self.validation.known_count, self.settings.shrinkage)
        return {**frame, "middle": middle, "whitening": root}

    def _draws(self, frame: Tensors, weights: tuple[float, float]) -> Draws:
        """The directions with which the rounds over the sample end, for each draw."""
        of_train, of_supports, of_sample = (
            points(joined(rows, frame, weights), frame)
            for rows in (self._rows.train, self._rows.supports, self._rows.sample)
        )
        labels, known_count = torch.from_numpy(self.validation.train[1]), self.validation.known_count
        known, each = (
            Anchors.empty().plus(of_train, labels, known_count),
            self.inputs.visible.node_count / len(of_sample),
        )
        directions, counts = [], []
        for number in range(_draw_count(self.validation)):
            *_, last = self.validation.only(number).sessions()
            here = torch.from_numpy(np.searchsorted(self._supports, last.supports))
            anchors = known.plus(of_supports[here], torch.from_numpy(last.support_classes), last.class_count)
            directions.append(anchors.transduced(of_sample, Nobody(), self.settings, each=each)[1])
            counts.append(anchors.counts)
        return Draws(torch.stack(directions), torch.stack(counts), self.settings.temperature)

    @cached_property
    def _supports(self) -> np.ndarray:
        return _supports_of(self.validation)

    @cached_property
    def _rows(self) -> _Rows:
        """Rows that lie anywhere take a pass over the tables, so all are read in one."""
        nodes = sampled_nodes(self.inputs.visible.nodes, self.seed)
        lists = (self.validation.train[0], self.validation.asked[0], self._supports, nodes)
        rows, sizes = self.inputs.visible.rows(np.concatenate(lists)), [each.size for each in lists]
        self.inputs.means.require(self.inputs.source.rows, _need(rows.size, self.blocks.width))
        self.blocks.make()
        kind, leading = np.dtype(self.blocks.kind), self.blocks.columns
        found = [
            torch.from_numpy(table.rows_at(rows, lambda part: part.astype(kind), leading)).split(sizes)
            for table in self.blocks.tables
        ]
        return _Rows(*(list(each) for each in zip(*found, strict=True)))


def need_of_choice(base: BaseSession, inputs: FolderInputs, rank: int, settings: AnchorSettings, seed: int) -> Need:
    """What is held while candidates are tried. rank: columns of the basis."""
    validation = ValidationSessions.draw(all_held_out(base), seed)
    if len(settings.neighbourhoods()) == 1 or not validation.has_new_classes:
        return _need(0, 0)
    labelled = (count_of_each_class(part[1], MOST_NODES) for part in (validation.train, validation.asked))
    rows = sum(labelled) + _supports_of(validation).size + min(SAMPLE, inputs.visible.node_count)
    return _need(rows, 2 * trial_columns(rank, settings))


def _need(rows: int, columns: int) -> Need:
    what = f"choosing the neighbourhood on {rows:,} rows of {columns:,} columns"
    return Need(rows * columns * BYTES_OF_NUMBER, what, here=True)


def _draw_count(validation: ValidationSessions) -> int:
    return min(STEP_DRAWS, len(validation.supports))


def _supports_of(validation: ValidationSessions) -> np.ndarray:
    """Nodes, ascending, of all draws; a class may have too few for a draw."""
    found = np.unique(np.concatenate(validation.supports[: _draw_count(validation)], axis=None))
    return found[found >= 0]


def sampled_nodes(nodes: np.ndarray, seed: int) -> np.ndarray:
    """Some of the visible nodes, in their order; all if they are few."""
    if nodes.size <= SAMPLE:
        return nodes
    return nodes[np.sort(np.random.default_rng([seed, 10]).choice(nodes.size, SAMPLE, replace=False))]


def trial_columns(rank: int, settings: AnchorSettings) -> int:
    """Columns of the basis that are looked at: half of its ``rank``, but not few, and at most ``trial_rank``."""
    return min(settings.trial_rank, rank, max(FEW_COLUMNS, -(-rank // 2)))
