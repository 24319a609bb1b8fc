"""What a model says of rows of its graph, read some at a time."""

from dataclasses import dataclass

import numpy as np

from graphfcl.production.answers.answers import class_probabilities
from graphfcl.production.model.state import ModelState


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """(n, classes) probabilities of the nodes of a model, which are computed for the rows that are read."""

    state: ModelState

    @property
    def shape(self) -> tuple[int, int]:
        return self.state.parts.graph.visible.row_count, len(self.state.parts.label_store.classes)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """(r, classes) probabilities of some rows; each sums to 1."""
        return class_probabilities(self.state.parts.label_store, self.state.asked.answers_at(rows))

    def with_unknown_scores(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(r, classes) probabilities and (r,) unknown scores of some rows."""
        answers = self.state.asked.answers_at(rows)
        probabilities = class_probabilities(self.state.parts.label_store, answers)
        return probabilities, self.state.calibration().unknown_scores(answers.ood_score)

    def ood_score(self) -> np.ndarray:
        """(n,) of all rows; higher is stranger."""
        blocks = (np.arange(*block) for block in self.state.parts.graph.visible.row_blocks())
        return np.concatenate([self.state.asked.answers_at(rows).ood_score for rows in blocks])

    def unknown_scores(self) -> np.ndarray:
        """(n,) of all rows, the share of known nodes that are less strange."""
        return self.state.calibration().unknown_scores(self.ood_score())
