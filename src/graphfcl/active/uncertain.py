"""The smallest margin between the two likeliest classes."""

import numpy as np

from graphfcl.active.contract import ActiveLearningState, Query, Strategy
from graphfcl.errors import InputError


class Uncertain(Strategy):
    """Smallest margin between the two likeliest classes"""

    name = "uncertain"
    reference = "Scheffer et al., IDA 2001"

    def choose(self, state: ActiveLearningState) -> list[Query]:
        """Candidates by p_1 − p_2, the probabilities of the two likeliest classes, smallest first.

        With a single class known, by its probability. Ties are broken by chance.
        """
        if state.scores is None:
            raise InputError("the strategy 'uncertain' needs a model, and there is none: take 'auto' or 'typical'.")
        rows = state.shuffled()
        _, _, margin = state.likeliest(rows)
        first = np.argsort(margin, kind="stable")[: state.wanted]
        return [Query(int(row), "between") for row in rows[first]]
