"""The strangest candidates: those that look least like any class that is known."""

import numpy as np

from graphfcl.active.contract import ActiveLearningState, Query, Strategy
from graphfcl.errors import InputError


class Unknown(Strategy):
    """Strangest first: least like any class that is known"""

    name = "unknown"

    def choose(self, state: ActiveLearningState) -> list[Query]:
        """Candidates by unknown_score, highest first. Ties are broken by chance."""
        if state.unknown_score is None:
            raise InputError("the strategy 'unknown' needs a model, and there is none: take 'auto' or 'typical'.")
        rows = state.shuffled()
        first = np.argsort(-state.unknown_score[rows], kind="stable")[: state.wanted]
        return [Query(int(row), "unknown") for row in rows[first]]
