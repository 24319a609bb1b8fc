"""What a measure of ood_score is, and what it may look at."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphfcl.production.answers.row_values import RowValues

if TYPE_CHECKING:  # stored answers are read without scipy
    from graphfcl.graph.visible_nodes import VisibleNodes

STEPS_AROUND = 2  # how often a value is mixed with those of the neighbours


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of every node of a graph when a model has answered.

    scores: (n, columns) of the classes in use. temperature: what they are divided by before they become probabilities.
    few: (columns,) whether a class was learned after session 0. visible: the nodes and edges. labelled: (n,) whether
    the learner knows the label of a node.
    """

    scores: RowValues
    temperature: float
    few: np.ndarray
    visible: "VisibleNodes"
    labelled: np.ndarray

    def of_scores(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """(n,) a function of scores, which answers one value for each of its rows."""
        return np.concatenate([function(block) for block in self.scores.blocks()])

    @cached_property
    def degrees(self) -> np.ndarray:
        return self.visible.degrees.astype(np.float64)

    def mean_of_neighbours(self, values: np.ndarray) -> np.ndarray:
        """(n,) the weighted mean over the neighbours of each node; a lone node keeps its own value."""
        return np.where(self.degrees > 0, self.visible.product(values) / np.maximum(self.degrees, 1e-12), values)

    def around(self, values: np.ndarray, steps: int = STEPS_AROUND) -> np.ndarray:
        """(n,) values mixed half and half with the mean of the neighbours, so many times."""
        for _ in range(steps):
            values = 0.5 * values + 0.5 * self.mean_of_neighbours(values)
        return values

    def own_share_around(self, rows: np.ndarray) -> np.ndarray:
        """(rows,) the share of a node's own value in :meth:`around`: ¼ + ¼ of a walk's return in two steps; a lone
        node has all of it."""
        near = self.visible.neighbours_at(rows)
        back = near.multiply(near) @ (1 / np.maximum(self.degrees, 1e-12)) / np.maximum(self.degrees[rows], 1e-12)
        return np.where(self.degrees[rows] > 0, 0.25 + 0.25 * back, 1.0)


@dataclass(frozen=True)
class Measure:
    """A named value of every node: the higher, the less it looks like any known class.

    name: what histories and model folders call it.
    of: from the evidence to (n,) values.
    around: whether these values are then mixed with those of the neighbours (:meth:`Evidence.around`).
    limit: values count up to so many spreads of known nodes away from their middle.
    standard: whether values are measured in spreads of known nodes from their middle; a measure that is 0 or 1 is not.
    tempers: whether a node's temperature follows it too.
    """

    name: str
    of: Callable[[Evidence], np.ndarray]
    around: bool = False
    limit: float = 6.0
    standard: bool = True
    tempers: bool = False
