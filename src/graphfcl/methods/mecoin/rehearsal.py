"""Validation sessions of a memory on a frozen encoder: all embeddings are at hand."""

from dataclasses import dataclass

import numpy as np
import torch

from graphfcl.errors import DivergenceError
from graphfcl.graph import VisibleGraph
from graphfcl.methods.learner import Labelled
from graphfcl.methods.mecoin.books import Books
from graphfcl.methods.mecoin.settings import MecoinSettings
from graphfcl.methods.mecoin.teaching import Points, Table, both_answers, taught
from graphfcl.methods.shared.fine_tuning import DIVERGED, Steps
from graphfcl.methods.shared.validation_sessions import STEP_DRAWS, ValidationSessions
from graphfcl.nn import tensor_of
from graphfcl.stream import BaseSession


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A memory that knows the base classes alone, before the held-out ones arrive.

    base: session 0 with all pseudo-novel classes held out. table: what was taught of the base classes. kept: the nodes
    of these that a session teaches again. every: (n, h) embeddings of the visible graph.
    """

    validation: ValidationSessions
    base: BaseSession
    books: Books
    table: Table
    kept: Labelled
    every: torch.Tensor
    settings: MecoinSettings
    generator: torch.Generator

    def score(self, steps: int, rate: float) -> float:
        """The mean score over draws of the supports; the sessions of each are walked through one by one."""
        asked, _ = self._points(self.validation.asked)
        places, scores = self.books.look_up(asked), []
        for draw in range(STEP_DRAWS):
            alone = self.validation.only(draw)
            try:
                table = self._walked(alone, (steps, rate))
            except DivergenceError:
                return DIVERGED
            scores.append(alone.score_of(both_answers(table, asked, places)[self.settings.answer]))
        return float(np.mean(scores))

    def _walked(self, alone: ValidationSessions, how: Steps) -> Table:
        table, (nodes, labels) = self.table, self.kept
        for session in alone.rehearsal(self.base)[1]:
            supports = (session.supports, session.support_labels)
            nodes, labels = (np.concatenate(each) for each in zip((nodes, labels), supports, strict=True))
            count = alone.known_count + len(np.unique(labels[labels >= alone.known_count]))
            points, kept = self._points(supports), self._points((nodes, labels))
            table = taught(self.books, table, points, kept, count, how, self.settings, self.generator)
        return table

    def _points(self, labelled: Labelled) -> Points:
        visible: VisibleGraph = self.base.visible_graph
        rows = torch.tensor(visible.rows(labelled[0]), device=self.every.device)
        return self.every[rows], tensor_of(labelled[1], self.every.device)
