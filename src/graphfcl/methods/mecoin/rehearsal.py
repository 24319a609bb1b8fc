"""Validation sessions of a memory on a frozen encoder: all embeddings are at hand."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from graphfcl.errors import DivergenceError
from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.learner import Labelled
from graphfcl.methods.mecoin.books import Books
from graphfcl.methods.mecoin.settings import MecoinSettings
from graphfcl.methods.mecoin.teaching import Lessons, Points, Table, both_logits, taught
from graphfcl.methods.shared.fine_tuning import DIVERGED, Steps
from graphfcl.methods.shared.logit_adjustment import LogitAdjustment
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions
from graphfcl.nn import tensor_of
from graphfcl.stream.sessions import BaseSession


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A memory that knows the base classes alone, before the held-out ones arrive.

    base: session 0 with all pseudo-novel classes held out. table: what was taught of the base classes. kept: the nodes
    of these that a session teaches again. every: (n, h) embeddings of the visible graph. taus: the best adjustment of
    logits by steps and rate.
    """

    validation: ValidationSessions
    base: BaseSession
    books: Books
    table: Table
    kept: Labelled
    every: torch.Tensor
    settings: MecoinSettings
    generator: torch.Generator
    taus: dict[Steps, float] = field(default_factory=dict)

    @cached_property
    def asked(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Embeddings and lookups of the nodes that are asked about."""
        points, _ = self._points(self.validation.asked)
        return points, self.books.look_up(points)

    @cached_property
    def lessons(self) -> list[Lessons]:
        """For each draw, of the nodes that are kept and of all supports, session after session."""
        found = []
        for draw in range(STEP_DRAWS):
            sessions = self.validation.only(draw).rehearsal(self.base)[1]
            labelled = [self.kept, *((each.supports, each.support_labels) for each in sessions)]
            nodes, labels = (np.concatenate(parts) for parts in zip(*labelled, strict=True))
            points = self._points((nodes, labels))
            found.append(Lessons.draw(self.books, *points, self.settings.draws, self.generator))
        return found

    def score(self, steps: int, rate: float) -> float:
        """The mean score over draws of the supports, with the best adjustment of logits, which is noted in ``taus``.

        The sessions of each draw are walked through one by one.
        """
        scores = []
        for draw in range(STEP_DRAWS):
            alone = self.validation.only(draw)
            try:
                table = self._walked(alone, self.lessons[draw], (steps, rate))
            except DivergenceError:
                return DIVERGED
            logits = both_logits(table, *self.asked)[self.settings.answer]
            adjustment = self._adjustment(alone)
            answers = (adjustment.apply(logits, tau).argmax(dim=1) for tau in self.settings.adjustments)
            scores.append([alone.score_of(answer.cpu().numpy()) for answer in answers])
        means = np.mean(scores, axis=0)
        self.taus[steps, rate] = self.settings.adjustments[int(means.argmax())]
        return float(means.max())

    def _adjustment(self, alone: ValidationSessions) -> LogitAdjustment:
        """What the learner would know of how many labels each class has, after the last session."""
        found = LogitAdjustment(self.settings.adjustments)
        for labels in (alone.train[1], *(each.support_labels for each in alone.rehearsal(self.base)[1])):
            found.add(labels, alone.class_count)
        return found

    def _walked(self, alone: ValidationSessions, lessons: Lessons, how: Steps) -> Table:
        table, end = self.table, self.kept[0].size
        for session in alone.rehearsal(self.base)[1]:
            end += session.supports.size
            count = table.values.shape[1] + len(session.new_classes)
            supports = self._points((session.supports, session.support_labels))
            seen = lessons.some(torch.arange(end, device=self.every.device))
            table = taught(table, supports, seen, count, how, self.settings, self.generator)
        return table

    def _points(self, labelled: Labelled) -> Points:
        visible: VisibleGraph = self.base.visible_graph
        rows = torch.tensor(visible.rows(labelled[0]), device=self.every.device)
        return self.every[rows], tensor_of(labelled[1], self.every.device)
