"""The strangest candidates: those that look least like any class that is known."""

import numpy as np

from graphfcl.asking.contract import Situation, Strategy, Wish
from graphfcl.errors import InputError


class Unknown(Strategy):
    """Strangest first: least like any class that is known"""

    name = "unknown"

    def choose(self, situation: Situation) -> list[Wish]:
        """Candidates by strangeness, highest first. Ties are broken by chance."""
        if situation.strangeness is None:
            raise InputError("the strategy 'unknown' needs a model, and there is none: take 'auto' or 'typical'.")
        rows = situation.shuffled()
        first = np.argsort(-situation.strangeness[rows], kind="stable")[: situation.wanted]
        return [Wish(int(row), "unknown") for row in rows[first]]
