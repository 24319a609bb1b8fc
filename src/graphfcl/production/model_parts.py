"""What a model in production consists of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.methods import Learner
from graphfcl.production.calibration import Calibration
from graphfcl.production.growing_graph import GrowingGraph
from graphfcl.production.ledger import Ledger


@dataclass(frozen=True)
class Configuration:
    """What a user chooses before a model is fitted.

    method: its name. settings: its settings by name, ``{"pretraining.epochs": 5}``; those not named have their
    defaults.
    way, shot: how many classes with how many supports a session is expected to bring. seed: repeats everything.
    max_loss: a change that costs older classes more balanced accuracy than this leaves a warning.
    standardise: dense features get mean 0 and deviation 1 over the train nodes of the fit.
    """

    method: str
    settings: Mapping[str, Any]
    way: int
    shot: int
    seed: int
    max_loss: float
    standardise: bool = True


@dataclass(frozen=True, eq=False)
class ModelParts:
    """Everything that makes a model. Graph, ledger and calibration are immutable; the learner is not."""

    configuration: Configuration
    graph: GrowingGraph
    learner: Learner
    ledger: Ledger
    calibration: Calibration

    def compute_scores(self) -> np.ndarray:
        """(n, columns) the learner's scores of every node of the graph."""
        self.learner.embeddings(self.graph.visible)
        return self.learner.scores(self.graph.visible, self.graph.numbers)
